//! An nginx configuration with the places of its directives, includes resolved, and what it says
//! where: nearest block first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_configuration::nginx::Plain;

use crate::commands::quoted;

/// How sed finds a directive in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// It is the first in its line.
    ByName,
    /// It alone begins with its name and first argument.
    ByFirstArgument,
    /// Not at all: it is of several lines, or its line has the like twice.
    None,
}

impl Search {
    /// The search for a directive in this line, where it begins.
    pub fn of(directive: &Plain, line: &str) -> Search {
        let name = &*directive.name;
        let first = directive.arguments.first().map_or("", String::as_str);
        let is_found = if name.is_empty() {
            // Of an entry without a name its value is searched for, in either case.
            line.to_lowercase().matches(&first.to_lowercase()).count() == 1
        } else {
            let count = |is_it: fn(&str, &str) -> bool| {
                line.match_indices(name)
                    .filter(|(at, _)| is_it(&line[at + name.len()..], first))
                    .count()
            };
            // Others that are spelled otherwise are not what sed finds, but this may be one of them.
            count(begins) == 1 && count(may_begin) == 1
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

/// Whether sed takes what is behind a name for this first argument, of which it compares letters and digits alone.
fn begins(rest: &str, first: &str) -> bool {
    let written = rest.trim_start_matches([' ', '\t']);
    let mut characters = written.strip_prefix('"').unwrap_or(written).chars();
    (first.chars()).all(|c| {
        characters
            .next()
            .is_some_and(|found| found == c || !is_plain(c))
    })
}

/// Whether an argument that is spelled with quotes and escapes may be this one.
fn may_begin(rest: &str, first: &str) -> bool {
    let signs = ['"', '\'', '\\'];
    begins(&rest.replace(signs, ""), &first.replace(signs, ""))
}

/// Whether a pattern of sed's has a character of an argument as it is.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-:".contains(c)
}

/// One directive and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Path of its file.
    pub file: Arc<str>,
    /// Line, counted from 1.
    pub line: usize,
    /// How it is found there.
    pub search: Search,
    /// The first word.
    pub name: String,
    /// The words behind it, unquoted.
    pub arguments: Vec<String>,
    /// What is between the braces, when there are any; empty for entries.
    pub block: Option<Vec<Statement>>,
    /// The entries of a `map`.
    pub entries: Vec<Statement>,
}

impl Statement {
    /// `FILE:LINE: DIRECTIVE`, as evidence.
    pub fn evidence(&self) -> String {
        format!("{}:{}: {}", self.file, self.line, self.words())
    }

    /// The directive without its block.
    pub fn words(&self) -> String {
        let words = std::iter::once(&self.name).chain(&self.arguments);
        let quoted = words.map(|word| match word.is_empty() {
            true => "\"\"",
            false => word.as_str(),
        });
        quoted.collect::<Vec<_>>().join(" ")
    }

    /// The directive without its block, as a configuration has it: words with blanks or signs in quotes.
    pub fn written(&self) -> String {
        let quoted = self.arguments.iter().map(|word| {
            let is_plain = |c: char| !c.is_whitespace() && !";{}\"'\\#".contains(c);
            match !word.is_empty() && word.chars().all(is_plain) {
                true => word.clone(),
                false => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"")),
            }
        });
        let words = std::iter::once(self.name.clone()).chain(quoted);
        words.collect::<Vec<_>>().join(" ")
    }

    /// The first argument.
    pub fn argument(&self) -> Option<&str> {
        self.arguments.first().map(String::as_str)
    }

    /// The first argument as a number, as far as such numbers go: 32 bits.
    pub fn number(&self) -> Option<u64> {
        let number: u32 = self.argument()?.parse().ok()?;
        Some(u64::from(number))
    }

    /// A `sed` command that puts `text` in this directive's place.
    pub fn replace_with(&self, text: &str) -> String {
        let script = format!("{}[^;]*;/{};", self.pattern(), escaped(text));
        self.edited(&script, &format!("becomes `{text};`"))
    }

    /// A `sed` command that leaves this directive out.
    pub fn left_out(&self) -> String {
        self.edited(&format!("{}[^;]*;/", self.pattern()), "is left out")
    }

    /// A `sed` command that puts `word` in the place of one that a pattern of sed's finds.
    pub fn replace_word(&self, pattern: &str, word: &str) -> String {
        let script = format!("\\({}[^;]*\\){pattern}/\\1{}", self.begin(), escaped(word));
        self.edited(&script, &format!("gets `{word}`"))
    }

    /// A `sed` command that adds words at this directive's end.
    pub fn extend_with(&self, words: &str) -> String {
        let script = format!("{}[^;]*/& {}", self.begin(), escaped(words));
        self.edited(&script, &format!("gets `{words}` at its end"))
    }

    /// A `sed` command that puts `text` in front of this directive, in the same line: the places of
    /// everything else stay what they were.
    pub fn precede_with(&self, text: &str) -> String {
        let script = format!("{}/{}; &", self.pattern(), escaped(text));
        self.edited(&script, &format!("gets `{text};` in front of it"))
    }

    /// A `sed` command that puts `text` behind this directive, in the same line.
    pub fn follow_with(&self, text: &str) -> String {
        let script = format!("{}[^;]*;/& {};", self.pattern(), escaped(text));
        self.edited(&script, &format!("gets `{text};` behind it"))
    }

    /// What is searched for in the line.
    fn pattern(&self) -> String {
        match self.search {
            Search::ByName => self.name.clone(),
            _ => self.begin(),
        }
    }

    /// What tells this directive from others of its name in the line: its name and first argument,
    /// with quotes or without.
    fn begin(&self) -> String {
        let first = self.argument().unwrap_or_default();
        let is_word = first.ends_with(|c: char| c.is_ascii_alphanumeric());
        let end = if is_word { "\\>" } else { "" };
        let first = first.replace(|c| !is_plain(c), ".");
        format!("{}[[:blank:]]*\"\\{{0,1\\}}{first}{end}", self.name)
    }

    /// The command with this script for this directive's line; for one that sed would not find, the place and what
    /// is to be done there.
    pub fn edited(&self, script: &str, what: &str) -> String {
        let Statement { file, line, .. } = self;
        // The name of an entry of a `map` may be anything, and end what the shell takes for a word.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_found = self.search != Search::None && !script.contains('\n');
        if is_found && self.name.chars().all(is_plain) {
            format!("sed -i '{line}s/{script}/' {}", quoted(file))
        } else {
            format!("# {file}:{line}: `{}` {what}", self.words())
        }
    }

    fn blocks(&self) -> &[Statement] {
        self.block.as_deref().unwrap_or_default()
    }

    /// What `set` sets a variable to anywhere in its block.
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

/// What sed would take for something else in a replacement, or a shell in single quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('/', "\\/")
        .replace('&', "\\&")
        .replace('\'', "'\\''")
}

/// A whole configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The file that it begins with.
    pub file: String,
    /// All files, in the order in which they are read.
    pub files: Vec<String>,
    /// Its directives.
    pub statements: Vec<Statement>,
}

/// A directive and the blocks around it, outermost first.
#[derive(Debug, Clone)]
pub struct Placed<'a> {
    /// The directive.
    pub statement: &'a Statement,
    /// Directives whose blocks it is in.
    pub within: Vec<&'a Statement>,
    pub(crate) main: &'a [Statement],
}

impl<'a> Placed<'a> {
    /// Directives of this name in the nearest block that has any: what a location does not say, it
    /// takes from its server, and that from `http`.
    pub fn inherited(&self, name: &str) -> Vec<&'a Statement> {
        let mut scopes: Vec<&'a [Statement]> = vec![self.main];
        scopes.extend(self.within.iter().map(|block| block.blocks()));
        let found = |scope: &&'a [Statement]| scope.iter().any(|one| one.name == name);
        let nearest = scopes.into_iter().rev().find(found);
        nearest.map_or_else(Vec::new, |scope| {
            scope.iter().filter(|one| one.name == name).collect()
        })
    }

    /// Directives of this name that count in its own block.
    pub fn in_force(&self, name: &str) -> Vec<&'a Statement> {
        let own = self.statement.blocks().iter();
        let own: Vec<&Statement> = own.filter(|one| one.name == name).collect();
        match own.is_empty() {
            true => self.inherited(name),
            false => own,
        }
    }

    /// What a variable is set to, where one `set` of its server alone sets it, to something without variables.
    pub fn constant(&self, variable: &str) -> Option<&'a str> {
        let server = self.within.iter().find(|block| block.name == "server")?;
        let mut values = BTreeSet::new();
        server.values_set(variable, &mut values);
        let value = values.first().filter(|value| !value.contains('$'));
        value.filter(|_| values.len() == 1).copied()
    }

    /// The directive itself, or the outermost block in its location that it is in: directives that an `if` may not
    /// have stand in front of that.
    pub fn in_location(&self) -> &'a Statement {
        let is_inner = |block: &&&Statement| matches!(&*block.name, "if" | "limit_except");
        let inner = self.within.iter().rev().take_while(is_inner).last();
        inner.copied().unwrap_or(self.statement)
    }

    /// Blocks of this name right inside of its own.
    pub fn inner(&self, name: &str) -> Vec<Placed<'a>> {
        let within: Vec<&Statement> = self
            .within
            .iter()
            .copied()
            .chain([self.statement])
            .collect();
        let inner = self.statement.blocks().iter();
        let of_name = inner.filter(|one| one.name == name && one.block.is_some());
        of_name
            .map(|statement| Placed {
                statement,
                within: within.clone(),
                main: self.main,
            })
            .collect()
    }

    /// Whether a block of this name is around it.
    pub fn is_in(&self, name: &str) -> bool {
        self.within.iter().any(|block| block.name == name)
    }
}

impl Configuration {
    /// Every directive of one of these names, anywhere.
    pub fn all<'a>(&'a self, names: &[&str]) -> Vec<Placed<'a>> {
        let mut found = Vec::new();
        let mut within = Vec::new();
        self.walk(&self.statements, names, &mut within, &mut found);
        found
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
                found.push(Placed {
                    statement,
                    within: within.clone(),
                    main: &self.statements,
                });
            }
            within.push(statement);
            self.walk(statement.blocks(), names, within, found);
            within.pop();
        }
    }

    /// The one directive of the outermost level.
    pub fn main(&self, name: &str) -> Option<&Statement> {
        self.statements.iter().find(|one| one.name == name)
    }

    /// The one directive in `events`.
    pub fn events(&self, name: &str) -> Option<&Statement> {
        let events = self.main("events")?;
        events.blocks().iter().find(|one| one.name == name)
    }

    /// The upstream blocks, by their names.
    pub fn upstreams(&self) -> BTreeMap<&str, &Statement> {
        let all = self.all(&["upstream"]).into_iter();
        all.filter_map(|one| Some((one.statement.argument()?, one.statement)))
            .collect()
    }

    /// What a variable is that a `map` makes of `$http_upgrade`, for a request that asks for no upgrade: the
    /// entry that says so, or `Some(None)` where none does and it is empty; `None` where it is no such variable.
    pub fn without_upgrade<'a>(&'a self, variable: &str) -> Option<Option<&'a Statement>> {
        // Most values are none, and there may be thousands.
        if !variable.starts_with('$') {
            return None;
        }
        let plain = |word: &str| word.replace(['{', '}'], "");
        let all = self.all(&["map"]).into_iter().map(|map| map.statement);
        let mut of_upgrade = all.filter(|map| match &map.arguments[..] {
            [source, result] => {
                plain(source) == "$http_upgrade" && plain(result) == plain(variable)
            }
            _ => false,
        });
        let entries = &of_upgrade.next()?.entries;
        let find = |name: &str| entries.iter().find(|entry| entry.name == name);
        Some(find("").or_else(|| find("default")))
    }

    /// Directives inside a block.
    pub fn inside<'a>(block: &'a Statement, name: &'a str) -> impl Iterator<Item = &'a Statement> {
        block.blocks().iter().filter(move |one| one.name == name)
    }
}
