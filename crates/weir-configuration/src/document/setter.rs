//! Makes changes to the text of a document: replaces values, adds entries, and takes entries out.

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::{Map, Value as Json};

use super::find::NodePosition;
use super::tree::{Format, Node, Style, Tree, Value};
use super::write::Layout;
use crate::place::{error, line_end};
use crate::{ConfigurationError, Source, SourceFile, Splice};

/// Changes to the text of one document, in the document's style.
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
            quotes: format == Format::Yaml && has_quoted_keys(file, tree),
            dashes_at_key: style_of(&tree.root, &|node| dashes_at_key(file, node)).unwrap_or(false),
            padded: style_of(&tree.root, &|node| is_padded(file, node)).unwrap_or(false),
            short_lists: style_of(&tree.root, &|node| is_short_list(file, node)).unwrap_or(false),
        };
        Setter { file, tree, layout, splices: Vec::new() }
    }

    /// Returns the document with all changes.
    ///
    /// # Errors
    /// Returns an error if something is to be changed within a part that is to be replaced or taken out.
    pub(super) fn done(mut self, source: &Source) -> Result<Source, ConfigurationError> {
        // Several ways can lead to one value, by aliases.
        let mut ranges = BTreeSet::new();
        self.splices.retain(|splice| {
            splice.range.is_empty() || ranges.insert((splice.range.start, splice.range.end))
        });
        self.splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
        let mut pairs = self.splices.windows(2);
        match pairs.find(|pair| pair[1].range.start < pair[0].range.end) {
            None => Ok(source.with(self.splices)),
            Some(pair) => Err(within_another(self.file, pair[1].range.start)),
        }
    }

    fn splice(&mut self, range: Range<usize>, text: String) {
        self.splices.push(Splice { file: 0, range, text });
    }

    /// Returns the indentation of the line of `at`: the blanks before the first thing on it, up to `at`, with a blank
    /// for each dash of YAML.
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

    /// Returns the end of the line that contains `at`, before its line end.
    fn end_of_line(&self, at: usize) -> usize {
        let tail = &self.file.text[at..];
        let line = &tail[..tail.find('\n').unwrap_or(tail.len())];
        at + line.trim_end_matches('\r').len()
    }

    /// Returns the end of a block's last line that is not empty; the span of a `|` value can go further.
    fn end_of_block(&self, end: usize) -> usize {
        self.end_of_line(self.file.text[..end].trim_end().len())
    }

    pub(super) fn replace(
        &mut self,
        place: NodePosition<'_>,
        value: &Json,
    ) -> Result<(), ConfigurationError> {
        let node = place.node;
        let in_block = matches!(
            place.holder.map(|(holder, _)| &holder.value),
            Some(Value::Map { flow: false, .. })
        );
        let is_collection = value.is_object() || value.is_array();
        match &node.value {
            Value::Scalar { style: Style::Block, .. } => {
                let message = "this value is written as a block with `|` or `>`";
                Err(error(self.file, node.span.start, message).hint("write it in quotes"))
            }
            Value::Scalar { style, .. } if !is_collection && !node.span.is_empty() => {
                self.splice(node.span.clone(), self.layout.scalar(value, *style));
                Ok(())
            }
            _ if node.anchor.is_some() => Err(self.of_another_kind(node)),
            Value::Alias(_) if !is_collection => {
                self.splice(node.span.clone(), self.layout.scalar(value, Style::Plain));
                Ok(())
            }
            _ if in_block => {
                self.replace_after_colon(place, value);
                Ok(())
            }
            _ => {
                match self.layout.format {
                    Format::Json => {
                        let text = self.layout.brackets(value, &self.indent(node.span.start));
                        self.splice(node.span.clone(), text);
                    }
                    Format::Yaml => self.splice_flow(place, self.layout.flow(value)),
                }
                Ok(())
            }
        }
    }

    /// Replaces everything behind a key in YAML's block style.
    fn replace_after_colon(&mut self, place: NodePosition<'_>, value: &Json) {
        let Some((Node { value: Value::Map { entries, .. }, .. }, index)) = place.holder else {
            return;
        };
        let key = &entries[index].key_span;
        let text = &self.file.text;
        let colon = text[key.end..].find(':').map_or(key.end, |i| key.end + i + 1);
        let end = if place.node.span.is_empty() { colon } else { place.node.span.end.max(colon) };
        let end = colon + text[colon..end].trim_end().len();
        let written = self.layout.after_colon(value, &self.indent(key.start));
        self.splice(colon..end, written);
    }

    fn of_another_kind(&self, anchored: &Node) -> ConfigurationError {
        let message =
            "this value has an anchor, and its place would be taken by one of another kind";
        error(self.file, anchored.span.start, message).hint("write the value out")
    }

    /// Writes entries into an object that does not have them, or items behind the last one of a list.
    pub(super) fn insert(
        &mut self,
        place: NodePosition<'_>,
        values: &Map<String, Json>,
    ) -> Result<(), ConfigurationError> {
        let node = self.tree.resolve(place.node);
        match &node.value {
            Value::Map { entries, flow: false } => {
                let (first, last) = (&entries[0], &entries[entries.len() - 1]);
                let indent = self.indent(first.key_span.start);
                let end = self.end_of_block(last.value.span.end.max(last.key_span.end));
                self.splice(
                    end..end,
                    values
                        .iter()
                        .map(|(key, value)| {
                            let entry = self.layout.entry(key, value, &indent);
                            format!("{}{indent}{entry}", self.layout.line_end)
                        })
                        .collect(),
                );
            }
            Value::Map { entries, flow: true } => match entries.last() {
                Some(last) => {
                    let start = last.key_span.start;
                    let end = last.value.span.end;
                    let lines = self.starts_line(start);
                    let quotes = self.file.text[start..].starts_with('"');
                    let layout = Layout { quotes, ..self.layout };
                    let entries = more(layout, values, lines.then(|| self.indent(start)));
                    self.splice(end..end, entries);
                }
                None => return self.fill(place, values),
            },
            Value::List(items) => self.append(node, items, values.values()),
            _ => return self.fill(place, values),
        }
        Ok(())
    }

    /// Writes items behind the last one of a list.
    fn append<'v>(&mut self, list: &Node, items: &[Node], values: impl Iterator<Item = &'v Json>) {
        let (Some(first), Some(last)) = (items.first(), items.last()) else {
            // One that is empty is in brackets.
            let values = Json::Array(values.cloned().collect());
            let text = match self.layout.format {
                Format::Json => self.layout.brackets(&values, &self.indent(list.span.start)),
                Format::Yaml => self.layout.flow(&values),
            };
            return self.splice(list.span.clone(), text);
        };
        let start = first.span.start;
        if is_block(list) {
            let indent = self.indent(self.dash(start));
            let end = self.end_of_block(last.span.end);
            let lines = values.map(|value| {
                let item = self.layout.item(value, &indent);
                format!("{}{indent}- {item}", self.layout.line_end)
            });
            let text = lines.collect();
            return self.splice(end..end, text);
        }
        let indent = self.starts_line(start).then(|| self.indent(start));
        let text = values
            .map(|value| match &indent {
                Some(indent) => {
                    let value = self.layout.collection(value, indent);
                    format!(",{}{indent}{value}", self.layout.line_end)
                }
                None => format!(", {}", self.layout.flow(value)),
            })
            .collect();
        let end = last.span.end;
        self.splice(end..end, text);
    }

    /// Returns the position of the dash of an item that begins at `at` in block style.
    fn dash(&self, at: usize) -> usize {
        let before = &self.file.text[..at];
        let line = before.rfind('\n').map_or(0, |i| i + 1);
        let content = before[line..].trim_start_matches([' ', '-']);
        let head = &before[..before.len() - content.len()];
        head.trim_end().rfind('-').unwrap_or(at)
    }

    /// Returns true if nothing but blanks stands before `at` in its line.
    fn starts_line(&self, at: usize) -> bool {
        let before = &self.file.text[..at];
        let line = before.rfind('\n').map_or(0, |i| i + 1);
        line > 0 && before[line..].trim().is_empty()
    }

    /// Writes entries into an object that has none, or into a null that becomes an object.
    fn fill(
        &mut self,
        place: NodePosition<'_>,
        values: &Map<String, Json>,
    ) -> Result<(), ConfigurationError> {
        if place.node.anchor.is_some() {
            return Err(self.of_another_kind(place.node));
        }
        let values = Json::Object(values.clone());
        let in_block = place.holder.map(|(holder, _)| &holder.value);
        match self.layout.format {
            _ if matches!(in_block, Some(Value::Map { flow: false, .. })) => {
                self.replace_after_colon(place, &values);
            }
            Format::Json => {
                let span = place.node.span.clone();
                let text = self.layout.brackets(&values, &self.indent(span.start));
                self.splice(span, text);
            }
            Format::Yaml => self.splice_flow(place, self.layout.flow(&values)),
        }
        Ok(())
    }

    /// Writes a YAML value in brackets. If the key has no value yet, the new one goes behind the colon; `{key}` has no
    /// colon either.
    fn splice_flow(&mut self, place: NodePosition<'_>, value: String) {
        let span = place.node.span.clone();
        let key = place.holder.and_then(|(holder, index)| match &holder.value {
            Value::Map { entries, .. } if span.is_empty() => Some(entries[index].key_span.end),
            _ => None,
        });
        let Some(key) = key else {
            return self.splice(span, value);
        };
        let behind = &self.file.text[key..];
        let trimmed = behind.trim_start();
        match trimmed.strip_prefix(':') {
            Some(rest) => {
                let colon = key + behind.len() - rest.len();
                self.splice(colon..colon, format!(" {value}"));
            }
            None => self.splice(key..key, format!(": {value}")),
        }
    }

    /// Takes entries out of an object, or items out of a list.
    pub(super) fn remove(&mut self, holder: &Node, indices: &BTreeSet<usize>) {
        let spans = parts(holder);
        let Some(kept) = (0..spans.len()).find(|index| !indices.contains(index)) else {
            return match (is_block(holder), &holder.value) {
                (false, _) => {
                    self.splice(holder.span.start + 1..holder.span.end - 1, String::new());
                }
                (true, Value::List(_)) => {
                    let start = self.dash(holder.span.start);
                    self.splice(start..holder.span.end, "[]".to_owned());
                }
                (true, _) => self.splice(holder.span.clone(), "{}".to_owned()),
            };
        };
        if kept > 0 {
            // The first that stays takes their place.
            self.splice(spans[0].start..spans[kept].start, String::new());
        }
        for &index in indices.range(kept..) {
            let Range { start, end } = spans[index];
            let range = if is_block(holder) {
                let before = &self.file.text[..start];
                let line = before.trim_end_matches([' ', '\t', '-']);
                let start = line.trim_end_matches('\n').trim_end_matches('\r').len();
                start..self.end_of_block(end)
            } else {
                spans[index - 1].end..end
            };
            self.splice(range, String::new());
        }
    }
}

/// Returns the text of entries that follow the last one of an object in braces, on lines of their own if there is an
/// indentation.
fn more(layout: Layout<'_>, values: &Map<String, Json>, indent: Option<String>) -> String {
    let separator = match &indent {
        Some(indent) => format!(",{}{indent}", layout.line_end),
        None => ", ".to_owned(),
    };
    values
        .iter()
        .map(|(key, value)| {
            let entry = layout.flow_entry(key, value, indent.as_deref());
            format!("{separator}{entry}")
        })
        .collect()
}

/// Returns the error for two changes that cannot both be made, at the place of the inner one.
pub(super) fn within_another(file: &SourceFile, at: usize) -> ConfigurationError {
    let message = "this is to be changed, and what it is in to be replaced as a whole";
    error(file, at, message).hint("make one of the two changes in the file by hand")
}

/// Returns the byte ranges of a collection's parts: of its keys with their values, or of its items.
fn parts(holder: &Node) -> Vec<Range<usize>> {
    match &holder.value {
        Value::Map { entries, .. } => entries
            .iter()
            .map(|entry| entry.key_span.start..entry.value.span.end.max(entry.key_span.end))
            .collect(),
        Value::List(items) => items.iter().map(|item| item.span.clone()).collect(),
        Value::Scalar { .. } | Value::Alias(_) => Vec::new(),
    }
}

/// Returns true if a collection is in YAML's block style, without brackets.
fn is_block(node: &Node) -> bool {
    match &node.value {
        Value::Map { flow, .. } => !flow,
        // With brackets it would begin before its first item.
        Value::List(items) => {
            items.first().is_some_and(|first| first.span.start == node.span.start)
        }
        Value::Scalar { .. } | Value::Alias(_) => false,
    }
}

/// Returns the style of the first collection for which `says` returns one, outer collections first.
fn style_of(node: &Node, says: &dyn Fn(&Node) -> Option<bool>) -> Option<bool> {
    says(node).or_else(|| match &node.value {
        Value::Map { entries, .. } => entries.iter().find_map(|it| style_of(&it.value, says)),
        Value::List(items) => items.iter().find_map(|item| style_of(item, says)),
        Value::Scalar { .. } | Value::Alias(_) => None,
    })
}

fn has_quoted_keys(file: &SourceFile, tree: &Tree) -> bool {
    let Value::Map { entries, .. } = &tree.root.value else {
        return false;
    };
    let mut keys = entries.iter().map(|entry| &file.text[entry.key_span.clone()]);
    keys.next().is_some_and(|key| key.starts_with('"'))
}

/// Returns true if dashes stand below the first letter of their key; None if this is no object with a list in block
/// style.
fn dashes_at_key(file: &SourceFile, node: &Node) -> Option<bool> {
    let Value::Map { entries, flow: false } = &node.value else {
        return None;
    };
    let entry = entries
        .iter()
        .find(|entry| matches!(entry.value.value, Value::List(_)) && is_block(&entry.value))?;
    let first = file.text[..entry.value.span.start].trim_end_matches([' ', '-']);
    let dash = first.len() + file.text[first.len()..].find('-')?;
    let [dash, key] = [dash, entry.key_span.start]
        .map(|at| at - file.text[..at].rfind('\n').map_or(0, |end| end + 1));
    Some(dash == key)
}

/// Returns true if there is a blank behind the opening brace; None if this is no object in braces on one line.
fn is_padded(file: &SourceFile, node: &Node) -> Option<bool> {
    let text = &file.text[node.span.clone()];
    match &node.value {
        Value::Map { entries, flow: true } if !entries.is_empty() && !text.contains('\n') => {
            Some(text.starts_with("{ "))
        }
        _ => None,
    }
}

/// Returns true if a list is on one line; None if this is no list of scalars.
fn is_short_list(file: &SourceFile, node: &Node) -> Option<bool> {
    match &node.value {
        Value::List(items)
            if !items.is_empty()
                && items.iter().all(|item| matches!(item.value, Value::Scalar { .. })) =>
        {
            Some(!file.text[node.span.clone()].contains('\n'))
        }
        _ => None,
    }
}

/// Returns one step of indentation: that of the first key, or of the first key of an object below.
fn unit<'t>(file: &'t SourceFile, tree: &Tree) -> &'t str {
    let Value::Map { entries, .. } = &tree.root.value else {
        return "  ";
    };
    let inner = entries.iter().filter_map(|entry| match &entry.value.value {
        Value::Map { entries, .. } => entries.first(),
        _ => None,
    });
    let unit = entries.first().into_iter().chain(inner).find_map(|entry| {
        let at = entry.key_span.start;
        let line = file.text[..at].rfind('\n')? + 1;
        let before = &file.text[line..at];
        (!before.is_empty() && before.trim().is_empty()).then_some(before)
    });
    unit.unwrap_or("  ")
}
