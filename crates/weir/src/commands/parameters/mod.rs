//! `weir parameters`: what a study can vary, as a table or one by one.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use weir_load::files::{LARGEST_DESCRIPTION, read_at_most};
use weir_model::study::ProxyKind;
use weir_parameters::Catalog;

use crate::args::{ParametersArgs, ParametersFormat};
use crate::failure::Failure;
use crate::terminal;

mod shown;
mod text;

use shown::Shown;

/// Runs the command.
pub(crate) fn run(args: &ParametersArgs) -> Result<ExitCode, Failure> {
    let catalog = catalog(&args.parameters)?;
    let proxy = args.proxy;
    let of_table = proxy.unwrap_or(ProxyKind::Nginx);
    let text = match (&args.name, args.format) {
        (Some(name), format) => one(&catalog, proxy, name, format)?,
        (None, ParametersFormat::Text) => {
            text::table(&all(&catalog, of_table), of_table, terminal::width())
        }
        (None, ParametersFormat::Json) => format!("{:#}\n", json!(all(&catalog, of_table))),
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The parameters that come with weir and those of users' files, with the defaults of the kernel
/// that runs.
///
/// # Errors
/// A file cannot be read, or is no file of rows.
pub(crate) fn catalog(files: &[PathBuf]) -> Result<Catalog, Failure> {
    let release = rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned();
    let builtin = Catalog::builtin().for_kernel(&release);
    files.iter().try_fold(builtin, |catalog, path| {
        let file = path.display().to_string();
        let text = read_at_most(path, LARGEST_DESCRIPTION)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
            .map_err(|error| Failure::input(format!("cannot read {file}: {error}")))?;
        let catalog = catalog.with_rows(&file, &text);
        catalog.map_err(|error| {
            Failure::input(error).hint("docs/parameters.md says how a row is written")
        })
    })
}

fn all(catalog: &Catalog, proxy: ProxyKind) -> Vec<Shown<'_>> {
    let rows = catalog.all(proxy);
    rows.map(|row| Shown::new(row, catalog, proxy)).collect()
}

/// One parameter: of the proxy that was named, or else of the first that has it.
fn one(
    catalog: &Catalog,
    proxy: Option<ProxyKind>,
    name: &str,
    format: ParametersFormat,
) -> Result<String, Failure> {
    let kinds = proxy.map_or_else(|| ProxyKind::ALL.to_vec(), |proxy| vec![proxy]);
    let mut each = kinds.iter();
    let found = each.find_map(|kind| Some((*kind, catalog.get(*kind, name)?)));
    let Some((kind, row)) = found else {
        let failure = Failure::input(format!("there is no parameter called `{name}`"));
        let nearest = catalog.nearest_among(&kinds, name);
        return Err(match nearest {
            Some(nearest) => failure.hint(format!("did you mean `{nearest}`?")),
            None => failure.hint(
                "`weir parameters` lists those that there are, with `--proxy PROXY` those of another \
                 proxy; `--parameters FILE` adds your own",
            ),
        });
    };
    let shown = Shown::new(row, catalog, kind);
    Ok(match format {
        ParametersFormat::Text => text::description(&shown, terminal::width()),
        ParametersFormat::Json => format!("{:#}\n", json!(shown)),
    })
}
