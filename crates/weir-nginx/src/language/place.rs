//! Places for new text in a block, and the bytes of a directive to be removed, chosen so that the result looks as if
//! the author of the file had written it.

use std::ops::Range;

use weir_configuration::place::{filled, line_end, width};

use super::syntax::{Directive, Tree};
use super::view::is_include;

/// Position of a new directive, and the text to write there.
pub(super) struct Insertion {
    pub(super) at: usize,
    pub(super) text: String,
}

/// Directives that end the handling of a request before its content is made (ngx_http_rewrite_module). Directives
/// behind them look as if they were not reached.
const ENDS: [&str; 2] = ["return", "break"];

/// Returns the insertion for `directive` (its text without `;`) in a block of a file, or outside of all blocks if there
/// is none: below the last directive of its name there, else the last whose name begins alike (`gzip_types` below
/// `gzip`), else the last simple directive, else right at the beginning. It is never behind a `return` or `break`.
pub(super) fn insertion(
    text: &str,
    tree: &Tree,
    block: Option<&Directive>,
    directive: &str,
) -> Insertion {
    let children = block.map_or(&tree.directives[..], Directive::children);
    let name = directive.split(' ').next().unwrap_or_default();
    let end = children
        .iter()
        .position(|child| child.block.is_none() && ENDS.iter().any(|end| child.is(end)))
        .unwrap_or(children.len());
    let last = |children: &'_ [Directive], is_fit: &dyn Fn(&Directive) -> bool| {
        let mut indexed = children.iter();
        let index = indexed.rposition(|child| child.block.is_none() && is_fit(child))?;
        Some(Neighbour { text, index })
    };
    let before = &children[..end];
    let anchor = last(children, &|child| child.is(name))
        .or_else(|| last(before, &|child| begins_alike(&child.name.text, name)))
        .or_else(|| last(before, &|child| !is_include(child) && !child.is("rewrite")))
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

/// Returns true if two names have the part before their first underscore in common.
pub(super) fn begins_alike(a: &str, b: &str) -> bool {
    a.split('_').next() == b.split('_').next()
}

/// A directive of a block, below which another one is written.
struct Neighbour<'t> {
    text: &'t str,
    /// Index in the block.
    index: usize,
}

impl Neighbour<'_> {
    fn below(&self, children: &[Directive], directive: &str) -> Insertion {
        let (text, anchor) = (self.text, &children[self.index]);
        let indent = indent_before(text, anchor.name.span.start);
        match indent.filter(|_| rest_of_line(text, anchor.span().end).is_some()) {
            Some(indent) => below(text, anchor, &self.aligned(children, directive, indent)),
            None => below(text, anchor, directive),
        }
    }

    /// Returns the directive with its arguments aligned to those of the lines around it, as far as these are aligned:
    /// the first argument, and for a header the second.
    fn aligned(&self, children: &[Directive], directive: &str, indent: &str) -> String {
        let mut line = String::new();
        for (index, word) in directive.splitn(3, ' ').enumerate() {
            let from = width(indent) + line.len();
            line += &match index.checked_sub(1).and_then(|index| self.column(children, index)) {
                Some((column, gap)) => filled(from, column, gap),
                None if index > 0 => " ".to_owned(),
                None => String::new(),
            };
            line += word;
        }
        line
    }

    /// Returns the column in which the lines around have this argument, and the blanks before it, if at least two have
    /// it there and one of them behind more than one blank.
    fn column(&self, children: &[Directive], index: usize) -> Option<(usize, &str)> {
        let (column, gap) = self.column_of(&children[self.index], index)?;
        let above: Vec<&Directive> = children[..self.index].iter().rev().collect();
        let below: Vec<&Directive> = children[self.index + 1..].iter().collect();
        let line = children[self.index].line;
        let mut neighbours = Vec::new();
        for side in [above, below] {
            let touching = side
                .into_iter()
                .zip(1..)
                .take_while(|(other, away)| other.line.abs_diff(line) == *away);
            neighbours.extend(touching.filter_map(|(other, _)| self.column_of(other, index)));
        }
        neighbours.retain(|(other, _)| *other == column);
        let is_wide = gap != " " || neighbours.iter().any(|(_, gap)| *gap != " ");
        (!neighbours.is_empty() && is_wide).then_some((column, gap))
    }

    /// Returns the column of an argument of a directive, and the blanks before it, if the directive begins its line and
    /// has the argument on it.
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

pub(super) fn below(text: &str, anchor: &Directive, directive: &str) -> Insertion {
    let end = anchor.span().end;
    let indent = indent_before(text, anchor.name.span.start);
    match (indent, rest_of_line(text, end)) {
        (Some(indent), Some(line)) => {
            Insertion { at: line.end, text: format!("{}{indent}{directive};", line_end(text)) }
        }
        _ => Insertion { at: end, text: format!(" {directive};") },
    }
}

fn at_begin(text: &str, tree: &Tree, block: &Directive, directive: &str) -> Insertion {
    let open = block.terminator + 1;
    let Some(line) = rest_of_line(text, open) else {
        return Insertion { at: open, text: format!(" {directive};") };
    };
    let first = block.children().first();
    let indent = match first.and_then(|first| indent_before(text, first.name.span.start)) {
        Some(indent) => indent.to_owned(),
        None => {
            let outer = indent_before(text, block.name.span.start).unwrap_or_default();
            let step = own_step(text, &tree.directives).unwrap_or(step(outer));
            format!("{outer}{step}")
        }
    };
    Insertion { at: line.end, text: format!("{}{indent}{directive};", line_end(text)) }
}

/// Returns the extra indentation of the file's first block with lines of its own.
fn own_step<'t>(text: &'t str, directives: &[Directive]) -> Option<&'t str> {
    directives.iter().find_map(|block| {
        let first = block.children().first()?;
        let outer = indent_before(text, block.name.span.start);
        let inner = indent_before(text, first.name.span.start);
        let step = inner.zip(outer).and_then(|(inner, outer)| inner.strip_prefix(outer));
        step.filter(|step| !step.is_empty()).or_else(|| own_step(text, block.children()))
    })
}

/// Returns the insertion of a block with one directive, before another directive and the comments right above it.
pub(super) fn block_before(text: &str, before: &Directive, head: &str, inner: &str) -> Insertion {
    let start = before.name.span.start;
    let Some(indent) = indent_before(text, start) else {
        let text = format!("{head} {{ {inner}; }} ");
        return Insertion { at: start, text };
    };
    let mut at = start - indent.len();
    while let Some(above) = text[..at].strip_suffix('\n') {
        let line = above.rfind('\n').map_or(0, |newline| newline + 1);
        if !above[line..].trim_start().starts_with('#') {
            break;
        }
        at = line;
    }
    let first = before.children().first();
    let inner_indent = first.and_then(|first| indent_before(text, first.name.span.start));
    let inner_indent = match inner_indent {
        Some(inner) if inner.len() > indent.len() => inner.to_owned(),
        _ => format!("{indent}{}", step(indent)),
    };
    let end = line_end(text);
    let text = format!("{indent}{head} {{{end}{inner_indent}{inner};{end}{indent}}}{end}{end}");
    Insertion { at, text }
}

/// Returns the default extra indentation of a block's directives.
fn step(indent: &str) -> &'static str {
    if indent.starts_with('\t') { "\t" } else { "    " }
}

/// Returns the bytes to remove in order to take a directive away: with its line if it is alone there.
pub(super) fn removal(text: &str, directive: &Directive) -> Range<usize> {
    let span = directive.span();
    let Some(indent) = indent_before(text, span.start) else {
        let before = text[..span.start].trim_end_matches([' ', '\t']);
        return before.len()..span.end;
    };
    let begin = span.start - indent.len();
    let tail = &text[span.end..];
    let line = tail.split('\n').next().unwrap_or_default();
    if !line.trim().is_empty() {
        let blanks = line.len() - line.trim_start().len();
        span.start..span.end + blanks
    } else if tail.len() > line.len() {
        begin..span.end + line.len() + 1
    } else {
        // The last line of a file without an end: the one before becomes the last.
        let before = &text[..begin];
        let stripped = before.strip_suffix('\n').unwrap_or(before);
        stripped.strip_suffix('\r').unwrap_or(stripped).len()..text.len()
    }
}

/// Returns the blanks between the beginning of the line and `at`; None if there is anything else.
fn indent_before(text: &str, at: usize) -> Option<&str> {
    let begin = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let before = text[begin..at].trim_start_matches('\u{feff}');
    before.trim_matches([' ', '\t']).is_empty().then_some(before)
}

/// Returns the rest of the line behind `at`, without the line's end, if it is blank or a comment.
fn rest_of_line(text: &str, at: usize) -> Option<Range<usize>> {
    let line = text[at..].split('\n').next().unwrap_or_default().trim_end_matches('\r');
    let tail = line.trim_start();
    (tail.is_empty() || tail.starts_with('#')).then_some(at..at + line.len())
}
