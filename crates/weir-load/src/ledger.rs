//! Records of a running trial: counters and histograms of each slice.
//!
//! Everything has its full size from the start. A slice's data leaves the thread as a whole when the slice and all its
//! requests have ended, and is returned empty for a later slice.

use hdrhistogram::Histogram;
use rustix::io::Errno;
use weir_http::ParseError;
use weir_http::response::ClosedError;
use weir_model::load::{Censored, ErrorCount, ErrorKind};

use crate::tls::TlsError;

/// Longest time that a histogram resolves, in nanoseconds: an hour.
pub const LONGEST_NS: u64 = 3_600_000_000_000;

/// Creates an empty histogram of nanoseconds: 1 ns to an hour, three significant digits.
pub fn new_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid")
}

/// Times of the requests that were intended in the measured part of a slice and answered.
#[derive(Debug, Clone)]
pub struct Histograms {
    /// Time from the intended time to the last byte, nanoseconds.
    pub response: Histogram<u64>,
    /// Time from the sent time to the last byte, nanoseconds.
    pub service: Histogram<u64>,
    /// Time from the sent time to the first byte, nanoseconds.
    pub first_byte: Histogram<u64>,
    /// Time from the moment a request was due and a connection idle until it was sent, nanoseconds.
    pub dispatch_lag: Histogram<u64>,
    /// Number of response times above [`LONGEST_NS`]; they are in the histogram's last bucket.
    pub overflow: u64,
}

impl Histograms {
    /// Creates empty histograms.
    pub fn new() -> Histograms {
        let [response, service, first_byte, dispatch_lag] = [(); 4].map(|()| new_histogram());
        Histograms { response, service, first_byte, dispatch_lag, overflow: 0 }
    }

    fn all(&mut self) -> [&mut Histogram<u64>; 4] {
        let (response, service) = (&mut self.response, &mut self.service);
        [response, service, &mut self.first_byte, &mut self.dispatch_lag]
    }

    /// Adds the counts of other histograms. Lossless: all have the same bounds.
    pub fn add(&mut self, other: &Histograms) {
        let added = [&other.response, &other.service, &other.first_byte, &other.dispatch_lag];
        let some = self.all().into_iter().zip(added);
        // Of an empty one every count would be read all the same.
        for (own, others) in some.filter(|(_, others)| !others.is_empty()) {
            own.add(others).expect("all histograms have the same bounds");
        }
        self.overflow += other.overflow;
    }

    fn clear(&mut self) {
        self.all().into_iter().filter(|own| !own.is_empty()).for_each(Histogram::reset);
        self.overflow = 0;
    }
}

impl Default for Histograms {
    fn default() -> Histograms {
        Histograms::new()
    }
}

/// Errors counted by kind and cause.
#[derive(Debug, Clone, Default)]
pub struct Errors(Vec<(ErrorKind, Cause, u64)>);

/// Cause of an error, by its source.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cause {
    /// Error number of the kernel.
    Kernel(Errno),
    /// Error of the response parser.
    Parser(ParseError),
    /// Error of the response parser about a connection that was closed.
    Closed(ClosedError),
    /// Error of the TLS session.
    Tls(Box<TlsError>),
    /// Error detected by the engine.
    Own(&'static str),
    /// Error counted elsewhere, with the kernel's error number if there was one.
    Told(String, Option<i32>),
}

impl Cause {
    fn words(&self) -> String {
        match self {
            Cause::Kernel(errno) => std::io::Error::from(*errno).to_string(),
            Cause::Parser(error) => error.to_string(),
            Cause::Closed(error) => error.to_string(),
            Cause::Tls(error) => error.words().into_owned(),
            Cause::Own(words) => (*words).to_owned(),
            Cause::Told(words, _) => words.clone(),
        }
    }

    fn errno(&self) -> Option<i32> {
        match self {
            Cause::Kernel(errno) => Some(errno.raw_os_error()),
            Cause::Told(_, errno) => *errno,
            _ => None,
        }
    }
}

impl Errors {
    pub(crate) fn count(&mut self, kind: ErrorKind, cause: Cause) {
        self.count_n(kind, cause, 1);
    }

    fn count_n(&mut self, kind: ErrorKind, cause: Cause, n: u64) {
        match self.0.iter_mut().find(|(k, c, _)| *k == kind && *c == cause) {
            Some((_, _, count)) => *count += n,
            None => self.0.push((kind, cause, n)),
        }
    }

    /// Creates errors from counts made elsewhere by [`Errors::counts`].
    pub fn told(counts: &[ErrorCount]) -> Errors {
        let mut errors = Errors::default();
        for error in counts {
            let cause = Cause::Told(error.words.clone(), error.errno);
            errors.count_n(error.kind, cause, error.count);
        }
        errors
    }

    /// Adds other errors.
    pub fn add(&mut self, other: &Errors) {
        for (kind, cause, count) in &other.0 {
            self.count_n(*kind, cause.clone(), *count);
        }
    }

    /// Returns true if there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of errors.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(_, _, count)| count).sum()
    }

    /// Returns the counts by kind and cause, the most frequent first.
    pub fn counts(&self) -> Vec<ErrorCount> {
        let mut counts: Vec<_> = self
            .0
            .iter()
            .map(|(kind, cause, count)| ErrorCount {
                kind: *kind,
                words: cause.words(),
                errno: cause.errno(),
                count: *count,
            })
            .collect();
        counts.sort_by_key(|error| std::cmp::Reverse(error.count));
        counts
    }
}

/// Figures of one slice, of one thread or of all.
#[derive(Debug, Clone)]
pub struct SliceData {
    /// Requests that the schedule wanted sent in the measured part; open loop only.
    pub due: u64,
    /// Requests that were sent in the measured part.
    pub offered: u64,
    /// Requests due in the measured part that were dropped because no connection was idle.
    pub dropped: u64,
    /// Requests due in the measured part that waited for an idle connection until the load moved on or ended. Every due
    /// request is either queued, dropped, or sent, with an entry in [`Histograms::dispatch_lag`].
    pub queued: u64,
    /// Responses whose last byte arrived in the measured part.
    pub completed: u64,
    /// Answered requests of this slice in thousandths, each weighted by its share, see [`crate::Slice::served`].
    pub served_thousandths: u64,
    /// Responses to requests intended anywhere in the slice, whenever they ended.
    pub completed_whole: u64,
    /// Bytes received for requests of this slice.
    pub received_bytes: u64,
    /// Bytes of content received for requests of this slice.
    pub content_bytes: u64,
    /// Connections of the flow that were opened again while the slice lasted.
    pub reconnects: u64,
    /// Connections of the flow that the peer closed while nothing was awaited on them.
    pub lost: u64,
    /// Responses by status code, `[code - 100]`; a response with a code outside 100 to 599 is an error.
    pub statuses: Box<[u64; 500]>,
    /// Errors of the slice's requests and connections.
    pub errors: Errors,
    /// Requests of this slice that never ended.
    pub censored: Censored,
    /// CPU time of the thread from the beginning of the slice to its end, in nanoseconds.
    pub cpu_ns: u64,
    /// Largest delay between the slice's beginning and a thread's switch to its arm, nanoseconds: before that, the
    /// thread sent no request of the slice.
    pub switch_late_ns: u64,
    /// Distributions of times, nanoseconds.
    pub histograms: Histograms,
}

impl SliceData {
    /// Creates empty figures.
    pub fn new() -> SliceData {
        SliceData {
            due: 0,
            offered: 0,
            dropped: 0,
            queued: 0,
            completed: 0,
            served_thousandths: 0,
            completed_whole: 0,
            received_bytes: 0,
            content_bytes: 0,
            reconnects: 0,
            lost: 0,
            statuses: Box::new([0; 500]),
            errors: Errors(Vec::with_capacity(16)),
            censored: Censored::default(),
            cpu_ns: 0,
            switch_late_ns: 0,
            histograms: Histograms::new(),
        }
    }

    /// Adds the figures of another slice, or of the same slice on another thread.
    pub fn add(&mut self, other: &SliceData) {
        self.due += other.due;
        self.offered += other.offered;
        self.dropped += other.dropped;
        self.queued += other.queued;
        self.completed += other.completed;
        self.served_thousandths += other.served_thousandths;
        self.completed_whole += other.completed_whole;
        self.received_bytes += other.received_bytes;
        self.content_bytes += other.content_bytes;
        self.reconnects += other.reconnects;
        self.lost += other.lost;
        for (own, others) in self.statuses.iter_mut().zip(other.statuses.iter()) {
            *own += others;
        }
        self.errors.add(&other.errors);
        self.censored.in_flight += other.censored.in_flight;
        self.censored.queued += other.censored.queued;
        self.censored.oldest_ns = self.censored.oldest_ns.max(other.censored.oldest_ns);
        self.cpu_ns += other.cpu_ns;
        self.switch_late_ns = self.switch_late_ns.max(other.switch_late_ns);
        self.histograms.add(&other.histograms);
    }

    /// Resets all figures; keeps the memory.
    pub fn clear(&mut self) {
        self.due = 0;
        self.offered = 0;
        self.dropped = 0;
        self.queued = 0;
        self.completed = 0;
        self.served_thousandths = 0;
        self.completed_whole = 0;
        self.received_bytes = 0;
        self.content_bytes = 0;
        self.reconnects = 0;
        self.lost = 0;
        self.statuses.fill(0);
        self.errors.0.clear();
        self.censored = Censored::default();
        self.cpu_ns = 0;
        self.switch_late_ns = 0;
        self.histograms.clear();
    }

    /// Responses by status class, 1xx at index 1 to 5xx at index 5.
    pub fn status_classes(&self) -> [u64; 6] {
        let mut classes = [0; 6];
        for (index, count) in self.statuses.iter().enumerate() {
            classes[index / 100 + 1] += count;
        }
        classes
    }
}

impl Default for SliceData {
    fn default() -> SliceData {
        SliceData::new()
    }
}
