//! A report as one self-contained HTML file: styles, charts and a script are embedded, fonts are the system's. The script
//! adds tools to charts, and nothing is missing without it. A Content-Security-Policy in its head forbids every load, so
//! the file cannot make requests even if a reference slipped through, and every script but this one, by its hash.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use weir_model::record::Validity;

use super::svg::{self, Escaped, Width};
use crate::secrets::masked;
use crate::tree::{
    Block, Callout, Cell, Chart, Column, Document, Figure, Fold, Heading, Kind, Lines, List,
    Outputs, Paragraph, Part, Role, Row, Style, Table, Text,
};
use crate::words;

const OUTPUT: Outputs = Outputs::HTML;
/// Script of the page, made from `crates/weir-ui/web/src/file.ts`.
const SCRIPT: &str = include_str!("../../../weir-ui/web/dist/report.js");
/// Number of columns above which a table of pairs is set in smaller type.
const MANY: usize = 8;

/// Draws a report as one self-contained page.
pub(crate) fn html(document: &Document) -> String {
    let mut page = Page::default();
    page.head(document);
    page.blocks(&document.blocks);
    page.end_section();
    let footer = Escaped(&document.footer);
    page.put(format_args!("<footer>{footer}</footer>\n</main>\n"));
    page.put(format_args!("<script>{SCRIPT}</script>\n</body>\n</html>\n"));
    page.out
}

/// The page during rendering.
#[derive(Default)]
struct Page {
    out: String,
    /// True while a section is open.
    in_section: bool,
    /// True once the table of contents is written.
    has_contents: bool,
    contents: String,
    /// Number of charts so far, from which their ids are made.
    charts: usize,
}

impl Page {
    /// Writes formatted text. Writing to a String cannot fail.
    fn put(&mut self, what: std::fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(what);
    }

    fn head(&mut self, document: &Document) {
        let (title, source) = (Escaped(&document.title), Escaped(&document.source));
        let style = include_str!("../../templates/style.css");
        let script_hash = STANDARD.encode(Sha256::digest(SCRIPT));
        sections(&mut self.contents, &document.blocks);
        self.put(format_args!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; script-src 'sha256-{script_hash}'\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title} · weir report</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n<header>\n\
             <p class=\"eyebrow\">weir report · {source}</p>\n<h1>{title}</h1>\n"
        ));
    }

    /// Begins a section. The first one ends the page's header, with its table of contents.
    fn begin_section(&mut self) {
        self.end_section();
        self.in_section = true;
        self.out.push_str("\n<section>\n");
    }

    fn end_section(&mut self) {
        if self.in_section {
            self.out.push_str("</section>\n");
        } else if !self.has_contents {
            let contents = std::mem::take(&mut self.contents);
            let nav = "<nav aria-label=\"Sections\">\n";
            self.put(format_args!("{nav}{contents}</nav>\n</header>\n"));
            self.has_contents = true;
        }
        self.in_section = false;
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Heading(heading) => self.heading(heading),
                Block::Callout(callout) => self.callout(callout),
                Block::Paragraph(one) => self.paragraph(one),
                Block::List(list) => self.list(list),
                Block::Facts(facts) => self.facts(facts),
                Block::Table(table) => self.table(table),
                Block::Figure(figure) => self.figure(figure),
                Block::Code(code) => {
                    let text = masked(&code.text)
                        .lines()
                        .map(|line| Escaped(line).to_string())
                        .collect::<Vec<_>>()
                        .join("\n");
                    self.put(format_args!("<pre tabindex=\"0\">{text}</pre>\n"));
                }
                Block::Fold(fold) => self.fold(fold),
                Block::Only(outputs, blocks) if outputs.has(OUTPUT) => self.blocks(blocks),
                Block::Only(..) => {}
            }
        }
    }

    fn heading(&mut self, heading: &Heading) {
        let text = Escaped(&heading.text);
        let badge =
            heading.badge.map_or(String::new(), |validity| format!(" {}", render_badge(validity)));
        match heading.level {
            2 => {
                self.begin_section();
                self.put(format_args!("<h2 id=\"{}\">{text}{badge}</h2>\n", heading.id));
            }
            _ => self.put(format_args!("<h3>{text}{badge}</h3>\n")),
        }
        if !heading.remark.is_empty() {
            let remark = inline(&Text::from(heading.remark.as_str()).sentence());
            self.put(format_args!("<p class=\"sub\">{remark}</p>\n"));
        }
    }

    fn callout(&mut self, callout: &Callout) {
        let label = callout.label;
        self.put(format_args!("<section class=\"answer\" aria-label=\"{label}\">\n"));
        for paragraph in &callout.paragraphs {
            let paragraph = prose(paragraph);
            self.put(format_args!("<p>{paragraph}</p>"));
        }
        let basis = inline(&Text::from(callout.basis.as_str()).sentence());
        let badge = render_badge(callout.badge);
        self.put(format_args!("\n<p>{badge} {basis}</p>\n</section>\n"));
    }

    fn paragraph(&mut self, paragraph: &Paragraph) {
        let text = paragraph.drawn(inline);
        let class = match paragraph.style {
            Style::Plain => "",
            Style::Lead => " class=\"question\"",
            Style::Strong => " class=\"ranking\"",
            Style::Soft => " class=\"sub\"",
            Style::Warning => " class=\"warning\"",
        };
        self.put(format_args!("<p{class}>{text}</p>\n"));
    }

    fn list(&mut self, list: &List) {
        let class = if list.attached { "plain why" } else { "plain" };
        self.put(format_args!("<ul class=\"{class}\">\n"));
        for item in &list.items {
            let item = inline(item);
            self.put(format_args!("<li>{item}</li>\n"));
        }
        self.out.push_str("</ul>\n");
    }

    fn facts(&mut self, facts: &[(String, Vec<Text>)]) {
        self.out.push_str("<dl>");
        for (name, lines) in facts {
            let lines: Vec<String> = lines.iter().map(inline).collect();
            let (name, lines) = (Escaped(name), lines.join("<br>"));
            self.put(format_args!("<dt>{name}</dt><dd>{lines}</dd>"));
        }
        self.out.push_str("</dl>\n");
    }

    fn fold(&mut self, fold: &Fold) {
        let class = if fold.unusable { " class=\"unusable\"" } else { "" };
        let summary = Escaped(&fold.summary);
        self.put(format_args!("<details{class}><summary>{summary}</summary>\n"));
        self.blocks(&fold.blocks);
        self.out.push_str("</details>\n");
    }

    fn table(&mut self, table: &Table) {
        let (label, class) = (Escaped(&table.label), class(table));
        self.put(format_args!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{label}\">\n<table{class}>\n"
        ));
        if !table.caption.is_empty() {
            let caption = Escaped(&table.caption);
            self.put(format_args!("<caption>{caption}</caption>\n"));
        }
        let shown = table.shown(OUTPUT);
        let names = Escaped(&table.names);
        self.put(format_args!("<thead><tr><th scope=\"col\">{names}</th>"));
        for at in &shown {
            self.column(&table.columns[*at]);
        }
        self.out.push_str("</tr></thead>\n<tbody>\n");
        let mut is_first = true;
        for row in &table.rows {
            if row.part == Part::Group && !is_first {
                self.out.push_str("</tbody>\n<tbody>\n");
            }
            is_first = false;
            self.row(table, row, &shown);
        }
        self.out.push_str("</tbody>\n</table>\n</div>\n");
    }

    fn column(&mut self, column: &Column) {
        let class = if column.left { "" } else { " class=\"num\"" };
        let title = attribute("title", column.title);
        let (head, small) = (Escaped(&column.head), small(&column.small));
        self.put(format_args!("<th scope=\"col\"{class}{title}>{head}{small}</th>"));
    }

    fn row(&mut self, table: &Table, row: &Row, shown: &[usize]) {
        let name = Escaped(&row.name);
        if row.part == Part::Group {
            let badge = row.badge.map_or(String::new(), render_badge);
            let span = shown.len() + 1;
            self.put(format_args!(
                "<tr><th scope=\"rowgroup\" colspan=\"{span}\">{name} {badge}</th></tr>\n"
            ));
            return;
        }
        let class = match part(row.part) {
            "" => String::new(),
            part => format!(" class=\"{part}\""),
        };
        let about = if row.about.0.is_empty() {
            String::new()
        } else {
            format!("<span class=\"changes\">{}</span>", inline(&row.about))
        };
        self.put(format_args!("<tr{class}><th scope=\"row\">{name}{about}</th>"));
        for at in shown {
            match row.cells.get(*at) {
                Some(cell) => self.cell(&table.columns[*at], cell),
                None => self.out.push_str("<td></td>"),
            }
        }
        self.out.push_str("</tr>\n");
    }

    fn cell(&mut self, column: &Column, cell: &Cell) {
        let mut content = inline(&cell.text);
        if !cell.more.is_empty() {
            let more = cell.more.iter().map(|line| prose(line));
            let lines = std::iter::once(content).chain(more);
            content = lines.map(|line| format!("<span class=\"clause\">{line}</span>")).collect();
        }
        content.push_str(&small(&cell.small));
        if !cell.detail.is_empty() {
            let detail = prose(&cell.detail);
            let _ = write!(content, "<span class=\"changes\">{detail}</span>");
        }
        if content.is_empty() {
            self.out.push_str("<td></td>");
            return;
        }
        let alignment = if column.left { "words" } else { "num" };
        let mut classes = vec![alignment.to_owned()];
        classes.extend(column.minor.then(|| "line".to_owned()));
        classes.extend(cell.shade.map(|shade| format!("h{shade}")));
        let label = if column.left { String::new() } else { attribute("data-l", &column.head) };
        let (classes, title) = (classes.join(" "), attribute("title", &cell.title));
        self.put(format_args!("<td class=\"{classes}\"{label}{title}>{content}</td>"));
    }

    /// Draws a chart for both widths. Writes nothing if there is nothing to draw.
    fn figure(&mut self, figure: &Figure) {
        self.charts += 1;
        let id = format!("c{}", self.charts);
        let caption = inline(&figure.caption);
        let both = |draw: &dyn Fn(&str, Width) -> String| {
            draw(&format!("{id}-w"), Width::Wide) + &draw(&format!("{id}-n"), Width::Narrow)
        };
        let (class, drawn) = match &figure.chart {
            Chart::Forest(forest) => ("", both(&|id, width| svg::forest(id, forest, width))),
            Chart::Lines(lines) => (
                " class=\"lines\"",
                both(&|id, width| svg::lines(id, lines, width)) + &legend(lines),
            ),
            Chart::Panels(panels) => ("", svg::panels(&id, panels)),
            Chart::Bars(bars) => {
                ("", both(&|id, width| svg::bars(id, bars, width)) + &svg::bar_parts(bars))
            }
            Chart::Multiples(all) => ("", svg::multiples(&id, all)),
            Chart::RunSeries(plot) => ("", both(&|id, width| svg::series(id, plot, width))),
            Chart::Closing(closing) => ("", both(&|id, width| svg::closing(id, closing, width))),
        };
        if !drawn.is_empty() {
            self.put(format_args!(
                "<figure{class}>\n<figcaption>{caption}</figcaption>\n{drawn}\n</figure>\n"
            ));
        }
    }
}

/// Adds a link to each section.
fn sections(contents: &mut String, blocks: &[Block]) {
    for block in blocks {
        match block {
            Block::Heading(heading) if heading.level == 2 => {
                let (id, text) = (&heading.id, Escaped(&heading.text));
                let _ = writeln!(contents, "<a href=\"#{id}\">{text}</a>");
            }
            Block::Only(outputs, blocks) if outputs.has(OUTPUT) => sections(contents, blocks),
            _ => {}
        }
    }
}

/// Returns the legend, for lines whose names do not fit beside them.
fn legend(lines: &Lines) -> String {
    let keys: String = lines.lines.iter().filter(|line| !line.points.is_empty())
        .map(|line| {
            format!(
                "<li data-s=\"{}\"><svg viewBox=\"0 0 28 8\" aria-hidden=\"true\"><path class=\"ln {}\" \
                 d=\"M1 4H27\"/></svg>{}</li>",
                line.series,
                line.class,
                Escaped(&line.name)
            )
        })
        .collect();
    if keys.is_empty() { keys } else { format!("<ul class=\"legend\">{keys}</ul>") }
}

fn class(table: &Table) -> &'static str {
    match table.kind {
        Kind::Plain => "",
        Kind::Compare => " class=\"compare\"",
        Kind::Figures => " class=\"figures\"",
        Kind::Pairs if table.columns.len() > MANY => " class=\"pairs many\"",
        Kind::Pairs => " class=\"pairs\"",
        Kind::Heat => " class=\"heat\"",
        Kind::Prose => " class=\"about\"",
        Kind::Counts => " class=\"counted\"",
    }
}

/// Returns the style class of a part.
pub(super) fn part(part: Part) -> &'static str {
    match part {
        Part::Plain | Part::Group => "",
        Part::Baseline => "baseline",
        Part::Control => "control",
        Part::Telling => "telling",
    }
}

fn render_badge(validity: Validity) -> String {
    let word = words::validity(validity);
    let class = word.to_lowercase();
    format!("<span class=\"badge {class}\">{word}</span>")
}

fn small(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("<small>{}</small>", prose(text)),
    }
}

fn attribute(name: &str, value: &str) -> String {
    match value {
        "" => String::new(),
        value => format!(" {name}=\"{}\"", Escaped(value)),
    }
}

/// Escapes text, and keeps numbers and their units on one line.
fn prose(text: &str) -> String {
    Escaped(text).to_string().replace(" %", "\u{a0}%").replace("n = ", "n\u{a0}=\u{a0}")
}

fn inline(text: &Text) -> String {
    let pieces = text.0.iter().map(|(role, text)| match role {
        Role::Plain => prose(text),
        Role::Strong => format!("<strong>{}</strong>", prose(text)),
        Role::Soft => format!("<span class=\"soft\">{}</span>", prose(text)),
        Role::Code if text.is_empty() => String::new(),
        Role::Code => format!("<code>{}</code>", Escaped(text)),
        Role::Tone(tone) => {
            format!("<span class=\"verdict {}\">{}</span>", tone.class(), prose(text))
        }
        Role::Badge(validity) => render_badge(*validity),
        // A reader that speaks would name each character.
        Role::Picture => {
            format!("<span class=\"spark\" aria-hidden=\"true\">{}</span>", Escaped(text))
        }
    });
    pieces.collect()
}
