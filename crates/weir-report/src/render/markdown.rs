//! A report as Markdown (CommonMark with GitHub's tables), for issues, wikis and mails.

use std::fmt::Write;

use crate::secrets::{commands, masked, visible};
use crate::tree::{
    Block, Callout, Cell, Code, Column, Document, Heading, Outputs, Paragraph, Part, Role, Style,
    Table, Text,
};
use crate::words;

const OUTPUT: Outputs = Outputs::MARKDOWN;

/// Renders a report as Markdown that ends with a line feed. Names are escaped, so none can become markup, a link or a
/// cell of its own.
pub(crate) fn markdown(document: &Document) -> String {
    let mut out = format!("# {}\n\n", escape(&document.title));
    blocks(&mut out, &document.blocks);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

// Writing to a String cannot fail, so the results of writeln! are dropped throughout.

fn blocks(out: &mut String, all: &[Block]) {
    for block in all {
        match block {
            Block::Heading(one) => heading(out, one),
            Block::Callout(one) => callout(out, one),
            Block::Paragraph(one) => paragraph(out, one),
            Block::List(list) => {
                for item in &list.items {
                    let _ = writeln!(out, "- {}", inline(item));
                }
                out.push('\n');
            }
            Block::Facts(facts) => {
                for (name, lines) in facts {
                    let lines: Vec<String> = lines.iter().map(inline).collect();
                    let _ = writeln!(out, "- {}: {}", escape(name), lines.join("; "));
                }
                out.push('\n');
            }
            Block::Table(one) => table(out, one),
            Block::Figure(_) => {}
            Block::Code(one) => code_block(out, one),
            Block::Fold(fold) => {
                let _ = writeln!(out, "**{}**\n", escape(&fold.summary));
                blocks(out, &fold.blocks);
            }
            Block::Only(outputs, some) if outputs.has(OUTPUT) => blocks(out, some),
            Block::Only(..) => {}
        }
    }
}

fn heading(out: &mut String, heading: &Heading) {
    let marks = "#".repeat(heading.level.into());
    let badge =
        heading.badge.map_or(String::new(), |validity| format!(", {}", words::validity(validity)));
    let _ = writeln!(out, "{marks} {}{badge}\n", escape(&heading.text));
    if !heading.remark.is_empty() {
        let remark = Text::from(heading.remark.as_str()).sentence();
        let _ = writeln!(out, "{}\n", inline(&remark));
    }
}

fn callout(out: &mut String, callout: &Callout) {
    let paragraphs = callout.paragraphs.iter().map(|text| escape(text));
    let paragraphs: Vec<String> = paragraphs.collect();
    let validity = words::validity(callout.badge);
    let label = callout.label;
    let _ = writeln!(out, "**{label}** ({validity}). {}\n", paragraphs.join("\n\n"));
    let basis = Text::from(callout.basis.as_str()).sentence();
    let _ = writeln!(out, "{}\n", inline(&basis));
}

fn paragraph(out: &mut String, paragraph: &Paragraph) {
    let text = paragraph.drawn(inline);
    let _ = match paragraph.style {
        Style::Warning => writeln!(out, "> **Note:** {text}\n"),
        Style::Lead => writeln!(out, "**Question.** {text}\n"),
        Style::Plain | Style::Strong | Style::Soft => writeln!(out, "{text}\n"),
    };
}

fn table(out: &mut String, table: &Table) {
    if !table.caption.is_empty() {
        let _ = writeln!(out, "{}:\n", escape(&table.caption));
    }
    let shown = table.shown(OUTPUT);
    let columns: Vec<&Column> = shown.iter().map(|at| &table.columns[*at]).collect();
    let mut heads = vec![escape(&table.names)];
    let mut rule = "|---|".to_owned();
    if !table.about.is_empty() {
        heads.push(escape(table.about));
        rule.push_str("---|");
    }
    heads.extend(columns.iter().map(|column| head(column)));
    rule.extend(columns.iter().map(|column| if column.left { "---|" } else { "--:|" }));
    let _ = writeln!(out, "| {} |\n{rule}", heads.join(" | "));
    for row in &table.rows {
        let name = match (row.part, row.badge) {
            (Part::Group, Some(badge)) => {
                format!("**{}**, {}", escape(&row.name), words::validity(badge))
            }
            (Part::Group, None) => format!("**{}**", escape(&row.name)),
            _ => escape(&row.name),
        };
        let mut cells = vec![name];
        if !table.about.is_empty() {
            cells.push(inline(&row.about));
        }
        cells.extend(shown.iter().map(|at| row.cells.get(*at).map_or(String::new(), cell)));
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push('\n');
}

fn head(column: &Column) -> String {
    match (column.head.as_str(), column.small.as_str()) {
        (head, "") => escape(head),
        ("", small) => escape(small),
        (head, small) if head.ends_with(')') => format!("{}, {}", escape(head), escape(small)),
        (head, small) => format!("{} ({})", escape(head), escape(small)),
    }
}

/// Formats a cell in one line.
fn cell(cell: &Cell) -> String {
    let mut text = inline(&cell.text);
    for line in &cell.more {
        let _ = write!(text, "; {}", escape(line));
    }
    if !cell.small.is_empty() {
        let _ = write!(text, " ({})", escape(&cell.small));
    }
    if !cell.detail.is_empty() {
        let _ = write!(text, ": {}", escape(&cell.detail));
    }
    text
}

fn code_block(out: &mut String, code: &Code) {
    let text = masked(&code.text);
    let text = visible(text.trim_end());
    let fence = choose_fence(&text);
    let _ = writeln!(out, "{fence}{}\n{text}\n{fence}\n", code.language);
}

fn inline(text: &Text) -> String {
    let pieces = text.0.iter().map(|(role, text)| match role {
        Role::Code if !text.is_empty() => format!("`{}`", code(text)),
        Role::Strong => format!("**{}**", escape(text)),
        _ => escape(text),
    });
    pieces.collect()
}

/// Returns a fence that is longer than any run of backticks in the text (CommonMark §4.5).
fn choose_fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat((longest + 1).max(3))
}

/// Replaces characters that would end a code span or a cell: backticks and bars.
fn code(text: &str) -> String {
    masked(text)
        .chars()
        .map(|c| match c {
            '`' => '\'',
            '|' => '¦',
            '\n' | '\t' => ' ',
            c if commands(c) => ' ',
            c => c,
        })
        .collect()
}

/// Escapes characters that are markup in Markdown (CommonMark §2.4), also inside a table's cell.
fn escape(text: &str) -> String {
    let shown = masked(text);
    let text = &*shown;
    let mut out = String::with_capacity(text.len());
    let mut previous = ' ';
    for (index, c) in text.char_indices() {
        match c {
            // Between letters and digits an underscore is none (keepalive_requests).
            '_' if previous.is_alphanumeric()
                && text[index + 1..].starts_with(char::is_alphanumeric) => {}
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' | '!' => {
                out.push('\\');
            }
            _ => {}
        }
        let is_blank = matches!(c, '\n' | '\t') || commands(c);
        out.push(if is_blank { ' ' } else { c });
        previous = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escape("a|b\nc"), "a\\|b c");
        assert_eq!(escape("[x](y) <b> *z*"), "\\[x\\](y) \\<b\\> \\*z\\*");
        assert_eq!(escape("keepalive_requests"), "keepalive_requests");
        assert_eq!(escape("_lead and trail_"), "\\_lead and trail\\_");
        assert_eq!(code("a`b|c"), "a'b¦c");
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(choose_fence("no ticks"), "```");
        assert_eq!(choose_fence("a ```` b"), "`````");
    }
}
