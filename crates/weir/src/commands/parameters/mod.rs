//! `weir parameters`: the parameters that a study can vary, as a table or one in full.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use weir_load::files::{LARGEST_DESCRIPTION, read_at_most};
use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, EffectiveFrom, Parameter};

use crate::args::{ParametersArgs, TextOrJson};
use crate::commands::study::must_be_own;
use crate::failure::Failure;
use crate::terminal;

mod shown;
mod text;

#[cfg(test)]
pub(crate) use shown::FORMAT;
pub(crate) use shown::Listed;
use shown::ParameterFacts;

pub(crate) fn run(args: &ParametersArgs) -> Result<ExitCode, Failure> {
    let catalog = read_catalog(&args.parameters)?;
    let proxy = args.proxy;
    let of_table = proxy.unwrap_or(ProxyKind::Nginx);
    let text = match (&args.name, args.format) {
        (Some(name), format) => describe_one(&catalog, proxy, name, format)?,
        (None, TextOrJson::Text) => {
            text::table(&list_all(&catalog, of_table), of_table, terminal::width())
        }
        (None, TextOrJson::Json) => json(list_all(&catalog, of_table)),
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn json(parameters: Vec<ParameterFacts<'_>>) -> String {
    format!("{:#}\n", json!(Listed::new(parameters)))
}

/// Returns weir's own parameters and those of users' files, with the defaults of the running kernel.
///
/// # Errors
/// A file cannot be read, or does not contain valid rows.
pub(crate) fn read_catalog(files: &[PathBuf]) -> Result<Catalog, Failure> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let builtin = Catalog::builtin().for_kernel(&release);
    files.iter().try_fold(builtin, |catalog, path| {
        let file = path.display().to_string();
        must_be_own(path, "a file of parameters")?;
        let text = read_at_most(path, LARGEST_DESCRIPTION)
            .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
            .map_err(|error| Failure::input(format!("cannot read {file}: {error}")))?;
        catalog.with_rows(&file, &text).map_err(|error| {
            Failure::input(error).hint("docs/parameters.md says how a row is written")
        })
    })
}

fn list_all(catalog: &Catalog, proxy: ProxyKind) -> Vec<ParameterFacts<'_>> {
    let rows = catalog.all(proxy);
    rows.map(|row| ParameterFacts::new(row, catalog, proxy)).collect()
}

/// Describes one parameter, found by its id or its directive. It is that of the given proxy, or else of the first proxy
/// that has one, followed by the other proxies' parameters of that name.
fn describe_one(
    catalog: &Catalog,
    proxy: Option<ProxyKind>,
    name: &str,
    format: TextOrJson,
) -> Result<String, Failure> {
    let kinds = proxy.map_or_else(|| ProxyKind::ALL.to_vec(), |proxy| vec![proxy]);
    let rows: Vec<(ProxyKind, &Parameter)> = kinds
        .iter()
        .filter_map(|kind| {
            let by_id = catalog.get(*kind, name);
            let row =
                by_id.or_else(|| catalog.parameters(*kind).find(|row| is_written(row, name)))?;
            Some((*kind, row))
        })
        .collect();
    let Some((&(kind, row), others)) = rows.split_first() else {
        let failure = Failure::input(format!("there is no parameter called `{name}`"));
        let nearest = catalog.nearest_among(&kinds, name);
        return Err(match nearest {
            Some(nearest) => failure.hint(format!("did you mean `{nearest}`?")),
            None => failure.hint(
                "`weir parameters` lists all of nginx, and with `--proxy PROXY` those of another proxy; `--parameters FILE` adds your own",
            ),
        });
    };
    let shown = ParameterFacts::new(row, catalog, kind);
    Ok(match format {
        TextOrJson::Text => {
            let of_files = others.iter().filter(|(_, row)| row.scope.is_configuration());
            text::description(&shown, terminal::width())
                + &of_files.map(text::also).collect::<String>()
        }
        TextOrJson::Json => json(vec![shown]),
    })
}

/// Returns true if the parameter is written as this directive.
fn is_written(row: &Parameter, directive: &str) -> bool {
    matches!(&row.effective, EffectiveFrom::Directive { name, .. } if name == directive)
}
