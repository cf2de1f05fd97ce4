//! In what two configurations differ, and their copies do not.
//!
//! What a copy replaces or leaves out is known by name where it matters ([`crate::nginx::replaced`] and its like). This is
//! told without any knowledge of a language, from the words of four texts, so that nothing is lost in silence.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use similar::DiffOp;
use weir_model::record::SpotRecord;

use crate::Source;
use crate::source::changes;

/// How long a comparison of two texts may look for the best one.
const PATIENCE: Duration = Duration::from_secs(1);

/// Characters that part words of a statement, besides white space.
const PARTS: [char; 5] = [',', '[', ']', '"', '\''];

/// Finds where two configurations differ and their copies do not: places of the second, or of the first where the second
/// has nothing.
pub fn vanished(first: &Copied<'_>, second: &Copied<'_>) -> Vec<SpotRecord> {
    let ops = compared(&keys(&first.words), &keys(&second.words));
    let mut spots = Vec::new();
    for (place, op) in ops.iter().enumerate() {
        let (old, new) = (op.old_range(), op.new_range());
        // Words beside it that both have.
        let beside = |place: Option<usize>| {
            let beside = place.and_then(|place| ops.get(place));
            beside
                .filter(|op| is_equal(op))
                .map_or(0, |op| op.new_range().len())
        };
        let room = [beside(place.checked_sub(1)), beside(Some(place + 1))];
        match op {
            DiffOp::Equal { .. } => {}
            DiffOp::Delete { .. } => spots.extend(first.lost(&old, (second, new.start), room)),
            DiffOp::Insert { .. } => spots.extend(second.lost(&new, (first, old.start), room)),
            DiffOp::Replace { .. } => {
                let reach = [first.reach(&old), second.reach(&new)];
                let [before, behind] =
                    [0, 1].map(|side| reach[0][side].max(reach[1][side]).min(room[side]));
                let whole = |words: &Range<usize>| words.start - before..words.end + behind;
                if first.copied(&whole(&old)) == second.copied(&whole(&new)) {
                    spots.push(second.spot(new.start));
                } else {
                    spots.extend(first.lost(&old, (second, new.start), [0; 2]));
                    spots.extend(second.lost(&new, (first, old.start), [0; 2]));
                }
            }
        }
    }
    spots.dedup();
    spots
}

fn is_equal(op: &DiffOp) -> bool {
    matches!(op, DiffOp::Equal { .. })
}

fn compared(before: &[&str], after: &[&str]) -> Vec<DiffOp> {
    changes(before, after, Some(Instant::now() + PATIENCE))
}

fn keys<'w>(words: &'w [Word<'_>]) -> Vec<&'w str> {
    words.iter().map(|word| &*word.key).collect()
}

/// A configuration and what became of its words in the copy.
pub struct Copied<'s> {
    words: Vec<Word<'s>>,
    copy: Vec<Word<'s>>,
    /// Words, and the words of the copy that stand in their place, in order.
    placed: Vec<(Range<usize>, Range<usize>)>,
}

impl<'s> Copied<'s> {
    /// Finds what stands in a copy in place of each word.
    pub fn of(original: &'s Source, copy: &'s Source) -> Copied<'s> {
        let mut side = Copied {
            words: words(original),
            copy: words(copy),
            placed: Vec::new(),
        };
        for op in compared(&keys(&side.words), &keys(&side.copy)) {
            let (old, new) = (op.old_range(), op.new_range());
            if is_equal(&op) {
                let each = old.zip(new).map(|(old, new)| (old..old + 1, new..new + 1));
                side.placed.extend(each);
            } else {
                side.placed.push((old, new));
            }
        }
        side
    }

    /// Parts of the original that have words among these, and what stands in the copy in place of each.
    fn touched(&self, words: &Range<usize>) -> &[(Range<usize>, Range<usize>)] {
        let begin = self
            .placed
            .partition_point(|(old, _)| old.end <= words.start);
        let count = self.placed[begin..].partition_point(|(old, _)| old.start < words.end);
        if words.is_empty() {
            return &[];
        }
        &self.placed[begin..begin + count]
    }

    /// How many words before and behind some have their place in the copy together with some of them.
    fn reach(&self, words: &Range<usize>) -> [usize; 2] {
        let parts = self.touched(words);
        let begin = parts.first().map_or(words.start, |(old, _)| old.start);
        let end = parts.last().map_or(words.end, |(old, _)| old.end);
        [
            words.start.saturating_sub(begin),
            end.saturating_sub(words.end),
        ]
    }

    /// The words of the copy in place of some of the original.
    fn copied(&self, words: &Range<usize>) -> Vec<&str> {
        let touched = self.touched(words).iter();
        let copied = touched.flat_map(|(old, new)| self.of_same_statements(old, new));
        copied.map(|word| &*word.key).collect()
    }

    /// Words of the copy in place of others, without statements that the copy adds there.
    fn of_same_statements(
        &self,
        old: &Range<usize>,
        new: &Range<usize>,
    ) -> impl Iterator<Item = &Word<'s>> {
        let old = &self.words[old.clone()];
        let new = self.copy[new.clone()].iter();
        new.filter(move |word| old.iter().any(|old| old.first == word.first))
    }

    /// Finds parts of some words that another configuration does not have at a place, and the copy has nothing for: nothing
    /// at all, or no more than the other one's for the words beside them, of which both have as many as `room` says.
    fn lost(
        &self,
        words: &Range<usize>,
        (other, at): (&Copied<'_>, usize),
        room: [usize; 2],
    ) -> Vec<SpotRecord> {
        let parts = self.touched(words).iter();
        let is_lost = |(old, new): &&(Range<usize>, Range<usize>)| {
            let before = words.start.saturating_sub(old.start);
            let behind = old.end.saturating_sub(words.end);
            if before > room[0] || behind > room[1] {
                return false;
            }
            let copied = self.of_same_statements(old, new).map(|word| &*word.key);
            copied.eq(other.copied(&(at - before..at + behind)))
        };
        let spot = |(old, _): &(Range<usize>, Range<usize>)| self.spot(old.start.max(words.start));
        parts.filter(is_lost).map(spot).collect()
    }

    /// The line of a word, and a name for it: itself if it is a key, or that of its statement, for a value may be a secret.
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
    /// Itself behind the first word of its statement: `on` of one is not that of another.
    key: String,
    text: &'s str,
    /// A colon stands behind it.
    is_key: bool,
    first: &'s str,
    file: &'s Path,
    line: usize,
}

/// All words that are no comments.
fn words(source: &Source) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for file in &source.files {
        let lines = file.text.lines().enumerate();
        let lines = lines.filter(|(_, text)| !text.trim_start().starts_with('#'));
        let statements = lines.flat_map(|(line, text)| {
            let statements = text.split([';', '{', '}']);
            statements.map(move |statement| (line + 1, statement))
        });
        for (line, statement) in statements {
            let all = statement.split(|c: char| c.is_whitespace() || PARTS.contains(&c));
            let mut all = all
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

/// Returns true if a colon stands behind a word of a statement, perhaps with a quote before it.
fn is_key(statement: &str, word: &str) -> bool {
    let end = word.as_ptr().addr() - statement.as_ptr().addr() + word.len();
    let behind = statement[end..].trim_start_matches(['"', '\'']);
    word.ends_with(':') || behind.trim_start().starts_with(':')
}
