//! A report as a tree of blocks, filled once and rendered by every output.
//!
//! All texts are finished: numbers are formatted, names are resolved, nothing is escaped. The renderer of an output
//! escapes for it, and knows nothing of studies, loads and metrics. Outputs differ only in how much they show:
//! [`Block::Only`] and [`Column::only`] select the outputs of a part.

mod chart;
mod table;
mod text;

use weir_model::record::Validity;

use crate::words;

pub(crate) use chart::*;
pub(crate) use table::*;
pub(crate) use text::*;

/// A whole report.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// Title of the report. Empty if the first block is enough.
    pub(crate) title: String,
    /// Source of the report, shown above the title of a page.
    pub(crate) source: String,
    /// Last line of a page.
    pub(crate) footer: String,
    /// Blocks in reading order.
    pub(crate) blocks: Vec<Block>,
}

/// One part of a report.
#[derive(Debug)]
pub(crate) enum Block {
    Heading(Heading),
    Callout(Callout),
    Paragraph(Paragraph),
    List(List),
    /// Names with one or more lines each.
    Facts(Vec<(String, Vec<Text>)>),
    Table(Table),
    Figure(Figure),
    Code(Code),
    Fold(Fold),
    /// Blocks for these outputs only.
    Only(Outputs, Vec<Block>),
}

/// Heading of a section or of a part of one.
#[derive(Debug)]
pub(crate) struct Heading {
    /// Level: 2 for a section, 3 for a part of one.
    pub(crate) level: u8,
    /// Anchor of a section, unique in the report.
    pub(crate) id: String,
    pub(crate) text: String,
    /// Validity of the figures below.
    pub(crate) badge: Option<Validity>,
    /// Clause about the section.
    pub(crate) remark: String,
}

impl Heading {
    pub(crate) fn section(id: &str, text: impl Into<String>) -> Heading {
        Heading {
            level: 2,
            id: id.to_owned(),
            text: text.into(),
            badge: None,
            remark: String::new(),
        }
    }

    pub(crate) fn part(text: impl Into<String>) -> Heading {
        Heading { level: 3, ..Heading::section("", text) }
    }

    pub(crate) fn badge(self, validity: Validity) -> Heading {
        Heading { badge: Some(validity), ..self }
    }

    pub(crate) fn remark(self, remark: &str) -> Heading {
        Heading { remark: remark.to_owned(), ..self }
    }
}

/// The answer of the report.
#[derive(Debug)]
pub(crate) struct Callout {
    /// Name of the callout: `Answer`.
    pub(crate) label: &'static str,
    pub(crate) badge: Validity,
    pub(crate) paragraphs: Vec<String>,
    /// Clause about the basis of the answer.
    pub(crate) basis: String,
}

/// Running text.
#[derive(Debug)]
pub(crate) struct Paragraph {
    /// Label before the text, followed by a colon: `A/A`.
    pub(crate) label: &'static str,
    pub(crate) style: Style,
    pub(crate) text: Text,
    /// True if the text is a clause. Files begin it with a capital letter and end it with a full stop.
    pub(crate) clause: bool,
}

impl Paragraph {
    /// Formats the paragraph for a file, after its label.
    pub(crate) fn drawn(&self, inline: fn(&Text) -> String) -> String {
        match (self.clause, self.label) {
            (true, "") => inline(&self.text.sentence()),
            (false, "") => inline(&self.text),
            (clause, label) => {
                let end = if clause { "." } else { "" };
                format!("{}: {}{end}", words::capital(label), inline(&self.text))
            }
        }
    }
}

/// Purpose of a paragraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// The question that the report answers.
    Lead,
    Strong,
    Soft,
    /// A warning that the reader must not miss.
    Warning,
}

/// An unordered list.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) items: Vec<Text>,
    /// True if the list continues the block before it, without a blank line.
    pub(crate) attached: bool,
}

/// Preformatted text.
#[derive(Debug)]
pub(crate) struct Code {
    /// Language, such as `yaml`. Empty if it has none.
    pub(crate) language: &'static str,
    pub(crate) text: String,
}

/// Blocks that are hidden at first, because most readers do not need them.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) summary: String,
    /// True if the figures in the blocks must not be used.
    pub(crate) unusable: bool,
    pub(crate) blocks: Vec<Block>,
}

fn paragraph(label: &'static str, style: Style, text: Text, clause: bool) -> Block {
    Block::Paragraph(Paragraph { label, style, text, clause })
}

/// Creates a paragraph from a clause.
pub(crate) fn clause(style: Style, text: impl Into<Text>) -> Block {
    paragraph("", style, text.into(), true)
}

/// Creates a paragraph from whole sentences.
pub(crate) fn text(style: Style, text: impl Into<Text>) -> Block {
    paragraph("", style, text.into(), false)
}

/// Creates a paragraph from a clause with a label.
pub(crate) fn labelled(label: &'static str, style: Style, text: impl Into<Text>) -> Block {
    paragraph(label, style, text.into(), true)
}

/// Creates a list. `None` if it has no items.
pub(crate) fn list(items: impl IntoIterator<Item = Text>, attached: bool) -> Option<Block> {
    let items: Vec<Text> = items.into_iter().collect();
    (!items.is_empty()).then_some(Block::List(List { items, attached }))
}

/// Creates a fold whose figures may be used.
pub(crate) fn fold(summary: impl Into<String>, blocks: Vec<Block>) -> Block {
    Block::Fold(Fold { summary: summary.into(), unusable: false, blocks })
}

/// Creates a chart with its caption.
pub(crate) fn figure(caption: impl Into<Text>, chart: Chart) -> Block {
    Block::Figure(Figure { caption: caption.into(), chart })
}

/// Creates a fact with one line.
pub(crate) fn fact(name: impl Into<String>, value: impl Into<Text>) -> (String, Vec<Text>) {
    (name.into(), vec![value.into()])
}
