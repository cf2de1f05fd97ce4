//! Words of a flow and where they stand, on their way to the reader that `weir load` has too.

use std::ops::Range;
use std::time::Duration;

use weir_model::flow::words::{Fault, Key, Said};

use crate::check::{Checker, Fields};
use crate::tree::Node;

/// What a flow has to know of the study around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slices {
    /// How long a slice is, where the study says.
    pub(crate) length: Option<Duration>,
    /// Whether a closed load comes before.
    pub(crate) closed_before: bool,
}

/// Words with the places that they stand at.
#[derive(Default)]
pub(crate) struct Words {
    pub(crate) said: Vec<Said>,
    places: Vec<Range<usize>>,
}

impl Words {
    pub(crate) fn say(&mut self, key: Key, text: impl Into<String>, node: &Node) {
        let text = text.into();
        self.said.push(Said { key, text });
        self.places.push(node.span.clone());
    }

    /// Reports what is wrong with a word, where it stands.
    pub(crate) fn report(&self, fault: &Fault, fields: &Fields<'_>, check: &mut Checker) {
        let is_about = |at: &usize| self.said[*at].key == fault.key;
        let at = fault.at.or_else(|| (0..self.said.len()).find(is_about));
        let place = at.map_or(fields.span(), |at| self.places[at].clone());
        check
            .error(place, &*fault.message)
            .maybe_hint(fault.hint.as_deref())
            .nearest(fault.nearest);
    }
}
