//! Text of several roles, and who shows what.

use weir_model::record::Validity;

use crate::words;

/// Outputs, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outputs(u8);

impl Outputs {
    pub(crate) const TERMINAL: Outputs = Outputs(1);
    pub(crate) const MARKDOWN: Outputs = Outputs(2);
    pub(crate) const HTML: Outputs = Outputs(4);
    /// One screen of a terminal: a summary.
    pub(crate) const SCREEN: Outputs = Outputs(8);
    /// Those on a terminal, of any length.
    pub(crate) const TERMINALS: Outputs = Outputs(9);
    /// Those that have room for everything.
    pub(crate) const FILES: Outputs = Outputs(6);
    /// Those that show the whole report.
    pub(crate) const WHOLE: Outputs = Outputs(7);
    pub(crate) const ALL: Outputs = Outputs(15);

    pub(crate) fn has(self, output: Outputs) -> bool {
        self.0 & output.0 != 0
    }
}

/// Text of one or several roles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) Vec<(Role, String)>);

/// What a piece of text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    Strong,
    Soft,
    /// A name of a file, parameter or command.
    Code,
    Tone(Tone),
    Badge(Validity),
    /// A picture made of characters, which a table has the figures of.
    Picture,
}

/// How a verdict is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Better,
    Worse,
    Equivalent,
    Inconclusive,
    Invalid,
    Inert,
    /// What should be equal and is not.
    Differs,
}

impl Tone {
    /// Its name in the style sheet.
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

    /// A validity and nothing else.
    pub(crate) fn validity(validity: Validity) -> Text {
        Text::default().badge(validity)
    }

    /// The same text and a validity behind it.
    pub(crate) fn badge(self, validity: Validity) -> Text {
        let word = words::validity(validity);
        self.and(Role::Badge(validity), word)
    }

    /// The same text and more behind it.
    pub(crate) fn and(mut self, role: Role, text: impl Into<String>) -> Text {
        self.0.push((role, text.into()));
        self
    }

    pub(crate) fn plain(self, text: impl Into<String>) -> Text {
        self.and(Role::Plain, text)
    }

    /// Without its roles.
    pub(crate) fn words(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// As a sentence: a capital letter first, where it begins with words, and a stop at its end.
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
