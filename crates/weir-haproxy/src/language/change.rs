//! Puts settings into force in a haproxy.cfg.

use std::collections::BTreeSet;

use weir_configuration::place::about;
use weir_configuration::{ConfigurationError, Source, WantedSetting};

use super::edit::Edit;
use super::keywords::{OPTION_LISTS, is_used_by};
use super::options;
use super::sections::{Section, Tree};
use super::spelling::{Spelling, Text};

/// Puts settings into force by their rows of the catalog, changing nothing else.
///
/// * An existing setting is changed in its place, and only in the words that differ; an equal value in another unit
///   (`30000` for `30s`) stays.
/// * It is changed everywhere: in every `defaults`, and in proxies that override their `defaults`, or the level would
///   not be in force for them. Statements inside `.if` are changed too, and do not count as being there.
/// * A missing setting is written into the section `global`; a keyword of `defaults` into those `defaults` that a proxy
///   in need of it uses, or into the proxy if it uses none; a keyword of `frontend` or `backend` into every such
///   section (and `listen`) that does not get it from its `defaults`. It goes after the section's last statement with
///   the same first word, or after its last one, indented like that.
/// * An option of `bind` is put at the end of every `bind` line of the proxies. One of `server` is put on a
///   `default-server` line above the servers or in their `defaults` if there is one, or else on every `server` line.
/// * An option of a list (`ssl-default-bind-options`) is put behind the others of that list, and lines that have the
///   option themselves (`bind`) are changed to agree.
/// * A level that writes nothing takes out the statements that spell another one.
/// * A proxy that has `log` lines of the user's, itself or by its `defaults`, keeps them and the format of its lines,
///   unless the level writes nothing.
///
/// Contexts that are no place in the file (the program's arguments) are left to the caller.
///
/// # Errors
/// Returns an error if the configuration cannot be read ([`Tree::parse`]), or if a row names a context that haproxy.cfg
/// does not have.
pub fn change(source: &Source, wanted: &[WantedSetting<'_>]) -> Result<Source, ConfigurationError> {
    wanted.iter().try_fold(source.clone(), |source, wanted| apply(&source, wanted))
}

fn apply(source: &Source, wanted: &WantedSetting<'_>) -> Result<Source, ConfigurationError> {
    let tree = Tree::parse(source)?;
    let mut edit = Edit::new(source, &tree);
    let mut contexts: Vec<&str> = wanted.row.writes.iter().map(|w| w.context.name()).collect();
    contexts.dedup();
    for context in contexts {
        let spelling = Spelling::new(wanted, context);
        match context {
            "global" => global(&mut edit, spelling),
            "defaults" => proxies(
                &mut edit,
                &spelling,
                "defaults",
                &["defaults", "frontend", "backend", "listen"],
            ),
            "frontend" => {
                proxies(&mut edit, &spelling, "frontend", &["defaults", "frontend", "listen"]);
            }
            "backend" => {
                proxies(&mut edit, &spelling, "backend", &["defaults", "backend", "listen"]);
            }
            "bind" => options::binds(&mut edit, &spelling),
            "server" => options::servers(&mut edit, &spelling),
            "arguments" | "environment" => {}
            other => {
                let message = format!(
                    "`{}` is written into `{other}`, which haproxy.cfg does not have",
                    wanted.row.id
                );
                let hint = "global, defaults, frontend, backend, bind and server are its contexts";
                return Err(about(&source.files[0].path, message).hint(hint));
            }
        }
    }
    Ok(edit.done())
}

fn global(edit: &mut Edit<'_>, mut spelling: Spelling<'_>) {
    let tree = edit.tree;
    let mut missing = Vec::new();
    for list in OPTION_LISTS {
        missing.extend(options::listed(edit, list, &spelling.take(list.0)));
    }
    let mut present = vec![false; spelling.texts.len()];
    for (_, section) in tree.of_kind("global") {
        for (any, here) in present.iter_mut().zip(settle(edit, section, &spelling)) {
            *any |= here;
        }
    }
    missing.extend(
        spelling
            .texts
            .iter()
            .zip(&present)
            .filter(|(_, present)| !**present)
            .map(|(text, _)| text.written.clone()),
    );
    match tree.of_kind("global").next() {
        Some((_, section)) => missing.iter().for_each(|text| edit.insert(section, text)),
        None if missing.is_empty() => {}
        None => edit.insert_section("global", &missing),
    }
}

/// Changes the statements of a row in a section. Returns for each of the row's texts whether the section then has it,
/// regardless of `.if`.
fn settle(edit: &mut Edit<'_>, section: &Section<'_>, spelling: &Spelling<'_>) -> Vec<bool> {
    let mut present = vec![false; spelling.texts.len()];
    for statement in &section.statements {
        let Some(key) = spelling.key_of(statement) else {
            continue;
        };
        if spelling.is_users_own(statement) {
            continue;
        }
        let same_key = spelling.texts.iter().position(|text| text.key == key);
        // Another level's keyword gives its place to this level's: `option httpclose`.
        let Some(text) = same_key.or_else(|| present.iter().position(|present| !present)) else {
            edit.remove(section.file, statement);
            continue;
        };
        present[text] |= section.is_unconditional(statement);
        let text = &spelling.texts[text];
        let words: Vec<&str> = statement.words.iter().map(|word| &*word.text).collect();
        if !spelling.is_said_by(&words, text) {
            edit.rewrite(section.file, &statement.words, &spelling.in_style(&words, text));
        }
    }
    present
}

/// Changes a keyword of proxies in all sections of these kinds, and writes it if it is missing.
fn proxies(edit: &mut Edit<'_>, spelling: &Spelling<'_>, context: &str, kinds: &[&str]) {
    let tree = edit.tree;
    let unchanged = find_unchanged(tree, spelling, kinds);
    // Nothing is written there that those would get too.
    let above_kept: BTreeSet<usize> = unchanged.iter().flat_map(|&i| tree.defaults_of(i)).collect();
    let mut present: Vec<Vec<bool>> = Vec::with_capacity(tree.sections.len());
    for (index, section) in tree.sections.iter().enumerate() {
        present.push(if kinds.contains(&section.kind()) && !unchanged.contains(&index) {
            settle(edit, section, spelling)
        } else {
            vec![false; spelling.texts.len()]
        });
    }
    for (number, text) in spelling.texts.iter().enumerate() {
        let keyword = text.key.join(" ");
        for (index, section) in tree.sections.iter().enumerate() {
            let in_need = section.kind() != "defaults"
                && !unchanged.contains(&index)
                && kinds.contains(&section.kind())
                && is_used_by(&keyword, section.kind());
            let defaults = tree.defaults_of(index);
            if !in_need || present[index][number] || defaults.iter().any(|&i| present[i][number]) {
                continue;
            }
            let into = match defaults.first() {
                Some(&nearest) if context == "defaults" && !above_kept.contains(&nearest) => {
                    nearest
                }
                _ => index,
            };
            let section = &tree.sections[into];
            edit.insert(section, &beside(section, spelling, text));
            present[into][number] = true;
        }
    }
}

/// Returns the text to write into a section: a number takes the unit of the last line there that begins alike, if that
/// line has one.
fn beside(section: &Section<'_>, spelling: &Spelling<'_>, text: &Text) -> String {
    let is_number =
        text.words.last().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit()));
    let mut statements = section.statements.iter().rev().filter(|_| is_number);
    let alike = statements.find(|it| text.words.first().is_some_and(|first| it.word(0) == first));
    let Some(alike) = alike else {
        return text.written.clone();
    };
    let words: Vec<&str> = alike.words.iter().map(|word| &*word.text).collect();
    spelling.in_style(&words, text).join(" ")
}

/// Returns the sections in which the user already has statements of his own for the purpose of the level, there or in
/// their `defaults`.
fn find_unchanged(tree: &Tree<'_>, spelling: &Spelling<'_>, kinds: &[&str]) -> BTreeSet<usize> {
    let all = 0..tree.sections.len();
    let holders: BTreeSet<usize> = all
        .clone()
        .filter(|&index| {
            let section = &tree.sections[index];
            let mut statements = section.statements.iter();
            !spelling.texts.is_empty()
                && kinds.contains(&section.kind())
                && statements.any(|it| section.is_unconditional(it) && spelling.is_users_own(it))
        })
        .collect();
    all.filter(|index| {
        let mut defaults = tree.defaults_of(*index).into_iter();
        holders.contains(index) || defaults.any(|above| holders.contains(&above))
    })
    .collect()
}
