//! Small readers of nodes. Each reports errors and returns `None`, so that the reader of a section can continue and
//! find the rest.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

pub(crate) use weir_model::nearest::nearest;
use weir_model::quantity::{format_duration, parse_bytes, parse_duration};

use crate::Engine;
use crate::tree::{Entry, Node, Value};

/// Maximum size of content from the origin or a file, which is held in memory.
pub(crate) const MAX_CONTENT: u64 = 1 << 30;

/// An error that has no file name yet.
#[derive(Debug)]
pub struct Finding {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The valid name or value that was most likely meant.
    pub nearest: Option<String>,
}

impl Finding {
    /// Creates an error at these bytes of the text.
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Finding {
        Finding { span, message: printable(&message.into()), hint: None, nearest: None }
    }

    /// Sets the advice on how to resolve the error.
    pub fn hint(&mut self, hint: impl Into<String>) -> &mut Finding {
        self.hint = Some(hint.into());
        self
    }

    /// Sets the advice if it is known.
    pub(crate) fn maybe_hint(&mut self, hint: Option<&str>) -> &mut Finding {
        self.hint = hint.map(str::to_owned);
        self
    }

    /// Sets the valid name or value that was most likely meant.
    pub(crate) fn nearest(&mut self, nearest: Option<&str>) -> &mut Finding {
        self.nearest = nearest.map(str::to_owned);
        self
    }
}

/// Collector of errors.
#[derive(Debug, Default)]
pub(crate) struct Checker {
    findings: Vec<Finding>,
    /// Load engine that checks loads.
    pub(crate) engine: Engine,
}

impl Checker {
    pub(crate) fn new(engine: Engine) -> Checker {
        Checker { engine, ..Checker::default() }
    }

    /// Reports an error at `span`.
    pub(crate) fn error(&mut self, span: Range<usize>, message: impl Into<String>) -> &mut Finding {
        self.findings.push(Finding::new(span, message));
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    /// Returns the number of errors so far.
    pub(crate) fn count(&self) -> usize {
        self.findings.len()
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }

    /// Reports that `node` is of the wrong kind, unless an error in it was reported already.
    fn unexpected(&mut self, node: &Node, wanted: &str, hint: Option<&str>) {
        if matches!(node.value, Value::Refused) {
            return;
        }
        let is_item = wanted.starts_with("a list") && matches!(node.value, Value::Mapping(_));
        let kind = match &node.value {
            Value::List(items) if items.is_empty() => "an empty list",
            Value::Mapping(entries) if entries.is_empty() => "an empty mapping",
            other => other.words(),
        };
        self.error(node.span.clone(), format!("expected {wanted}, found {kind}"))
            .maybe_hint(hint.or(is_item.then_some("begin each entry of a list with `- `")));
    }

    /// Reads a scalar as it is, white space included.
    pub(crate) fn scalar<'n>(&mut self, node: &'n Node, wanted: &str) -> Option<&'n str> {
        match &node.value {
            Value::Scalar(text) => Some(text),
            _ => {
                self.unexpected(node, wanted, None);
                None
            }
        }
    }

    /// Reads text, trimmed and not empty.
    pub(crate) fn text(&mut self, node: &Node) -> Option<String> {
        let text = self.scalar(node, "text")?.trim();
        if text.is_empty() {
            self.error(node.span.clone(), "expected text, found nothing");
            return None;
        }
        Some(text.to_owned())
    }

    /// Reads a list of at least one item.
    pub(crate) fn list<'n>(&mut self, node: &'n Node, wanted: &str) -> Option<&'n [Node]> {
        match &node.value {
            Value::List(items) if !items.is_empty() => Some(items),
            _ => {
                self.unexpected(node, wanted, None);
                None
            }
        }
    }

    /// Reads a mapping of at least one entry. The caller checks the keys.
    pub(crate) fn entries<'n>(&mut self, node: &'n Node, wanted: &str) -> Option<&'n [Entry]> {
        match &node.value {
            Value::Mapping(entries) if !entries.is_empty() => Some(entries),
            _ => {
                self.unexpected(node, wanted, None);
                None
            }
        }
    }

    /// Reads a name that is valid for a file and a table: lower-case letters, digits and dashes.
    pub(crate) fn name(&mut self, node: &Node) -> Option<String> {
        self.named(
            node,
            |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-',
            "lower-case letters, digits and `-`",
        )
    }

    /// Reads the name of an arm, which may also contain the characters of a setting.
    pub(crate) fn arm_name(&mut self, node: &Node) -> Option<String> {
        self.named(
            node,
            |c| c.is_ascii_alphanumeric() || "-_=.,+".contains(c),
            "letters, digits and `-_=.,+`",
        )
    }

    fn named(&mut self, node: &Node, fit: impl Fn(char) -> bool, allowed: &str) -> Option<String> {
        let name = self.scalar(node, "a name")?;
        let first = name.chars().next();
        if first.is_some_and(|c| c.is_ascii_alphanumeric())
            && name.len() <= 64
            && name.chars().all(&fit)
        {
            return Some(name.to_owned());
        }
        let better = fitting(name, fit);
        self.error(
            node.span.clone(),
            format!("`{}` is not a valid name", short(name)),
        )
        .hint(format!(
            "a name has {allowed}, begins with a letter or digit, and is at most 64 characters long"
        ))
        .nearest((!better.is_empty()).then_some(&better));
        None
    }

    /// Reads one of the given words.
    pub(crate) fn choice<T: Clone>(&mut self, node: &Node, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let text = self.scalar(node, &one_of(&names))?;
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
            return Some(value.clone());
        }
        self.error(node.span.clone(), format!("`{}` is not {}", short(text), one_of(&names)))
            .nearest(nearest(text, &names));
        None
    }

    /// Reads `true` or `false`.
    pub(crate) fn flag(&mut self, node: &Node) -> Option<bool> {
        self.choice(node, &[("true", true), ("false", false)])
    }

    /// Reads a whole number within bounds.
    pub(crate) fn whole(&mut self, node: &Node, bounds: RangeInclusive<u64>) -> Option<u64> {
        let wanted = format!("a whole number from {} to {}", bounds.start(), bounds.end());
        let text = self.scalar(node, &wanted)?;
        let number = text.parse().ok().filter(|number| bounds.contains(number));
        if number.is_none() {
            let message = format!("`{}` is not {wanted}", short(text));
            self.error(node.span.clone(), message);
        }
        number
    }

    /// Reads a duration within bounds.
    pub(crate) fn duration(
        &mut self,
        node: &Node,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let text = self.scalar(node, "a duration such as 100ms, 10s or 2m")?;
        match parse_duration(text) {
            Ok(duration) if bounds.contains(&duration) => Some(duration),
            Ok(_) => {
                let (from, to) = (format_duration(*bounds.start()), format_duration(*bounds.end()));
                let message = format!("`{text}` is not a duration from {from} to {to}");
                self.error(node.span.clone(), message);
                None
            }
            Err(error) => {
                self.error(node.span.clone(), error.to_string());
                None
            }
        }
    }

    /// Reads a size in bytes, at most `max`.
    pub(crate) fn bytes(&mut self, node: &Node, max: u64) -> Option<u64> {
        let text = self.scalar(node, "a size such as 600 or 1KiB")?;
        match parse_bytes(text) {
            Ok(bytes) if bytes <= max => Some(bytes),
            Ok(_) => {
                let message = format!("`{text}` is above {} MiB", max >> 20);
                self.error(node.span.clone(), message);
                None
            }
            Err(error) => {
                self.error(node.span.clone(), error.to_string());
                None
            }
        }
    }

    /// Reads a share such as `20%` or `0.2`, within bounds given as fractions.
    pub(crate) fn share(&mut self, node: &Node, bounds: Range<f64>) -> Option<f64> {
        let wanted =
            format!("a share from {} % to below {} %", bounds.start * 100.0, bounds.end * 100.0);
        let text = self.scalar(node, &wanted)?;
        let share = fraction(text).filter(|share| bounds.contains(share));
        if share.is_none() {
            let message = format!("`{}` is not {wanted}", short(text));
            self.error(node.span.clone(), message).hint("write it as `20%` or as `0.2`");
        }
        share
    }
}

/// Parses `20%` or `0.2`. Returns `None` for negative and infinite numbers.
pub(crate) fn fraction(text: &str) -> Option<f64> {
    // Division by 100 is exact where multiplication by 0.01 is not.
    let (number, divisor) = match text.trim().strip_suffix('%') {
        Some(percent) => (percent, 100.0),
        None => (text, 1.0),
    };
    let fraction = number.trim().parse::<f64>().ok()? / divisor;
    (fraction.is_finite() && fraction >= 0.0).then_some(fraction)
}

/// Returns `name` with invalid characters replaced.
pub(crate) fn fitting(name: &str, fit: impl Fn(char) -> bool) -> String {
    let mut better = String::new();
    for c in name.chars() {
        let lower = c.to_ascii_lowercase();
        match (fit(c), fit(lower)) {
            (true, _) => better.push(c),
            (false, true) => better.push(lower),
            (false, false) if better.ends_with('-') => {}
            (false, false) => better.push('-'),
        }
    }
    better.trim_matches(|c: char| !c.is_ascii_alphanumeric()).chars().take(64).collect()
}

/// Formats names as a choice: `a`, `b` or `c`.
fn one_of(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => String::new(),
    }
}

/// Shortens text to fit into a message of one line.
pub(crate) fn short(text: &str) -> String {
    let mut short: String = printable(text).chars().take(60).collect();
    if text.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}

fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Common wrong names of keys, with the right ones.
const SYNONYMS: [(&str, &str); 4] =
    [("headers", "fields"), ("body", "content"), ("url", "path"), ("time", "duration")];

/// A mapping with known keys.
pub(crate) struct Fields<'n> {
    entries: &'n [Entry],
    what: &'static str,
    span: Range<usize>,
    /// Entries with an unknown key, each with the known key that was most likely meant. That key is not reported as
    /// missing then.
    unknown: Vec<(&'n Entry, Option<String>)>,
}

impl<'n> Fields<'n> {
    /// Opens a mapping. `what` is its description, such as `a load`.
    pub(crate) fn open(
        node: &'n Node,
        what: &'static str,
        known: &[&str],
        check: &mut Checker,
    ) -> Option<Fields<'n>> {
        let Value::Mapping(entries) = &node.value else {
            let hint = format!("keys of {what}: {}", known.join(", "));
            check.unexpected(node, "a mapping", Some(&hint));
            return None;
        };
        // An error about the whole points at its first key: a block has no brackets to point at.
        let span = entries.first().map_or(node.span.clone(), |entry| entry.span.clone());
        Some(Fields { entries, what, span, unknown: Vec::new() })
    }

    /// Opens a mapping, and reports keys that are not in `known`.
    pub(crate) fn known(
        node: &'n Node,
        what: &'static str,
        known: &[&str],
        check: &mut Checker,
    ) -> Option<Fields<'n>> {
        let mut fields = Fields::open(node, what, known, check)?;
        fields.refuse_unknown(known, check);
        Some(fields)
    }

    /// Reports keys that are not in `known`.
    pub(crate) fn refuse_unknown(&mut self, known: &[&str], check: &mut Checker) {
        for entry in self.entries {
            if !known.contains(&entry.key.as_str()) {
                let message = format!("{} has no key `{}`", self.what, short(&entry.key));
                let meant = SYNONYMS
                    .iter()
                    .find(|(word, _)| *word == entry.key)
                    .map(|(_, key)| *key)
                    .filter(|key| known.contains(key))
                    .or_else(|| nearest(&entry.key, known));
                let all = format!("its keys are {}", known.join(", "));
                check
                    .error(entry.span.clone(), message)
                    .maybe_hint(meant.is_none().then_some(&all))
                    .nearest(meant);
                self.unknown.push((entry, meant.map(str::to_owned)));
            }
        }
    }

    /// Returns true if no unknown key was reported.
    pub(crate) fn is_known(&self) -> bool {
        self.unknown.is_empty()
    }

    /// Returns the entry with a key, or the entry with an unknown key for which this one was most likely meant.
    pub(crate) fn entry(&self, key: &str) -> Option<&'n Entry> {
        let named = self.entries.iter().find(|entry| entry.key == key);
        named.or_else(|| {
            let mut unknown = self.unknown.iter();
            unknown.find(|(_, meant)| meant.as_deref() == Some(key)).map(|(entry, _)| *entry)
        })
    }

    /// Returns the position of an entry: that of its key.
    pub(crate) fn entry_span(&self, key: &str) -> Option<Range<usize>> {
        self.entry(key).map(|entry| entry.span.clone())
    }

    /// Returns the position of the value of a key.
    pub(crate) fn value_span(&self, key: &str) -> Option<Range<usize>> {
        self.get(key).map(|node| node.span.clone())
    }

    /// Returns the value of an optional key.
    pub(crate) fn get(&self, key: &str) -> Option<&'n Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Returns the value of a required key. Reports an error if the key is missing.
    pub(crate) fn required(&self, key: &str, check: &mut Checker) -> Option<&'n Node> {
        let node = self.get(key);
        if node.is_none() {
            check.error(self.span.clone(), format!("{} needs the key `{key}`", self.what));
        }
        node
    }

    /// Returns the position to report errors of the whole mapping at.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}
