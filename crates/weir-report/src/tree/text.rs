//! Text whose parts have roles, and sets of outputs.

use weir_model::record::Validity;

use crate::words;

/// A set of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outputs(u8);

impl Outputs {
    pub(crate) const TERMINAL: Outputs = Outputs(1);
    pub(crate) const MARKDOWN: Outputs = Outputs(2);
    pub(crate) const HTML: Outputs = Outputs(4);
    /// One screen of a terminal, for a summary.
    pub(crate) const SCREEN: Outputs = Outputs(8);
    /// Both terminal outputs, whatever their length.
    pub(crate) const TERMINALS: Outputs = Outputs(9);
    /// Outputs that have space for everything.
    pub(crate) const FILES: Outputs = Outputs(6);
    /// Outputs that show the whole report.
    pub(crate) const WHOLE: Outputs = Outputs(7);
    pub(crate) const ALL: Outputs = Outputs(15);

    pub(crate) fn has(self, output: Outputs) -> bool {
        self.0 & output.0 != 0
    }
}

/// Text in parts, each with a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Vec<(Role, String)>);

/// Role of a part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    Strong,
    Soft,
    /// Name of a file, parameter or command.
    Code,
    Tone(Tone),
    Badge(Validity),
    /// Picture made of characters. A table has its figures.
    Picture,
}

/// Colour of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Better,
    Worse,
    Equivalent,
    Inconclusive,
    Invalid,
    Inert,
    /// Two arms that should be equal differ.
    Differs,
}

impl Tone {
    /// Returns the class in the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Tone::Better => "better",
            Tone::Worse => "worse",
            Tone::Equivalent => "equivalent",
            Tone::Inconclusive => "inconclusive",
            Tone::Invalid => "invalid",
            Tone::Inert => "inert",
            Tone::Differs => "differs",
        }
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Text {
        Text::of(Role::Plain, text)
    }
}

impl Text {
    pub(crate) fn of(role: Role, text: impl Into<String>) -> Text {
        Text(vec![(role, text.into())])
    }

    /// Creates a text of a validity alone.
    pub(crate) fn validity(validity: Validity) -> Text {
        Text::default().badge(validity)
    }

    /// Appends a validity.
    pub(crate) fn badge(self, validity: Validity) -> Text {
        let word = words::validity(validity);
        self.and(Role::Badge(validity), word)
    }

    /// Appends text with a role.
    pub(crate) fn and(mut self, role: Role, text: impl Into<String>) -> Text {
        self.0.push((role, text.into()));
        self
    }

    pub(crate) fn plain(self, text: impl Into<String>) -> Text {
        self.and(Role::Plain, text)
    }

    /// Returns the text without roles.
    pub(crate) fn words(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// Converts the text to a sentence: a capital letter at the begin, if it begins with words, and a full stop at the
    /// end.
    pub(crate) fn sentence(&self) -> Text {
        let mut text = self.clone();
        if let Some((Role::Plain, first)) = text.0.first_mut() {
            *first = words::sentence(first);
        }
        match text.0.last() {
            Some((_, last)) if !last.ends_with(['.', '?', '!', ':']) => text.plain("."),
            _ => text,
        }
    }
}
