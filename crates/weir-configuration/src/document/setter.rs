//! How the text of a document becomes that of another: replaced values, new entries, entries taken out.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Map, Value as Json};

use super::find::Place;
use super::tree::{Format, Node, Style, Tree, Value};
use super::write::{Layout, quoted, spaced};
use crate::place::{Hinted, error, line_end};
use crate::{ConfigurationError, Source, SourceFile, Splice};

/// What a document is changed with.
pub(super) struct Setter<'n> {
    file: &'n SourceFile,
    tree: &'n Tree,
    layout: Layout<'n>,
    splices: Vec<Splice>,
}

impl<'n> Setter<'n> {
    pub(super) fn new(file: &'n SourceFile, tree: &'n Tree, format: Format) -> Setter<'n> {
        let layout = Layout {
            format,
            unit: unit(file, tree),
            line_end: line_end(&file.text),
            many_lines: file.text.trim_end().contains('\n'),
        };
        Setter {
            file,
            tree,
            layout,
            splices: Vec::new(),
        }
    }

    pub(super) fn done(mut self, source: &Source) -> Source {
        // Several ways can lead to one value, by aliases.
        let mut seen = BTreeSet::new();
        self.splices.retain(|splice| {
            splice.range.is_empty() || seen.insert((splice.range.start, splice.range.end))
        });
        source.with(self.splices)
    }

    fn splice(&mut self, range: Range<usize>, text: String) {
        self.splices.push(Splice {
            file: 0,
            range,
            text,
        });
    }

    /// What a line begins with: the blanks before the first thing on the line of `at`, as far as `at`
    /// and with blanks for a dash.
    fn indent(&self, at: usize) -> String {
        let text = &self.file.text;
        let line = text[..at].rfind('\n').map_or(0, |i| i + 1);
        let before = &text[line..at];
        let blanks = before.len() - before.trim_start_matches([' ', '\t']).len();
        match self.layout.format {
            Format::Json => before[..blanks].to_owned(),
            Format::Yaml if before.trim_start_matches([' ', '\t', '-']).is_empty() => {
                before.replace('-', " ")
            }
            Format::Yaml => before[..blanks].to_owned(),
        }
    }

    /// The end of the line that `at` is in, before its line end.
    fn end_of_line(&self, at: usize) -> usize {
        let rest = &self.file.text[at..];
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        at + line.trim_end_matches('\r').len()
    }

    /// The end of a block's last line that says something: the span of `|` goes further.
    fn end_of_block(&self, end: usize) -> usize {
        self.end_of_line(self.file.text[..end].trim_end().len())
    }

    pub(super) fn replace(
        &mut self,
        place: Place<'_>,
        value: &Json,
    ) -> Result<(), ConfigurationError> {
        let node = place.node;
        let in_block = matches!(
            place.holder.map(|(holder, _)| &holder.value),
            Some(Value::Map { flow: false, .. })
        );
        let is_collection = value.is_object() || value.is_array();
        match &node.value {
            Value::Scalar {
                style: Style::Block,
                ..
            } => {
                let what = "this value is written as a block with `|` or `>`";
                Err(error(self.file, node.span.start, what).hinted("write it in quotes"))
            }
            Value::Scalar { style, .. } if !is_collection && !node.span.is_empty() => {
                self.splice(node.span.clone(), self.layout.scalar(value, *style));
                Ok(())
            }
            _ if node.anchor.is_some() => {
                let what =
                    "this value has an anchor, and its place would be taken by one of another kind";
                Err(error(self.file, node.span.start, what).hinted("write the value out"))
            }
            Value::Alias(_) if !is_collection => {
                self.splice(node.span.clone(), self.layout.scalar(value, Style::Plain));
                Ok(())
            }
            _ if in_block => {
                self.replace_after_colon(place, value);
                Ok(())
            }
            _ => {
                let text = match self.layout.format {
                    Format::Json => self.layout.brackets(value, &self.indent(node.span.start)),
                    Format::Yaml => spaced(value),
                };
                self.splice(node.span.clone(), text);
                Ok(())
            }
        }
    }

    /// Replaces all that stands behind a key in YAML's block style.
    fn replace_after_colon(&mut self, place: Place<'_>, value: &Json) {
        let Some((
            Node {
                value: Value::Map { entries, .. },
                ..
            },
            index,
        )) = place.holder
        else {
            return;
        };
        let key = &entries[index].key_span;
        let text = &self.file.text;
        let colon = text[key.end..]
            .find(':')
            .map_or(key.end, |i| key.end + i + 1);
        let end = match place.node.span.is_empty() {
            true => colon,
            false => place.node.span.end.max(colon),
        };
        let end = colon + text[colon..end].trim_end().len();
        let written = self.layout.after_colon(value, &self.indent(key.start));
        self.splice(colon..end, written);
    }

    /// Writes entries into an object that does not have them.
    pub(super) fn insert(&mut self, place: Place<'_>, values: &Map<String, Json>) {
        let node = self.tree.resolve(place.node);
        match &node.value {
            Value::Map {
                entries,
                flow: false,
            } => {
                let (first, last) = (&entries[0], &entries[entries.len() - 1]);
                let indent = self.indent(first.key_span.start);
                let end = self.end_of_block(last.value.span.end.max(last.key_span.end));
                let entry = |(key, value): (&String, &Json)| {
                    let entry = self.layout.entry(key, value, &indent);
                    format!("{}{indent}{entry}", self.layout.line_end)
                };
                self.splice(end..end, values.iter().map(entry).collect());
            }
            Value::Map {
                entries,
                flow: true,
            } => match entries.last() {
                Some(last) => {
                    let start = last.key_span.start;
                    let end = last.value.span.end;
                    let lines = self.starts_line(start);
                    self.splice(
                        end..end,
                        self.more(values, lines.then(|| self.indent(start))),
                    );
                }
                None => self.fill(place, values),
            },
            _ => self.fill(place, values),
        }
    }

    /// Whether nothing but blanks stands before `at` in its line.
    fn starts_line(&self, at: usize) -> bool {
        let before = &self.file.text[..at];
        let line = before.rfind('\n').map_or(0, |i| i + 1);
        line > 0 && before[line..].trim().is_empty()
    }

    /// Entries behind the last one of an object in braces; on lines of their own with an indentation.
    fn more(&self, values: &Map<String, Json>, indent: Option<String>) -> String {
        let separator = match &indent {
            Some(indent) => format!(",{}{indent}", self.layout.line_end),
            None => ", ".to_owned(),
        };
        let entry = |(key, value): (&String, &Json)| {
            let value = match &indent {
                Some(indent) => self.layout.brackets(value, indent),
                None => spaced(value),
            };
            format!("{separator}{}: {value}", quoted(key))
        };
        values.iter().map(entry).collect()
    }

    /// Entries for an object that has none, or for a null that becomes one.
    fn fill(&mut self, place: Place<'_>, values: &Map<String, Json>) {
        let values = Json::Object(values.clone());
        let in_block = place.holder.map(|(holder, _)| &holder.value);
        if let Some(Value::Map { flow: false, .. }) = in_block {
            return self.replace_after_colon(place, &values);
        }
        let span = place.node.span.clone();
        let text = match self.layout.format {
            Format::Json => self.layout.brackets(&values, &self.indent(span.start)),
            Format::Yaml => spaced(&values),
        };
        self.splice(span, text);
    }

    /// Takes entries out of an object.
    pub(super) fn remove(&mut self, holder: &Node, indices: &BTreeSet<usize>) {
        let Value::Map { entries, flow } = &holder.value else {
            return;
        };
        let Some(kept) = (0..entries.len()).find(|index| !indices.contains(index)) else {
            return match flow {
                true => self.splice(holder.span.start + 1..holder.span.end - 1, String::new()),
                false => self.splice(holder.span.clone(), "{}".to_owned()),
            };
        };
        if kept > 0 {
            // The first that stays takes their place.
            let range = entries[0].key_span.start..entries[kept].key_span.start;
            self.splice(range, String::new());
        }
        for &index in indices.range(kept..) {
            let entry = &entries[index];
            let end = entry.value.span.end.max(entry.key_span.end);
            let range = match flow {
                true => entries[index - 1].value.span.end..end,
                false => {
                    let line = self.file.text[..entry.key_span.start].trim_end_matches([' ', '\t']);
                    let start = line.trim_end_matches('\n').trim_end_matches('\r').len();
                    start..self.end_of_block(end)
                }
            };
            self.splice(range, String::new());
        }
    }
}

/// One step of indentation: that of the first key, or of the first key of an object below.
fn unit<'t>(file: &'t SourceFile, tree: &Tree) -> &'t str {
    let Value::Map { entries, .. } = &tree.root.value else {
        return "  ";
    };
    let inner = entries.iter().filter_map(|entry| match &entry.value.value {
        Value::Map { entries, .. } => entries.first(),
        _ => None,
    });
    let blanks = |at: usize| {
        let line = file.text[..at].rfind('\n')? + 1;
        let before = &file.text[line..at];
        (!before.is_empty() && before.trim().is_empty()).then_some(before)
    };
    let unit = entries
        .first()
        .into_iter()
        .chain(inner)
        .find_map(|entry| blanks(entry.key_span.start));
    unit.unwrap_or("  ")
}
