//! Tags and the note that a user has given a run, in `notes.json` of its folder.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use weir_files::{NotOurs, only_ours_named, open_regular};

/// Name of the file in a run folder.
pub const NOTES_FILE: &str = "notes.json";
/// Current format version of the file.
const FORMAT: &str = "weir-notes/1";
/// Maximum length of the file, bytes.
const MOST_BYTES: u64 = 64 << 10;
/// Maximum number of tags of a run.
const MOST_TAGS: usize = 32;
/// Maximum number of characters of a tag.
const LONGEST_TAG: usize = 64;
/// Maximum length of a note, bytes.
const LONGEST_NOTE: usize = 4096;

/// Tags and the note of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    format: String,
    /// Tags, in alphabetical order.
    #[serde(default)]
    pub tags: BTreeSet<String>,
    /// Note; empty if there is none.
    #[serde(default)]
    pub note: String,
}

/// Error when notes are read or changed.
#[derive(Debug, thiserror::Error)]
pub enum NotesError {
    /// A tag has characters that a tag cannot have, or is too long.
    #[error(
        "`{0}` cannot be a tag: use up to {LONGEST_TAG} letters, digits and the characters . _ - : / +"
    )]
    Tag(String),
    /// A run would have too many tags.
    #[error("a run has at most {MOST_TAGS} tags")]
    TooManyTags,
    /// A note is too long.
    #[error("a note has at most {LONGEST_NOTE} bytes")]
    NoteTooLong,
    /// Others could have written the folder, so nothing is written in it.
    #[error("others could have written the run: {0}")]
    NotOurs(#[from] NotOurs),
    /// The file is no file of notes.
    #[error("{NOTES_FILE}: {0}")]
    Damaged(String),
    /// The kernel refuses.
    #[error("{NOTES_FILE}: {0}")]
    Io(#[from] io::Error),
}

/// Reads the notes of a run; a run without the file has none.
///
/// # Errors
/// The file is too long, no regular file or no file of notes, or the kernel refuses.
pub fn read_notes(dir: &Path) -> Result<Notes, NotesError> {
    let file = match open_regular(&dir.join(NOTES_FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Notes::default()),
        opened => opened?,
    };
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(NotesError::Damaged(format!("it is longer than {MOST_BYTES} bytes")));
    }
    let notes: Notes =
        serde_json::from_slice(&bytes).map_err(|error| NotesError::Damaged(error.to_string()))?;
    if notes.format != FORMAT {
        return Err(NotesError::Damaged(format!(
            "it has format `{}`; this weir reads `{FORMAT}`",
            notes.format
        )));
    }
    Ok(notes)
}

/// Changes the notes of a run and writes them. Others who change them at the same time wait.
///
/// # Errors
/// The notes cannot be read, the change is refused, others could have written the folder, or the kernel refuses.
pub fn change_notes(
    dir: &Path,
    change: impl FnOnce(&mut Notes) -> Result<(), NotesError>,
) -> Result<Notes, NotesError> {
    only_ours_named(dir)?;
    let lock = File::open(dir)?;
    lock.lock()?;
    let mut notes = read_notes(dir)?;
    change(&mut notes)?;
    FORMAT.clone_into(&mut notes.format);
    let mut text = serde_json::to_vec_pretty(&notes).map_err(io::Error::other)?;
    text.push(b'\n');
    weir_files::replace(&dir.join(NOTES_FILE), &text)?;
    Ok(notes)
}

impl Notes {
    /// Adds tags.
    ///
    /// # Errors
    /// A tag is not valid, or there are too many.
    pub fn add_tags(&mut self, tags: &[String]) -> Result<(), NotesError> {
        if let Some(tag) = tags.iter().find(|tag| !is_tag(tag)) {
            return Err(NotesError::Tag(tag.clone()));
        }
        self.tags.extend(tags.iter().cloned());
        if self.tags.len() > MOST_TAGS { Err(NotesError::TooManyTags) } else { Ok(()) }
    }

    /// Removes tags; those that the run does not have are ignored.
    pub fn remove_tags(&mut self, tags: &[String]) {
        self.tags.retain(|tag| !tags.contains(tag));
    }

    /// Replaces the note; an empty text removes it.
    ///
    /// # Errors
    /// The text is too long.
    pub fn set_note(&mut self, text: &str) -> Result<(), NotesError> {
        if text.len() > LONGEST_NOTE {
            return Err(NotesError::NoteTooLong);
        }
        text.trim().clone_into(&mut self.note);
        Ok(())
    }
}

fn is_tag(text: &str) -> bool {
    !text.is_empty()
        && text.chars().count() <= LONGEST_TAG
        && text.chars().all(|c| c.is_alphanumeric() || "._-:/+".contains(c))
}
