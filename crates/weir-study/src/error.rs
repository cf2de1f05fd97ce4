//! Errors of a study, and their rendering.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use crate::check::{Checker, Finding};

/// An error in a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Position of the offending text, in bytes. Never more than one line.
    pub span: Range<usize>,
    /// The offending text.
    pub text: String,
    /// Description of the error, as a fragment.
    pub message: String,
    /// Advice on how to resolve the error.
    pub hint: Option<String>,
    /// The valid name or value that was most likely meant.
    pub nearest: Option<String>,
}

/// Maximum number of reported errors of a file. The others are reported once these are corrected.
const MOST_TOLD: usize = 100;

/// Longest line that is shown with an error, in bytes. For a longer one, only its number is given.
const LONGEST_SHOWN: usize = 4096;

/// Errors of a study, in the order of the text. Never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyErrors {
    errors: Vec<StudyError>,
    /// Number of errors beyond the reported ones.
    more: usize,
    /// Text of the study, from which lines are shown.
    source: String,
}

impl StudyErrors {
    /// Creates the errors of a text. `file` is the name of its file.
    pub fn new(file: &str, source: &str, mut findings: Vec<Finding>) -> StudyErrors {
        findings.sort_by_key(|finding| finding.span.start);
        let more = findings.len().saturating_sub(MOST_TOLD);
        findings.truncate(MOST_TOLD);
        let errors =
            findings.into_iter().map(|finding| StudyError::new(file, source, finding)).collect();
        StudyErrors { errors, more, source: source.to_owned() }
    }

    /// Returns the errors, in the order of the text.
    pub fn errors(&self) -> &[StudyError] {
        &self.errors
    }

    /// Renders the errors for a person: each with its line and a mark under the offending text.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut shown: Vec<String> = self
            .errors
            .iter()
            .map(|error| renderer.render(&[error.report(&self.source)]))
            .collect();
        if let [first, _, ..] = &self.errors[..] {
            let listed = self.errors.len();
            let count = match self.more {
                0 => format!("{listed} errors in {}", first.file),
                more => format!(
                    "at least {} errors in {}; these are the first {listed}",
                    listed + more,
                    first.file
                ),
            };
            let summary = Group::with_title(Level::ERROR.primary_title(count.as_str()));
            shown.push(renderer.render(&[summary]));
        }
        shown.join("\n\n")
    }
}

impl StudyError {
    fn new(file: &str, source: &str, finding: Finding) -> StudyError {
        let span = within_line(source, finding.span);
        let before = &source[..span.start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        StudyError {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: source[line_start..span.start].chars().count() + 1,
            text: source[span.clone()].to_owned(),
            span,
            message: finding.message,
            hint: finding.hint,
            nearest: finding.nearest,
        }
    }

    fn report<'a>(&'a self, source: &'a str) -> Group<'a> {
        let line_start = source[..self.span.start].rfind('\n').map_or(0, |at| at + 1);
        let tail = &source[line_start..];
        let line = tail.split('\n').next().unwrap_or_default();
        let mark = self.span.start - line_start..self.span.end - line_start;
        let mut annotation = AnnotationKind::Primary.span(mark);
        if let Some(nearest) = &self.nearest {
            annotation = annotation.label(format!("did you mean `{nearest}`?"));
        }
        let title = Level::ERROR.primary_title(&self.message);
        let group = if line.len() > LONGEST_SHOWN {
            let position = Origin::path(&*self.file).line(self.line);
            title.element(position.char_column(self.column))
        } else {
            let snippet =
                Snippet::source(line).line_start(self.line).path(&self.file).annotation(annotation);
            title.element(snippet)
        };
        match &self.hint {
            Some(hint) => group.element(Level::HELP.with_name("hint").message(hint)),
            None => group,
        }
    }
}

/// Converts the bytes of a file to text. `file_name` is its name in errors.
///
/// # Errors
/// Returns an error at the first byte that is not UTF-8.
pub fn utf8(bytes: Vec<u8>, file_name: &str) -> Result<String, StudyErrors> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes()[at];
        let text = String::from_utf8_lossy(error.as_bytes());
        let mut check = Checker::default();
        check
            .error(at..at + 1, format!("the byte 0x{byte:02X} is not UTF-8"))
            .hint("save the file as UTF-8; if it is Latin-1: iconv -f latin1 -t utf-8 OLD > NEW");
        StudyErrors::new(file_name, &text, check.into_findings())
    })
}

/// Returns the part of `span` in its first line, at character boundaries.
fn within_line(source: &str, span: Range<usize>) -> Range<usize> {
    let mut start = span.start.min(source.len());
    while !source.is_char_boundary(start) {
        start -= 1;
    }
    let line_end = source[start..].find(['\n', '\r']).map_or(source.len(), |at| start + at);
    let mut end = span.end.clamp(start, line_end);
    while !source.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StudyError { file, line, column, message, .. } = self;
        write!(f, "{file}:{line}:{column}: {message}")
    }
}

impl fmt::Display for StudyErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut newline = "";
        for error in &self.errors {
            write!(f, "{newline}{error}")?;
            newline = "\n";
        }
        Ok(())
    }
}

impl std::error::Error for StudyError {}
impl std::error::Error for StudyErrors {}
