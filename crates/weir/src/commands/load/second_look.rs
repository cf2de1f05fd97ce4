//! One more request after a load that was not answered as expected: it reveals another protocol on that port,
//! redirects, or responses without an end. It is one of the load's own, with a method that changes nothing at the
//! server.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use weir_http::response::{Progress, ResponseParser};
use weir_load::template::Files;
use weir_load::tls::Connector;
use weir_load::{Flow, RequestSet};
use weir_model::flow::FlowSpec;
use weir_model::load::ErrorKind;
use weir_model::load_report::LoadReport;
use weir_report::number::percent;
use weir_report::secrets::visible;
use weir_sut::is_stopped;

use super::job::{Job, without_secrets};
use crate::failure::Failure;

/// Longest time for a server to open a connection, or to begin an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time between two looks at the user's wish to end.
const POLL: Duration = Duration::from_millis(20);

/// A TLS record (RFC 8446 §5.1) with a ClientHello of one byte: a TLS server answers with an alert.
const GREETING: &[u8] = &[0x16, 0x03, 0x01, 0x00, 0x05, 0x01, 0x00, 0x00, 0x01, 0x00];

/// The types of records that may be the answer: an alert, or a handshake.
const TLS: &[u8] = &[0x15, 0x16];

/// Header of the PROXY protocol, version 1, for a connection of unknown origin.
const PROXY_HEADER: &[u8] = b"PROXY UNKNOWN\r\n";

const UNANSWERED: &str = "not one request was answered";

/// A sentence about a load's answers, and what to do.
pub(super) struct Remark {
    text: String,
    hint: String,
    /// True if no request was answered as the server would answer a client that it understands.
    pub(super) is_failure: bool,
}

impl Remark {
    fn failed(text: String, hint: impl Into<String>) -> Remark {
        Remark { text, hint: hint.into(), is_failure: true }
    }

    pub(super) fn note(&self) -> String {
        format!("{}; {}", self.text, self.hint)
    }

    pub(super) fn failure(&self, url: &str) -> Failure {
        Failure::failed(format!("{url}: {}", self.text)).hint(&self.hint)
    }
}

/// Looks again at a load that was not answered as it was meant.
pub(super) fn remark(job: &Job, report: &LoadReport) -> Option<Remark> {
    let (flow, url) = asking(job)?;
    let mut kinds = report.results.errors.iter().map(|error| error.kind);
    let is_late = kinds.all(|kind| matches!(kind, ErrorKind::Connect | ErrorKind::Timeout));
    match &report.results.statuses[..] {
        _ if report.results.load.status_expected || report.outcome != "complete" => None,
        [] if is_late && report.results.counts.received_bytes == 0 => None,
        [] if is_late => unended(flow),
        [] => speaks_tls(flow, url, UNANSWERED).or_else(|| {
            let is_silent = report.results.counts.received_bytes == 0;
            is_silent.then(|| proxy_protocol(flow)).flatten()
        }),
        [only] if only.status == 400 => {
            let all = "every answer was status 400";
            speaks_tls(flow, url, all).or_else(|| certificate_demanded(flow, all))
        }
        all => {
            let redirects = all.iter().filter(|row| weir_lab::is_redirect(row.status));
            let most = redirects.clone().max_by_key(|row| row.count)?.status;
            let sum: u64 = redirects.map(|row| row.count).sum();
            let share = sum as f64 / all.iter().map(|row| row.count).sum::<u64>() as f64;
            (share >= 0.5).then(|| redirected(flow, most, share))
        }
    }
}

/// Looks again at a server of which not one connection could be used.
pub(super) fn without_connection(job: &Job) -> Option<Remark> {
    asking(job).and_then(|(flow, _)| proxy_protocol(flow))
}

/// Returns the first flow that sends requests, and its URL.
fn asking(job: &Job) -> Option<(&Flow, &str)> {
    let mut flows = job.plan.flows.iter().zip(&job.flows);
    let (flow, named) = flows.find(|(flow, _)| !flow.is_held())?;
    Some((flow, &named.target.url))
}

fn unended(flow: &Flow) -> Option<Remark> {
    let answer = Answer::of_flow(flow)?;
    let kind = answer.header("content-type").filter(|kind| !kind.is_empty());
    let (status, after) = (answer.status, answer.first_byte.as_secs_f64() * 1e3);
    let is_stream = kind.as_ref().is_some_and(|kind| kind.starts_with("text/event-stream"));
    let hint = if is_stream {
        "a stream of events has no end that could be timed: load a URL whose responses end"
    } else {
        "if they end later, give them longer with -T"
    };
    let content_type = kind.map_or(String::new(), |kind| format!(", Content-Type {kind}"));
    let begin = format!("status {status}{content_type}, first byte after {after:.1} ms");
    let text = format!("{UNANSWERED}: responses begin ({begin}) and do not end within the timeout");
    Some(Remark::failed(text, hint))
}

fn speaks_tls(flow: &Flow, url: &str, seen: &str) -> Option<Remark> {
    let is_tls = flow.tls.is_none() && answers(flow, GREETING, TLS);
    is_tls.then(|| {
        let hint = format!("ask over TLS: {}", url.replacen("http:", "https:", 1));
        Remark::failed(format!("{seen}, and the port speaks TLS"), hint)
    })
}

/// Tests if the port answers only after a header of the PROXY protocol.
fn proxy_protocol(flow: &Flow) -> Option<Remark> {
    let is_wanted = match flow.tls {
        Some(_) => {
            !answers(flow, GREETING, TLS) && answers(flow, &[PROXY_HEADER, GREETING].concat(), TLS)
        }
        None => {
            let request = flow.requests.first_safe()?;
            let (_, status) = reply(flow, PROXY_HEADER, &request);
            status.is_some_and(|status| (200..600).contains(&status))
                && reply(flow, b"", &request).0 == 0
        }
    };
    is_wanted.then(|| {
        let text = "but the port answers where a header of the PROXY protocol comes first";
        let hint = "the listener may demand it (nginx: `listen … proxy_protocol`, HAProxy: `accept-proxy`), and weir does not \
                    speak it: load a listener without";
        Remark::failed(format!("{UNANSWERED}, {text}"), hint)
    })
}

/// Reads a page of status 400 as nginx writes it.
fn certificate_demanded(flow: &Flow, seen: &str) -> Option<Remark> {
    let answer = Answer::of_flow(flow)?;
    answer.text.contains("required SSL certificate").then(|| {
        let text = format!("{seen}, because the server demands a client certificate");
        Remark::failed(text, "give one with --cert and --key")
    })
}

fn redirected(flow: &Flow, status: u16, share: f64) -> Remark {
    let (to, hint) = where_to(Answer::of_flow(flow), status);
    let share = percent(share);
    let text = format!(
        "{share} of the answers are redirects (status {status}{to}), which weir does not follow"
    );
    Remark { text, hint, is_failure: false }
}

/// Requests a redirect once more. Returns a text about its target, and what to do.
pub(crate) fn about_redirect(spec: &FlowSpec, peer: SocketAddr, status: u16) -> (String, String) {
    where_to(Answer::of_spec(spec, peer), status)
}

/// Describes where a redirect leads, without what may be a secret, and what to do.
fn where_to(answer: Option<Answer>, status: u16) -> (String, String) {
    let location = answer.and_then(|answer| answer.header("location"));
    let shown = location.map_or(String::new(), |location| without_secrets(&location));
    let is_whole = shown.starts_with("http") && !shown.contains("(masked)");
    let instead = if is_whole { &*shown } else { "the URL that it redirects to" };
    let meant = format!("if the redirect is what you want to measure: -e status={status}");
    let hint = format!("use {instead}; or, {meant}");
    let to = if shown.is_empty() { shown } else { format!(", Location: {shown}") };
    (to, hint)
}

/// The beginning of an answer.
struct Answer {
    status: u16,
    text: String,
    first_byte: Duration,
}

impl Answer {
    /// Sends a flow's first request once more, if that changes nothing at the server.
    fn of_flow(flow: &Flow) -> Option<Answer> {
        let peer = flow.routes.first()?.peer;
        Answer::of(peer, &flow.requests, flow.tls.as_deref())
    }

    fn of_spec(spec: &FlowSpec, peer: SocketAddr) -> Option<Answer> {
        let authority = spec.host.clone()?;
        let requests = RequestSet::of_flow(spec, None, &authority, &mut Files::default()).ok()?;
        let tls = spec.tls.as_ref().map(|tls| Connector::new(tls, &authority));
        Answer::of(peer, &requests, tls.transpose().ok()?.as_ref())
    }

    fn of(peer: SocketAddr, requests: &RequestSet, tls: Option<&Connector>) -> Option<Answer> {
        let request = requests.first_safe()?;
        let stream = connect(peer)?;
        match tls {
            Some(connector) => Answer::over(connector.over(stream).ok()?, &request),
            None => Answer::over(stream, &request),
        }
    }

    fn over(mut stream: impl Read + Write, request: &[u8]) -> Option<Answer> {
        stream.write_all(request).ok()?;
        let begun = Instant::now();
        let mut buffer = [0; 16384];
        let length = stream.read(&mut buffer).ok()?;
        let text = String::from_utf8_lossy(&buffer[..length]);
        let text: String = text.lines().map(|line| visible(line) + "\n").collect();
        let status = text.split(' ').nth(1)?.parse().ok()?;
        Some(Answer { status, text, first_byte: begun.elapsed() })
    }

    fn header(&self, name: &str) -> Option<String> {
        let mut fields = self.text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(value.trim().to_owned())
    }
}

/// A connection that ends by itself after twice [`PATIENCE`], or when the user wants weir to end: a peer may send or take
/// a byte now and then without end.
struct BoundedStream(Arc<TcpStream>);

impl Read for BoundedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Write for BoundedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.0).flush()
    }
}

fn connect(peer: SocketAddr) -> Option<BoundedStream> {
    let stream = TcpStream::connect_timeout(&peer, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let stream = Arc::new(stream);
    let watched = Arc::downgrade(&stream);
    let end = Instant::now() + 2 * PATIENCE;
    thread::spawn(move || {
        while let Some(stream) = watched.upgrade() {
            if Instant::now() >= end || is_stopped() {
                let _ = stream.shutdown(Shutdown::Both);
                return;
            }
            drop(stream);
            thread::sleep(POLL);
        }
    });
    Some(BoundedStream(stream))
}

/// Asks once more over a connection that begins with `header`: how many bytes come back, and the status of the response if
/// they are a whole one.
fn reply(flow: &Flow, header: &[u8], request: &[u8]) -> (usize, Option<u16>) {
    let peer = flow.routes.first().map(|route| route.peer);
    let Some(mut stream) = peer.and_then(connect) else {
        return (0, None);
    };
    if stream.write_all(&[header, request].concat()).is_err() {
        return (0, None);
    }
    let mut parser = ResponseParser::default();
    parser.begin(request.starts_with(b"HEAD "));
    let (mut buffer, mut length) = ([0; 16384], 0);
    let until = Instant::now() + 2 * PATIENCE;
    while Instant::now() < until {
        let read = stream.read(&mut buffer).unwrap_or(0);
        length += read;
        if read == 0 {
            let end = parser.finish_on_close();
            return (length, end.ok().map(|end| end.status));
        }
        match parser.feed(&buffer[..read]).map(|fed| fed.event) {
            Ok(Progress::Complete(end)) => return (length, Some(end.status)),
            Ok(Progress::NeedMore) => {}
            Err(_) => break,
        }
    }
    (length, None)
}

/// Returns true if the first byte that comes back is one of those expected.
fn answers(flow: &Flow, bytes: &[u8], expected: &[u8]) -> bool {
    let peer = flow.routes.first().map(|route| route.peer);
    let mut first = [0];
    peer.and_then(connect).is_some_and(|mut stream| {
        let is_read = stream.write_all(bytes).and_then(|()| stream.read_exact(&mut first));
        is_read.is_ok() && expected.contains(&first[0])
    })
}
