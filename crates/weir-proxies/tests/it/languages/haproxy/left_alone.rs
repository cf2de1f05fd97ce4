//! Checks that putting a row of the catalog into force leaves everything else as it is.

use weir_configuration::Source;
use weir_haproxy::language as haproxy;
use weir_model::study::ProxyKind;
use weir_parameters::{Catalog, LevelKind, Parameter};

use super::changed::set;
use super::{Users, small};

/// Returns levels of a row such as studies have.
fn list_levels(row: &Parameter) -> Vec<String> {
    let some: Vec<String> = match &row.level {
        LevelKind::Switch => vec!["on".to_owned(), "off".to_owned()],
        LevelKind::Choice(levels) => levels.clone(),
        LevelKind::Integer { min, max, words } => {
            let numbers = [min.to_string(), max.to_string()];
            numbers.into_iter().chain(words.iter().cloned()).collect()
        }
        LevelKind::Size { min, max, .. } => vec![min.to_string(), max.to_string()],
        LevelKind::MediaTypes => vec!["text/html text/css".to_owned()],
        LevelKind::CipherList => vec!["HIGH".to_owned()],
        _ => vec!["1s".to_owned(), "20s".to_owned()],
    };
    some.iter().map(|level| row.check(level).unwrap()).collect()
}

/// Returns true if `words` begin with those of a row's text `own`, at any level.
fn begins(row: &Parameter, words: &[&str], own: &[&str]) -> bool {
    words.len() >= own.len()
        && own.iter().zip(words).all(|(own, word)| match &row.level {
            LevelKind::Choice(levels) if own.starts_with('{') => {
                levels.iter().any(|level| level == word)
            }
            _ => own.starts_with('{') || own == word,
        })
}

/// Returns the words of a statement that do not belong to a row.
fn foreign(row: &Parameter, statement: &haproxy::Statement<'_>) -> Vec<String> {
    let words: Vec<&str> = statement.words.iter().map(|word| &*word.text).collect();
    let mut owned = vec![false; words.len()];
    for write in &row.writes {
        let texts: Vec<&str> = write.text.split_whitespace().collect();
        let option = &texts[usize::from(texts[0] == "no")..];
        let is_option = match write.context.name() {
            "bind" => words[0] == "bind",
            "server" => ["server", "server-template", "default-server"].contains(&words[0]),
            _ => false,
        };
        let is_listed = option[0].ends_with("-options") && [option[0], "bind"].contains(&words[0]);
        let from = usize::from(words[0] == "no");
        if is_option || is_listed {
            let listed = &option[usize::from(is_listed)..];
            for at in 1..words.len() {
                if begins(row, &words[at..], listed) {
                    owned[at..at + listed.len()].fill(true);
                }
            }
        } else if begins(row, &words[from..], option) {
            owned.fill(true);
        }
    }
    // The keyword of a list goes with its last option.
    if words[0].ends_with("-options") && owned[1..].iter().all(|owned| *owned) {
        owned[0] = true;
    }
    words
        .iter()
        .zip(owned)
        .filter(|(_, owned)| !owned)
        .map(|(word, _)| (*word).to_owned())
        .collect()
}

/// Tries every row of the catalog: all other statements stay as they are, in their order.
#[test]
fn rows_leave_alone_what_is_not_theirs() {
    let catalog = Catalog::builtin();
    for name in small() {
        let before = Users::new(name).read();
        for row in catalog.parameters(ProxyKind::Haproxy) {
            for level in list_levels(row) {
                let after = set(&before, row, &level);
                let context = format!("{name}: {} = {level}", row.id);
                assert_eq!(
                    foreign_words(&after, row, &level),
                    foreign_words(&before, row, &level),
                    "{context}"
                );
                assert_eq!(set(&after, row, &level), after, "{context}");
            }
        }
    }
}

fn foreign_words(source: &Source, row: &Parameter, level: &str) -> Vec<Vec<String>> {
    let tree = haproxy::Tree::parse(source).unwrap();
    // Without a log, those of the user's go too.
    let is_silent = row.id == "access_log" && level == "off";
    tree.sections
        .iter()
        .flat_map(|section| &section.statements)
        .filter(|statement| !is_silent || statement.word(0) != "log")
        .map(|statement| foreign(row, statement))
        .filter(|words| !words.is_empty())
        .collect()
}
