//! Collects the parts on the way of a load's requests that a copy replaces.

use weir_model::record::{ReplacedPart, ReplacedRecord};

use crate::Source;
use crate::asked::Spot;

/// Replacements so far, each once.
pub struct Replacements<'s> {
    source: &'s Source,
    all: Vec<ReplacedRecord>,
}

impl<'s> Replacements<'s> {
    pub fn new(source: &'s Source) -> Replacements<'s> {
        Replacements { source, all: Vec::new() }
    }

    pub fn add(&mut self, part: ReplacedPart, spot: &Spot) {
        let original = spot.record(self.source);
        let record = ReplacedRecord { part, original };
        if !self.all.contains(&record) {
            self.all.push(record);
        }
    }

    /// Returns the replacements, sorted by part and place.
    pub fn done(mut self) -> Vec<ReplacedRecord> {
        self.all.sort_by(|a, b| a.place().cmp(&b.place()));
        self.all
    }
}
