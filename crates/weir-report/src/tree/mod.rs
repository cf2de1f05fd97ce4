//! A report as a tree of blocks, filled once and drawn by every output.
//!
//! All texts are finished: numbers are formatted, names are resolved, nothing is escaped. Whoever draws the tree escapes
//! for the output and knows nothing of studies, loads and metrics. Outputs differ in how much they show, not in what:
//! [`Block::Only`] and [`Column::only`] say who shows a part.

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
    /// What it is about; empty where the first block says so.
    pub(crate) title: String,
    /// Where it comes from, above the title of a page.
    pub(crate) source: String,
    /// The last line of a page.
    pub(crate) footer: String,
    /// In the order in which they are read.
    pub(crate) blocks: Vec<Block>,
}

/// One part of a report.
#[derive(Debug)]
pub(crate) enum Block {
    Heading(Heading),
    Callout(Callout),
    Paragraph(Paragraph),
    List(List),
    /// Names with one line or more each.
    Facts(Vec<(String, Vec<Text>)>),
    Table(Table),
    Figure(Figure),
    Code(Code),
    Fold(Fold),
    /// Shown by these outputs alone.
    Only(Outputs, Vec<Block>),
}

/// The head of a section.
#[derive(Debug)]
pub(crate) struct Heading {
    /// 2 for a section, 3 for a part of one.
    pub(crate) level: u8,
    /// The anchor of a section, unique in the report.
    pub(crate) id: String,
    pub(crate) text: String,
    /// Whether the figures below may be believed.
    pub(crate) badge: Option<Validity>,
    /// A clause about it.
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
        Heading {
            level: 3,
            ..Heading::section("", text)
        }
    }

    pub(crate) fn badge(self, validity: Validity) -> Heading {
        Heading {
            badge: Some(validity),
            ..self
        }
    }

    pub(crate) fn remark(self, remark: &str) -> Heading {
        Heading {
            remark: remark.to_owned(),
            ..self
        }
    }
}

/// What everything comes to.
#[derive(Debug)]
pub(crate) struct Callout {
    /// What it is: `Answer`.
    pub(crate) label: &'static str,
    pub(crate) badge: Validity,
    pub(crate) paragraphs: Vec<String>,
    /// A clause on what it rests on.
    pub(crate) basis: String,
}

/// Running text.
#[derive(Debug)]
pub(crate) struct Paragraph {
    /// Stands before it with a colon: `A/A`.
    pub(crate) label: &'static str,
    pub(crate) style: Style,
    pub(crate) text: Text,
    /// Whether it is part of a sentence: files begin it with a capital letter and end it with a stop.
    pub(crate) clause: bool,
}

impl Paragraph {
    /// In a file, behind its label.
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

/// What a paragraph is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// The question of the report.
    Lead,
    Strong,
    Soft,
    /// Something that the reader must not miss.
    Warning,
}

/// Items without an order.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) items: Vec<Text>,
    /// Whether it goes on with what stands before it.
    pub(crate) attached: bool,
}

/// Text as it is.
#[derive(Debug)]
pub(crate) struct Code {
    /// `yaml`; empty where there is none.
    pub(crate) language: &'static str,
    pub(crate) text: String,
}

/// What most readers need not see.
#[derive(Debug)]
pub(crate) struct Fold {
    pub(crate) summary: String,
    /// Whether its figures are not to be used.
    pub(crate) unusable: bool,
    pub(crate) blocks: Vec<Block>,
}

fn paragraph(label: &'static str, style: Style, text: Text, clause: bool) -> Block {
    Block::Paragraph(Paragraph {
        label,
        style,
        text,
        clause,
    })
}

/// A paragraph of a clause.
pub(crate) fn clause(style: Style, text: impl Into<Text>) -> Block {
    paragraph("", style, text.into(), true)
}

/// A paragraph of whole sentences.
pub(crate) fn text(style: Style, text: impl Into<Text>) -> Block {
    paragraph("", style, text.into(), false)
}

/// A clause behind its label.
pub(crate) fn labelled(label: &'static str, style: Style, text: impl Into<Text>) -> Block {
    paragraph(label, style, text.into(), true)
}

/// A list; `None` without items.
pub(crate) fn list(items: impl IntoIterator<Item = Text>, attached: bool) -> Option<Block> {
    let items: Vec<Text> = items.into_iter().collect();
    (!items.is_empty()).then_some(Block::List(List { items, attached }))
}

/// What most readers need not see, of figures that may be used.
pub(crate) fn fold(summary: impl Into<String>, blocks: Vec<Block>) -> Block {
    Block::Fold(Fold {
        summary: summary.into(),
        unusable: false,
        blocks,
    })
}

/// A chart below its caption.
pub(crate) fn figure(caption: impl Into<Text>, chart: Chart) -> Block {
    let caption = caption.into();
    Block::Figure(Figure { caption, chart })
}

/// A name and one line.
pub(crate) fn fact(name: impl Into<String>, value: impl Into<Text>) -> (String, Vec<Text>) {
    (name.into(), vec![value.into()])
}
