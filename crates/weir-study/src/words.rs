//! Words of a flow and where they stand, on their way to the reader that `weir load` has too.

use std::ops::Range;
use std::time::Duration;

use weir_model::flow::words::{Fault, Key, Said};

use crate::check::{Checker, Fields, short};
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

    /// Where the word stands that a fault is about.
    fn place_of(&self, fault: &Fault) -> Option<Range<usize>> {
        let is_same = |said: &&Said| {
            let quoted = fault.text.as_ref().is_none_or(|text| *text == said.text);
            said.key == fault.key && quoted
        };
        let same = self.said.iter().zip(&self.places);
        let exact = same.clone().find(|(said, _)| is_same(said));
        let place = exact.or(same.clone().find(|(said, _)| said.key == fault.key));
        place.map(|(_, place)| place.clone())
    }

    /// Reports what is wrong with a word, where it stands.
    pub(crate) fn report(&self, fault: &Fault, fields: &Fields<'_>, check: &mut Checker) {
        let place = self.place_of(fault).unwrap_or(fields.span());
        let message = match &fault.text {
            Some(text) if fault.message.starts_with("is ") => {
                format!("`{}` {}", short(text), fault.message)
            }
            Some(text) => format!("`{}`: {}", short(text), fault.message),
            None => fault.message.clone(),
        };
        let error = check.error(place, message);
        if let Some(hint) = &fault.hint {
            error.hint(hint.as_str());
        }
    }
}
