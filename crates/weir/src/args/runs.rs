//! Arguments of `weir runs`, `weir export` and `weir import`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::TextOrJson;

#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  weir runs                              the runs in runs/, the newest first
  weir runs find keepalive --since 7d    those of the last week with this word
  weir runs tag runs/NAME-TIME release-1.4
  weir runs delete runs/old-* --older-than 30d --dry-run

docs/runs.md has everything about run folders."
)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,

    /// Folder with run folders
    #[arg(value_name = "FOLDER", default_value = "runs")]
    pub(crate) folder: PathBuf,

    #[command(flatten)]
    pub(crate) shown: ListArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Find runs by a text in their names, studies, questions, arms, tags, notes or verdicts.
    Find(FindArgs),
    /// Give a run tags, or take them away.
    Tag(TagArgs),
    /// Write a note on a run; an empty text removes it.
    Note(NoteArgs),
    /// Remove runs, after a question.
    Delete(DeleteArgs),
}

/// Options for the runs of a list and its format.
#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// Only runs of this study
    #[arg(long, value_name = "NAME")]
    pub(crate) study: Option<String>,

    /// Only runs with this tag; repeatable
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,

    /// Only runs that began since then: a date (2026-11-30), a time (2026-11-30T08:00:00Z) or an age (12h, 7d)
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,

    /// Only runs with this kind of proxy: nginx, haproxy, envoy, caddy, httpd, external
    #[arg(long, value_name = "PROXY")]
    pub(crate) proxy: Option<String>,

    /// Analyze the runs that no weir of this version has analyzed, and keep validity and verdict in their folders
    #[arg(long)]
    pub(crate) update: bool,

    /// Format to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: TextOrJson,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FindArgs {
    /// Text to look for, in upper or lower case
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,

    /// Folder with run folders
    #[arg(long = "in", value_name = "FOLDER", default_value = "runs")]
    pub(crate) folder: PathBuf,

    #[command(flatten)]
    pub(crate) shown: ListArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TagArgs {
    /// The run's folder, or its name in runs/
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Tags: letters, digits and . _ - : / +
    #[arg(value_name = "TAG", required = true)]
    pub(crate) tags: Vec<String>,

    /// Take these tags away
    #[arg(long)]
    pub(crate) remove: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct NoteArgs {
    /// The run's folder, or its name in runs/
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// The note, which replaces an earlier one
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DeleteArgs {
    /// Folders of runs, or their names in runs/
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,

    /// Only those that began longer ago, such as 30d or 12h
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,

    /// Show what would be removed, without doing it
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Do not ask
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) yes: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "docs/runs.md has the columns of the tables and the content of an archive.")]
pub(crate) struct ExportArgs {
    /// The run's folder, or its name in runs/
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,

    /// Format to write
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,

    /// Folder or file to make [default: the run's name in this folder, with -csv, -parquet or .tar.gz]
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// Pack configurations, headers and messages unchanged, with the secrets in them
    #[arg(long)]
    pub(crate) with_secrets: bool,
}

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A folder of tables: verdicts, trials and samples.
    Csv,
    /// The same tables as Parquet files: typed, with the units of columns in the files' metadata.
    Parquet,
    /// The whole run folder as one .tar.gz with a manifest, for `weir import`.
    Archive,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// Archive that `weir export --format archive` has written
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Folder in which the run's folder is made
    #[arg(long, value_name = "FOLDER", default_value = "runs")]
    pub(crate) into: PathBuf,

    /// Maximum length of all files together
    #[arg(long, value_name = "SIZE", default_value = "4GiB")]
    pub(crate) max_size: String,
}
