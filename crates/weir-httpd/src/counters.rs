//! Reports of a running httpd over HTTP, to this host alone: mod_status and mod_info.
//!
//! A query is a request like any other: it takes a thread, and httpd counts it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write as _};
use std::time::Instant;

use weir_model::study::ProxyKind;
use weir_sut::timed::TimedStream;
use weir_sut::{Configuration, SutError, admin};

use super::effective::with_mpm;

/// Prefix of targets that are never passed on to the origin.
pub(super) const HIDDEN: &str = "/.weir/";

/// Target of mod_status.
pub(super) const STATUS: &str = "/.weir/status";

/// Target of mod_info.
pub(super) const CONFIGURATION: &str = "/.weir/configuration";

/// Ends of the level in lines of the error log that are counted, as in `[mpm_event:error]`.
const TROUBLES: [&str; 5] = [":warn]", ":error]", ":crit]", ":alert]", ":emerg]"];

/// Reads the running configuration, as directives.
pub(super) fn configuration(configuration: &Configuration) -> Result<String, SutError> {
    let page = get(configuration, &format!("{CONFIGURATION}?config"))?;
    let status_page = status(configuration)?;
    Ok(with_mpm(field(&status_page, "ServerMPM"), &directives(&page)))
}

/// Reads all counters.
pub(super) fn counters(configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
    let mut all = totals(&status(configuration)?);
    let log = configuration.error_log();
    let troubles = weir_files::open_regular(&log).and_then(|file| troubles(BufReader::new(file)));
    all.extend(troubles.map_err(SutError::file("read", log))?);
    Ok(all)
}

/// Reads mod_status alone, including the momentary numbers of threads.
pub(super) fn sampled(configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
    status(configuration).map(|text| sampled_of(&text))
}

/// Parses counters and momentary values from an answer of mod_status.
pub(crate) fn sampled_of(text: &str) -> BTreeMap<String, u64> {
    let mut all = totals(text);
    let now = ["BusyWorkers", "IdleWorkers"].into_iter();
    all.extend(now.filter_map(|name| Some((name.to_owned(), field(text, name)?.parse().ok()?))));
    all
}

fn status(configuration: &Configuration) -> Result<String, SutError> {
    get(configuration, &format!("{STATUS}?auto"))
}

fn get(configuration: &Configuration, target: &str) -> Result<String, SutError> {
    fetch(configuration, target).map_err(|source| SutError::Admin {
        kind: ProxyKind::Httpd,
        asked: target.to_owned(),
        source,
    })
}

fn fetch(configuration: &Configuration, target: &str) -> io::Result<String> {
    // Where all threads are busy, it waits for one.
    let until = Instant::now() + admin::PATIENCE;
    let mut stream = TimedStream::to_address(&configuration.listen(), until)?;
    let head = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    admin::answer(stream, admin::MOST)
}

/// Returns the value of a line `name: value`.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = status.lines().filter_map(|line| line.split_once(": "));
    fields.find_map(|(other, value)| (other == name).then_some(value.trim()))
}

/// Returns the values that only grow: `Total Accesses`, and `CacheStoreCount` and similar ones of the cache of TLS
/// sessions.
fn totals(status: &str) -> BTreeMap<String, u64> {
    status
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| name.starts_with("Total ") || name.ends_with("Count"))
        .filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?)))
        .collect()
}

/// Counts each numbered error (`AH00484`) in an error log.
fn troubles(log: impl BufRead) -> io::Result<BTreeMap<String, u64>> {
    let mut all = BTreeMap::new();
    for line in log.split(b'\n') {
        let bytes = line?;
        let line = String::from_utf8_lossy(&bytes);
        let is_trouble = TROUBLES.iter().any(|level| line.contains(level));
        if let Some(number) = number(&line).filter(|_| is_trouble) {
            *all.entry(number.to_owned()).or_insert(0) += 1;
        }
    }
    Ok(all)
}

/// Returns `AH00484` from a line of the log.
fn number(line: &str) -> Option<&str> {
    let mut words = line.split_ascii_whitespace();
    words.find_map(|word| {
        let code = word.strip_suffix(':')?;
        let digits = code.strip_prefix("AH")?;
        let is_number = digits.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit());
        is_number.then_some(code)
    })
}

/// Returns the directives in mod_info's page. Each is on a line of its own, behind its number, with its arguments in
/// italics, indented by non-breaking spaces.
fn directives(page: &str) -> String {
    let lines = page.split("<dd><tt>").skip(1).filter_map(|line| {
        let text = without_tags(line.split("</tt>").next()?);
        let (number, text) = text.split_once(':')?;
        let is_number = number.trim().bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| text.trim().to_owned() + "\n")
    });
    lines.collect()
}

/// Returns the text of a piece of HTML.
fn without_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut pieces = html.split('<');
    text.extend(pieces.next());
    text.extend(pieces.filter_map(|piece| piece.split_once('>').map(|(_, rest)| rest)));
    // The ampersand last: what it makes is no entity.
    [("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&amp;", "&")]
        .iter()
        .fold(text, |text, (entity, character)| text.replace(entity, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_mod_info_is_the_directives_in_it() {
        let page = "<dl><dt><strong>Configuration:</strong>\n\
            <dd><tt><strong>In file: /p/conf/httpd.conf</strong></tt></dd>\n\
            <dd><tt>&nbsp;&nbsp;34:&nbsp;LogFormat <i>&quot;%&gt;s &amp;lt;&quot; x</i></tt></dd>\n\
            <dd><tt>&nbsp;&nbsp;35:&nbsp;&lt;Directory &quot;/&quot;&gt;</tt></dd>\n\
            <dd><tt>&nbsp;&nbsp;36:&nbsp;&nbsp;&nbsp;Require <i>all denied</i></tt></dd>\n\
            <dd><tt>&nbsp;&nbsp;&nbsp;&nbsp;:&nbsp;&lt;/Directory&gt;</tt></dd><dd><tt>&nbsp;&nbsp;39:&nbsp;\
            ProxyPass <i>&quot;/&quot; &quot;http://[::1]:1/&quot;</i></tt></dd></dl>";
        assert_eq!(
            directives(page),
            "LogFormat \"%>s &lt;\" x\n<Directory \"/\">\nRequire all denied\n</Directory>\n\
             ProxyPass \"/\" \"http://[::1]:1/\"\n"
        );
    }

    #[test]
    fn counters_are_what_only_grows() {
        let status = "localhost\nServerMPM: event\nTotal Accesses: 12\nTotal Duration: 3\nUptime: 9\n\
            ReqPerSec: 1.5\nBusyWorkers: 1\nCacheCurrentEntries: 4\nCacheStoreCount: 5\n";
        let expected = [("CacheStoreCount", 5), ("Total Accesses", 12), ("Total Duration", 3)]
            .map(|(name, count)| (name.to_owned(), count));
        assert_eq!(totals(status), BTreeMap::from(expected));
        assert_eq!(field(status, "ServerMPM"), Some("event"));
        assert_eq!(field(status, "MPM"), None);
    }

    #[test]
    fn troubles_are_counted_by_httpd_s_own_numbers() {
        let log = b"[x] [mpm_event:notice] [pid 1:tid 1] AH00489: resuming normal operations\n\
            [x] [mpm_event:error] [pid 1:tid 1] AH00484: server reached MaxRequestWorkers setting\n\
            [x] [proxy:error] [pid 1:tid 1] (111)Connection refused: AH00957: HTTP: attempt failed\n\
            [x] [proxy:error] [pid 1:tid 1] (111)Connection refused: AH00957: HTTP: \xff\n\
            AHAHAHA: no number";
        let expected =
            [("AH00484", 1), ("AH00957", 2)].map(|(name, count)| (name.to_owned(), count));
        assert_eq!(troubles(&log[..]).unwrap(), BTreeMap::from(expected));
    }
}
