//! Reader of YAML that records the position of every value.

use std::ops::Range;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, StructureStyle};

use super::tree::{Entry, MOST_VALUES, Node, Style, Value};
use crate::place::error;
use crate::{ConfigurationError, SourceFile};

/// Maximum depth of nesting; an Envoy bootstrap needs about thirty.
const MAX_DEPTH: usize = 64;

/// Reads the one document of a file.
///
/// # Errors
/// Returns an error if the text is not YAML, is empty, holds several documents, or has a key that is no text.
pub(super) fn parse(file: &SourceFile) -> Result<Node, ConfigurationError> {
    let mut options = Options::default();
    options.emit_comments = false;
    options.flow_nesting_limit = MAX_DEPTH;
    options.block_nesting_limit = MAX_DEPTH;
    let events = Parser::new_from_str_with_options(&file.text, options);
    let depth = 0;
    Reader { events, file, depth, values: 0 }.document()
}

struct Reader<'t> {
    events: Parser<'t, StrInput<'t>>,
    file: &'t SourceFile,
    /// Number of collections that are open.
    depth: usize,
    /// Number of values read so far.
    values: usize,
}

type At<'t> = (Event<'t>, Range<usize>);

impl<'t> Reader<'t> {
    fn document(mut self) -> Result<Node, ConfigurationError> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::DocumentStart(..) if root.is_none() => {
                    let first = self.next()?;
                    root = Some(self.node(first)?);
                }
                Event::DocumentStart(..) => {
                    let message = "a second document begins here";
                    return Err(error(self.file, span.start, message).hint("a file holds one"));
                }
                _ => {}
            }
        }
        root.ok_or_else(|| error(self.file, 0, "the file is empty"))
    }

    fn next(&mut self) -> Result<At<'t>, ConfigurationError> {
        match self.events.next_event() {
            None => Ok((Event::StreamEnd, 0..0)),
            Some(Ok((event, span))) => Ok((event, bytes(&span, &self.file.text))),
            Some(Err(e)) => {
                let at = e.marker().byte_offset().unwrap_or(self.file.text.len());
                let message = format!("this is not YAML: {}", e.info());
                let hint = "check indentation, quotes and brackets here and in the line above";
                Err(error(self.file, at, message).hint(hint))
            }
        }
    }

    fn node(&mut self, at: At<'t>) -> Result<Node, ConfigurationError> {
        if self.depth > MAX_DEPTH {
            return Err(error(self.file, at.1.start, "this is nested too deeply"));
        }
        self.values += 1;
        if self.values > MOST_VALUES {
            return Err(error(self.file, at.1.start, "too many values"));
        }
        self.depth += 1;
        let node = self.value(at);
        self.depth -= 1;
        node
    }

    fn value(&mut self, (event, span): At<'t>) -> Result<Node, ConfigurationError> {
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let value = Value::Scalar { text: text.into_owned(), style: written(style) };
                Ok(Node { span, value, anchor: named(anchor) })
            }
            Event::Alias(anchor) => Ok(Node { span, value: Value::Alias(anchor), anchor: None }),
            Event::SequenceStart(style, anchor, _) => self.list(span, style, anchor),
            Event::MappingStart(style, anchor, _) => self.map(span, style, anchor),
            _ => Err(error(self.file, span.start, "a value is missing here")),
        }
    }

    fn list(
        &mut self,
        start: Range<usize>,
        style: StructureStyle,
        anchor: usize,
    ) -> Result<Node, ConfigurationError> {
        let flow = style == StructureStyle::Flow;
        let mut items = Vec::new();
        let end = loop {
            match self.next()? {
                (Event::SequenceEnd, span) => break span.end,
                item => items.push(self.node(item)?),
            }
        };
        let ends = items.first().zip(items.last()).map(|(a, b)| a.span.start..b.span.end);
        let span = whole(flow, start, end, ends);
        Ok(Node { span, value: Value::List(items), anchor: named(anchor) })
    }

    fn map(
        &mut self,
        start: Range<usize>,
        style: StructureStyle,
        anchor: usize,
    ) -> Result<Node, ConfigurationError> {
        let flow = style == StructureStyle::Flow;
        let mut entries: Vec<Entry> = Vec::new();
        let end = loop {
            match self.next()? {
                (Event::MappingEnd, span) => break span.end,
                (Event::Scalar(key, ..), key_span) => {
                    let value = self.next()?;
                    let value = self.node(value)?;
                    entries.push(Entry { key: key.into_owned(), key_span, value });
                }
                (_, span) => return Err(error(self.file, span.start, "a key must be text")),
            }
        };
        let ends = entries
            .first()
            .zip(entries.last())
            .map(|(a, b)| a.key_span.start..b.value.span.end.max(b.key_span.end));
        let span = whole(flow, start, end, ends);
        Ok(Node { span, value: Value::Map { entries, flow }, anchor: named(anchor) })
    }
}

/// Returns the byte range of a collection: with its brackets, or from its first part to the end of its last.
fn whole(flow: bool, start: Range<usize>, end: usize, parts: Option<Range<usize>>) -> Range<usize> {
    match parts {
        Some(parts) if !flow => parts,
        _ => start.start..end.max(start.start),
    }
}

fn written(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::SingleQuoted => Style::Single,
        ScalarStyle::DoubleQuoted => Style::Double,
        ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
        _ => Style::Plain,
    }
}

/// Returns a span as a byte range within the text.
fn bytes(span: &Span, text: &str) -> Range<usize> {
    let range = span.byte_range().unwrap_or_default();
    let end = range.end.min(text.len());
    range.start.min(end)..end
}

/// Returns the number of an anchor; None for 0. The parser counts anchors from 1.
fn named(anchor: usize) -> Option<usize> {
    (anchor != 0).then_some(anchor)
}
