//! YAML as a tree of nodes that know their place in the text.
//!
//! A study, or a file of requests, needs little of YAML: one document of mappings, lists and scalars. Anchors, aliases
//! and tags are refused, which also means that a few bytes can never stand for a large tree, and
//! depth and size have limits.

use std::collections::BTreeMap;
use std::ops::Range;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span};

use crate::check::Checker;

/// A kind of file: what errors call it, and how large it may be.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) noun: &'static str,
    pub(crate) plural: &'static str,
    /// Largest text in bytes.
    pub(crate) max_bytes: usize,
    /// What to do about an empty one.
    pub(crate) example: &'static str,
}

/// A study. The ready-made ones have about 2 KiB.
pub(crate) const STUDY: Form = Form {
    noun: "study",
    plural: "studies",
    max_bytes: 256 * 1024,
    example: "see docs/study.md for an example",
};

/// Deepest nesting of mappings and lists; a study needs four.
const MAX_DEPTH: usize = 16;

/// Values of a file at most: each takes much more memory than its two bytes.
const MAX_VALUES: usize = 1 << 20;

/// Errors after which no more are looked for.
const MAX_ERRORS: usize = 1000;

/// A value and where it stands.
#[derive(Debug)]
pub(crate) struct Node {
    /// Bytes of the text.
    pub(crate) span: Range<usize>,
    /// What stands there.
    pub(crate) value: Value,
}

/// What can stand in a place.
#[derive(Debug)]
pub(crate) enum Value {
    /// Nothing, `~` or `null`.
    Empty,
    /// Text, quoted or not. What it means is decided by who reads it: `on` is a level, not true.
    Scalar(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping; every key once.
    Mapping(Vec<Entry>),
    /// Something that was complained about already; nobody needs to complain again.
    Refused,
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The key.
    pub(crate) key: String,
    /// Where the key stands.
    pub(crate) span: Range<usize>,
    /// Its value.
    pub(crate) value: Node,
}

impl Node {
    /// The value of a key, where it is a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let Value::Mapping(entries) = &self.value else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key == key);
        entry.map(|entry| &entry.value)
    }
}

impl Value {
    /// In words that fit after "found".
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

/// Reads one document. `None` when the text is not YAML; whatever is wrong is reported.
pub(crate) fn read(text: &str, form: &'static Form, check: &mut Checker) -> Option<Node> {
    if text.len() > form.max_bytes {
        let message = format!("a {} of {} bytes is too large", form.noun, text.len());
        check
            .error(0..0, message)
            .hint(format!("at most {} bytes are allowed", form.max_bytes));
        return None;
    }
    Reader::new(text, form, check).document()
}

struct Reader<'t, 'c> {
    events: Parser<'t, granit_parser::StrInput<'t>>,
    text: &'t str,
    form: &'static Form,
    check: &'c mut Checker,
    /// How many were read.
    values: usize,
}

/// An event and the bytes it stands at.
type At<'t> = (Event<'t>, Range<usize>);

impl<'t, 'c> Reader<'t, 'c> {
    fn new(text: &'t str, form: &'static Form, check: &'c mut Checker) -> Reader<'t, 'c> {
        let mut options = Options::default();
        options.emit_comments = false;
        options.emit_unresolved_aliases = true;
        options.flow_nesting_limit = MAX_DEPTH;
        options.block_nesting_limit = MAX_DEPTH;
        let events = Parser::new_from_str_with_options(text, options);
        Reader {
            events,
            text,
            form,
            check,
            values: 0,
        }
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
            self.check
                .error(0..0, "the file is empty")
                .hint(self.form.example);
        }
        root
    }

    /// The next event, or `None` after a syntax error, which is reported, or after many others.
    fn next(&mut self) -> Option<At<'t>> {
        if self.check.count() >= MAX_ERRORS {
            return None;
        }
        match self.events.next_event()? {
            Ok((event, span)) => Some((event, bytes(&span, self.text))),
            Err(error) => {
                let at = error.marker().byte_offset().unwrap_or(self.text.len());
                let at = at.min(self.text.len());
                let message = format!("this is not YAML: {}", error.info());
                let line = self.text[..at].rfind('\n').map_or(0, |before| before + 1);
                let hint = match self.text[line..].trim_start_matches(' ').starts_with('\t') {
                    true => "indent with spaces: YAML does not allow tabs",
                    false => {
                        "check indentation, quotation marks and brackets here and in the line above; \
                         text with `: ` in it needs quotation marks"
                    }
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
            self.check
                .error(span.clone(), message)
                .hint("remove the tag");
        }
        let start = span.start;
        let (value, end) = match event {
            Event::Scalar(text, style, ..) => (scalar(text.into_owned(), style), span.end),
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.mapping(depth)?,
            Event::Alias(..) | Event::UnresolvedAlias(..) => {
                let message = format!("aliases are not used in {}", self.form.plural);
                self.check
                    .error(span.clone(), message)
                    .hint("write the value itself");
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

/// Line number, from 1.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())]
        .iter()
        .filter(|b| **b == b'\n')
        .count()
}

/// The span as bytes that are really there.
fn bytes(span: &Span, text: &str) -> Range<usize> {
    let range = span.byte_range().unwrap_or_default();
    let end = range.end.min(text.len());
    range.start.min(end)..end
}
