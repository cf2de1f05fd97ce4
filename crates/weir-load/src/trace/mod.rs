//! Recorded arrivals: when requests came, and which, read from a file of times or a proxy's log.
//!
//! The format is known from the first line:
//!
//! * a time on each line, in seconds (`12.25`, `1732194001.250`) or of RFC 3339
//!   (`2026-11-21T13:00:01.25Z`);
//! * an access log in the common or combined format of Apache httpd and nginx, or one that begins
//!   alike: a time in brackets, then the request in quotes;
//! * a JSON object on each line, with the time under `msec`, `time`, `timestamp` or `time_iso8601`
//!   (also `@timestamp`, `ts`, `time_local`), and the request under `request` (`GET / HTTP/1.1`), or
//!   its target under `uri`, `path` or `request_uri` with a `method` or `request_method` (GET when
//!   there is none). Of several times the first in this list is taken.
//!
//! Empty lines and lines that begin with `#` are left out.
//!
//! # Times of whole seconds
//!
//! Most logs write the clock in whole seconds. Requests of one second then did not come at once:
//! when no line of a file has a fraction, the n lines of a second are spread evenly over it, the
//! first at its begin, in the order of the file. A time in seconds (`12`) is a number and taken as
//! it is.
//!
//! # Order
//!
//! Logs are written when requests end, so lines need not be in the order of their times. They are
//! sorted; lines with equal times stay in the order of the file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use weir_model::load::Arrivals;

use crate::files::LARGEST_DATA;

mod format;
mod time;

use format::{Format, Wrong};
use time::Stamp;

const S: u64 = 1_000_000_000;

/// A trace that is slowed down takes no longer than this, some 30 years.
const LONGEST_NS: f64 = 1e18;

/// No line of a log is longer: servers limit the head of a request to some 10 KB.
const LONGEST_LINE: u64 = 1 << 20;

/// Bytes of a file for each arrival, at least on average: what arrivals take in memory is no more than what the
/// largest file has.
const BYTES_OF_AN_ARRIVAL: u64 = 16;

/// Recorded arrivals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// When each request came, in nanoseconds since the first one; ascending, never empty.
    pub times: Arc<[u64]>,
    /// The different requests, as method and target, in the order of the file; empty for a file of
    /// times.
    pub requests: Vec<(String, String)>,
    /// For each arrival its index in `requests`; `None` for a file of times.
    pub which: Option<Arc<[u32]>>,
    /// Lines whose request cannot be sent again, and which are left out: it was no HTTP request, its
    /// method is no token, or its target is not in origin form.
    pub skipped: u64,
}

/// Why a trace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read `{file}`: {source}")]
    Read {
        /// The file.
        file: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("{file}:{line}:{column}: expected {expected}, found {found}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The byte in it, from 1.
        column: usize,
        /// What should stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// The file is larger than a file of data may be, or has too many lines.
    #[error(
        "`{file}` is too large for a trace: {} MiB and {} requests are allowed",
        LARGEST_DATA >> 20,
        LARGEST_DATA / BYTES_OF_AN_ARRIVAL
    )]
    Large {
        /// The file.
        file: String,
    },
    /// No line has an arrival.
    #[error(
        "`{file}` has no request that can be sent{}: a trace needs at least one line",
        if *.skipped > 0 { format!(" (lines skipped: {skipped})") } else { String::new() }
    )]
    Empty {
        /// The file.
        file: String,
        /// Lines whose request cannot be sent.
        skipped: u64,
    },
    /// The speed is not a number above zero, or so small that the trace takes 30 years.
    #[error(
        "a trace cannot be repeated {0} times as fast: write a number above zero, such as 2 or 0.5"
    )]
    Speed(f64),
}

impl Trace {
    /// Reads a file. At a `speed` of 2 requests come twice as fast as they did.
    ///
    /// # Errors
    /// The file cannot be read, a line is not in the format of the first, or nothing is left.
    pub fn read(path: &Path, speed: f64) -> Result<Trace, TraceError> {
        let file = path.display().to_string();
        match File::open(path) {
            Ok(opened) => {
                Trace::from_reader(BufReader::with_capacity(1 << 17, opened), &file, speed)
            }
            Err(source) => Err(TraceError::Read { file, source }),
        }
    }

    /// Reads what comes from `reader`; `name` stands for it in errors.
    ///
    /// # Errors
    /// See [`Trace::read`].
    pub fn from_reader(reader: impl BufRead, name: &str, speed: f64) -> Result<Trace, TraceError> {
        Trace::of_at_most(LARGEST_DATA, reader, name, speed)
    }

    /// The same, of no more than so many bytes.
    fn of_at_most(
        most: u64,
        mut reader: impl BufRead,
        name: &str,
        speed: f64,
    ) -> Result<Trace, TraceError> {
        if !(speed.is_finite() && speed > 0.0) {
            return Err(TraceError::Speed(speed));
        }
        let mut lines = Lines::default();
        let mut line = Vec::new();
        let (mut number, mut bytes) = (0, 0);
        loop {
            line.clear();
            let mut limited = reader.by_ref().take(LONGEST_LINE);
            match limited.read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(length) => {
                    number += 1;
                    bytes += length as u64;
                }
                Err(source) => {
                    let file = name.to_owned();
                    return Err(TraceError::Read { file, source });
                }
            }
            let text = line.trim_ascii_end();
            lines
                .take(text)
                .map_err(|wrong| at_line(name, number, text, wrong))?;
            if bytes > most || lines.times.len() as u64 > most / BYTES_OF_AN_ARRIVAL {
                return Err(TraceError::Large {
                    file: name.to_owned(),
                });
            }
        }
        lines.finish(name, speed)
    }

    /// From the first arrival to the last, in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.times.last().copied().unwrap_or(0)
    }

    /// What of it is due before `ns` nanoseconds have passed; never nothing, since the first arrival is
    /// due at once.
    pub fn within(&self, ns: u64) -> Trace {
        let count = self.times.partition_point(|time| *time < ns.max(1));
        Trace {
            times: self.times[..count].into(),
            requests: self.requests.clone(),
            which: self.which.as_ref().map(|which| which[..count].into()),
            skipped: self.skipped,
        }
    }

    /// The trace in the words of a load; `file` is where it was read from.
    pub fn arrivals(&self, file: &str) -> Arrivals {
        Arrivals::Trace {
            file: file.to_owned(),
            arrivals: self.times.len() as u64,
            length_ns: self.length_ns(),
            every_ns: None,
        }
    }
}

fn at_line(file: &str, line: u64, text: &[u8], wrong: Wrong) -> TraceError {
    const SHOWN: usize = 40;
    let rest = text.get(wrong.at..).unwrap_or_default();
    let shown = String::from_utf8_lossy(&rest[..rest.len().min(SHOWN)]);
    let found = match rest.len() {
        0 => "the end of the line".to_owned(),
        1..=SHOWN => format!("`{shown}`"),
        _ => format!("`{shown}…`"),
    };
    TraceError::Line {
        file: file.to_owned(),
        line,
        column: wrong.at + 1,
        expected: wrong.expected,
        found,
    }
}

/// What was read so far.
#[derive(Default)]
struct Lines {
    format: Option<Format>,
    /// Nanoseconds since the epoch, not below zero.
    times: Vec<i64>,
    /// As long as `times`, if the format has requests.
    which: Vec<u32>,
    /// Indices of requests by method, space and target.
    requests: HashMap<Box<str>, u32>,
    /// The request of a line: a place to write, so that a line allocates nothing.
    request: String,
    /// Some line names a moment more exactly than by the second of a clock.
    exact: bool,
    skipped: u64,
}

impl Lines {
    fn take(&mut self, line: &[u8]) -> Result<(), Wrong> {
        if line.is_empty() || line[0] == b'#' {
            return Ok(());
        }
        let format = match self.format {
            Some(format) => format,
            None => *self.format.insert(Format::of(line)?),
        };
        let (Stamp { ns, whole_second }, sendable) = format.read(line, &mut self.request)?;
        self.exact |= !whole_second;
        if !sendable {
            self.skipped += 1;
            return Ok(());
        }
        self.times.push(ns);
        if format.has_requests() {
            let index = self.index_of_request();
            self.which.push(index);
        }
        Ok(())
    }

    fn index_of_request(&mut self) -> u32 {
        if let Some(&index) = self.requests.get(self.request.as_str()) {
            return index;
        }
        let index = self.requests.len() as u32;
        self.requests.insert(self.request.as_str().into(), index);
        index
    }

    fn finish(mut self, name: &str, speed: f64) -> Result<Trace, TraceError> {
        self.sort();
        if !self.exact {
            spread_over_seconds(&mut self.times);
        }
        let Some(&first) = self.times.first() else {
            return Err(TraceError::Empty {
                file: name.to_owned(),
                skipped: self.skipped,
            });
        };
        let length = self.times.last().map_or(0, |last| last - first);
        if length as f64 / speed > LONGEST_NS {
            return Err(TraceError::Speed(speed));
        }
        let which = self.format.is_some_and(Format::has_requests);
        Ok(Trace {
            times: self
                .times
                .iter()
                .map(|&ns| at_speed((ns - first) as u64, speed))
                .collect(),
            which: which.then(|| self.which.into()),
            requests: in_order(self.requests),
            skipped: self.skipped,
        })
    }

    /// By time; equal times stay in the order of the file.
    fn sort(&mut self) {
        if self.times.is_sorted() {
            return;
        }
        if self.which.is_empty() {
            self.times.sort_unstable();
            return;
        }
        let mut pairs: Vec<_> = self
            .times
            .iter()
            .copied()
            .zip(self.which.drain(..))
            .collect();
        pairs.sort_by_key(|&(ns, _)| ns);
        self.times.clear();
        for (ns, which) in pairs {
            self.times.push(ns);
            self.which.push(which);
        }
    }
}

/// Spreads what came in the same whole second evenly over it. Times are sorted.
fn spread_over_seconds(times: &mut [i64]) {
    for second in times.chunk_by_mut(|one, other| one == other) {
        let count = second.len() as u64;
        for (i, ns) in second.iter_mut().enumerate() {
            *ns += (i as u64 * S / count) as i64;
        }
    }
}

fn at_speed(ns: u64, speed: f64) -> u64 {
    match speed == 1.0 {
        true => ns,
        false => (ns as f64 / speed).round() as u64,
    }
}

/// Method and target of the requests by their index.
fn in_order(requests: HashMap<Box<str>, u32>) -> Vec<(String, String)> {
    let mut requests: Vec<_> = requests.into_iter().collect();
    requests.sort_unstable_by_key(|(_, index)| *index);
    let split = |(request, _): (Box<str>, u32)| {
        let (method, target) = request.split_once(' ').unwrap_or(("", &request));
        (method.to_owned(), target.to_owned())
    };
    requests.into_iter().map(split).collect()
}

#[cfg(test)]
mod tests;
