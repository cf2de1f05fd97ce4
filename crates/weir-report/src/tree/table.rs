//! Tables.

use weir_model::record::Validity;

use super::text::{Outputs, Role, Text, Tone};

/// Defines builder methods, each of which sets a field.
macro_rules! setters {
    ($type:ident: $($field:ident $value:ty),+) => {
        impl $type {
            $(pub(crate) fn $field(self, $field: impl Into<$value>) -> $type {
                $type { $field: $field.into(), ..self }
            })+
        }
    };
}

setters!(Column: small String, short String);
setters!(Row: about Text, part Part, rank usize);
setters!(Cell: small String, detail String, title String);

/// A table with named rows.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) kind: Kind,
    /// Description for users who cannot see the table.
    pub(crate) label: String,
    /// Caption above the table.
    pub(crate) caption: String,
    /// Head of the column of names.
    pub(crate) names: String,
    /// Head of the remarks beside the names, if rows have them.
    pub(crate) about: &'static str,
    /// True if an output without space beside the names may omit the remarks, because an earlier table has them.
    pub(crate) about_again: bool,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

/// Layout of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// Rows that are compared with each other. On a phone each row is a card.
    Compare,
    /// A table of many figures.
    Figures,
    /// Rows against columns. In a narrow output, cells take two lines and columns continue below.
    Pairs,
    /// A table with shaded cells.
    Heat,
    /// A table of long texts.
    Prose,
    /// A long list of counts.
    Counts,
}

impl Table {
    pub(crate) fn new(kind: Kind, label: impl Into<String>, names: &str) -> Table {
        Table {
            kind,
            label: label.into(),
            caption: String::new(),
            names: names.to_owned(),
            about: "",
            about_again: false,
            columns: Vec::new(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn columns(self, columns: impl IntoIterator<Item = Column>) -> Table {
        Table { columns: columns.into_iter().collect(), ..self }
    }

    pub(crate) fn rows(self, rows: impl IntoIterator<Item = Row>) -> Table {
        Table { rows: rows.into_iter().collect(), ..self }
    }

    /// Returns the indices of the columns that an output shows.
    pub(crate) fn shown(&self, output: Outputs) -> Vec<usize> {
        let all = 0..self.columns.len();
        all.filter(|place| self.columns[*place].outputs.has(output)).collect()
    }
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) head: String,
    /// Head of [`Cell::small`].
    pub(crate) small: String,
    /// Shorter head for narrow outputs. Empty: the same head.
    pub(crate) short: String,
    /// Full head, shown as a tooltip.
    pub(crate) title: &'static str,
    /// True for a column of words, which is left-aligned. Figures are right-aligned.
    pub(crate) left: bool,
    /// True if [`Cell::small`] is shown in narrow outputs too.
    pub(crate) whole: bool,
    /// True if the column is less important than the others.
    pub(crate) minor: bool,
    /// True if narrow outputs put the column below its row.
    pub(crate) below: bool,
    /// True if a screen that is too narrow omits the column.
    pub(crate) spare: bool,
    pub(crate) outputs: Outputs,
}

impl Column {
    /// Creates a column of figures.
    pub(crate) fn new(head: impl Into<String>) -> Column {
        Column {
            head: head.into(),
            small: String::new(),
            short: String::new(),
            title: "",
            left: false,
            whole: false,
            minor: false,
            below: false,
            spare: false,
            outputs: Outputs::ALL,
        }
    }

    /// Creates a column of words.
    pub(crate) fn left(head: impl Into<String>) -> Column {
        Column { left: true, ..Column::new(head) }
    }

    pub(crate) fn whole(self) -> Column {
        Column { whole: true, ..self }
    }

    pub(crate) fn minor(self, title: &'static str) -> Column {
        Column { minor: true, title, ..self }
    }

    pub(crate) fn below(self) -> Column {
        Column { below: true, ..self }
    }

    pub(crate) fn spare(self) -> Column {
        Column { spare: true, ..self }
    }

    pub(crate) fn only(self, outputs: Outputs) -> Column {
        Column { outputs, ..self }
    }
}

/// A row of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) part: Part,
    /// Remark beside the name.
    pub(crate) about: Text,
    pub(crate) cells: Vec<Cell>,
    /// Validity of a group. Only the head of a group, which has no cells, has one.
    pub(crate) badge: Option<Validity>,
    /// Priority if not all rows fit: rows with smaller numbers are kept. The order in the table stays the same.
    pub(crate) rank: usize,
}

/// Role of a row among the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Part {
    #[default]
    Plain,
    /// The row that others are compared with.
    Baseline,
    /// The A/A row, which shows the resolution of the method.
    Control,
    /// A row that the reader should notice.
    Telling,
    /// The head of the rows below.
    Group,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, cells: impl IntoIterator<Item = Cell>) -> Row {
        Row { name: name.into(), cells: cells.into_iter().collect(), ..Row::default() }
    }
}

/// A cell of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub(crate) text: Text,
    /// Addition to the figure, such as its interval or its uncorrected value.
    pub(crate) small: String,
    /// Reason for the content.
    pub(crate) detail: String,
    /// Description of the content, shown as a tooltip.
    pub(crate) title: String,
    /// Further lines after `text`.
    pub(crate) more: Vec<String>,
    /// Shade, from 0 for the least to 9 for the most.
    pub(crate) shade: Option<u8>,
}

impl<T: Into<Text>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }
}

impl Cell {
    pub(crate) fn tone(tone: Tone, text: impl Into<String>) -> Cell {
        Text::of(Role::Tone(tone), text).into()
    }

    /// Creates a cell with several lines.
    pub(crate) fn lines(lines: impl IntoIterator<Item = String>) -> Cell {
        let mut texts = lines.into_iter();
        Cell {
            text: texts.next().unwrap_or_default().into(),
            more: texts.collect(),
            ..Cell::default()
        }
    }
}
