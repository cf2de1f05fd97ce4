//! Words of a flow with their positions, for the parser that `weir load` uses too.

use std::ops::Range;
use std::time::Duration;

use weir_model::flow::words::{Fault, FlowSetting, Key};

use crate::check::{Checker, Fields};
use crate::tree::Node;

/// Properties of the study that a flow depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slices {
    /// Length of a slice, if the study gives one.
    pub(crate) length: Option<Duration>,
    /// True if a closed load comes before this one.
    pub(crate) closed_before: bool,
}

/// Words with their positions.
#[derive(Default)]
pub(crate) struct Words {
    pub(crate) said: Vec<FlowSetting>,
    places: Vec<Range<usize>>,
}

impl Words {
    pub(crate) fn say(&mut self, key: Key, text: impl Into<String>, node: &Node) {
        self.said.push(FlowSetting { key, text: text.into() });
        self.places.push(node.span.clone());
    }

    /// Reports a fault at the position of its word.
    pub(crate) fn report(&self, fault: &Fault, fields: &Fields<'_>, check: &mut Checker) {
        let at = fault.at.or_else(|| self.said.iter().position(|said| said.key == fault.key));
        let span = at.map_or(fields.span(), |at| self.places[at].clone());
        check.error(span, &*fault.message).maybe_hint(fault.hint.as_deref()).nearest(fault.nearest);
    }
}
