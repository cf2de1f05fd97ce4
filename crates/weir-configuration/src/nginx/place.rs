//! Where text goes into a block and how a directive is taken out, so that it looks as if the
//! author of the file had done it.

use std::ops::Range;

use super::syntax::{Directive, Tree};
use super::view::is_include;
use crate::place::line_end;

/// Where a directive goes, and the text that is written there.
pub(super) struct Insertion {
    pub(super) at: usize,
    pub(super) text: String,
}

/// How to put `directive` (its text without `;`) into a block of a file, or outside all blocks
/// where there is none: below the last of its kind there, else below the last simple directive,
/// else right at the begin.
pub(super) fn insertion(
    text: &str,
    tree: &Tree,
    block: Option<&Directive>,
    directive: &str,
) -> Insertion {
    let children = block.map_or(&tree.directives[..], Directive::children);
    let name = directive.split(' ').next().unwrap_or_default();
    let last = |is_fit: &dyn Fn(&Directive) -> bool| {
        children
            .iter()
            .rfind(|child| child.block.is_none() && is_fit(child))
    };
    let anchor = last(&|child| child.is(name))
        .or_else(|| last(&|child| !is_include(child)))
        .or_else(|| last(&|_| true));
    match (anchor, block) {
        (Some(anchor), _) => below(text, anchor, directive),
        (None, Some(block)) => at_begin(text, block, directive),
        (None, None) => {
            let at = if text.starts_with('\u{feff}') { 3 } else { 0 };
            let text = format!("{directive};{}", line_end(text));
            Insertion { at, text }
        }
    }
}

pub(super) fn below(text: &str, anchor: &Directive, directive: &str) -> Insertion {
    let end = anchor.span().end;
    let indent = indent_before(text, anchor.name.span.start);
    match (indent, rest_of_line(text, end)) {
        (Some(indent), Some(line)) => Insertion {
            at: line.end,
            text: format!("{}{indent}{directive};", line_end(text)),
        },
        _ => Insertion {
            at: end,
            text: format!(" {directive};"),
        },
    }
}

fn at_begin(text: &str, block: &Directive, directive: &str) -> Insertion {
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
            format!("{outer}{}", step(outer))
        }
    };
    Insertion {
        at: line.end,
        text: format!("{}{indent}{directive};", line_end(text)),
    }
}

/// A block of one directive before another one and the comments right above that.
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

/// By how much more a block's directives are indented than the block.
fn step(indent: &str) -> &'static str {
    match indent.starts_with('\t') {
        true => "\t",
        false => "    ",
    }
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
