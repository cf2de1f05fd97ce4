//! Tables.

use weir_model::record::Validity;

use super::text::{Outputs, Role, Text, Tone};

/// Methods that set a field and hand the value back.
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

/// Rows of cells, the first of which names the row.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) kind: Kind,
    /// What it shows, for those who cannot see it.
    pub(crate) label: String,
    /// Stands above it.
    pub(crate) caption: String,
    /// Head of the names.
    pub(crate) names: String,
    /// Head of what stands beside the names, where they have that.
    pub(crate) about: &'static str,
    /// Whether an output without room beside the names may leave that out: it was said before.
    pub(crate) about_again: bool,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

/// How a table is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    /// Rows are compared with each other; a card each on a phone.
    Compare,
    /// Many figures.
    Figures,
    /// Row against column; where room is scarce, cells take two lines and columns go on below.
    Pairs,
    /// Shaded cells.
    Heat,
    /// Long texts.
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
        Table {
            columns: columns.into_iter().collect(),
            ..self
        }
    }

    pub(crate) fn rows(self, rows: impl IntoIterator<Item = Row>) -> Table {
        Table {
            rows: rows.into_iter().collect(),
            ..self
        }
    }

    /// The places of the columns that an output shows.
    pub(crate) fn shown(&self, output: Outputs) -> Vec<usize> {
        let all = 0..self.columns.len();
        all.filter(|place| self.columns[*place].outputs.has(output))
            .collect()
    }
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) head: String,
    /// The head of [`Cell::small`].
    pub(crate) small: String,
    /// A shorter head where room is scarce; empty: the same.
    pub(crate) short: String,
    /// The head in full, to be pointed at.
    pub(crate) title: &'static str,
    /// Whether it is of words, set to the left. Figures are set to the right.
    pub(crate) left: bool,
    /// Whether [`Cell::small`] is shown where room is scarce.
    pub(crate) whole: bool,
    /// Whether it says less than the others.
    pub(crate) minor: bool,
    /// Whether it stands below its row where room is scarce.
    pub(crate) below: bool,
    /// Whether a screen without room for it leaves it out.
    pub(crate) spare: bool,
    pub(crate) outputs: Outputs,
}

impl Column {
    /// A column of figures.
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

    /// A column of words.
    pub(crate) fn left(head: impl Into<String>) -> Column {
        Column {
            left: true,
            ..Column::new(head)
        }
    }

    pub(crate) fn whole(self) -> Column {
        Column {
            whole: true,
            ..self
        }
    }

    pub(crate) fn minor(self, title: &'static str) -> Column {
        Column {
            minor: true,
            title,
            ..self
        }
    }

    pub(crate) fn below(self) -> Column {
        Column {
            below: true,
            ..self
        }
    }

    pub(crate) fn spare(self) -> Column {
        Column {
            spare: true,
            ..self
        }
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
    /// What stands beside its name.
    pub(crate) about: Text,
    pub(crate) cells: Vec<Cell>,
    /// Of a group's head, which has no cells.
    pub(crate) badge: Option<Validity>,
    /// Which rows go first where there is no room for all: those of a higher rank. All are in the order of the table.
    pub(crate) rank: usize,
}

/// What a row is among the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Part {
    #[default]
    Plain,
    /// What the others are compared with.
    Baseline,
    /// What shows the method's own resolution.
    Control,
    /// What the reader should look at.
    Telling,
    /// The head of the rows below.
    Group,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, cells: impl IntoIterator<Item = Cell>) -> Row {
        Row {
            name: name.into(),
            cells: cells.into_iter().collect(),
            ..Row::default()
        }
    }
}

/// A cell of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub(crate) text: Text,
    /// What belongs to the figure: its interval, its uncorrected value.
    pub(crate) small: String,
    /// Why it says so.
    pub(crate) detail: String,
    /// What it is, to be pointed at.
    pub(crate) title: String,
    /// Further lines of the same kind.
    pub(crate) more: Vec<String>,
    /// 0 for the least, 9 for the most.
    pub(crate) shade: Option<u8>,
}

impl<T: Into<Text>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell {
            text: text.into(),
            ..Cell::default()
        }
    }
}

impl Cell {
    pub(crate) fn tone(tone: Tone, text: impl Into<String>) -> Cell {
        Text::of(Role::Tone(tone), text).into()
    }

    /// One line for each.
    pub(crate) fn lines(lines: impl IntoIterator<Item = String>) -> Cell {
        let mut lines = lines.into_iter();
        Cell {
            text: lines.next().unwrap_or_default().into(),
            more: lines.collect(),
            ..Cell::default()
        }
    }
}
