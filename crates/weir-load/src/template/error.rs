//! Errors in the user's specification of a request.

use std::fmt;
use std::path::PathBuf;

use weir_http::request::EncodeError;

use super::lines::LinesError;

/// Part of a request to which a text belongs.
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

/// Position of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotPosition {
    /// Part of the request.
    pub part: Part,
    /// Position of the character within the part, from 1.
    pub character: usize,
}

impl fmt::Display for SlotPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, character {}", self.part, self.character)
    }
}

/// Reason why a request cannot be made from the user's specification.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The request is invalid regardless of slots.
    #[error(transparent)]
    Request(#[from] EncodeError),
    /// No slot has this name.
    #[error("{place}: `{}` is not a slot", .slot.escape_debug())]
    Unknown {
        /// Position of the slot.
        place: SlotPosition,
        /// Name of the slot as written.
        slot: String,
        /// Name that was most likely meant, if any.
        nearest: Option<&'static str>,
    },
    /// A slot begins and does not end.
    #[error("{0}: the slot has no `}}}}`")]
    Open(SlotPosition),
    /// The argument after a slot's colon is missing or invalid.
    #[error("{place}: `{}` is not {wanted}", .slot.escape_debug())]
    Argument {
        /// Position of the slot.
        place: SlotPosition,
        /// The slot as written.
        slot: String,
        /// Description of a valid argument.
        wanted: &'static str,
    },
    /// A file cannot fill the slot that names it.
    #[error(transparent)]
    File(#[from] LinesError),
    /// A line of a file would break the request at the slot's position.
    #[error("{}:{line}: the line {fault}, and {part} must not", .file.display())]
    Line {
        /// Path of the file.
        file: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Part of the request that would contain the line.
        part: Part,
        /// Fault of the line, as a predicate.
        fault: &'static str,
    },
    /// The user's own Content-Length cannot be right: either it or the content differs from request to request.
    #[error("field content-length is given, and slots change it or the length of the content")]
    Length,
}

impl TemplateError {
    /// Returns advice on how to correct the error, unless it is obvious.
    pub fn hint(&self) -> Option<String> {
        match self {
            TemplateError::Unknown { nearest: Some(nearest), .. } => {
                Some(format!("did you mean `{{{{{nearest}}}}}`?"))
            }
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
