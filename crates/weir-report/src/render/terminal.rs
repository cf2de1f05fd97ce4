//! A report for a terminal.
//!
//! Tables adapt to the given width: remarks beside a name get a column of their own if it fits, else a line of their
//! own. Nothing is cut off: a name too long for its column is wrapped, or gets its own line. Widths count characters,
//! one column each.

use std::ops::RangeInclusive;

use super::page::{NARROWEST, Page, clean, pad_right, sgr, width_of, wrap};
use super::pairs;
use crate::secrets::masked;
use crate::tree::{
    Block, Callout, Cell, Column, Document, Heading, Kind, List, Outputs, Paragraph, Part, Role,
    Row, Style, Table, Text,
};

/// Maximum length of a name that shares a line with its figures.
pub(super) const NAME: usize = 24;
/// Minimum width of the first column.
pub(super) const LEAST_NAME: usize = 8;
/// Minimum and maximum width of the column of remarks beside names. With less space, remarks get lines of their own.
const BESIDE: (usize, usize) = (28, 48);
/// Width from which tables are always drawn as tables. On narrower pages they are if they fit.
const TABLES: usize = 60;
/// Minimum width of the names of facts, including the space after them.
const FACT: usize = 14;

/// Bounds of the maximum number of rows, items or paragraphs per block of a summary.
const ON_A_SCREEN: RangeInclusive<usize> = 3..=16;

/// Renders a report for `width` columns, with colours if `color` says so. Ends with a line feed. Control characters are
/// replaced, so no name can control the terminal.
pub(crate) fn terminal(document: &Document, color: bool, width: usize) -> String {
    drawn(document, Outputs::TERMINAL, usize::MAX, color, width)
}

/// Renders the summary of a report for a terminal of `width` columns, in at most `lines` lines, with as many rows of
/// its tables and lists as fit.
pub(crate) fn screen(document: &Document, color: bool, width: usize, lines: usize) -> String {
    let most = ON_A_SCREEN
        .rev()
        .find(|most| {
            let text = drawn(document, Outputs::SCREEN, *most, false, width);
            height(&text, width) <= lines
        })
        .unwrap_or(*ON_A_SCREEN.start());
    drawn(document, Outputs::SCREEN, most, color, width)
}

/// Returns the number of terminal lines of a text without colours. The terminal breaks lines that are too long.
fn height(text: &str, width: usize) -> usize {
    text.lines().map(|line| width_of(line).div_ceil(width).max(1)).sum()
}

fn drawn(document: &Document, output: Outputs, most: usize, color: bool, width: usize) -> String {
    let mut page = Page {
        out: String::new(),
        output,
        most,
        color,
        width: width.max(NARROWEST),
        is_joined: false,
    };
    if !document.title.is_empty() {
        page.text(&document.title.as_str().into(), sgr::BOLD, 0);
    }
    page.blocks(&document.blocks);
    page.out
}

/// Column widths of a table.
struct Layout<'a> {
    /// Width of the first column.
    name: usize,
    /// Width of the column of remarks. `None`: remarks have lines of their own.
    beside: Option<usize>,
    /// Space between columns.
    gap: &'static str,
    /// The other columns, each with its width and its index in the table.
    columns: Vec<(usize, usize, &'a Column)>,
}

impl Layout<'_> {
    /// Returns the narrowest page that the table fits.
    fn least(&self) -> usize {
        let columns = self.columns.iter().map(|(width, ..)| width + 1);
        LEAST_NAME + columns.sum::<usize>()
    }
}

impl Page {
    fn blocks(&mut self, blocks: &[Block]) {
        for (place, block) in blocks.iter().enumerate() {
            let next = blocks.get(place + 1);
            match block {
                Block::Heading(heading) => self.heading(heading),
                Block::Callout(callout) => self.callout(callout),
                // A label before a table is the table's.
                Block::Paragraph(label) if !label.label.is_empty() && is_table(next) => {
                    self.gap();
                    self.paragraph(label);
                    self.is_joined = true;
                }
                Block::Paragraph(paragraph) => self.paragraph(paragraph),
                Block::List(list) => self.list(list),
                Block::Facts(facts) => self.facts(facts),
                Block::Table(table) if table.kind == Kind::Pairs => {
                    self.gap();
                    pairs::pairs(self, table);
                }
                Block::Table(table) => self.table(table),
                Block::Figure(_) => {}
                Block::Code(code) => {
                    self.gap();
                    masked(&code.text).lines().for_each(|line| self.line(line, ""));
                }
                Block::Fold(fold) => {
                    self.text(&fold.summary.as_str().into(), "", 0);
                    self.blocks(&fold.blocks);
                }
                Block::Only(outputs, blocks) if outputs.has(self.output) => self.blocks(blocks),
                Block::Only(..) => {}
            }
        }
    }

    fn heading(&mut self, heading: &Heading) {
        self.gap();
        let is_section = heading.level == 2;
        let role = if is_section { Role::Strong } else { Role::Plain };
        let mut text = Text::of(role, heading.text.as_str());
        if let Some(validity) = heading.badge.filter(|_| is_section) {
            text = text.plain(": ").badge(validity);
        }
        if !heading.remark.is_empty() {
            text = text.plain(if heading.text.ends_with('?') {
                format!(" ({})", heading.remark)
            } else {
                format!(", {}", heading.remark)
            });
        }
        self.text(&text, "", 4);
        self.is_joined = !is_section;
    }

    fn callout(&mut self, callout: &Callout) {
        self.gap();
        for paragraph in callout.paragraphs.iter().take(self.most) {
            self.text(&paragraph.as_str().into(), sgr::BOLD, 0);
        }
        self.left_out(callout.paragraphs.len(), "sentence");
        let badge = Text::validity(callout.badge);
        let hang = width_of(&badge.words()) + 2;
        let text = match callout.basis.as_str() {
            "" => badge,
            basis => badge.and(Role::Soft, format!(", {basis}")),
        };
        self.text(&text, "", hang);
    }

    fn paragraph(&mut self, paragraph: &Paragraph) {
        let style = match paragraph.style {
            Style::Plain => "",
            Style::Lead | Style::Soft => sgr::DIM,
            Style::Strong => sgr::BOLD,
            Style::Warning => sgr::YELLOW,
        };
        let label = match (paragraph.label, paragraph.style) {
            ("", Style::Warning) => "note",
            (label, _) => label,
        };
        let mut text = paragraph.text.clone();
        let mut hang = 0;
        if !label.is_empty() {
            text.0.insert(0, (Role::Plain, format!("{label}: ")));
            hang = label.len() + 2;
        }
        self.text(&text, style, hang);
    }

    fn list(&mut self, list: &List) {
        if !list.attached {
            self.gap();
        }
        for item in list.items.iter().take(self.most) {
            self.text(item, "", 4);
        }
        self.left_out(list.items.len(), "line");
    }

    /// Writes the number of items of `all` that were left out.
    fn left_out(&mut self, all: usize, noun: &str) {
        let left_out = all.saturating_sub(self.most);
        if left_out > 0 {
            let ending = if left_out == 1 { "" } else { "s" };
            let text = format!("{left_out} more {noun}{ending}: --full, or the report");
            self.text(&text.into(), sgr::DIM, 4);
        }
    }

    fn facts(&mut self, facts: &[(String, Vec<Text>)]) {
        self.gap();
        let names = facts.iter().map(|(name, _)| width_of(name));
        let width = (names.max().unwrap_or(0) + 1).max(FACT);
        for (name, lines) in facts {
            let mut label = pad_right(&clean(name), width);
            for line in lines {
                // Figures below each other stay so.
                if width + width_of(&line.words()) <= self.width {
                    let line = self.painted(line, "");
                    self.put(&format!("{label}{line}"));
                } else {
                    for line in
                        narrow(&clean(&line.words()), self.width - width.min(self.width / 2))
                    {
                        self.put(format!("{label}{line}").trim_end());
                        label = " ".repeat(width.min(self.width / 2));
                    }
                }
                label = " ".repeat(width);
            }
        }
    }

    fn table(&mut self, table: &Table) {
        self.gap();
        if !table.caption.is_empty() {
            self.text(&table.caption.as_str().into(), sgr::DIM, 0);
        }
        let layout = self.layout(table);
        if self.width < TABLES && layout.least() > self.width {
            self.first_rows(table).for_each(|row| self.stacked(table, row, &layout));
            return self.left_out(table.rows.len(), &table.names);
        }
        let head = Row {
            name: table.names.clone(),
            about: table.about.into(),
            cells: table.columns.iter().map(|c| head(c).into()).collect(),
            ..Row::default()
        };
        self.row(&head, sgr::DIM, &layout);
        for row in self.first_rows(table) {
            let style = match row.part {
                Part::Baseline | Part::Group => sgr::BOLD,
                Part::Control => sgr::DIM,
                Part::Telling => sgr::YELLOW,
                Part::Plain => "",
            };
            self.row(row, style, &layout);
            let is_said = table.about_again || layout.beside.is_some();
            if !is_said && !row.about.0.is_empty() && row.part != Part::Baseline {
                self.below(&row.about);
            }
            self.details(table, row);
        }
        self.left_out(table.rows.len(), &table.names);
    }

    /// Returns the rows of a table that fit, by rank.
    fn first_rows<'a>(&self, table: &'a Table) -> impl Iterator<Item = &'a Row> + use<'a> {
        let mut ranks: Vec<(usize, usize)> =
            table.rows.iter().enumerate().map(|(place, row)| (row.rank, place)).collect();
        ranks.sort_unstable();
        let last = ranks.get(self.most.saturating_sub(1)).copied();
        table
            .rows
            .iter()
            .enumerate()
            .filter(move |(place, row)| last.is_none_or(|last| (row.rank, *place) <= last))
            .map(|(_, row)| row)
    }

    /// Writes a row of a table that is wider than the page: the name, and below it each figure after the head of its
    /// column.
    fn stacked(&mut self, table: &Table, row: &Row, layout: &Layout<'_>) {
        self.text(&row.name.as_str().into(), sgr::BOLD, 2);
        if !row.about.0.is_empty() {
            self.below(&row.about);
        }
        let figures = layout.columns.iter().filter_map(|(_, at, column)| {
            let text = figure(row.cells.get(*at)?, column).words();
            (!text.is_empty()).then(|| format!("{} {text}", head(column)))
        });
        let figures: Vec<String> = figures.collect();
        if !figures.is_empty() {
            self.below(&figures.join("; ").into());
        }
        self.details(table, row);
    }

    /// Writes a line below a row with the details that have no column.
    fn details(&mut self, table: &Table, row: &Row) {
        let shown = table.shown(self.output);
        let cells = shown.iter().filter_map(|at| Some((*at, row.cells.get(*at)?)));
        let mut parts: Vec<String> = Vec::new();
        for (at, cell) in cells.clone().filter(|(at, _)| table.columns[*at].below) {
            let text = joined(cell);
            if !text.is_empty() {
                parts.push(format!("{} {text}", head(&table.columns[at])));
            }
        }
        parts
            .extend(cells.map(|(_, cell)| cell.detail.clone()).filter(|detail| !detail.is_empty()));
        if !parts.is_empty() {
            self.below(&parts.join("; ").into());
        }
    }

    fn below(&mut self, text: &Text) {
        let mut indented = text.clone();
        indented.0.insert(0, (Role::Plain, "  ".to_owned()));
        self.text(&indented, sgr::DIM, 4);
    }

    /// Computes the widths of a table. The first column gets the remaining width, but no more than the names need. If
    /// names do not fit, the gap between columns shrinks by one space.
    fn layout<'a>(&self, table: &'a Table) -> Layout<'a> {
        let mut columns: Vec<(usize, usize, &Column)> = table
            .shown(self.output)
            .into_iter()
            .filter(|at| !table.columns[*at].below)
            .map(|at| {
                let column = &table.columns[at];
                let width = table
                    .rows
                    .iter()
                    .filter_map(|row| row.cells.get(at))
                    .map(|cell| width_of(&figure(cell, column).words()))
                    .max()
                    .unwrap_or(0)
                    .max(width_of(&head(column)));
                (width, at, column)
            })
            .collect();
        let names = table.rows.iter().map(|row| row.name.as_str());
        let wanted = names
            .chain([table.names.as_str()])
            .map(width_of)
            .filter(|width| *width <= NAME)
            .max()
            .unwrap_or(0)
            .max(LEAST_NAME);
        while let Some((.., column)) = columns.last()
            && column.spare
            && wanted + columns.iter().map(|(width, ..)| width + 1).sum::<usize>() > self.width
        {
            columns.pop();
        }
        let total: usize = columns.iter().map(|(width, ..)| width).sum();
        let [narrow_room, wide_room] =
            [1, 2].map(|gap| self.width.saturating_sub(total + gap * columns.len()));
        let (gap, room) = if wide_room >= wanted { (2, wide_room) } else { (1, narrow_room) };
        let name = wanted.min(room).max(LEAST_NAME);
        let remaining = room.saturating_sub(name + gap);
        Layout {
            name,
            beside: (!table.about.is_empty() && remaining >= BESIDE.0)
                .then_some(remaining.min(BESIDE.1)),
            gap: &"  "[..gap],
            columns,
        }
    }

    /// Writes a row of a table, in several lines if the name or its remark needs them.
    fn row(&mut self, row: &Row, style: &str, layout: &Layout<'_>) {
        let Layout { name, gap, .. } = *layout;
        let full_name = clean(&row.name);
        let mut names = Vec::new();
        if width_of(&full_name) > name
            && full_name.split_whitespace().any(|word| width_of(word) + 2 > name)
        {
            self.line(&full_name, style);
        } else {
            names = wrap(&full_name, name, 2);
        }
        let about = match layout.beside {
            Some(width) => wrap(&clean(&row.about.words()), width, 2),
            None => Vec::new(),
        };
        for place in 0..names.len().max(about.len()).max(1) {
            let part = names.get(place).map_or("", |part| part);
            let mut line = self.paint(&pad_right(part, name), style);
            if let Some(width) = layout.beside {
                let part = about.get(place).map_or("", |part| part);
                line.push_str(gap);
                line.push_str(&self.paint(&pad_right(part, width), sgr::DIM));
            }
            if place == 0 {
                line.push_str(&self.cells(row, style, layout));
            }
            self.put(&line);
        }
    }

    fn cells(&self, row: &Row, style: &str, layout: &Layout<'_>) -> String {
        // The names' style is theirs alone, but for a head's.
        let style = if style == sgr::DIM && row.part == Part::Plain { style } else { "" };
        let mut line = String::new();
        for (width, at, column) in &layout.columns {
            let Some(cell) = row.cells.get(*at) else {
                continue;
            };
            let text = figure(cell, column);
            let blank = " ".repeat(width.saturating_sub(width_of(&text.words())));
            let painted = self.painted(&text, style);
            line.push_str(layout.gap);
            line.push_str(&if column.left { painted + &blank } else { blank + &painted });
        }
        line
    }
}

fn is_table(block: Option<&Block>) -> bool {
    matches!(block, Some(Block::Table(_)))
}

fn head(column: &Column) -> String {
    match column.short.as_str() {
        "" => column.head.clone(),
        short => short.to_owned(),
    }
}

/// Returns the text of a cell, with its remark in brackets if the column shows that.
fn figure(cell: &Cell, column: &Column) -> Text {
    let mut text = cell.text.clone();
    let more = cell.more.iter().map(|line| format!("; {line}"));
    text.0.extend(more.map(|line| (Role::Plain, line)));
    if column.whole && !cell.small.is_empty() {
        text.plain(format!(" ({})", cell.small))
    } else {
        text
    }
}

/// Joins all lines of a cell.
fn joined(cell: &Cell) -> String {
    let first = cell.text.words();
    std::iter::once(&first).chain(&cell.more).cloned().collect::<Vec<_>>().join("; ")
}

/// Wraps a fact to `room` columns. Figures stay aligned as long as they fit, and the remark after them goes below.
fn narrow(text: &str, room: usize) -> Vec<String> {
    match text.rsplit_once("   ") {
        Some((figures, remark))
            if width_of(figures) <= room && figures.contains(|c: char| c.is_ascii_digit()) =>
        {
            let below = wrap(remark, room, 0);
            std::iter::once(figures.to_owned()).chain(below).collect()
        }
        _ => wrap(text.trim_end(), room, 0),
    }
}
