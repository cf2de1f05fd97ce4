//! `weir runs tag` and `weir runs note`.

use std::path::Path;
use std::process::ExitCode;

use weir_model::foreign::in_a_line;
use weir_notebook::{Notes, NotesError, change_notes};
use weir_record::read_header;

use super::find_run;
use crate::args::{NoteArgs, TagArgs};
use crate::commands::report::suggest_run;
use crate::failure::Failure;
use crate::terminal;

pub(super) fn tag(args: &TagArgs) -> Result<ExitCode, Failure> {
    let notes = change(&args.run, |notes| {
        if args.remove {
            notes.remove_tags(&args.tags);
            Ok(())
        } else {
            notes.add_tags(&args.tags)
        }
    })?;
    let tags: Vec<String> = notes.tags.iter().map(|tag| format!("#{}", in_a_line(tag))).collect();
    let line = if tags.is_empty() { "no tags".to_owned() } else { tags.join("  ") };
    terminal::print(&format!("{line}\n"))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn note(args: &NoteArgs) -> Result<ExitCode, Failure> {
    change(&args.run, |notes| notes.set_note(&args.text))?;
    Ok(ExitCode::SUCCESS)
}

fn change(
    named: &Path,
    change: impl FnOnce(&mut Notes) -> Result<(), NotesError>,
) -> Result<Notes, Failure> {
    let dir = find_run(named);
    read_header(&dir).map_err(|error| Failure::input(error).maybe_hint(suggest_run(&dir)))?;
    change_notes(&dir, change)
        .map_err(|error| Failure::input(format!("{}: {error}", dir.display())))
}
