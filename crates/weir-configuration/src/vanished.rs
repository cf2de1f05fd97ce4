//! Finds differences of two configurations that their copies do not have.
//!
//! Replaced and omitted parts that matter are known by name (`replaced` in the crate of each proxy). This module
//! compares the words of four texts without any knowledge of a language, so that no difference is lost in silence.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use similar::DiffOp;
use weir_model::record::SpotRecord;

use crate::Source;
use crate::source::changes;

/// Maximum time for the comparison of two texts.
const PATIENCE: Duration = Duration::from_secs(1);

/// Characters that separate words of a statement, besides white space.
const PARTS: [char; 5] = [',', '[', ']', '"', '\''];

/// Finds the places where two configurations differ and their copies do not: places of the second, or of the first if
/// the second has nothing there.
pub fn vanished(first: &Copied<'_>, second: &Copied<'_>) -> Vec<SpotRecord> {
    let ops = compare(&keys(&first.words), &keys(&second.words));
    let mut spots = Vec::new();
    for (place, op) in ops.iter().enumerate() {
        let (old, new) = (op.old_range(), op.new_range());
        // Words beside it that both have.
        let room = [place.checked_sub(1), Some(place + 1)].map(|beside| shared(&ops, beside));
        match op {
            DiffOp::Equal { .. } => {}
            DiffOp::Delete { .. } => spots.extend(first.find_lost(&old, (second, new.start), room)),
            DiffOp::Insert { .. } => spots.extend(second.find_lost(&new, (first, old.start), room)),
            DiffOp::Replace { .. } => {
                let reach = [first.reach(&old), second.reach(&new)];
                let [before, behind] =
                    [0, 1].map(|side| reach[0][side].max(reach[1][side]).min(room[side]));
                let old_words = old.start - before..old.end + behind;
                let new_words = new.start - before..new.end + behind;
                if first.copied(&old_words) == second.copied(&new_words) {
                    spots.push(second.spot(new.start));
                } else {
                    spots.extend(first.find_lost(&old, (second, new.start), [0; 2]));
                    spots.extend(second.find_lost(&new, (first, old.start), [0; 2]));
                }
            }
        }
    }
    spots.dedup();
    spots
}

/// Returns the number of words of a part that both configurations have; none if there is no such part.
fn shared(ops: &[DiffOp], index: Option<usize>) -> usize {
    let op = index.and_then(|index| ops.get(index)).filter(|op| is_equal(op));
    op.map_or(0, |op| op.new_range().len())
}

fn is_equal(op: &DiffOp) -> bool {
    matches!(op, DiffOp::Equal { .. })
}

fn compare(before: &[&str], after: &[&str]) -> Vec<DiffOp> {
    changes(before, after, Some(Instant::now() + PATIENCE))
}

fn keys<'w>(words: &'w [Word<'_>]) -> Vec<&'w str> {
    words.iter().map(|word| &*word.key).collect()
}

/// A configuration, with the words of its copy in place of each of its words.
pub struct Copied<'s> {
    words: Vec<Word<'s>>,
    copy: Vec<Word<'s>>,
    /// Ranges of words, each with the words of the copy in its place, in order.
    placed: Vec<(Range<usize>, Range<usize>)>,
}

impl<'s> Copied<'s> {
    /// Finds the words of a copy in place of each word.
    pub fn of(original: &'s Source, copy: &'s Source) -> Copied<'s> {
        let mut side = Copied { words: words(original), copy: words(copy), placed: Vec::new() };
        for op in compare(&keys(&side.words), &keys(&side.copy)) {
            let (old, new) = (op.old_range(), op.new_range());
            if is_equal(&op) {
                side.placed.extend(old.zip(new).map(|(old, new)| (old..old + 1, new..new + 1)));
            } else {
                side.placed.push((old, new));
            }
        }
        side
    }

    /// Returns the parts of the original that contain some of these words, each with the words of the copy in its
    /// place.
    fn find_parts(&self, words: &Range<usize>) -> &[(Range<usize>, Range<usize>)] {
        let begin = self.placed.partition_point(|(old, _)| old.end <= words.start);
        let count = self.placed[begin..].partition_point(|(old, _)| old.start < words.end);
        if words.is_empty() {
            return &[];
        }
        &self.placed[begin..begin + count]
    }

    /// Returns the number of words before and behind these words that belong to the same replaced parts.
    fn reach(&self, words: &Range<usize>) -> [usize; 2] {
        let parts = self.find_parts(words);
        let begin = parts.first().map_or(words.start, |(old, _)| old.start);
        let end = parts.last().map_or(words.end, |(old, _)| old.end);
        [words.start.saturating_sub(begin), end.saturating_sub(words.end)]
    }

    /// Returns the words of the copy in place of these words.
    fn copied(&self, words: &Range<usize>) -> Vec<&str> {
        self.find_parts(words)
            .iter()
            .flat_map(|(old, new)| self.of_same_statements(old, new))
            .map(|word| &*word.key)
            .collect()
    }

    /// Returns the words of the copy in place of others, without statements that the copy adds there.
    fn of_same_statements(
        &self,
        old: &Range<usize>,
        new: &Range<usize>,
    ) -> impl Iterator<Item = &Word<'s>> {
        let old = &self.words[old.clone()];
        self.copy[new.clone()]
            .iter()
            .filter(move |word| old.iter().any(|old| old.first == word.first))
    }

    /// Finds the parts of some words that another configuration does not have at a place, and for which the copy has
    /// nothing: no words at all, or only those that the other copy has for the words beside the place. `room` is the
    /// number of words before and behind that both configurations share.
    fn find_lost(
        &self,
        words: &Range<usize>,
        (other, at): (&Copied<'_>, usize),
        room: [usize; 2],
    ) -> Vec<SpotRecord> {
        let parts = self.find_parts(words).iter();
        parts
            .filter(|(old, new)| {
                let before = words.start.saturating_sub(old.start);
                let behind = old.end.saturating_sub(words.end);
                if before > room[0] || behind > room[1] {
                    return false;
                }
                let copied = self.of_same_statements(old, new).map(|word| &*word.key);
                copied.eq(other.copied(&(at - before..at + behind)))
            })
            .map(|(old, _)| self.spot(old.start.max(words.start)))
            .collect()
    }

    /// Returns the line of a word, with a name: the word itself if it is a key, or else the first word of its
    /// statement, since a value may be a secret.
    fn spot(&self, word: usize) -> SpotRecord {
        let word = &self.words[word];
        let name = if word.is_key { word.text } else { word.first };
        SpotRecord {
            name: name.trim_end_matches(':').to_owned(),
            file: word.file.to_owned(),
            line: word.line,
        }
    }
}

/// A word of a file.
struct Word<'s> {
    /// First word of the statement and the word itself: `on` of one statement is not that of another.
    key: String,
    text: &'s str,
    /// True if a colon follows the word.
    is_key: bool,
    first: &'s str,
    file: &'s Path,
    line: usize,
}

/// Returns all words outside of comments.
fn words(source: &Source) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for file in &source.files {
        let statements = file
            .text
            .lines()
            .enumerate()
            .filter(|(_, text)| !text.trim_start().starts_with('#'))
            .flat_map(|(line, text)| {
                text.split([';', '{', '}']).map(move |statement| (line + 1, statement))
            });
        for (line, statement) in statements {
            let mut all = statement
                .split(|c: char| c.is_whitespace() || PARTS.contains(&c))
                .filter(|word| !matches!(*word, "" | ":" | "-"))
                .peekable();
            let first = all.peek().copied().unwrap_or_default();
            words.extend(all.map(|word| Word {
                key: format!("{first} {word}"),
                text: word,
                is_key: is_key(statement, word),
                first,
                file: &file.path,
                line,
            }));
        }
    }
    words
}

/// Returns true if a colon follows a word of a statement, perhaps behind a quote.
fn is_key(statement: &str, word: &str) -> bool {
    let end = word.as_ptr().addr() - statement.as_ptr().addr() + word.len();
    let behind = statement[end..].trim_start_matches(['"', '\'']);
    word.ends_with(':') || behind.trim_start().starts_with(':')
}
