//! Recognition of other load generators' files, and what to type instead.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use weir_model::request::escape;

use super::line_of_curl;
use super::table::{SCRIPTS, URLS};
use crate::failure::Failure;

/// Number of bytes at the beginning of a file that are searched.
const HEAD: u64 = 64 << 10;

/// A kind of file: the end of its name, a part of its text, its tool, weir's replacement, and the values that can be
/// read from it. Each of these is a text that precedes the value, and the option for it. A second `{}` stands for the
/// text after `=` or `<`.
type Kind = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

#[rustfmt::skip]
const KINDS: [Kind; 10] = [
    (".js", "k6/http", "k6", SCRIPTS, &[
        (" rate:", "-R {}"), ("vus:", "-c {}"), ("duration:", "-d {}"), ("p(", "--fail-if p{}' > '{}ms"),
        ("http.get(", "{}"), ("http.post(", "-m POST {}"), ("http.put(", "-m PUT {}"), ("http.del(", "-m DELETE {}"),
    ]),
    (".lua", "\nwrk.", "wrk, wrk2", SCRIPTS, &[
        ("wrk.method", "-m {}"), ("wrk.body", "-b {}"), ("wrk.headers[", "-H {}': '{}"),
    ]),
    (".jmx", "<jmeterTestPlan", "JMeter", "weir runs no test plans: -c or -R say how much is sent, --request-set FILE says what", &[
        ("num_threads\">", "-c {}"), ("ThreadGroup.duration\">", "-d {}"), ("HTTPSampler.domain\">", "http://{}/"),
    ]),
    ("locustfile.py", "from locust", "Locust", "weir runs no scripts: tasks and their weights are a --request-set FILE", &[]),
    ("Simulation.scala", "io.gatling", "Gatling", "weir runs no scripts: users who are injected are a rate, -R 0..100", &[]),
    (".postman_collection.json", "schema.getpostman.com", "Postman", "its requests are a --request-set FILE", &[]),
    (".vegeta", "vegeta attack", "vegeta", "targets are a --request-set FILE", &[
        ("-rate=", "-R {}"), ("-duration=", "-d {}"), ("\"GET ", "{}"), ("\"POST ", "-m POST {}"),
    ]),
    (".targets", "\nGET http", "vegeta", URLS, &[]),
    (".curl", "\ncurl ", "curl", "a command line", &[]),
    (".har", "\"log\": {", "HAR", "a recorded session is a --request-set, or a --trace", &[]),
];

/// A recognized file: its tool, weir's replacement, and the words to type, empty if no value can be read.
pub(super) type RecognizedFile = (&'static str, &'static str, Vec<String>);

/// Recognizes a file by its text if `is_read`, otherwise by its name, which works for a missing file too.
pub(super) fn recognize(path: &str, is_read: bool) -> Option<RecognizedFile> {
    let mut head = b"\n".to_vec();
    // A pipe may never end, and can be read only once.
    if Path::new(path).is_file() {
        let _ = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    }
    let text = String::from_utf8_lossy(&head);
    let mut kinds = KINDS.iter().filter(|kind| is_read && text.contains(kind.1));
    let kind = kinds.next().or_else(|| KINDS.iter().find(|kind| path.ends_with(kind.0)))?;
    let mut words = match kind.2 {
        "HAR" => vec!["--request-set".to_owned(), path.to_owned()],
        "curl" => line_of_curl(&shlex::split(&text)?[1..]).typed,
        _ => Vec::new(),
    };
    for (key, template) in kind.4 {
        words.extend(filled(&text, key, template));
    }
    Some((kind.2, kind.3, words))
}

/// Returns the words for the first value after `key`, or for all pairs if the template has two values.
fn filled(text: &str, key: &str, template: &str) -> Vec<String> {
    // A rate by another unit of time is another rate.
    if key == " rate:" && text.contains("timeUnit:") && !text.contains("timeUnit: '1s'") {
        return Vec::new();
    }
    let is_pair = template.matches("{}").count() > 1;
    let most = if is_pair { usize::MAX } else { 1 };
    let lines = text.split(key).skip(1).take(most).filter_map(|rest| {
        let mut line = template.to_owned();
        if is_pair || !key.starts_with("wrk.") {
            line = line.replacen("{}", &shlex::try_quote(&value(rest)?).ok()?, 1);
        }
        if line.contains("{}") {
            let second = value(&rest[rest.find(['=', '<'])? + 1..])?;
            line = line.replace("{}", &shlex::try_quote(&second).ok()?);
        }
        shlex::split(&line)
    });
    lines.flatten().collect()
}

/// Returns a text in quotes of any kind, or a word. Slots in it are escaped.
fn value(text: &str) -> Option<String> {
    let trimmed = text.trim_start();
    let quote = trimmed.chars().next().filter(|c| "'\"`".contains(*c));
    let text = &trimmed[usize::from(quote.is_some())..];
    let end = text.find(|c: char| match quote {
        Some(quote) => c == quote,
        None => !c.is_ascii_alphanumeric() && !"./:-_%?=&".contains(c),
    })?;
    let value = escape(&text.as_bytes()[..end]);
    Some(String::from_utf8_lossy(&value).into_owned()).filter(|value| !value.is_empty())
}

/// Returns a failure for another tool's file that was given as a trace or a request set and cannot be read as one.
pub(crate) fn recognised(path: &str) -> Option<Failure> {
    let (tool, advice, mut words) = recognize(path, true)?;
    if !words.iter().any(|word| word.contains("://")) {
        words.push("http://HOST/".to_owned());
    }
    let typed = shlex::try_join(words.iter().map(String::as_str)).ok()?;
    Some(Failure::input(format!("`{path}` ({tool}): {advice}")).hint(format!("weir load {typed}")))
}
