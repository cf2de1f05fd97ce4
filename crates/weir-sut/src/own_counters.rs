//! A proxy's own counters, read again and again while it has load: those that `limits/counters.yaml` names, and lines
//! of its error log by kind.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use weir_model::sample::{Counters, ProxyCounter};

use crate::observed::LogFile;
use crate::{Configuration, ObservedProxy, Proxy};

/// Maximum number of bytes of a log per reading; the rest is read at the next one.
const AT_ONCE: usize = 1 << 20;

/// Reader of the own counters of one arm's proxy.
pub struct OwnCounters {
    asked: CounterSource,
    wanted: Vec<&'static ProxyCounter>,
    log: Option<ErrorLog>,
}

/// Source of the counters.
enum CounterSource {
    /// Proxy that weir started.
    Started(Arc<dyn Proxy>, Box<Configuration>),
    /// Proxy that weir did not start.
    Running(Box<ObservedProxy>),
}

impl CounterSource {
    /// Reads its counters. All answers of a proxy that weir did not start have `patience` together.
    fn sampled(&self, patience: Duration) -> Result<BTreeMap<String, u64>, String> {
        match self {
            CounterSource::Started(program, configuration) => {
                let sampled = program.sampled(configuration);
                sampled.map_err(|error| error.to_string())
            }
            CounterSource::Running(proxy) => proxy.sampled(patience),
        }
    }
}

impl OwnCounters {
    /// Opens the counters of a running proxy. Lines that its log already has are not counted.
    pub fn open(program: Arc<dyn Proxy>, configuration: Configuration) -> OwnCounters {
        let wanted = counters_of(program.kind().name());
        let path = configuration.error_log();
        let log = LogFile { root: None, path };
        OwnCounters {
            log: Some(ErrorLog::open(log, &wanted)),
            wanted,
            asked: CounterSource::Started(program, Box::new(configuration)),
        }
    }

    /// Opens the counters of a proxy that weir did not start: those that its configuration offers, and lines of its
    /// error log. Warnings are counted only if it is known that the proxy logs them.
    pub fn of_running(proxy: ObservedProxy) -> OwnCounters {
        let wanted = counters_of(proxy.kind.name());
        let logs_warnings = proxy.offers.logs_warnings == Some(true);
        let logged: Vec<_> =
            wanted.iter().copied().filter(|counter| !counter.is_warning || logs_warnings).collect();
        let log = proxy.log.clone();
        OwnCounters {
            log: log.map(|log| ErrorLog::open(log, &logged)),
            wanted,
            asked: CounterSource::Running(Box::new(proxy)),
        }
    }

    /// Reads the counters that can be read now; `missing` is told of each other, with the reason. To be called in the
    /// network namespace of the proxy. Takes as long as the proxy needs to answer: of one that weir did not start no
    /// longer than `patience`, of another five seconds at most for each question.
    pub fn read(
        &mut self,
        patience: Duration,
        missing: &mut dyn FnMut(&str, String),
    ) -> BTreeMap<String, u64> {
        let mut values = BTreeMap::new();
        let unread = match &mut self.log {
            Some(log) => match log.read() {
                Ok(()) => {
                    values = log.counts();
                    "its error log may leave warnings out".to_owned()
                }
                Err(error) => format!("cannot read {}: {error}", log.source.path.display()),
            },
            None => "it has no error log that weir can read".to_owned(),
        };
        if let CounterSource::Running(proxy) = &self.asked {
            let idle = proxy.offers.idle.iter().map(|name| ((*name).to_owned(), 0));
            values.extend(idle.collect::<Vec<_>>());
        }
        let lines = self.wanted.iter().filter(|counter| counter.line.is_some());
        for counter in lines.filter(|counter| !values.contains_key(&counter.name)) {
            missing(&counter.name, unread.clone());
        }
        let sampled = (self.asked.sampled(patience)).map(|counters| without_labels(&counters));
        for name in self.wanted.iter().filter(|counter| counter.line.is_none()) {
            let name = &name.name;
            match &sampled {
                Ok(counters) => match counters.get(name) {
                    Some(value) => drop(values.insert(name.clone(), *value)),
                    None => missing(name, "the proxy does not tell it".to_owned()),
                },
                Err(why) => missing(name, why.clone()),
            }
        }
        values
    }
}

/// Returns the counters of a proxy of this name, and those that every proxy has.
fn counters_of(program: &str) -> Vec<&'static ProxyCounter> {
    Counters::builtin()
        .proxy_counters
        .iter()
        .filter(|counter| [program, "any"].contains(&&*counter.proxy))
        .collect()
}

/// Sums the series of each name: Caddy has one for each combination of labels, `name{label="value"}`.
fn without_labels(counters: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (name, value) in counters {
        let unlabelled = name.split('{').next().unwrap_or_default();
        *sums.entry(unlabelled.to_owned()).or_default() += value;
    }
    sums
}

/// A growing log, and the numbers of its new lines by the text that they contain.
struct ErrorLog {
    source: LogFile,
    file: Option<File>,
    /// Number of bytes read so far.
    offset: u64,
    /// Beginning of a line that is not complete yet.
    begun: Vec<u8>,
    /// Kinds of lines: name, text to look for, number of lines with it.
    kinds: Vec<(&'static str, &'static str, u64)>,
}

impl ErrorLog {
    fn open(source: LogFile, wanted: &[&'static ProxyCounter]) -> ErrorLog {
        let kinds =
            wanted.iter().filter_map(|counter| Some((&*counter.name, counter.line.as_deref()?, 0)));
        let file = source.open().ok();
        let length = file.as_ref().and_then(|file| Some(file.metadata().ok()?.len()));
        ErrorLog {
            source,
            file,
            offset: length.unwrap_or(0),
            begun: Vec::new(),
            kinds: kinds.collect(),
        }
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        self.kinds.iter().map(|(name, _, lines)| ((*name).to_owned(), *lines)).collect()
    }

    /// Reads the lines written since the last reading.
    fn read(&mut self) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => match self.source.open() {
                Ok(file) => self.file.insert(file),
                // A proxy that has had nothing to say may not have made it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            },
        };
        let length = file.metadata()?.len();
        if length < self.offset {
            // Somebody has cut it.
            self.offset = 0;
            self.begun.clear();
        }
        let more = (length - self.offset).min(AT_ONCE as u64) as usize;
        let old_length = self.begun.len();
        self.begun.resize(old_length + more, 0);
        let read = file.read_at(&mut self.begun[old_length..], self.offset)?;
        self.begun.truncate(old_length + read);
        self.offset += read as u64;
        let complete = match self.begun.iter().rposition(|&byte| byte == b'\n') {
            Some(end) => end + 1,
            // No line of a log is that long.
            None if self.begun.len() > AT_ONCE => self.begun.len(),
            None => 0,
        };
        for line in String::from_utf8_lossy(&self.begun[..complete]).lines() {
            self.kinds
                .iter_mut()
                .filter(|(_, text, _)| line.contains(text))
                .for_each(|(_, _, lines)| *lines += 1);
        }
        self.begun.drain(..complete);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use weir_model::study::ProxyKind;

    use super::*;

    #[test]
    fn new_lines_of_a_log_are_counted_by_their_text_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("error.log");
        let all: Vec<&'static ProxyCounter> = Counters::builtin().proxy_counters.iter().collect();
        let source = LogFile { root: None, path: path.clone() };
        let mut none = ErrorLog::open(source.clone(), &all);
        none.read().unwrap();
        std::fs::write(&path, "1024 worker_connections are not enough\n").unwrap();
        let mut log = ErrorLog::open(source, &all);
        let mut counted = |text: &str| {
            let mut file = File::options().append(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            log.read().unwrap();
            let counts = log.counts();
            ["log.worker_connections", "log.open_files", "log.no_address"].map(|name| counts[name])
        };
        assert_eq!(counted(""), [0, 0, 0], "an old line");
        let line = "accept4() failed (24: Too many open files)\nx\n1024 worker_connections are";
        assert_eq!(counted(line), [0, 1, 0]);
        assert_eq!(counted(" not enough\n"), [1, 1, 0]);
        assert_eq!(counted(""), [1, 1, 0]);
        std::fs::write(&path, "").unwrap();
        let line = "connect() failed (99: Cannot assign requested address)\n";
        assert_eq!(counted(line), [1, 1, 1], "after it was cut");
        // What was not there in the begin is read from its begin.
        none.read().unwrap();
        assert_eq!(none.counts()["log.no_address"], 1);
    }

    #[test]
    fn of_a_proxy_that_weir_did_not_start_errors_are_counted_and_warnings_are_not_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("error.log");
        std::fs::write(&path, "").unwrap();
        let mut counters =
            OwnCounters::of_running(ObservedProxy::with_log(ProxyKind::Nginx, path.clone()));
        let lines = "1024 worker_connections are not enough\na b is buffered to a temporary file\n";
        std::fs::write(&path, lines).unwrap();
        let mut missing = Vec::new();
        let counts = counters.read(Duration::ZERO, &mut |name, _| missing.push(name.to_owned()));
        assert_eq!(counts["log.worker_connections"], 1);
        assert_eq!(counts["log.no_address"], 0);
        for name in ["log.temporary_file", "accepts"] {
            assert!(!counts.contains_key(name) && missing.iter().any(|counter| counter == name));
        }
    }

    /// Anything can be put there by whoever may write in the folder of a log.
    #[test]
    fn a_log_in_whose_place_is_something_else_is_neither_waited_for_nor_opened() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("error.log");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let mut counters =
            OwnCounters::of_running(ObservedProxy::with_log(ProxyKind::Nginx, path.clone()));
        let words = why_missing(&mut counters, "log.worker_connections");
        assert!(words.ends_with("is a FIFO, not a regular file"), "{words}");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/ptmx", &path).unwrap();
        let words = why_missing(&mut counters, "log.worker_connections");
        assert!(words.ends_with("is a device, not a regular file"), "{words}");
    }

    #[test]
    fn series_that_differ_in_labels_are_added() {
        let counters = [("a{x=\"1\"}", 2), ("a{x=\"2\"}", 3), ("b", 4)]
            .map(|(name, value)| (name.to_owned(), value))
            .into();
        let sums = [("a", 5), ("b", 4)].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(without_labels(&counters), sums.into());
    }

    fn why_missing(counters: &mut OwnCounters, name: &str) -> String {
        let mut missing = BTreeMap::new();
        counters.read(Duration::ZERO, &mut |name, why| {
            missing.insert(name.to_owned(), why);
        });
        missing.remove(name).unwrap()
    }
}
