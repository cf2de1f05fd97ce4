//! Run folders as a notebook: what a folder of runs holds, tags and notes, removal, archives.
//!
//! Files that this crate keeps in a run folder, beside those of [`weir_record`]:
//!
//! | file | content |
//! |---|---|
//! | `notes.json` | tags and a note of the user's ([`Notes`]) |
//! | `summary.json` | validity and verdict, so that a list of runs need not read their records ([`Summary`]) |
//!
//! Neither is part of what a resumed run compares (`run.sha256`), and both may be deleted at any time. Whatever lies in
//! a folder of runs may have been written by anybody: lengths are checked before anything is read, nothing but regular
//! files is opened, and no link is followed.

mod archive;
mod entry;
mod filter;
mod folder;
mod notes;
mod parquet;
mod removal;
mod summary;

pub use archive::{ArchiveError, ImportLimits, MANIFEST, Packed, pack, unpack};
pub use entry::{FolderProblem, RunEntry, RunState, list_runs, read_entry};
pub use filter::Filter;
pub use folder::{FolderFile, files_in};
pub use notes::{NOTES_FILE, Notes, NotesError, change_notes, read_notes};
pub use parquet::{ParquetTable, tables as parquet_tables};
pub use removal::{Refusal, Removable, check_removal, remove};
pub use summary::{SUMMARY_FILE, Summary, keep_summary, read_summary};
