//! Recorded arrivals: when requests came, and which, read from a file of times or a proxy's log.
//!
//! The format is known from the first line that has one:
//!
//! * a time on each line, in seconds (`12.25`, `1732194001.250`) or of RFC 3339
//!   (`2026-11-21T13:00:01.25Z`);
//! * an access log with a time in brackets (Apache httpd, nginx, HAProxy, Envoy, Traefik) or as a word of RFC 3339
//!   (AWS), then the request in quotes;
//! * columns that a line `#Fields:` names (IIS, CloudFront);
//! * a JSON object on each line, or an array of them, by the keys in [`json`];
//! * a HAR file.
//!
//! Any of them may be gzip. Empty lines and lines that begin with `#` are left out. Lines that have no request to send, or
//! that are not in the format of the others, are left out and counted by kind; a file of times has none of these.
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
use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;
use weir_model::load::{Arrivals, LeftOut};

use crate::files::LARGEST_DATA;
use crate::har;

mod format;
mod json;
mod packed;
mod time;

pub(crate) use format::put_request;
use format::{Columns, Format, Line, OTHER_HOST, UNREADABLE, Wrong};
use packed::{peek, unpacked};

const S: u64 = 1_000_000_000;

/// Maximum length of a trace that is slowed down, nanoseconds: some 30 years.
const LONGEST_NS: f64 = 1e18;

/// Maximum length of a log's line, bytes: servers limit the head of a request to some 10 KB.
const LONGEST_LINE: u64 = 1 << 20;

/// A HAR file or an array shows within so many bytes that it is one.
const HEAD: u64 = 256;

/// Number of lines after which a file without a known format is no longer read.
const LINES_BEFORE_FORMAT: u64 = 100;

/// Inverse of the share of lines that may be unreadable.
const UNREADABLE_AT_MOST: u64 = 10;

/// Minimum mean number of a file's bytes per arrival, so that arrivals take no more memory than the largest file has.
const BYTES_OF_AN_ARRIVAL: u64 = 16;

/// Recorded arrivals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Time of each request, in nanoseconds since the first one; ascending, never empty.
    pub times: Arc<[u64]>,
    /// Distinct requests, as method and target, in the order of the file; empty for a file of times.
    pub requests: Vec<(String, String)>,
    /// Index in `requests` for each arrival; `None` for a file of times.
    pub which: Option<Arc<[u32]>>,
    /// Lines that are left out, counted by kind.
    pub left_out: Vec<LeftOut>,
    /// The longest time without an arrival; `None` if there is one arrival, or the trace was not read from its file.
    pub longest_pause: Option<Pause>,
}

/// A time in which no request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Length, nanoseconds.
    pub ns: u64,
    /// Number of the line whose arrival ends it, from 1; of a HAR file the number of its entry.
    pub until_line: u64,
}

/// Reason why a trace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read `{file}`: {source}")]
    Read {
        /// Name of the file.
        file: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A line has an error.
    #[error("{file}:{line}:{column}: expected {expected}, found {found}")]
    Line {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// Position of the error in the line, in bytes from 1.
        column: usize,
        /// Description of the expected text.
        expected: &'static str,
        /// Beginning of the actual text.
        found: String,
    },
    /// The file exceeds the maximum size of a data file, or has too many lines.
    #[error(
        "`{file}` is too large for a trace: {} MiB and {} requests are allowed",
        LARGEST_DATA >> 20,
        LARGEST_DATA / BYTES_OF_AN_ARRIVAL
    )]
    Large {
        /// Name of the file.
        file: String,
    },
    /// No line contains an arrival.
    #[error(
        "`{file}` has no request that can be sent{}: a trace needs at least one line",
        if left_out.is_empty() { String::new() } else { format!(" ({})", LeftOut::told(left_out).1) }
    )]
    Empty {
        /// Name of the file.
        file: String,
        /// Lines that are left out, counted by kind.
        left_out: Vec<LeftOut>,
    },
    /// The speed is not a number above zero, or so small that the trace would take 30 years.
    #[error(
        "a trace cannot be repeated {0} times as fast: write a number above zero, such as 2 or 0.5"
    )]
    Speed(f64),
}

impl Trace {
    /// Reads a file. At a `speed` of 2 requests come twice as fast as recorded.
    ///
    /// # Errors
    /// The file cannot be read, a line is not in the format of the first, or no arrival is left.
    pub fn read(path: &Path, speed: f64) -> Result<Trace, TraceError> {
        let file = path.display().to_string();
        match weir_files::open_to_read(path) {
            Ok(opened) => {
                Trace::from_reader(BufReader::with_capacity(1 << 17, opened), &file, speed)
            }
            Err(source) => Err(TraceError::Read { file, source }),
        }
    }

    /// Reads a trace from `reader`, which may contain gzip; errors call it `name`.
    ///
    /// # Errors
    /// See [`Trace::read`].
    pub fn from_reader(reader: impl BufRead, name: &str, speed: f64) -> Result<Trace, TraceError> {
        Trace::of_at_most(LARGEST_DATA, reader, name, speed)
    }

    /// Reads a trace of at most `most` bytes.
    fn of_at_most(
        most: u64,
        reader: impl BufRead,
        name: &str,
        speed: f64,
    ) -> Result<Trace, TraceError> {
        if !(speed.is_finite() && speed > 0.0) {
            return Err(TraceError::Speed(speed));
        }
        let mut reader =
            unpacked(reader, most + 1, name).map_err(|error| unreadable(name, error))?;
        let peeked = peek(&mut reader, HEAD).map_err(|error| unreadable(name, error))?;
        let head = peeked.strip_prefix(har::BOM).unwrap_or(&peeked);
        let mut lines = Lines::default();
        let mut line = Vec::new();
        let (mut number, mut bytes) = (0, 0);
        let is_har = har::is_har(head);
        let is_whole = is_har || har::begins_with(head, b"[{");
        let longest = if is_whole { most + 1 } else { LONGEST_LINE };
        let mut reader = Cursor::new(head).chain(reader);
        loop {
            line.clear();
            let mut limited = reader.by_ref().take(longest);
            let length = if is_whole {
                limited.read_to_end(&mut line)
            } else {
                limited.read_until(b'\n', &mut line)
            };
            bytes += length.map_err(|error| unreadable(name, error))? as u64;
            number += 1;
            if bytes > most || lines.arrivals.len() as u64 > most / BYTES_OF_AN_ARRIVAL {
                let file = name.to_owned();
                return Err(TraceError::Large { file });
            }
            if line.is_empty() {
                return lines.finish(name, speed);
            } else if is_har {
                lines.take_har(&line, name)?;
            } else if is_whole {
                lines.take_array(&line, name)?;
            } else {
                lines.take(line.trim_ascii_end(), name, number)?;
            }
        }
    }

    /// Returns the number of arrivals whose method usually has content, which logs do not contain.
    pub fn with_content(&self) -> u64 {
        let which = self.which.as_deref().unwrap_or_default();
        which
            .iter()
            .map(|index| &*self.requests[*index as usize].0)
            .filter(|method| matches!(*method, "POST" | "PUT" | "PATCH"))
            .count() as u64
    }

    /// Returns the time from the first arrival to the last, in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.times.last().copied().unwrap_or(0)
    }

    /// Returns the part of the trace that is due before `ns` nanoseconds have passed; never empty, since the first
    /// arrival is due at once.
    pub fn within(&self, ns: u64) -> Trace {
        let count = self.times.partition_point(|time| *time < ns.max(1));
        Trace {
            times: self.times[..count].into(),
            requests: self.requests.clone(),
            which: self.which.as_ref().map(|which| which[..count].into()),
            left_out: self.left_out.clone(),
            longest_pause: self.longest_pause,
        }
    }

    /// Returns the trace as the arrivals of a load; `file` is the path from which it was read.
    pub fn arrivals(&self, file: &str) -> Arrivals {
        Arrivals::Trace {
            file: file.to_owned(),
            arrivals: self.times.len() as u64,
            length_ns: self.length_ns(),
            every_ns: None,
            left_out: self.left_out.clone(),
        }
    }
}

fn at_line(file: &str, line: u64, text: &[u8], wrong: Wrong) -> TraceError {
    const SHOWN: usize = 40;
    // An object of an array may have several lines.
    let first_line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let at = if wrong.at <= first_line.len() { wrong.at } else { 0 };
    let tail = &first_line[at..];
    let shown = String::from_utf8_lossy(&tail[..tail.len().min(SHOWN)]);
    let description = match tail.len() {
        0 => "the end of the line".to_owned(),
        1..=SHOWN => format!("`{shown}`"),
        _ => format!("`{shown}…`"),
    };
    TraceError::Line {
        file: file.to_owned(),
        line,
        column: at + 1,
        expected: wrong.expected,
        found: description,
    }
}

fn unreadable(name: &str, error: io::Error) -> TraceError {
    // No other file says that of itself.
    let is_gzip = matches!(error.kind(), UnexpectedEof | InvalidData | InvalidInput);
    let source = if is_gzip {
        io::Error::other(format!("gzip that was cut or damaged: {error}"))
    } else {
        error
    };
    TraceError::Read { file: name.to_owned(), source }
}

fn har_error(name: &str, message: &str) -> TraceError {
    TraceError::Read {
        file: name.to_owned(),
        source: io::Error::other(format!("as a HAR file: {message}")),
    }
}

/// An arrival that was read, in [`BYTES_OF_AN_ARRIVAL`].
#[derive(Clone, Copy)]
struct Arrival {
    /// Nanoseconds since the epoch, not below zero.
    ns: i64,
    /// Index of its request, if the format has requests.
    request: u32,
    /// Number of its line, from 1.
    line: u32,
}

/// Content of the lines read so far.
#[derive(Default)]
struct Lines {
    format: Option<Format>,
    arrivals: Vec<Arrival>,
    /// Indices of requests by their text: method, space and target.
    requests: HashMap<Box<str>, u32>,
    /// Request of the current line: a buffer, so that a line needs no allocation.
    request: String,
    /// True if some line contains a time more precise than a clock's whole second.
    exact: bool,
    left_out: Vec<LeftOut>,
    /// Error in the first line that cannot be read.
    broken: Option<TraceError>,
}

impl Lines {
    /// Reads a line. An unreadable one, of another program or cut off, is counted and its error kept.
    ///
    /// # Errors
    /// The line is unreadable and the file has only times, or no format was found in the first [`LINES_BEFORE_FORMAT`]
    /// lines.
    fn take(&mut self, line: &[u8], name: &str, number: u64) -> Result<(), TraceError> {
        let Err(wrong) = self.read(line, number) else {
            return Ok(());
        };
        LeftOut::count(&mut self.left_out, UNREADABLE, number);
        if self.broken.is_none() {
            self.broken = Some(at_line(name, number, line, wrong));
        }
        let is_hopeless = match self.format {
            Some(format) => !format.has_requests(),
            None => number >= LINES_BEFORE_FORMAT,
        };
        self.broken.take_if(|_| is_hopeless).map_or(Ok(()), Err)
    }

    fn read(&mut self, line: &[u8], number: u64) -> Result<(), Wrong> {
        if let Some(fields) = line.strip_prefix(b"#Fields:")
            && matches!(self.format, None | Some(Format::Columns(_)))
        {
            self.format = Some(Format::Columns(Columns::of(fields)?));
        }
        if line.is_empty() || line[0] == b'#' {
            return Ok(());
        }
        let format = match self.format {
            Some(format) => format,
            None => *self.format.insert(Format::of(line)?),
        };
        let read = format.read(line, &mut self.request)?;
        self.add(read, number);
        Ok(())
    }

    /// Adds an arrival whose request is in `request`.
    fn add(&mut self, (stamp, sendable): Line, number: u64) {
        self.exact |= !stamp.whole_second;
        if let Err(what) = sendable {
            return LeftOut::count(&mut self.left_out, what, number);
        }
        let has_request = self.format.is_some_and(Format::has_requests);
        let request = has_request.then(|| self.index_of_request());
        self.arrivals.push(Arrival {
            ns: stamp.ns,
            request: request.unwrap_or(0),
            line: u32::try_from(number).unwrap_or(u32::MAX),
        });
    }

    /// Adds the entries of a HAR file whose host is that of the first one.
    fn take_har(&mut self, file: &[u8], name: &str) -> Result<(), TraceError> {
        let entries = har::parse(file).map_err(|message| har_error(name, &message))?;
        self.format = Some(Format::Json);
        let site = entries.iter().find_map(|entry| entry.destination.as_ref().ok());
        for (entry, number) in entries.iter().zip(1..) {
            let stamp = time::rfc3339(&entry.begin)
                .ok_or_else(|| har_error(name, &format!("entry {number} has no time")))?;
            self.request.clear();
            let sendable = match (&entry.destination, site) {
                (Ok((host, target)), Some((site, _))) if host.eq_ignore_ascii_case(site) => {
                    put_request(&entry.method, target, &mut self.request)
                }
                (Ok(_), _) => Err(OTHER_HOST),
                (Err(kind), _) => Err(*kind),
            };
            self.add((stamp, sendable), number);
        }
        Ok(())
    }

    /// Takes the objects of an array, as lines.
    fn take_array(&mut self, file: &[u8], name: &str) -> Result<(), TraceError> {
        let objects: Vec<&RawValue> =
            serde_json::from_slice(file).map_err(|error| TraceError::Read {
                file: name.to_owned(),
                source: io::Error::other(format!(
                    "as a JSON array: {error}; jq -c '.[]' makes lines"
                )),
            })?;
        let (mut number, mut before) = (1, 0);
        for object in objects {
            let at = object.get().as_ptr().addr() - file.as_ptr().addr();
            number += file[before..at].iter().filter(|byte| **byte == b'\n').count() as u64;
            before = at;
            self.take(object.get().as_bytes(), name, number)?;
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
        let lines = self.arrivals.len() as u64 + LeftOut::told(&self.left_out).0;
        let unreadable = self.left_out.iter().filter(|one| one.what == UNREADABLE);
        let is_strict = !self.format.is_some_and(Format::has_requests);
        if let Some(error) = self.broken.take()
            && (is_strict
                || unreadable.map(|one| one.lines).sum::<u64>() > lines / UNREADABLE_AT_MOST)
        {
            return Err(error);
        }
        // Equal times stay in the order of the file.
        self.arrivals.sort_by_key(|arrival| arrival.ns);
        if !self.exact {
            spread_over_seconds(&mut self.arrivals);
        }
        let [Arrival { ns: first, .. }, ..] = self.arrivals[..] else {
            return Err(TraceError::Empty { file: name.to_owned(), left_out: self.left_out });
        };
        let length = self.arrivals.last().map_or(0, |last| last.ns - first);
        if length as f64 / speed > LONGEST_NS {
            return Err(TraceError::Speed(speed));
        }
        let which = self.format.is_some_and(Format::has_requests);
        let arrivals = self.arrivals.iter();
        Ok(Trace {
            longest_pause: longest_pause(&self.arrivals, speed),
            times: arrivals
                .clone()
                .map(|arrival| at_speed((arrival.ns - first) as u64, speed))
                .collect(),
            which: which.then(|| arrivals.map(|arrival| arrival.request).collect()),
            requests: in_order(self.requests),
            left_out: self.left_out,
        })
    }
}

/// The longest time without an arrival. Arrivals are sorted.
fn longest_pause(arrivals: &[Arrival], speed: f64) -> Option<Pause> {
    let (before, after) = arrivals
        .iter()
        .zip(arrivals.get(1..)?)
        .max_by_key(|(before, after)| after.ns - before.ns)?;
    Some(Pause {
        ns: at_speed((after.ns - before.ns) as u64, speed),
        until_line: after.line.into(),
    })
}

/// Spreads arrivals in the same whole second evenly over it. `times` must be sorted.
fn spread_over_seconds(arrivals: &mut [Arrival]) {
    for second in arrivals.chunk_by_mut(|one, other| one.ns == other.ns) {
        let count = second.len() as u64;
        for (i, arrival) in second.iter_mut().enumerate() {
            arrival.ns += (i as u64 * S / count) as i64;
        }
    }
}

fn at_speed(ns: u64, speed: f64) -> u64 {
    if speed == 1.0 { ns } else { (ns as f64 / speed).round() as u64 }
}

/// Returns method and target of the requests, ordered by index.
fn in_order(requests: HashMap<Box<str>, u32>) -> Vec<(String, String)> {
    let mut requests: Vec<_> = requests.into_iter().collect();
    requests.sort_unstable_by_key(|(_, index)| *index);
    requests
        .into_iter()
        .map(|(request, _)| {
            let (method, target) = request.split_once(' ').unwrap_or(("", &request));
            (method.to_owned(), target.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests;
