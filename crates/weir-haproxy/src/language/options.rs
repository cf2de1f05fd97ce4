//! Options at the end of `bind`, `server` and `stats socket` lines.

use std::collections::BTreeMap;
use std::ops::Range;

use super::edit::Edit;
use super::keywords::{is_flag, is_option_list};
use super::sections::{Section, Statement, Tree};
use super::spelling::Spelling;

/// Position of a statement: index of its section in the tree, and index in the section.
type At = (usize, usize);

/// Returns the ranges of words that each form one option with its argument, in order.
pub(super) fn options(statement: &Statement<'_>) -> Vec<Range<usize>> {
    let mut at = match statement.word(0) {
        "default-server" => 1,
        list if is_option_list(list) => 1,
        "server" | "stats" => 3,
        "server-template" => 4,
        _ => 2,
    };
    let mut options = Vec::new();
    while at < statement.words.len() {
        let length = if is_flag(statement.word(at)) { 1 } else { 2 };
        let end = (at + length).min(statement.words.len());
        options.push(at..end);
        at = end;
    }
    options
}

/// Puts a row's options on all `bind` lines of proxies.
pub(super) fn binds(edit: &mut Edit<'_>, spelling: &Spelling<'_>) {
    let tree = edit.tree;
    for section in tree.sections.iter().filter(|section| section.has_frontend()) {
        for statement in section.statements.iter().filter(|s| s.word(0) == "bind") {
            let present = settle(edit, section.file, statement, spelling);
            for (text, present) in spelling.texts.iter().zip(present) {
                if !present {
                    edit.append(section.file, statement, &text.written);
                }
            }
        }
    }
}

/// Puts a row's options into force for all servers of proxies.
pub(super) fn servers(edit: &mut Edit<'_>, spelling: &Spelling<'_>) {
    let tree = edit.tree;
    let lines = server_lines(tree);
    let mut present: BTreeMap<At, Vec<bool>> = BTreeMap::new();
    for &at in &lines {
        let section = &tree.sections[at.0];
        present.insert(at, settle(edit, section.file, &section.statements[at.1], spelling));
    }
    let defaults = default_servers(tree, &lines);
    for at in lines {
        let (section, line) = at;
        if tree.sections[section].statements[line].word(0) == "default-server" {
            continue;
        }
        let inherited = above(tree, &defaults, at);
        for (number, text) in spelling.texts.iter().enumerate() {
            if present[&at][number] || inherited.iter().any(|line| present[line][number]) {
                continue;
            }
            let target = inherited.first().copied().unwrap_or(at);
            let section = &tree.sections[target.0];
            edit.append(section.file, &section.statements[target.1], &text.written);
            if let Some(present) = present.get_mut(&target) {
                present[number] = true;
            }
        }
    }
}

/// Puts a row's options into the statements of `global` that list options under a keyword, and makes lines of these
/// kinds that override them agree. Returns the missing statements.
pub(super) fn listed(
    edit: &mut Edit<'_>,
    (list, kinds): (&str, &[&str]),
    spelling: &Spelling<'_>,
) -> Vec<String> {
    let tree = edit.tree;
    let mut present = vec![false; spelling.texts.len()];
    let mut last = None;
    for (section, statement) in statements(tree, &[list]) {
        if section.kind() != "global" || remove_emptied(edit, section.file, statement, spelling) {
            continue;
        }
        let here = settle(edit, section.file, statement, spelling);
        if section.is_unconditional(statement) {
            last = Some((section.file, statement));
            present.iter_mut().zip(here).for_each(|(any, it)| *any |= it);
        }
    }
    for (section, statement) in statements(tree, kinds) {
        if section.is_proxy() || section.kind() == "defaults" {
            settle(edit, section.file, statement, spelling);
        }
    }
    let absent = spelling
        .texts
        .iter()
        .zip(present)
        .filter_map(|(text, present)| (!present).then_some(&text.written));
    let mut missing = Vec::new();
    for text in absent {
        match last {
            Some((file, statement)) => edit.append(file, statement, text),
            None => missing.push(format!("{list} {text}")),
        }
    }
    missing
}

/// Returns the statements that begin with one of these words, each with its section.
fn statements<'s, 't>(
    tree: &'s Tree<'t>,
    keywords: &[&str],
) -> impl Iterator<Item = (&'s Section<'t>, &'s Statement<'t>)> {
    tree.sections
        .iter()
        .flat_map(|section| section.statements.iter().map(move |statement| (section, statement)))
        .filter(move |(_, statement)| keywords.contains(&statement.word(0)))
}

/// Takes out a list of options that would become empty, since HAProxy refuses an empty one. Returns true if it did.
fn remove_emptied(
    edit: &mut Edit<'_>,
    file: usize,
    statement: &Statement<'_>,
    spelling: &Spelling<'_>,
) -> bool {
    let is_emptied = !spelling.keys.is_empty()
        && spelling.texts.is_empty()
        && options(statement).iter().all(|option| {
            let name = statement.word(option.start);
            spelling.keys.iter().any(|key| *key == [name])
        });
    if is_emptied {
        edit.remove(file, statement);
    }
    is_emptied
}

/// Returns the words of a statement with one blank between them; for one that lists options
/// (`ssl-default-bind-options`), a line for each option.
pub fn lines(statement: &Statement<'_>) -> Vec<String> {
    let keyword = statement.word(0);
    if is_option_list(keyword) {
        prefixed(keyword, statement)
    } else {
        vec![join_words(statement, 0..statement.words.len())]
    }
}

/// Returns the options of a `bind` line in the form of a list of options in `global`, a line for each option.
pub fn as_defaults(bind: &Statement<'_>) -> Vec<String> {
    prefixed("ssl-default-bind-options", bind)
}

fn prefixed(keyword: &str, statement: &Statement<'_>) -> Vec<String> {
    options(statement)
        .into_iter()
        .map(|option| format!("{keyword} {}", join_words(statement, option)))
        .collect()
}

fn join_words(statement: &Statement<'_>, words: Range<usize>) -> String {
    let words: Vec<&str> = statement.words[words].iter().map(|it| &*it.text).collect();
    words.join(" ")
}

/// Returns the positions of all `server`, `server-template` and `default-server` lines of proxies.
fn server_lines(tree: &Tree<'_>) -> Vec<At> {
    tree.sections
        .iter()
        .enumerate()
        .filter(|(_, section)| section.has_backend() || section.kind() == "defaults")
        .flat_map(|(index, section)| {
            let of_servers = section.statements.iter().enumerate().filter(|(_, statement)| {
                matches!(statement.word(0), "server" | "server-template" | "default-server")
            });
            of_servers.map(move |(line, _)| (index, line))
        })
        .collect()
}

/// Returns the `default-server` lines that are in force regardless of `.if`, by section.
fn default_servers(tree: &Tree<'_>, lines: &[At]) -> BTreeMap<usize, Vec<At>> {
    let mut defaults: BTreeMap<usize, Vec<At>> = BTreeMap::new();
    for &(section, line) in lines {
        let statement = &tree.sections[section].statements[line];
        let holds = tree.sections[section].is_unconditional(statement);
        if statement.word(0) == "default-server" && holds {
            defaults.entry(section).or_default().push((section, line));
        }
    }
    defaults
}

/// Returns the `default-server` lines that a server takes options from, nearest first.
fn above(tree: &Tree<'_>, defaults: &BTreeMap<usize, Vec<At>>, (section, line): At) -> Vec<At> {
    let in_section = nearest_first(defaults, section).filter(|&(_, above)| above < line);
    let inherited = tree.defaults_of(section);
    in_section
        .chain(inherited.into_iter().flat_map(|section| nearest_first(defaults, section)))
        .collect()
}

/// Returns the lines of a section with defaults, the last first.
fn nearest_first(defaults: &BTreeMap<usize, Vec<At>>, section: usize) -> impl Iterator<Item = At> {
    defaults.get(&section).into_iter().flatten().rev().copied()
}

/// Changes the options of a row that a line has. Returns for each of the row's texts whether the line then has it.
fn settle(
    edit: &mut Edit<'_>,
    file: usize,
    statement: &Statement<'_>,
    spelling: &Spelling<'_>,
) -> Vec<bool> {
    let mut present = vec![false; spelling.texts.len()];
    for option in options(statement) {
        let name = statement.word(option.start);
        if !spelling.keys.iter().any(|key| *key == [name]) {
            continue;
        }
        let same_key = spelling.texts.iter().position(|text| text.key == [name]);
        let Some(text) = same_key.or_else(|| present.iter().position(|present| !present)) else {
            edit.remove_words(file, &statement.words, option);
            continue;
        };
        present[text] = true;
        let text = &spelling.texts[text];
        let old = &statement.words[option];
        let words: Vec<&str> = old.iter().map(|word| &*word.text).collect();
        if !spelling.is_said_by(&words, text) {
            edit.rewrite(file, old, &spelling.in_style(&words, text));
        }
    }
    present
}
