//! The functions of a file: how long they are, and how many parameters they have.

use std::ops::Range;

use super::text::{closed, line_of, parts, places, word};

pub(super) struct Function<'c> {
    pub(super) name: &'c str,
    pub(super) line: usize,
    /// Number of lines from its name to its end.
    pub(super) lines: usize,
    /// Number of parameters besides `self`; 0 if a foreign trait prescribes them.
    pub(super) parameters: usize,
}

/// Returns the names of the traits that a file defines.
pub(super) fn traits(code: &str) -> impl Iterator<Item = &str> {
    places(code, "trait").map(|at| word(code[at + "trait".len()..].trim_start()))
}

/// Returns all functions of a file. `own` are the names of all traits of the workspace.
pub(super) fn functions<'c>(code: &'c str, own: &[&str]) -> Vec<Function<'c>> {
    let foreign = foreign_impls(code, own);
    let function = |at: usize| {
        let rest = code[at + "fn".len()..].trim_start();
        let name = word(rest);
        let mut rest = rest[name.len()..].trim_start();
        if rest.starts_with('<') {
            rest = rest[closed(rest)..].trim_start();
        }
        // Without a name it is a type.
        if name.is_empty() || !rest.starts_with('(') {
            return None;
        }
        let list = &rest[..closed(rest)];
        let rest = &rest[list.len()..];
        let body = body(rest);
        let end = code.len() - rest.len() + body;
        let list = parts(&list[1..list.len() - 1]);
        let is_foreign = foreign.iter().any(|range| range.contains(&at));
        Some(Function {
            name,
            line: line_of(code, at),
            lines: code[at..end].matches('\n').count() + 1,
            parameters: if is_foreign {
                0
            } else {
                list.into_iter().filter(|one| !is_self(one)).count()
            },
        })
    };
    places(code, "fn").filter_map(function).collect()
}

fn is_self(parameter: &str) -> bool {
    let name = parameter.split(':').next().unwrap_or_default();
    name.split([' ', '&']).next_back() == Some("self")
}

/// Returns the length of the text after a list of parameters, up to the end of the body or the `;`.
fn body(rest: &str) -> usize {
    let mut at = 0;
    while let Some(length) = rest[at..].find(['{', ';', '[']) {
        at += length;
        match rest.as_bytes()[at] {
            b'{' => return at + closed(&rest[at..]),
            b'[' => at += closed(&rest[at..]),
            _ => return at + 1,
        }
    }
    rest.len()
}

/// Returns the ranges of implementations of foreign traits.
fn foreign_impls(code: &str, own: &[&str]) -> Vec<Range<usize>> {
    places(code, "impl")
        .filter_map(|at| {
            let head = &code[at + "impl".len()..];
            let head = &head[..head.find(['{', ';'])?];
            let generics = if head.starts_with('<') { closed(head) } else { 0 };
            let path = head[generics..].split(" for ").next()?;
            let is_trait = head.contains(" for ") && !path.contains('(');
            let path = path.split('<').next()?.trim();
            let name = path.rsplit("::").next()?;
            let begin = at + "impl".len() + head.len();
            (is_trait && !own.contains(&name)).then(|| begin..begin + closed(&code[begin..]))
        })
        .collect()
}
