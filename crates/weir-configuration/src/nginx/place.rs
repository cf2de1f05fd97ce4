//! Where text goes into a block and how a directive is taken out, so that it looks as if the
//! author of the file had done it.

use std::ops::Range;

use super::syntax::{Directive, Tree};
use super::view::is_include;
use crate::place::{filled, line_end, width};

/// Where a directive goes, and the text that is written there.
pub(super) struct Insertion {
    pub(super) at: usize,
    pub(super) text: String,
}

/// Directives that end what is done with a request before its content is made
/// (ngx_http_rewrite_module): what stands behind them looks as if it were not reached.
const ENDS: [&str; 2] = ["return", "break"];

/// How to put `directive` (its text without `;`) into a block of a file, or outside all blocks
/// where there is none: below the last of its kind there, else the last whose name begins alike
/// (`gzip_types` below `gzip`), else the last simple directive, else right at the begin. Never behind a
/// `return` or `break`.
pub(super) fn insertion(
    text: &str,
    tree: &Tree,
    block: Option<&Directive>,
    directive: &str,
) -> Insertion {
    let children = block.map_or(&tree.directives[..], Directive::children);
    let name = directive.split(' ').next().unwrap_or_default();
    let is_end = |child: &Directive| child.block.is_none() && ENDS.iter().any(|end| child.is(end));
    let end = children.iter().position(is_end).unwrap_or(children.len());
    let last = |children: &'_ [Directive], is_fit: &dyn Fn(&Directive) -> bool| {
        let found = children
            .iter()
            .rposition(|child| child.block.is_none() && is_fit(child));
        found.map(|index| Neighbour { text, index })
    };
    let before = &children[..end];
    let is_usual = |child: &Directive| !is_include(child) && !child.is("rewrite");
    let anchor = last(children, &|child| child.is(name))
        .or_else(|| last(before, &|child| begins_alike(&child.name.text, name)))
        .or_else(|| last(before, &is_usual))
        .or_else(|| last(before, &|child| !child.is("rewrite")));
    match (anchor, block) {
        (Some(anchor), _) => anchor.below(children, directive),
        (None, Some(block)) => at_begin(text, tree, block, directive),
        (None, None) => {
            let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
            let text = format!("{directive};{}", line_end(text));
            Insertion { at, text }
        }
    }
}

/// Whether two names have the part before their first underscore in common.
pub(super) fn begins_alike(a: &str, b: &str) -> bool {
    let begin = |name: &str| name.split('_').next().unwrap_or_default().to_owned();
    begin(a) == begin(b)
}

/// A directive of a block below which another one goes.
struct Neighbour<'t> {
    text: &'t str,
    /// In the block.
    index: usize,
}

impl Neighbour<'_> {
    fn below(&self, children: &[Directive], directive: &str) -> Insertion {
        let (text, anchor) = (self.text, &children[self.index]);
        let end = anchor.span().end;
        let indent = indent_before(text, anchor.name.span.start);
        match (indent, rest_of_line(text, end)) {
            (Some(indent), Some(line)) => {
                let directive = self.aligned(children, directive, indent);
                Insertion {
                    at: line.end,
                    text: format!("{}{indent}{directive};", line_end(text)),
                }
            }
            _ => Insertion {
                at: end,
                text: format!(" {directive};"),
            },
        }
    }

    /// The directive with its arguments below those of the lines around it, as far as they stand one below
    /// the other: its first, and of a header the second.
    fn aligned(&self, children: &[Directive], directive: &str, indent: &str) -> String {
        let mut line = String::new();
        for (index, word) in directive.splitn(3, ' ').enumerate() {
            let from = width(indent) + line.len();
            line += &match index
                .checked_sub(1)
                .and_then(|index| self.column(children, index))
            {
                Some((column, gap)) => filled(from, column, gap),
                None if index > 0 => " ".to_owned(),
                None => String::new(),
            };
            line += word;
        }
        line
    }

    /// The column in which the lines around it have this argument, and the blanks before it, if at least two
    /// have it there and one of them behind more than one blank.
    fn column(&self, children: &[Directive], index: usize) -> Option<(usize, &str)> {
        let (column, gap) = self.column_of(&children[self.index], index)?;
        let above: Vec<&Directive> = children[..self.index].iter().rev().collect();
        let below: Vec<&Directive> = children[self.index + 1..].iter().collect();
        let line = children[self.index].line;
        let mut near = Vec::new();
        for side in [above, below] {
            let lines = side.into_iter().zip(1..);
            let touching = lines.take_while(|(other, away)| other.line.abs_diff(line) == *away);
            near.extend(touching.filter_map(|(other, _)| self.column_of(other, index)));
        }
        near.retain(|(other, _)| *other == column);
        let is_wide = gap != " " || near.iter().any(|(_, gap)| *gap != " ");
        (!near.is_empty() && is_wide).then_some((column, gap))
    }

    /// The column of an argument of a directive, and the blanks before it, if the directive begins its line
    /// and has one there.
    fn column_of(&self, directive: &Directive, index: usize) -> Option<(usize, &str)> {
        let name = &directive.name.span;
        let argument = &directive.arguments.get(index)?.span;
        let before = match index.checked_sub(1) {
            Some(before) => &directive.arguments[before].span,
            None => name,
        };
        let indent = indent_before(self.text, name.start)?;
        let text = &self.text[name.start - indent.len()..argument.start];
        let gap = &self.text[before.end..argument.start];
        let is_line = directive.block.is_none() && !text.contains(['\n', '#']);
        is_line.then(|| (width(text), gap))
    }
}

fn at_begin(text: &str, tree: &Tree, block: &Directive, directive: &str) -> Insertion {
    let open = block.terminator + 1;
    let Some(line) = rest_of_line(text, open) else {
        return Insertion {
            at: open,
            text: format!(" {directive};"),
        };
    };
    let first = block.children().first();
    let indent = match first.and_then(|first| indent_before(text, first.name.span.start)) {
        Some(indent) => indent.to_owned(),
        None => {
            let outer = indent_before(text, block.name.span.start).unwrap_or_default();
            let usual = if outer.starts_with('\t') {
                "\t"
            } else {
                "    "
            };
            let step = step(text, &tree.directives).unwrap_or(usual);
            format!("{outer}{step}")
        }
    };
    Insertion {
        at: line.end,
        text: format!("{}{indent}{directive};", line_end(text)),
    }
}

/// By how much the file's first block with lines of its own is indented.
fn step<'t>(text: &'t str, directives: &[Directive]) -> Option<&'t str> {
    directives.iter().find_map(|block| {
        let first = block.children().first()?;
        let outer = indent_before(text, block.name.span.start);
        let inner = indent_before(text, first.name.span.start);
        let own = inner
            .zip(outer)
            .and_then(|(inner, outer)| inner.strip_prefix(outer));
        let own = own.filter(|own| !own.is_empty());
        own.or_else(|| step(text, block.children()))
    })
}

/// The bytes to leave out in order to take a directive away: with its line if it is alone there.
pub(super) fn removal(text: &str, directive: &Directive) -> Range<usize> {
    let span = directive.span();
    let Some(indent) = indent_before(text, span.start) else {
        let before = text[..span.start].trim_end_matches([' ', '\t']);
        return before.len()..span.end;
    };
    let begin = span.start - indent.len();
    let rest = &text[span.end..];
    let line = rest.split('\n').next().unwrap_or_default();
    match line.trim().is_empty() {
        true if rest.len() > line.len() => begin..span.end + line.len() + 1,
        // The last line of a file without an end: the one before becomes the last.
        true => {
            let before = &text[..begin];
            let before = before.strip_suffix('\n').unwrap_or(before);
            before.strip_suffix('\r').unwrap_or(before).len()..text.len()
        }
        false => {
            let blanks = line.len() - line.trim_start().len();
            span.start..span.end + blanks
        }
    }
}

/// The blanks between the begin of the line and `at`, if there is nothing else.
fn indent_before(text: &str, at: usize) -> Option<&str> {
    let begin = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let before = text[begin..at].trim_start_matches('\u{feff}');
    before
        .trim_matches([' ', '\t'])
        .is_empty()
        .then_some(before)
}

/// What is behind `at` in its line, without the line's end, if it is nothing or a comment.
fn rest_of_line(text: &str, at: usize) -> Option<Range<usize>> {
    let line = text[at..].split('\n').next().unwrap_or_default();
    let line = line.trim_end_matches('\r');
    let rest = line.trim_start();
    (rest.is_empty() || rest.starts_with('#')).then_some(at..at + line.len())
}
