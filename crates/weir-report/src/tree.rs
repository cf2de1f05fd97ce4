//! A report as a tree of blocks, filled once and drawn by every output.
//!
//! All texts are finished: numbers are formatted, names are resolved, nothing is escaped. Whoever draws the tree escapes
//! for the output and knows nothing of studies, loads and metrics. Outputs differ in how much they show, not in what:
//! [`Block::Only`] and [`Column::only`] say who shows a part.

use weir_model::record::Validity;

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

/// Outputs, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outputs(u8);

impl Outputs {
    pub(crate) const TERMINAL: Outputs = Outputs(1);
    pub(crate) const MARKDOWN: Outputs = Outputs(2);
    pub(crate) const HTML: Outputs = Outputs(4);
    /// Those that have room for everything.
    pub(crate) const FILES: Outputs = Outputs(6);
    pub(crate) const ALL: Outputs = Outputs(7);

    pub(crate) fn has(self, output: Outputs) -> bool {
        self.0 & output.0 != 0
    }
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
        let word = crate::words::validity(validity);
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
            *first = crate::words::sentence(first);
        }
        match text.0.last() {
            Some((_, last)) if !last.ends_with(['.', '?', '!', ':']) => text.plain("."),
            _ => text,
        }
    }
}

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

    pub(crate) fn small(self, small: impl Into<String>) -> Column {
        Column {
            small: small.into(),
            ..self
        }
    }

    pub(crate) fn short(self, short: impl Into<String>) -> Column {
        Column {
            short: short.into(),
            ..self
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

    pub(crate) fn about(self, about: impl Into<Text>) -> Row {
        Row {
            about: about.into(),
            ..self
        }
    }

    pub(crate) fn part(self, part: Part) -> Row {
        Row { part, ..self }
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

    pub(crate) fn small(self, small: impl Into<String>) -> Cell {
        Cell {
            small: small.into(),
            ..self
        }
    }

    pub(crate) fn detail(self, detail: impl Into<String>) -> Cell {
        Cell {
            detail: detail.into(),
            ..self
        }
    }

    pub(crate) fn title(self, title: impl Into<String>) -> Cell {
        Cell {
            title: title.into(),
            ..self
        }
    }
}

/// A chart with its caption. Outputs that cannot draw have the tables beside it.
#[derive(Debug)]
pub(crate) struct Figure {
    pub(crate) caption: Text,
    pub(crate) chart: Chart,
}

/// A chart as data.
#[derive(Debug)]
pub(crate) enum Chart {
    Forest(Forest),
    Lines(Lines),
    Panels(Panels),
}

/// Ratios with their intervals, a row each, around 1.
#[derive(Debug, Clone)]
pub(crate) struct Forest {
    pub(crate) title: String,
    /// Half-width of the band in which ratios count as equal.
    pub(crate) band: f64,
    /// What lies to the left of 1 and to the right.
    pub(crate) sides: [&'static str; 2],
    /// Whether what is near 1 alone is shown; nothing is drawn when that is (nearly) everything.
    pub(crate) close_up: bool,
    pub(crate) rows: Vec<ForestRow>,
}

/// A ratio and what is said of it.
#[derive(Debug, Clone)]
pub(crate) struct ForestRow {
    pub(crate) label: String,
    pub(crate) part: Part,
    pub(crate) mark: Mark,
    pub(crate) tone: Tone,
    /// The verdict in one word.
    pub(crate) word: &'static str,
    pub(crate) ratio: String,
    /// The ratio and its interval.
    pub(crate) figures: String,
    pub(crate) because: String,
    pub(crate) effect: Option<Effect>,
}

/// A shape for each verdict, so that colour is never alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Up,
    Down,
    Square,
    Ring,
    Cross,
}

/// A ratio as a chart draws it. All three are above zero; the bounds may be infinite or zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Effect {
    pub(crate) ratio: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Times in nanoseconds as lines over one axis.
#[derive(Debug)]
pub(crate) struct Lines {
    pub(crate) title: String,
    /// What a line stands for: `arm`.
    pub(crate) each: &'static str,
    pub(crate) axis: Axis,
    pub(crate) lines: Vec<Line>,
    /// What the axes cover: at least the lines.
    pub(crate) extent: Extent,
}

/// What lines are over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// 1/(1-quantile), logarithmic, so that each further nine takes the same room.
    Nines,
    /// Requests per second from 0.
    Rate,
}

/// One line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Its figures in words.
    pub(crate) tooltip: String,
    /// Colour and dash, as names of styles.
    pub(crate) class: String,
    /// Its place among the series.
    pub(crate) series: usize,
    /// Whether it is drawn over the others: what everything is compared with.
    pub(crate) front: bool,
    /// Finite, ascending.
    pub(crate) points: Vec<(f64, f64)>,
}

/// What axes cover.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Extent {
    pub(crate) right: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Extent {
    /// Times that differ by more than this factor are drawn on a logarithmic axis.
    const LINEAR_UP_TO: f64 = 12.0;

    pub(crate) fn of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Extent {
        let none = Extent {
            right: 0.0,
            low: f64::INFINITY,
            high: 1.0,
        };
        let points = lines.into_iter().flat_map(|line| &line.points);
        points.fold(none, |extent, &(x, ns)| Extent {
            right: extent.right.max(x),
            low: extent.low.min(ns.max(1.0)),
            high: extent.high.max(ns),
        })
    }

    /// Whether times are drawn on a logarithmic axis.
    pub(crate) fn is_log(&self) -> bool {
        self.high / self.low > Extent::LINEAR_UP_TO
    }
}

/// Small multiples over time: all with the same axes, the first behind each.
#[derive(Debug)]
pub(crate) struct Panels {
    /// What is shown: `completed requests per second`.
    pub(crate) what: &'static str,
    /// Whether values are times in nanoseconds, and not rates.
    pub(crate) times: bool,
    pub(crate) panels: Vec<Panel>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    pub(crate) name: String,
    /// Number of its colour.
    pub(crate) hue: usize,
    /// Whether it is what the others are compared with.
    pub(crate) is_baseline: bool,
    /// (seconds, value), finite.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A paragraph of a clause.
pub(crate) fn clause(style: Style, text: impl Into<Text>) -> Block {
    Block::Paragraph(Paragraph {
        label: "",
        style,
        text: text.into(),
        clause: true,
    })
}

/// A paragraph of whole sentences.
pub(crate) fn text(style: Style, text: impl Into<Text>) -> Block {
    Block::Paragraph(Paragraph {
        label: "",
        style,
        text: text.into(),
        clause: false,
    })
}

/// A clause behind its label.
pub(crate) fn labelled(label: &'static str, style: Style, text: impl Into<Text>) -> Block {
    Block::Paragraph(Paragraph {
        label,
        style,
        text: text.into(),
        clause: true,
    })
}

/// A name and one line.
pub(crate) fn fact(name: impl Into<String>, value: impl Into<Text>) -> (String, Vec<Text>) {
    (name.into(), vec![value.into()])
}
