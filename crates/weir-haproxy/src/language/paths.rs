//! Makes paths absolute that HAProxy resolves from the folder in which it is started, for a copy in another folder.

use std::path::{Path, PathBuf};

use weir_configuration::place::is_among;
use weir_configuration::{ConfigurationError, Source};

use super::edit::Edit;
use super::sections::{Section, Statement, Tree};

/// Keywords whose next word is a path.
const BEFORE_PATHS: &str = "-f, ca-base, ca-file, ca-sign-file, ca-verify-file, crl-file, crt, crt-base, crt-list, file, \
     h1-case-adjust-file, issuers-chain-path, lf-file, server-state-base, ssl-dh-param-file";

/// Keywords whose paths are relative to `ca-base` if there is one.
const BELOW_CA_BASE: [&str; 3] = ["ca-file", "ca-verify-file", "crl-file"];

/// Makes relative paths absolute if a file exists there. `default-path config` and `parent`, which refer to the folder
/// of the file that is read, are replaced by that folder.
///
/// Without `default-path` HAProxy looks in the folder in which it was started, which no file says: the folder of the
/// main file is assumed.
pub(super) fn made_absolute(source: &Source) -> Result<Source, ConfigurationError> {
    let tree = Tree::parse(source)?;
    let mut edit = Edit::new(source, &tree);
    let bases = Bases::of(source, &tree);
    for section in &tree.sections {
        for statement in &section.statements {
            if statement.word(0) == "default-path" {
                default_path(&mut edit, section, statement, &bases);
                continue;
            }
            for index in paths_of(statement, &bases) {
                let path = bases.folder.join(statement.word(index));
                if Path::new(statement.word(index)).is_relative() && path.exists() {
                    let span = statement.words[index].span.clone();
                    edit.splice(section.file, span, written(&path));
                }
            }
        }
    }
    Ok(edit.done())
}

/// Folders from which relative paths are resolved, and the base settings that are present.
pub(super) struct Bases {
    pub(super) folder: PathBuf,
    parent_of_file: PathBuf,
    ca_base: bool,
    crt_base: bool,
    state_base: bool,
}

impl Bases {
    pub(super) fn of(source: &Source, tree: &Tree<'_>) -> Bases {
        let beside = parent_of(&source.files[0].path);
        let mut bases = Bases {
            folder: beside.clone(),
            parent_of_file: beside.clone(),
            ca_base: false,
            crt_base: false,
            state_base: false,
        };
        for statement in tree.of_kind("global").flat_map(|(_, section)| &section.statements) {
            match (statement.word(0), statement.word(1)) {
                ("default-path", "parent") => bases.folder = parent_of(&beside),
                ("default-path", "origin") => bases.folder = beside.join(statement.word(2)),
                ("ca-base", _) => bases.ca_base = true,
                ("crt-base", _) => bases.crt_base = true,
                ("server-state-base", _) => bases.state_base = true,
                _ => {}
            }
        }
        bases
    }
}

fn default_path(
    edit: &mut Edit<'_>,
    section: &Section<'_>,
    statement: &Statement<'_>,
    bases: &Bases,
) {
    let folder = match statement.word(1) {
        "config" => &bases.parent_of_file,
        "parent" => &bases.folder,
        _ => return,
    };
    let range = statement.words_from(1);
    edit.splice(section.file, range, format!("origin {}", written(folder)));
}

/// Returns the indices of the words of a statement that are paths from [`Bases::folder`].
fn paths_of(statement: &Statement<'_>, bases: &Bases) -> Vec<usize> {
    match statement.word(0) {
        "errorfile" => return vec![2],
        "lua-load" => return vec![1],
        "lua-load-per-thread" => return vec![1],
        "server-state-file" if !bases.state_base => return vec![1],
        _ => {}
    }
    (1..statement.words.len())
        .filter(|index| {
            let keyword = statement.word(index - 1);
            let in_base = (bases.crt_base && matches!(keyword, "crt" | "crt-list"))
                || (bases.ca_base && BELOW_CA_BASE.contains(&keyword));
            let is_error_file = keyword == "errorfile" && statement.word(0).starts_with("http-");
            (is_among(keyword, BEFORE_PATHS) && !in_base) || is_error_file
        })
        .collect()
}

/// Writes a path as a word, with backslashes where needed.
pub(super) fn written(path: &Path) -> String {
    let mut word = String::new();
    for c in path.display().to_string().chars() {
        if matches!(c, ' ' | '#' | '\\' | '\'' | '"') {
            word.push('\\');
        }
        word.push(c);
    }
    word
}

fn parent_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_owned()
}
