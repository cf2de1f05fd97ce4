//! Properties that must hold for the bytes of a file of recorded arrivals.

use std::fmt::Write;
use std::io::{BufReader, ErrorKind};

use weir_load::{Trace, TraceError};

/// Name of the file in error messages.
const NAME: &str = "trace";

/// Start of a trace that is written again, in seconds since 1970.
const BEGIN: u64 = 1_000_000_000;

/// Longest trace that is written again, in nanoseconds: its times stay within this millennium.
const LONGEST_NS: u64 = 1_000_000_000_000_000_000;

/// Checks a file of recorded arrivals: times, an access log, columns, JSON lines, or a HAR file; plain or as gzip.
///
/// # Panics
/// A property does not hold.
pub fn trace(data: &[u8]) {
    let read = Trace::from_reader(data, NAME, 1.0);
    let is_gzip = data.starts_with(&[0x1f, 0x8b]);
    for capacity in [1, 7, 100] {
        let reader = BufReader::with_capacity(capacity, data);
        let again = Trace::from_reader(reader, NAME, 1.0);
        // How much of damaged gzip is unpacked depends on the pieces in which it comes.
        if is_gzip && read.is_err() {
            assert!(again.is_err(), "capacity {capacity}");
            continue;
        }
        assert_eq!(with_message(&again), with_message(&read), "capacity {capacity}");
    }
    match read {
        Ok(trace) => {
            check_trace(&trace);
            at_double_speed(data, &trace);
            written_again(&trace);
        }
        Err(error) if !is_gzip => check_position(data, &error),
        Err(_) => {}
    }
}

fn with_message(read: &Result<Trace, TraceError>) -> Result<&Trace, String> {
    read.as_ref().map_err(ToString::to_string)
}

fn check_trace(trace: &Trace) {
    assert_eq!(trace.times.first(), Some(&0));
    assert!(trace.times.is_sorted());
    assert_eq!(trace.times.last(), Some(&trace.length_ns()));
    let Some(which) = &trace.which else {
        assert!(trace.requests.is_empty() && trace.left_out.is_empty());
        return;
    };
    assert_eq!(which.len(), trace.times.len());
    let mut used = vec![false; trace.requests.len()];
    which.iter().for_each(|&index| used[index as usize] = true);
    assert!(used.iter().all(|used| *used), "a request that nobody sends");
    for (method, target) in &trace.requests {
        assert!(weir_http::is_token(method), "{method:?}");
        let graphic = target.bytes().all(|byte| byte.is_ascii_graphic());
        assert!(target.starts_with('/') && graphic, "{target:?}");
    }
    let mut distinct: Vec<_> = trace.requests.iter().collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), trace.requests.len(), "a request comes twice");
}

fn at_double_speed(data: &[u8], trace: &Trace) {
    let fast = Trace::from_reader(data, NAME, 2.0).expect("it can be read");
    assert_eq!(fast.which, trace.which);
    for (fast, &slow) in fast.times.iter().zip(trace.times.iter()) {
        // Beyond 2^53 a float leaves out some numbers.
        let slack = 1 + (slow >> 52);
        assert!((slow / 2).abs_diff(*fast) <= slack, "{slow} becomes {fast}");
    }
}

/// Checks that a trace reads the same after it is written as JSON lines, or as plain times, with nanoseconds.
fn written_again(trace: &Trace) {
    if trace.length_ns() > LONGEST_NS {
        return;
    }
    let mut text = String::new();
    for (arrival, ns) in trace.times.iter().enumerate() {
        let (second, rest) = (BEGIN + ns / 1_000_000_000, ns % 1_000_000_000);
        let line = match &trace.which {
            None => writeln!(text, "{second}.{rest:09}"),
            Some(which) => {
                let (method, target) = &trace.requests[which[arrival] as usize];
                let escaped = target.replace('\\', "\\\\").replace('"', "\\\"");
                let time = format!("\"msec\":{second}.{rest:09}");
                writeln!(text, "{{{time},\"method\":\"{method}\",\"uri\":\"{escaped}\"}}")
            }
        };
        line.expect("a string takes it");
    }
    let again = Trace::from_reader(text.as_bytes(), NAME, 1.0)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!((&again.times, again.left_out.len()), (&trace.times, 0));
    assert_eq!(list_requests(&again), list_requests(trace));
}

/// Lists the request of each arrival.
fn list_requests(trace: &Trace) -> Vec<&(String, String)> {
    let which = trace.which.as_deref().unwrap_or_default().iter();
    which.map(|index| &trace.requests[*index as usize]).collect()
}

/// Checks that an error names an existing line and a column in it.
fn check_position(data: &[u8], error: &TraceError) {
    match error {
        TraceError::Line { line, column, .. } => {
            let mut lines = data.split(|byte| *byte == b'\n');
            let text = lines.nth(*line as usize - 1).expect("there is no such line");
            assert!((1..=text.len() + 1).contains(column), "column {column}");
        }
        TraceError::Empty { .. } | TraceError::Large { .. } | TraceError::Speed { .. } => {}
        // A HAR file.
        TraceError::Read { source, .. } if source.kind() == ErrorKind::Other => {}
        TraceError::Read { source, .. } => panic!("memory can be read: {source}"),
    }
}
