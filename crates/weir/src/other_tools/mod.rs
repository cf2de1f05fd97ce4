//! Command lines of wrk, wrk2, ab, h2load, oha, hey, k6 and hyperfine, with weir's names for their options.
//!
//! The options are rows of a table. A line is read once, before clap parses it, with clap's knowledge of weir's
//! options: the value of one of them is never taken for an option.

use std::iter::Peekable;

use clap::{Arg, Command, CommandFactory, Parser};
use weir_model::quantity::parse_duration;

use crate::args::Args;
use crate::failure::Failure;

mod commands;
mod files;
mod table;

pub(crate) use files::recognised;
use table::{CURL, ROWS};

/// An option: its spelling, its tools, its value, and weir's replacement.
type Row = (&'static str, &'static str, Takes, Replacement);

/// Value of another tool's option.
#[derive(Debug, Clone, Copy)]
enum Takes {
    Nothing,
    Number,
    /// A number with a unit of time.
    Time,
    /// A file's name, with a dot or a slash in it.
    File,
    /// A value that contains this text.
    Has(&'static str),
    Text,
    /// Something that may be a URL.
    Address,
}

/// Replacement in weir.
#[derive(Debug, Clone, Copy)]
enum Replacement {
    /// Words to type; `{}` is the value.
    Is(&'static str),
    /// The default behaviour: no option is needed.
    Always(&'static str),
    /// Advice, since weir has no option of the same meaning.
    Words(&'static str),
}

/// Returns a failure for a command line in another tool's syntax, with the line to type instead.
pub(crate) fn refused(words: &[String]) -> Option<Failure> {
    // All of curl's line in one word, right after `weir` or `weir load`.
    let mut begin = words.iter().enumerate().skip(1).take(2);
    if let Some((at, line)) = begin.find(|(_, word)| word.starts_with("curl "))
        && (at == 1 || words[1] == "load")
    {
        let line = shlex::split(line)?;
        return refused(&[&words[..at], &line, &words[at + 1..]].concat());
    }
    let first = words.get(1)?;
    let is_named = matches!(&**first, "load" | "run");
    if !is_named && !is_for_load(words) {
        return commands::refused(words);
    }
    let mut arguments = &words[1 + usize::from(is_named || TOOLS.contains(&&**first))..];
    let second = arguments.first().map_or("", |word| word);
    let is_curl = first == "curl" || second == "curl";
    if is_curl && second == "curl" || second == "run" {
        arguments = &arguments[1..];
    }
    let weir = Args::command();
    let command = weir.find_subcommand(if is_named { first } else { "load" })?;
    let read = if is_curl {
        line_of_curl(arguments)
    } else {
        let of_curl =
            CURL.iter().filter(|row| !command.get_arguments().any(|arg| is_called(arg, row.0)));
        let rows: Vec<Row> = ROWS.iter().chain(of_curl).copied().collect();
        Line::read(command, arguments, &rows)
    };
    let typed = shlex::try_join(read.typed.iter().map(String::as_str))
        .map(|rest| format!("weir load {rest}"))
        .ok();
    let is_right = Args::try_parse_from(
        ["weir", "load"].into_iter().chain(read.typed.iter().map(String::as_str)),
    )
    .is_ok();
    let hint = typed
        .filter(|_| is_right && read.can_be_typed)
        .unwrap_or_else(|| "weir load --help lists its options".to_owned());
    match (is_named, &read.found[..]) {
        (true, []) => commands::refused(words),
        (false, []) => {
            Some(Failure::input("which command? `load` puts a URL under load").hint(hint))
        }
        (_, found) => Some(Failure::input(found.join("; ")).hint(hint)),
    }
}

/// Tools whose command lines are recognized.
const TOOLS: [&str; 8] = ["wrk", "wrk2", "ab", "h2load", "oha", "hey", "k6", "curl"];

/// Returns true if options, a URL or another tool's name is in the place of the command's name.
fn is_for_load(words: &[String]) -> bool {
    words[1..].iter().any(|word| is_url(word))
        && (words[1].starts_with('-') || is_url(&words[1]) || TOOLS.contains(&&*words[1]))
}

/// Reads a command line of curl. The user's method and content type precede those that curl implies for a body.
fn line_of_curl(words: &[String]) -> Line {
    let weir = Args::command();
    let load = weir.find_subcommand("load").expect("a command of weir's");
    let mut line = Line::read(load, words, CURL);
    for (own, begin) in [("POST", "-m"), (table::FORM_TYPE, "content-type:")] {
        let at = line.typed.iter().position(|word| word == own);
        let words = line.typed.iter().map(|word| word.to_ascii_lowercase());
        if let (Some(at), 2..) = (at, words.filter(|word| word.starts_with(begin)).count()) {
            line.typed.drain(at - 1..=at);
        }
    }
    let more = "curl sends one request (-n 1 -c 1), weir load many";
    line.found.push(more.to_owned());
    line
}

fn is_url(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// A command line after reading.
struct Line {
    /// Messages about other tools' options and their replacements.
    found: Vec<String>,
    /// The line with these options replaced.
    typed: Vec<String>,
    /// True if the replaced line lacks nothing.
    can_be_typed: bool,
}

impl Line {
    fn read(command: &Command, words: &[String], rows: &[Row]) -> Line {
        let mut line = Line { found: Vec::new(), typed: Vec::new(), can_be_typed: true };
        let mut remaining = words.iter().map(String::as_str).peekable();
        while let Some(word) = remaining.next() {
            if word == "--" {
                line.typed.push(word.to_owned());
                line.typed.extend(remaining.by_ref().map(str::to_owned));
                break;
            }
            line.take(command, (word, rows), &mut remaining);
        }
        line
    }

    /// Reads a word, and the words after it that are its value.
    fn take<'w>(
        &mut self,
        command: &Command,
        (word, rows): (&'w str, &[Row]),
        rest: &mut Peekable<impl Iterator<Item = &'w str>>,
    ) {
        let (option, attached) = split(word, rows);
        let next = attached.or_else(|| rest.peek().copied());
        let argument = command.get_arguments().find(|arg| is_called(arg, option));
        // Studies are run with other options than loads are sent with.
        let is_load = command.get_name() == "load";
        let may_be = is_load || argument.is_none();
        let is_file = !word.starts_with('-') && !word.contains("://");
        if let Some(file) = is_file.then(|| files::recognize(word, is_load)).flatten() {
            return self.take_file(word, file);
        }
        let row = rows.iter().filter(|_| may_be).find(|row| fits(row, option, (attached, next)));
        if let Some((_, tools, takes, way)) = row {
            let value = next.filter(|_| !matches!(takes, Takes::Nothing));
            if attached.is_none() && value.is_some() {
                rest.next();
            }
            let script = value.filter(|_| ["-s", "--script"].contains(&option));
            return match script.and_then(|path| Some((path, files::recognize(path, true)?))) {
                Some((path, file)) if !file.2.is_empty() => self.take_file(path, file),
                _ => self.instead((option, value), tools, *way),
            };
        }
        self.typed.push(word.to_owned());
        if attached.is_none() && argument.is_some_and(takes_value) {
            self.typed.extend(rest.next().map(str::to_owned));
        }
    }

    /// Adds the message and the words for another tool's file.
    fn take_file(&mut self, path: &str, (tool, advice, words): files::RecognizedFile) {
        self.can_be_typed &= !words.is_empty();
        self.typed.extend(words);
        self.found.push(format!("`{path}` ({tool}): {advice}"));
    }

    fn instead(&mut self, (option, value): (&str, Option<&str>), tools: &str, way: Replacement) {
        let typed = match value {
            Some(value) => format!("{option} {value}"),
            None => option.to_owned(),
        };
        let words = match way {
            Replacement::Is(template) => {
                let words = shlex::split(template).unwrap_or_default();
                let filling = value.unwrap_or_default();
                let words: Vec<String> =
                    words.iter().map(|word| word.replace("{}", filling)).collect();
                let shown = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_default();
                self.typed.extend(words);
                format!("`{typed}` ({tools}) is `{shown}` of weir load")
            }
            Replacement::Always(why) => format!("`{typed}` ({tools}) is not needed: {why}"),
            Replacement::Words(words) => {
                self.can_be_typed = false;
                // Its value may be a secret.
                format!("`{option}` ({tools}): {words}")
            }
        };
        self.found.push(words);
    }
}

/// Splits a word into an option and the value in the same word, if there is one.
fn split<'w>(word: &'w str, rows: &[Row]) -> (&'w str, Option<&'w str>) {
    if !word.starts_with('-') || word.len() < 3 || rows.iter().any(|(option, ..)| *option == word) {
        return (word, None);
    }
    if word.starts_with("--") {
        return word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
    }
    match word.split_at_checked(2) {
        Some((option, value)) => (option, Some(value.strip_prefix('=').unwrap_or(value))),
        None => (word, None),
    }
}

/// Returns true if a row applies to this option and its value.
fn fits(
    (option, _, takes, _): &Row,
    typed: &str,
    (attached, next): (Option<&str>, Option<&str>),
) -> bool {
    let value =
        next.filter(|next| attached.is_some() || !next.starts_with('-') && !next.contains("://"));
    typed == *option
        && match (takes, value) {
            (Takes::Nothing, _) => attached.is_none(),
            (Takes::Address, _) => next.is_some_and(|next| !next.starts_with('-')),
            (_, None) => false,
            (Takes::Number, Some(value)) => is_number(value),
            (Takes::Time, Some(value)) => is_duration(value) && !is_number(value),
            (Takes::File, Some(value)) => value.contains(['.', '/']) && !is_duration(value),
            (Takes::Has(part), Some(value)) => value.contains(part),
            (Takes::Text, Some(_)) => true,
        }
}

fn is_duration(value: &str) -> bool {
    parse_duration(value).is_ok()
}

fn is_number(value: &str) -> bool {
    value.parse::<f64>().is_ok()
}

fn is_called(arg: &Arg, option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg
            .get_short()
            .is_some_and(|short| option.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4]))),
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that no row shadows an option that weir itself accepts.
    #[test]
    fn what_weir_understands_is_nobody_elses() {
        for line in [
            "-c 10 -t 2 -d 30s -R 2000 -L -T 2s -H -z -b {a=1} -m POST -e status=200 http://a/",
            "-q -k -o result.csv -n 100 -d 1.5s -T 500ms --rate 10 --latency http://a/",
            "-c 1k -n 2.5k -b a@b http://a/ -- -x",
            "-c10 -t2 -d10s --source -z http://a/x.js?y=1 -- -z",
        ] {
            let words: Vec<String> =
                format!("weir load {line}").split(' ').map(str::to_owned).collect();
            assert!(refused(&words).is_none(), "{line}");
        }
    }

    /// A word that may be a password is not said again.
    #[test]
    fn users_and_their_passwords_are_not_repeated() {
        for typed in ["load -u", "load -A", "load -a", "curl -u"] {
            for line in [format!("weir {typed} me:S3CRET"), format!("weir {typed}me:S3CRET")] {
                let words = format!("{line} http://a/");
                let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
                let failure = refused(&words).expect("it is another tool's");
                assert!(!failure.rendered(false).contains("S3CRET"), "{line}");
            }
        }
    }

    /// Checks that `weir load` accepts the words of every row.
    #[test]
    fn every_way_is_one_of_weir_load() {
        for (option, _, takes, way) in ROWS.iter().chain(CURL) {
            let Replacement::Is(template) = way else { continue };
            let value = match takes {
                Takes::Number => "10",
                _ => "1s",
            };
            let words = shlex::split(&template.replace("{}", value)).unwrap();
            let words = ["weir", "load", "http://a/"].map(str::to_owned).into_iter().chain(words);
            assert!(Args::try_parse_from(words).is_ok(), "{option}: {template}");
        }
    }
}
