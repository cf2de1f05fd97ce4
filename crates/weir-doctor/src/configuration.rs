//! An nginx configuration with the position of each directive, includes resolved, and look-ups by scope: nearest block
//! first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_nginx::language::Plain;

use crate::shell::quoted;

/// The way in which sed finds a directive in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// By name: the directive is the first in its line.
    ByName,
    /// By name and first argument: no other directive in the line begins with both.
    ByFirstArgument,
    /// Not found by sed: the directive spans several lines, or its line has a similar one.
    None,
}

impl Search {
    /// Chooses the search for a directive. `line` is the line in which the directive begins.
    pub fn of(directive: &Plain, line: &str) -> Search {
        let name = &*directive.name;
        let first = directive.arguments.first().map_or("", String::as_str);
        let is_found = if name.is_empty() {
            // Of an entry without a name its value is searched for, in either case.
            line.to_lowercase().matches(&first.to_lowercase()).count() == 1
        } else {
            // Others that are spelled otherwise are not what sed finds, but this may be one of them.
            let tests: [fn(&str, &str) -> bool; 2] = [begins, may_begin];
            tests.iter().all(|test| {
                let places = line.match_indices(name);
                places.filter(|(at, _)| test(&line[at + name.len()..], first)).count() == 1
            })
        };
        let has_sign = directive.arguments.iter().any(|word| word.contains(';'));
        if !directive.on_one_line || has_sign || !is_found {
            Search::None
        } else if line.trim_start().starts_with(name) {
            Search::ByName
        } else {
            Search::ByFirstArgument
        }
    }
}

/// Returns true if sed's pattern for this first argument matches `rest`, the text behind a name. Only letters, digits
/// and `_-:` are compared; any other character matches.
fn begins(rest: &str, first: &str) -> bool {
    let written = rest.trim_start_matches([' ', '\t']);
    let mut characters = written.strip_prefix('"').unwrap_or(written).chars();
    (first.chars()).all(|c| characters.next().is_some_and(|found| found == c || !is_plain(c)))
}

/// Returns true if `rest` begins with this first argument once quotes and escapes are removed from both.
fn may_begin(rest: &str, first: &str) -> bool {
    let signs = ['"', '\'', '\\'];
    begins(&rest.replace(signs, ""), &first.replace(signs, ""))
}

/// Returns true if a sed pattern contains this character of an argument unchanged.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-:".contains(c)
}

/// One directive and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Path of its file.
    pub file: Arc<str>,
    /// Line, counted from 1.
    pub line: usize,
    /// The way in which sed finds it in that line.
    pub search: Search,
    /// The first word of the directive.
    pub name: String,
    /// The words after the name, unquoted.
    pub arguments: Vec<String>,
    /// Directives between the braces; `None` without braces, empty for a block of entries.
    pub block: Option<Vec<Statement>>,
    /// The entries of a `map`.
    pub entries: Vec<Statement>,
}

impl Statement {
    /// Returns the directive without its block, for display.
    pub fn words(&self) -> String {
        let quoted = std::iter::once(&self.name)
            .chain(&self.arguments)
            .map(|word| if word.is_empty() { "\"\"" } else { word.as_str() });
        quoted.collect::<Vec<_>>().join(" ")
    }

    /// Returns the directive without its block in configuration syntax: words with blanks or special characters are
    /// quoted.
    pub fn written(&self) -> String {
        let quoted = self.arguments.iter().map(|word| {
            if !word.is_empty()
                && word.chars().all(|c| !c.is_whitespace() && !";{}\"'\\#".contains(c))
            {
                word.clone()
            } else {
                format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
            }
        });
        std::iter::once(self.name.clone()).chain(quoted).collect::<Vec<_>>().join(" ")
    }

    /// Returns the first argument.
    pub fn argument(&self) -> Option<&str> {
        self.arguments.first().map(String::as_str)
    }

    /// Returns the first argument as a number of at most 32 bits.
    pub fn number(&self) -> Option<u64> {
        let number: u32 = self.argument()?.parse().ok()?;
        Some(u64::from(number))
    }

    /// Returns a `sed` command that replaces this directive with `text`.
    pub fn replace_with(&self, text: &str) -> String {
        let script = format!("{}[^;]*;/{};", self.pattern(), escaped(text));
        self.edited(&script, &format!("becomes `{text};`"))
    }

    /// Returns a `sed` command that removes this directive.
    pub fn left_out(&self) -> String {
        self.edited(&format!("{}[^;]*;/", self.pattern()), "is left out")
    }

    /// Returns a `sed` command that replaces the match of a sed pattern in this directive with `word`.
    pub fn replace_word(&self, pattern: &str, word: &str) -> String {
        let script = format!("\\({}[^;]*\\){pattern}/\\1{}", self.begin(), escaped(word));
        self.edited(&script, &format!("gets `{word}`"))
    }

    /// Returns a `sed` command that adds words at the end of this directive.
    pub fn extend_with(&self, words: &str) -> String {
        let script = format!("{}[^;]*/& {}", self.begin(), escaped(words));
        self.edited(&script, &format!("gets `{words}` at its end"))
    }

    /// Returns a `sed` command that inserts `text` before this directive, in the same line: all line numbers stay
    /// valid.
    pub fn precede_with(&self, text: &str) -> String {
        let script = format!("{}/{}; &", self.pattern(), escaped(text));
        self.edited(&script, &format!("gets `{text};` in front of it"))
    }

    /// Returns a `sed` command that inserts `text` after this directive, in the same line.
    pub fn follow_with(&self, text: &str) -> String {
        let script = format!("{}[^;]*;/& {};", self.pattern(), escaped(text));
        self.edited(&script, &format!("gets `{text};` behind it"))
    }

    /// The sed pattern that finds this directive in its line.
    fn pattern(&self) -> String {
        match self.search {
            Search::ByName => self.name.clone(),
            _ => self.begin(),
        }
    }

    /// The sed pattern that tells this directive from others of its name in the line: name and first argument, with or
    /// without quotes.
    fn begin(&self) -> String {
        let first = self.argument().unwrap_or_default();
        let is_word = first.ends_with(|c: char| c.is_ascii_alphanumeric());
        let end = if is_word { "\\>" } else { "" };
        let pattern = first.replace(|c| !is_plain(c), ".");
        format!("{}[[:blank:]]*\"\\{{0,1\\}}{pattern}{end}", self.name)
    }

    /// Returns the sed command that applies this script to the directive's line. If sed would not find the directive,
    /// returns a remark with its position and `what` is to be done there.
    pub fn edited(&self, script: &str, what: &str) -> String {
        let Statement { file, line, .. } = self;
        // The name of an entry of a `map` may be anything, and end what the shell takes for a word.
        let is_found = self.search != Search::None && !script.contains('\n');
        if is_found && self.name.chars().all(is_word_char) {
            format!("sed -i '{line}s/{script}/' {}", quoted(file))
        } else {
            format!("# {file}:{line}: `{}` {what}", self.words())
        }
    }

    fn blocks(&self) -> &[Statement] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Collects the values that `set` gives a variable anywhere in this block.
    fn values_set<'a>(&'a self, variable: &str, values: &mut BTreeSet<&'a str>) {
        for statement in self.blocks() {
            let name = statement.argument().and_then(|it| it.strip_prefix('$'));
            if statement.name == "set" && name == Some(variable) {
                values.extend(statement.arguments.get(1).map(String::as_str));
            }
            statement.values_set(variable, values);
        }
    }
}

/// Escapes characters that are special in a sed replacement or within a shell's single quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('/', "\\/").replace('&', "\\&").replace('\'', "'\\''")
}

/// A whole configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Path of the main file.
    pub file: String,
    /// All files, in the order in which they are read.
    pub files: Vec<String>,
    /// Directives of the outermost level.
    pub statements: Vec<Statement>,
}

/// A directive and the blocks around it, outermost first.
#[derive(Debug, Clone)]
pub struct Placed<'a> {
    /// The directive.
    pub statement: &'a Statement,
    /// Directives whose blocks enclose it, outermost first.
    pub within: Vec<&'a Statement>,
    pub(crate) main: &'a [Statement],
}

impl<'a> Placed<'a> {
    /// Returns the directives of this name in the nearest enclosing block that has any: a location inherits from its
    /// server, and the server from `http`.
    pub fn inherited(&self, name: &str) -> Vec<&'a Statement> {
        let mut scopes: Vec<&'a [Statement]> = vec![self.main];
        scopes.extend(self.within.iter().map(|block| block.blocks()));
        let nearest =
            scopes.into_iter().rev().find(|scope| scope.iter().any(|one| one.name == name));
        nearest.map_or_else(Vec::new, |scope| scope.iter().filter(|one| one.name == name).collect())
    }

    /// Returns the directives of this name in its own block or, if there are none, the inherited ones.
    pub fn in_force(&self, name: &str) -> Vec<&'a Statement> {
        let set: Vec<&Statement> =
            self.statement.blocks().iter().filter(|one| one.name == name).collect();
        if set.is_empty() { self.inherited(name) } else { set }
    }

    /// Returns the constant value of a variable; `None` unless all `set` directives in its server give the same value,
    /// without variables.
    pub fn constant(&self, variable: &str) -> Option<&'a str> {
        let server = self.within.iter().find(|block| block.name == "server")?;
        let mut values = BTreeSet::new();
        server.values_set(variable, &mut values);
        values.first().filter(|value| !value.contains('$')).filter(|_| values.len() == 1).copied()
    }

    /// Returns the directive itself, or the outermost `if` or `limit_except` around it in its location. Directives that
    /// an `if` may not contain have to be put before that block.
    pub fn in_location(&self) -> &'a Statement {
        let inner = self
            .within
            .iter()
            .rev()
            .take_while(|block| matches!(&*block.name, "if" | "limit_except"))
            .last();
        inner.copied().unwrap_or(self.statement)
    }

    /// Returns the blocks of this name directly inside its own block.
    pub fn inner(&self, name: &str) -> Vec<Placed<'a>> {
        let within: Vec<&Statement> = self.within.iter().copied().chain([self.statement]).collect();
        self.statement
            .blocks()
            .iter()
            .filter(|one| one.name == name && one.block.is_some())
            .map(|statement| Placed { statement, within: within.clone(), main: self.main })
            .collect()
    }

    /// Returns true if a block of this name encloses it.
    pub fn is_in(&self, name: &str) -> bool {
        self.within.iter().any(|block| block.name == name)
    }
}

impl Configuration {
    /// Returns every directive that has one of these names, at any depth.
    pub fn all<'a>(&'a self, names: &[&str]) -> Vec<Placed<'a>> {
        let mut placed = Vec::new();
        let mut within = Vec::new();
        self.walk(&self.statements, names, &mut within, &mut placed);
        placed
    }

    fn walk<'a>(
        &'a self,
        statements: &'a [Statement],
        names: &[&str],
        within: &mut Vec<&'a Statement>,
        found: &mut Vec<Placed<'a>>,
    ) {
        for statement in statements {
            if names.contains(&statement.name.as_str()) {
                found.push(Placed { statement, within: within.clone(), main: &self.statements });
            }
            within.push(statement);
            self.walk(statement.blocks(), names, within, found);
            within.pop();
        }
    }

    /// Returns the first directive of this name on the outermost level.
    pub fn main(&self, name: &str) -> Option<&Statement> {
        self.statements.iter().find(|one| one.name == name)
    }

    /// Returns the first directive of this name in `events`.
    pub fn events(&self, name: &str) -> Option<&Statement> {
        let events = self.main("events")?;
        events.blocks().iter().find(|one| one.name == name)
    }

    /// Returns the upstream blocks by name.
    pub fn upstreams(&self) -> BTreeMap<&str, &Statement> {
        self.all(&["upstream"])
            .into_iter()
            .filter_map(|one| Some((one.statement.argument()?, one.statement)))
            .collect()
    }

    /// Looks up the value that a `map` of `$http_upgrade` gives this variable for a request without an upgrade. Returns
    /// the `map` entry, `Some(None)` if no entry applies and the value is empty, `None` if the variable comes from no
    /// such `map`.
    pub fn without_upgrade<'a>(&'a self, variable: &str) -> Option<Option<&'a Statement>> {
        // Most values are none, and there may be thousands.
        if !variable.starts_with('$') {
            return None;
        }
        let mut of_upgrade =
            self.all(&["map"]).into_iter().map(|map| map.statement).filter(|map| {
                match &map.arguments[..] {
                    [source, result] => {
                        strip_braces(source) == "$http_upgrade"
                            && strip_braces(result) == strip_braces(variable)
                    }
                    _ => false,
                }
            });
        let entries = &of_upgrade.next()?.entries;
        let mut names = ["", "default"].iter();
        Some(names.find_map(|name| entries.iter().find(|entry| entry.name == *name)))
    }

    /// Iterates over the directives of this name inside a block.
    pub fn inside<'a>(block: &'a Statement, name: &'a str) -> impl Iterator<Item = &'a Statement> {
        block.blocks().iter().filter(move |one| one.name == name)
    }
}

fn strip_braces(word: &str) -> String {
    word.replace(['{', '}'], "")
}

/// Returns true if the name of a variable may have the character.
pub(crate) fn is_word_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
