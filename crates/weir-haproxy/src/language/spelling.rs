//! Spelling of a catalog row's level in haproxy.cfg, and comparison of two spellings.

use std::mem::take;
use std::time::Duration;

use weir_configuration::WantedSetting;
use weir_configuration::place::{like, unit};
use weir_parameters::{EffectiveFrom, LevelKind, Parameter};

use super::keywords::is_adding;
use super::sections::Statement;
use super::variables::Variables;
use super::words;

/// Statements or options of a level in one context.
#[derive(Debug)]
pub(super) struct Spelling<'w> {
    row: &'w Parameter,
    /// Beginnings of all levels of the row, without `no`: `timeout client`, or both of `option httpclose` and `option
    /// http-keep-alive`.
    pub(super) keys: Vec<Vec<String>>,
    /// Statements or options that have to be there; empty if there must be none of the row's.
    pub(super) texts: Vec<Text>,
}

/// One statement or option that has to be there.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) key: Vec<String>,
    /// The whole text as it is written.
    pub(super) written: String,
    /// Words of the text as they are written, with quotes.
    pub(super) raw: Vec<String>,
    /// Words of the text by their meaning, without quotes.
    pub(super) words: Vec<String>,
}

impl<'w> Spelling<'w> {
    /// Creates the spelling of `wanted` in the context of this name.
    pub(super) fn new(wanted: &WantedSetting<'w>, context: &str) -> Spelling<'w> {
        let row = wanted.row;
        let writes = row.writes.iter().filter(|write| write.context.name() == context);
        let mut keys: Vec<Vec<String>> = Vec::new();
        for key in writes.flat_map(|write| keys_of(row, &write.text)) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let texts = row
            .directives(wanted.level)
            .into_iter()
            .filter(|directive| directive.context.name() == context)
            .map(|directive| Text::new(&keys, directive.text))
            .collect();
        Spelling { row, keys, texts }
    }

    /// Returns the key of the row that a statement begins with.
    pub(super) fn key_of(&self, statement: &Statement<'_>) -> Option<&[String]> {
        let words: Vec<&str> = statement.words.iter().map(|word| &*word.text).collect();
        key_of(&self.keys, &words)
    }

    /// Takes out the row's texts within a list of options (`ssl-default-bind-options`), and returns them without the
    /// list's keyword.
    pub(super) fn take(&mut self, list: &str) -> Spelling<'w> {
        let is_listed = |key: &[String]| key.len() > 1 && key[0] == list;
        let (keys, rest) =
            take(&mut self.keys).into_iter().partition::<Vec<_>, _>(|key| is_listed(key));
        self.keys = rest;
        let (texts, rest) =
            take(&mut self.texts).into_iter().partition::<Vec<_>, _>(|text| is_listed(&text.key));
        self.texts = rest;
        let keys: Vec<_> = keys.into_iter().map(|key| key[1..].to_vec()).collect();
        let texts =
            texts.into_iter().map(|text| Text::new(&keys, text.raw[1..].join(" "))).collect();
        Spelling { row: self.row, texts, keys }
    }

    /// Returns true if a statement already does in the user's own way what the level is to do, and therefore stays.
    pub(super) fn is_users_own(&self, statement: &Statement<'_>) -> bool {
        let mut writes = self.row.writes.iter();
        let is_negated = statement.word(0) == "no";
        is_adding(statement.word(usize::from(is_negated)))
            && (is_negated || !self.texts.is_empty())
            && self.key_of(statement).is_some()
            && !writes.any(|write| {
                write.text.split_whitespace().eq(statement.words.iter().map(|word| &*word.text))
            })
    }

    /// Returns true if these words mean the same as a text: the same words, or the same duration in another unit
    /// (`30000` and `30s`).
    pub(super) fn is_said_by(&self, words: &[&str], text: &Text) -> bool {
        words.len() == text.words.len()
            && words.iter().zip(&text.words).all(|(a, b)| a == b || self.is_same_quantity(a, b))
    }

    /// Returns a text's words in the style of the words that they replace: a time without a unit if the old one had
    /// none, otherwise in the old unit, or in one in which it comes out even.
    pub(super) fn in_style(&self, words: &[&str], text: &Text) -> Vec<String> {
        let is_duration = matches!(self.row.level, LevelKind::Duration { .. });
        let mut raw = text.raw.clone();
        if is_duration && words.len() == text.words.len() {
            for ((raw, found), wanted) in raw.iter_mut().zip(words).zip(&text.words) {
                let styled = microseconds(found)
                    .and(microseconds(wanted))
                    .and_then(|wanted| u64::try_from(wanted).ok())
                    .and_then(|wanted| {
                        // The catalog writes some without a unit.
                        let is_bare = unit(raw).is_empty() && !unit(found).is_empty();
                        like(found, wanted, &TIMES)
                            .or_else(|| like("s", wanted, &TIMES).filter(|_| is_bare))
                            .or_else(|| like("ms", wanted, &TIMES).filter(|_| is_bare))
                    });
                *raw = styled.unwrap_or_else(|| raw.clone());
            }
        }
        raw
    }

    // Sizes are not compared: whether `16k` is 16 or 16384 differs by keyword.
    fn is_same_quantity(&self, a: &str, b: &str) -> bool {
        let is_duration = matches!(self.row.level, LevelKind::Duration { .. });
        is_duration && microseconds(a).is_some() && microseconds(a) == microseconds(b)
    }
}

impl Text {
    fn new(keys: &[Vec<String>], written: String) -> Text {
        // A row's texts are the catalog's own and have no open quotes.
        let split =
            words::split(&written, 0..written.len(), &Variables::default()).unwrap_or_default();
        let raw = split.iter().map(|word| written[word.span.clone()].to_owned()).collect();
        let words: Vec<&str> = split.iter().map(|word| &*word.text).collect();
        let key = key_of(keys, &words).unwrap_or_default().to_vec();
        Text { key, raw, words: words.into_iter().map(str::to_owned).collect(), written }
    }
}

/// Returns the longest key that these words begin with, after a leading `no` or `default`.
fn key_of<'k>(keys: &'k [Vec<String>], words: &[&str]) -> Option<&'k [String]> {
    let negated = words.first().is_some_and(|word| matches!(*word, "no" | "default"));
    let words = &words[usize::from(negated)..];
    keys.iter()
        .filter(|key| words.len() >= key.len() && key.iter().zip(words).all(|(a, b)| a == b))
        .max_by_key(|key| key.len())
        .map(Vec::as_slice)
}

/// Returns the possible beginnings of a row's text. `option` alone is also the beginning of other rows and of the
/// user's statements: with each of the row's levels it is a keyword of its own.
fn keys_of(row: &Parameter, text: &str) -> Vec<Vec<String>> {
    let key = read_key(row, text);
    match &row.level {
        LevelKind::Choice(levels) if key == ["option"] => {
            levels.iter().map(|level| vec![key[0].clone(), level.clone()]).collect()
        }
        _ => vec![key],
    }
}

/// Returns the beginning of a row's text that does not depend on the level: its words before the level, or as many
/// words as are in the name under which the effective value is read.
fn read_key(row: &Parameter, text: &str) -> Vec<String> {
    let name = match &row.effective {
        EffectiveFrom::Directive { name, .. } | EffectiveFrom::ListenFlag { name } => name,
        _ => "",
    };
    let fixed: Vec<&str> = text
        .split_whitespace()
        .skip_while(|word| matches!(*word, "no" | "default"))
        .take_while(|word| !word.contains('{'))
        .collect();
    let name: Vec<&str> = name.split_whitespace().skip_while(|word| *word == "no").collect();
    let length =
        if fixed.starts_with(&name) && !name.is_empty() { name.len() } else { fixed.len() };
    fixed[..length].iter().map(|&word| word.to_owned()).collect()
}

/// Units in which people write durations, in microseconds.
const TIMES: [(&str, u64); 6] = [
    ("", 1000),
    ("ms", 1000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
];

/// Parses a duration as HAProxy does (manual §2.5), in microseconds; a number without a unit is in milliseconds.
fn microseconds(text: &str) -> Option<u128> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let number = digits.parse::<u64>().ok()?;
    let unit = match &text[digits.len()..] {
        "us" => Duration::from_micros(1),
        "" | "ms" => Duration::from_millis(1),
        "s" => Duration::from_secs(1),
        "m" => Duration::from_secs(60),
        "h" => Duration::from_secs(3_600),
        "d" => Duration::from_secs(86_400),
        _ => return None,
    };
    Some(u128::from(number) * unit.as_micros())
}
