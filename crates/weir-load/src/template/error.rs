//! Why a request cannot be made from what the user wrote.

use std::fmt;
use std::path::PathBuf;

use weir_http::request::EncodeError;

use super::lines::LinesError;

/// The part of a request that a text belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The request target.
    Target,
    /// The value of this field.
    Field(String),
    /// The content.
    Content,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Target => f.write_str("the target"),
            Part::Field(name) => write!(f, "field `{}`", name.escape_debug()),
            Part::Content => f.write_str("the content"),
        }
    }
}

/// Where a slot stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// In which part of the request.
    pub part: Part,
    /// At which character of it, from 1.
    pub character: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, character {}", self.part, self.character)
    }
}

/// Why a request cannot be made from what the user wrote.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// It is no request, slots or not.
    #[error(transparent)]
    Request(#[from] EncodeError),
    /// No slot has this name.
    #[error("{place}: `{}` is not a slot", .slot.escape_debug())]
    Unknown {
        /// Where it stands.
        place: Place,
        /// Its name as it was written.
        slot: String,
        /// The name that was most likely meant.
        nearest: Option<&'static str>,
    },
    /// A slot begins and does not end.
    #[error("{0}: the slot has no `}}}}`")]
    Open(Place),
    /// What stands after a slot's colon is missing or not what it should be.
    #[error("{place}: `{}` is not {wanted}", .slot.escape_debug())]
    Argument {
        /// Where it stands.
        place: Place,
        /// The slot as it was written.
        slot: String,
        /// What would have been understood.
        wanted: &'static str,
    },
    /// A file cannot fill the slot that names it.
    #[error(transparent)]
    File(#[from] LinesError),
    /// A line of a file would break the request where it is to stand.
    #[error("{}:{line}: the line {fault}, and {part} must not", .file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line's number, from 1.
        line: u64,
        /// Where it would stand.
        part: Part,
        /// What is wrong with it, as a predicate.
        fault: &'static str,
    },
    /// The user's own Content-Length cannot be right: it, or the content, differs from request to
    /// request.
    #[error("field content-length is given, and slots change it or the length of the content")]
    Length,
}

impl TemplateError {
    /// What to do about it, where that is not plain.
    pub fn hint(&self) -> Option<String> {
        match self {
            TemplateError::Unknown {
                nearest: Some(nearest),
                ..
            } => Some(format!("did you mean `{{{{{nearest}}}}}`?")),
            TemplateError::Unknown { .. } => Some(
                "slots are `{{sequence}}`, `{{random}}`, `{{random:1..6}}`, `{{line:FILE}}` and \
                 `{{pick:FILE}}`; a plain `{{` is written `{{{{`"
                    .to_owned(),
            ),
            TemplateError::Open { .. } => Some("a plain `{{` is written `{{{{`".to_owned()),
            TemplateError::Request(EncodeError::TransferEncoding(_)) => {
                Some("leave it out: weir sends content-length".to_owned())
            }
            TemplateError::Length => {
                Some("leave it out: it is counted for every request".to_owned())
            }
            _ => None,
        }
    }
}
