//! `weir export` and `weir import`: a run as tables, or as one file.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use weir_model::foreign::in_a_line;
use weir_model::quantity::parse_bytes;
use weir_notebook::{ImportLimits, Packed, files_in, pack, parquet_tables, unpack};
use weir_record::{Run, SAMPLES_FOLDER};
use weir_report::number;

use crate::args::{ExportArgs, ExportFormat, ImportArgs};
use crate::commands::runs::find_run;
use crate::commands::{flag, report};
use crate::failure::Failure;
use crate::terminal;

pub(crate) fn run(args: &ExportArgs) -> Result<ExitCode, Failure> {
    let dir = find_run(&args.run);
    // Checked as a whole: half a run is exported as such, a damaged one is not.
    let run = report::read(&dir)?;
    let output = args.output.clone().unwrap_or_else(|| default_output(&dir, args.format));
    if output.symlink_metadata().is_ok() {
        return Err(Failure::input(format!("{} exists", output.display()))
            .hint("remove it, or give another name with -o"));
    }
    let text = match args.format {
        ExportFormat::Archive => {
            let packed = write_archive(&dir, &output, args.with_secrets)?;
            describe_archive(&output, &packed, args.with_secrets)
        }
        ExportFormat::Csv | ExportFormat::Parquet if args.with_secrets => {
            return Err(Failure::input("--with-secrets: tables have no secrets")
                .hint("it belongs to --format archive"));
        }
        ExportFormat::Csv => describe_tables(&output, write_csv(&run, &output)?),
        ExportFormat::Parquet => describe_tables(&output, write_parquet(&run, &output)?),
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn default_output(dir: &Path, format: ExportFormat) -> PathBuf {
    let name = dir.canonicalize().ok().and_then(|path| path.file_name().map(ToOwned::to_owned));
    let mut output = name.unwrap_or_else(|| "run".into());
    output.push(match format {
        ExportFormat::Csv => "-csv",
        ExportFormat::Parquet => "-parquet",
        ExportFormat::Archive => ".tar.gz",
    });
    PathBuf::from(output)
}

fn describe_tables(folder: &Path, count: usize) -> String {
    format!("{}: {}\n", folder.display(), number::plural(count as u64, "table"))
}

fn cannot_write(path: &Path, error: &dyn Display) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}

fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot read {}: {error}", path.display()))
}

/// Writes the tables of a run as CSV into a new folder, and returns their number.
fn write_csv(run: &Run, folder: &Path) -> Result<usize, Failure> {
    weir_files::make_folder(folder).map_err(|error| cannot_write(folder, &error))?;
    let findings = weir_analysis::analyze(run);
    let mut tables = vec![
        ("verdicts.csv".to_owned(), weir_report::csv::findings(&findings).text().into_bytes()),
        ("trials.csv".to_owned(), weir_report::csv::trials(&run.records).text().into_bytes()),
    ];
    let samples = run.dir.join(SAMPLES_FOLDER);
    let files = if samples.is_dir() {
        files_in(&samples).map_err(|error| cannot_read(&samples, &error))?
    } else {
        Vec::new()
    };
    for file in files.iter().filter(|file| file.is_regular) {
        let path = samples.join(&file.path);
        let bytes = weir_files::read(&path).map_err(|error| cannot_read(&path, &error))?;
        tables.push((format!("samples-{}", file.path.display()), bytes));
    }
    for (name, bytes) in &tables {
        let path = folder.join(name);
        weir_files::write(&path, bytes).map_err(|error| cannot_write(&path, &error))?;
    }
    Ok(tables.len())
}

/// Writes the tables of a run as Parquet files into a new folder, and returns their number.
fn write_parquet(run: &Run, folder: &Path) -> Result<usize, Failure> {
    weir_files::make_folder(folder).map_err(|error| cannot_write(folder, &error))?;
    let tables = parquet_tables(run, &weir_analysis::analyze(run));
    for table in &tables {
        let path = folder.join(format!("{}.parquet", table.name));
        let file = weir_files::create_new(&path).map_err(|error| cannot_write(&path, &error))?;
        table.write(file).map_err(|error| cannot_write(&path, &error))?;
    }
    Ok(tables.len())
}

fn write_archive(dir: &Path, output: &Path, with_secrets: bool) -> Result<Packed, Failure> {
    let file = weir_files::create_new(output)
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", output.display())))?;
    pack(dir, file, with_secrets).map_err(|error| {
        // Half an archive is of no use.
        let _ = fs::remove_file(output);
        Failure::failed(format!("{} is not exported: {error}", dir.display()))
    })
}

fn describe_archive(output: &Path, packed: &Packed, with_secrets: bool) -> String {
    let files = number::plural(packed.files as u64, "file");
    let mut text = format!("{}: {files}\n", output.display());
    if with_secrets {
        text += "It has the secrets of configurations and headers (--with-secrets).\n";
        return text;
    }
    if packed.masked.is_empty() {
        text +=
            "No secret was found in it. Look at arms/ and study.yaml before you give it away.\n";
    } else {
        let names: Vec<String> =
            packed.masked.iter().map(|path| in_a_line(&path.to_string_lossy())).collect();
        text += &format!("Secrets are masked in: {}\n", names.join(", "));
    }
    for path in &packed.left_out {
        text += &format!("Left out, since it is no text: {}\n", in_a_line(&path.to_string_lossy()));
    }
    text
}

pub(crate) fn import(args: &ImportArgs) -> Result<ExitCode, Failure> {
    let bytes = flag("--max-size", parse_bytes(&args.max_size))?;
    let limits = ImportLimits { bytes, ..ImportLimits::default() };
    let dir = unpack(&args.file, &args.into, limits).map_err(|error| {
        Failure::input(format!("{} is not imported: {error}", args.file.display()))
    })?;
    // Pages in an archive may be anybody's: they are made again from the records.
    let run = report::read(&dir)?;
    report::keep_all(&run, &weir_analysis::analyze(&run))?;
    terminal::print(&format!("{}\n", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}
