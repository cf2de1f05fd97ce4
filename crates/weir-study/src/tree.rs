//! YAML as a tree of nodes that know their position in the text.
//!
//! A study, or a file of requests, needs little of YAML: one document of mappings, lists and scalars. Anchors, aliases
//! and tags are refused, so a few bytes can never expand to a large tree. Depth and size are limited.

use std::collections::BTreeMap;
use std::ops::Range;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span};

use crate::check::Checker;

/// A kind of file: its name in errors, and its maximum size.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) noun: &'static str,
    pub(crate) plural: &'static str,
    /// Maximum size of the text, bytes.
    pub(crate) max_bytes: usize,
    /// Advice for an empty file.
    pub(crate) example: &'static str,
}

/// Form of a study. The ready-made ones have about 2 KiB.
pub(crate) const STUDY: Form = Form {
    noun: "study",
    plural: "studies",
    max_bytes: 256 * 1024,
    example: "see docs/study.md for an example",
};

/// Maximum depth of mappings and lists. A study needs four.
const MAX_DEPTH: usize = 16;

/// Maximum number of values in a file, because each takes much more memory than its two bytes.
const MAX_VALUES: usize = 1 << 20;

/// Number of errors after which reading stops.
const MAX_ERRORS: usize = 1000;

/// A value and its position.
#[derive(Debug)]
pub(crate) struct Node {
    /// Position in the text, in bytes.
    pub(crate) span: Range<usize>,
    /// Value at this position.
    pub(crate) value: Value,
}

/// A YAML value.
#[derive(Debug)]
pub(crate) enum Value {
    /// An absent value, `~` or `null`.
    Empty,
    /// Text, quoted or not. The reader decides its meaning: `on` is a level, not true.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping with unique keys.
    Mapping(Vec<Entry>),
    /// A value with an error that was reported already.
    Refused,
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Text of the key.
    pub(crate) key: String,
    /// Position of the key.
    pub(crate) span: Range<usize>,
    /// Value of the key.
    pub(crate) value: Node,
}

impl Node {
    /// Returns the value of a key, if the node is a mapping that has the key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let Value::Mapping(entries) = &self.value else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == key);
        entry.map(|entry| &entry.value)
    }
}

impl Value {
    /// Describes the value in words that fit after "found".
    pub(crate) fn words(&self) -> &'static str {
        match self {
            Value::Empty => "nothing",
            Value::Scalar(_) => "text",
            Value::List(_) => "a list",
            Value::Mapping(_) => "a mapping",
            Value::Refused => "something else",
        }
    }
}

/// Reads one document. Returns `None` if the text is not YAML. All errors are reported.
pub(crate) fn read(text: &str, form: &'static Form, check: &mut Checker) -> Option<Node> {
    if text.len() > form.max_bytes {
        let message = format!("a {} of {} bytes is too large", form.noun, text.len());
        check.error(0..0, message).hint(format!("at most {} bytes are allowed", form.max_bytes));
        return None;
    }
    Reader::new(text, form, check).document()
}

struct Reader<'t, 'c> {
    events: Parser<'t, granit_parser::StrInput<'t>>,
    text: &'t str,
    form: &'static Form,
    check: &'c mut Checker,
    /// Number of values so far.
    values: usize,
}

/// An event and its position in bytes.
type At<'t> = (Event<'t>, Range<usize>);

impl<'t, 'c> Reader<'t, 'c> {
    fn new(text: &'t str, form: &'static Form, check: &'c mut Checker) -> Reader<'t, 'c> {
        let mut options = Options::default();
        options.emit_comments = false;
        options.emit_unresolved_aliases = true;
        options.flow_nesting_limit = MAX_DEPTH;
        options.block_nesting_limit = MAX_DEPTH;
        let events = Parser::new_from_str_with_options(text, options);
        Reader { events, text, form, check, values: 0 }
    }

    fn document(mut self) -> Option<Node> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::StreamEnd => break,
                Event::DocumentStart(..) if root.is_none() => {
                    let first = self.next()?;
                    root = Some(self.node(first, 0)?);
                }
                _ => {
                    self.check
                        .error(span, "the file has a second document")
                        .hint(format!("a file has one {}", self.form.noun));
                    return None;
                }
            }
        }
        if root.is_none() {
            self.check.error(0..0, "the file is empty").hint(self.form.example);
        }
        root
    }

    /// Returns the next event. `None` after a syntax error, which is reported, or after too many errors.
    fn next(&mut self) -> Option<At<'t>> {
        if self.check.count() >= MAX_ERRORS {
            return None;
        }
        match self.events.next_event()? {
            Ok((event, span)) => Some((event, bytes(&span, self.text))),
            Err(error) => {
                let at =
                    error.marker().byte_offset().unwrap_or(self.text.len()).min(self.text.len());
                let message = format!("this is not YAML: {}", error.info());
                let line = self.text[..at].rfind('\n').map_or(0, |before| before + 1);
                let hint = if self.text[line..].trim_start_matches(' ').starts_with('\t') {
                    "indent with spaces: YAML does not allow tabs"
                } else {
                    "check indentation, quotation marks and brackets here and in the line above; \
                         text with `: ` in it needs quotation marks"
                };
                self.check.error(at..at, message).hint(hint);
                None
            }
        }
    }

    fn node(&mut self, (event, span): At<'t>, depth: usize) -> Option<Node> {
        if depth > MAX_DEPTH {
            self.check.error(span, "this is nested too deeply");
            return None;
        }
        self.values += 1;
        if self.values > MAX_VALUES {
            self.check
                .error(span, "the file has too many values")
                .hint(format!("at most {MAX_VALUES} are allowed"));
            return None;
        }
        if event.tag().is_some() {
            let message = format!("tags such as `!!str` are not used in {}", self.form.plural);
            self.check.error(span.clone(), message).hint("remove the tag");
        }
        let start = span.start;
        let (value, end) = match event {
            Event::Scalar(text, style, ..) => (scalar(text.into_owned(), style), span.end),
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.mapping(depth)?,
            Event::Alias(..) | Event::UnresolvedAlias(..) => {
                let message = format!("aliases are not used in {}", self.form.plural);
                self.check.error(span.clone(), message).hint("write the value itself");
                (Value::Refused, span.end)
            }
            _ => (Value::Empty, span.end),
        };
        let span = start..end.max(start);
        Some(Node { span, value })
    }

    fn list(&mut self, depth: usize) -> Option<(Value, usize)> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, span) => return Some((Value::List(items), span.end)),
                item => items.push(self.node(item, depth + 1)?),
            }
        }
    }

    fn mapping(&mut self, depth: usize) -> Option<(Value, usize)> {
        let mut entries: Vec<Entry> = Vec::new();
        // Where each key stands first.
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, span) => return Some((Value::Mapping(entries), span.end)),
                key => self.node(key, depth + 1)?,
            };
            let value = self.next()?;
            let value = self.node(value, depth + 1)?;
            let span = key.span;
            match key.value {
                Value::Scalar(key) => match places.get(&key) {
                    None => {
                        places.insert(key.clone(), span.start);
                        entries.push(Entry { key, span, value });
                    }
                    Some(&first) => {
                        let line = line_of(self.text, first);
                        self.check
                            .error(span, format!("the key `{key}` is given twice"))
                            .hint(format!("it is already in line {line}"));
                    }
                },
                Value::Refused => {}
                other => {
                    let message = format!("a key must be text, found {}", other.words());
                    self.check.error(span, message);
                }
            }
        }
    }
}

fn scalar(text: String, style: ScalarStyle) -> Value {
    match (style, text.as_str()) {
        (ScalarStyle::Plain, "" | "~" | "null") => Value::Empty,
        _ => Value::Scalar(text),
    }
}

/// Returns the number of a line, from 1.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count()
}

/// Converts a span to a range within the text.
fn bytes(span: &Span, text: &str) -> Range<usize> {
    let range = span.byte_range().unwrap_or_default();
    let end = range.end.min(text.len());
    range.start.min(end)..end
}
