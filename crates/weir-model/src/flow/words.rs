//! A flow as people write it: the same words in a study and as options of `weir load`.
//!
//! Whoever has the words hands them over as they were typed, each with its [`Key`], and gets the
//! [`FlowSpec`] or all [`Fault`]s. Where a word stood, line and column or a flag, is for the caller
//! to add.

mod expect;

use std::time::Duration;

use crate::arrivals::{parse_segments, parse_spacing};
use crate::load::{Assignment, Close, Lifetime, Overflow, Segment, Spacing};
use crate::nearest::nearest;
use crate::quantity::{Limits, parse_duration, parse_rate};
use crate::request::ExpectSpec;
use crate::tls::{ClientCertificate, TlsSpec, TlsVersion, TlsWordError, Trust, names};

use self::expect::expectation;
use super::{ArrivalsSpec, FlowSpec, TraceSpec};

/// Most requests in flight on one connection: beyond, a server's buffers are what is measured.
pub const DEEPEST: u16 = 1024;

/// What a word is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// How many connections.
    Connections,
    /// How long a connection is used: `keep-alive`, `per-request`, `1000`, `30s`, `hold`, `hold:10s`.
    Connection,
    /// How connections are closed: `fin`, `reset`.
    Close,
    /// Connections opened per second at most.
    ConnectRate,
    /// Requests in flight on one connection.
    Pipeline,
    /// Requests per second, over time.
    Rate,
    /// How arrivals are spread: `even`, `poisson:7`, `burst:50`.
    Arrivals,
    /// File of recorded arrivals.
    Trace,
    /// How much faster they come.
    TraceSpeed,
    /// Which connection sends what is due: `global`, `per-connection`.
    Schedule,
    /// What becomes of what finds no idle connection: `queue`, `drop`.
    Overflow,
    /// Requests at most.
    Limit,
    /// How long a response may take.
    Timeout,
    /// What a response must be: `status=200`, `size=1KiB`; may be said many times.
    Expect,
    /// It is asked over TLS.
    Secure,
    /// TLS versions that are offered.
    TlsVersion,
    /// Cipher suites that are offered.
    Ciphers,
    /// Key exchange groups that are offered.
    Groups,
    /// Application protocols that are offered.
    Alpn,
    /// Name that is sent and looked for in the certificate.
    ServerName,
    /// File of the authorities that are trusted.
    Authorities,
    /// Any certificate is accepted.
    Insecure,
    /// Which new connections resume an earlier session.
    Resumption,
    /// The first request goes with the first flight of a resumed connection.
    EarlyData,
    /// File of the client's certificate.
    Certificate,
    /// File of its key.
    CertificateKey,
}

/// By key: the word of a study (the last part of it where it is nested) and the flag of `weir load`.
const NAMES: [(Key, &str, &str); 26] = [
    (Key::Connections, "connections", "-c"),
    (Key::Connection, "connection", "--connection"),
    (Key::Close, "close", "--close"),
    (Key::ConnectRate, "connect-rate", "--connect-rate"),
    (Key::Pipeline, "pipeline", "--pipeline"),
    (Key::Rate, "rate", "-R"),
    (Key::Arrivals, "arrivals", "--arrivals"),
    (Key::Trace, "trace", "--trace"),
    (Key::TraceSpeed, "trace-speed", "--trace-speed"),
    (Key::Schedule, "schedule", "--schedule"),
    (Key::Overflow, "overflow", "--overflow"),
    (Key::Limit, "requests", "-n"),
    (Key::Timeout, "timeout", "-T"),
    (Key::Expect, "expect", "--expect"),
    (Key::Secure, "tls", "https"),
    (Key::TlsVersion, "version", "--tls"),
    (Key::Ciphers, "ciphers", "--ciphers"),
    (Key::Groups, "groups", "--groups"),
    (Key::Alpn, "alpn", "--alpn"),
    (Key::ServerName, "sni", "--sni"),
    (Key::Authorities, "ca", "--ca"),
    (Key::Insecure, "insecure", "--insecure"),
    (Key::Resumption, "resumption", "--resumption"),
    (Key::EarlyData, "early-data", "--early-data"),
    (Key::Certificate, "cert", "--cert"),
    (Key::CertificateKey, "key", "--key"),
];

impl Key {
    /// The key that a study has for it.
    pub fn word(self) -> &'static str {
        self.names().0
    }

    /// The flag that `weir load` has for it.
    pub fn flag(self) -> &'static str {
        self.names().1
    }

    /// The key for a study's word.
    pub fn of_word(word: &str) -> Option<Key> {
        let named = NAMES.iter().find(|(_, own, _)| *own == word);
        named.map(|(key, ..)| *key)
    }

    fn names(self) -> (&'static str, &'static str) {
        let named = NAMES.iter().find(|(key, ..)| *key == self);
        named.map_or(("", ""), |(_, word, flag)| (word, flag))
    }

    /// Whether only TLS can heed it. `--insecure` does no harm in clear.
    fn is_of_tls(self) -> bool {
        matches!(
            self,
            Key::TlsVersion
                | Key::Ciphers
                | Key::Groups
                | Key::Alpn
                | Key::ServerName
                | Key::Authorities
                | Key::Resumption
                | Key::EarlyData
                | Key::Certificate
        )
    }
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// What it is about.
    pub key: Key,
    /// As it was typed.
    pub text: String,
}

/// What is wrong with something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What it is about.
    pub key: Key,
    /// Its place among all that was said, where one thing alone is wrong.
    pub at: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The valid word that was most likely meant.
    pub nearest: Option<&'static str>,
}

impl Fault {
    /// Something that is wrong with what was said of `key`.
    pub fn new(key: Key, message: impl ToString) -> Fault {
        Fault {
            key,
            at: None,
            message: message.to_string(),
            hint: None,
            nearest: None,
        }
    }

    /// Whether it is about something that only TLS can heed.
    pub fn is_about_tls(&self) -> bool {
        self.key.is_of_tls()
    }

    /// What to do about it.
    pub fn hint(self, hint: &str) -> Fault {
        let hint = Some(hint.to_owned());
        Fault { hint, ..self }
    }

    fn nearest(self, text: &str, words: &[&'static str]) -> Fault {
        let nearest = nearest(text, words);
        Fault { nearest, ..self }
    }
}

/// Reads a flow from what was said of it; what was not said, or is wrong, is as in `base`. `length` is how long a
/// rate that changes has: the load's duration, or the slice of a study.
///
/// With it comes everything that is wrong, in the order in which it was said; then what contradicts something
/// else.
pub fn read(said: &[Said], base: FlowSpec, length: Duration) -> (FlowSpec, Vec<Fault>) {
    let mut reader = Reader {
        spec: base,
        held: None,
        tls: TlsSpec::default(),
        expect: None,
        length,
    };
    let one = |(at, said): (usize, &Said)| {
        let fault = reader.take(said.key, said.text.trim()).err()?;
        Some(Fault {
            at: Some(at),
            ..fault
        })
    };
    let mut faults: Vec<Fault> = said.iter().enumerate().filter_map(one).collect();
    let is_said = |key| said.iter().any(|said| said.key == key);
    let spec = reader.finish(is_said(Key::Secure));
    if !is_said(Key::Secure)
        && let Some(vain) = said.iter().find(|said| said.key.is_of_tls())
    {
        faults.push(Fault::new(vain.key, "requests go out without TLS"));
    }
    let timed = [Key::Rate, Key::Trace]
        .into_iter()
        .find(|key| is_said(*key));
    if reader.held.is_some() && timed.is_some() {
        let fault = Fault::new(
            Key::Connection,
            "held connections have no rate and no trace",
        );
        faults.push(fault.hint("`hold:10s` sends one request on each connection every 10 s"));
    }
    if is_said(Key::TraceSpeed) && !is_said(Key::Trace) {
        let fault = Fault::new(Key::TraceSpeed, "only a trace has a speed");
        faults.push(fault.hint("name the file whose arrivals are repeated, such as access.log"));
    }
    faults.extend(contradictions(&spec));
    (spec, faults)
}

/// What a flow says that another part of it leaves without effect.
fn contradictions(spec: &FlowSpec) -> Vec<Fault> {
    let per_request = spec.lifetime == Lifetime::Request;
    #[rustfmt::skip]
    let all = [
        (spec.close == Close::Reset && spec.lifetime == Lifetime::Kept, Key::Close,
         "connections that are kept are closed by the server or at the end, so there is nothing to reset"),
        (per_request && spec.connect_rate.is_some(), Key::ConnectRate,
         "each request opens a connection, so connections have the rate of the requests"),
        (spec.overflow == Overflow::Drop && !spec.is_open(), Key::Overflow,
         "only a load with a rate can drop requests"),
        (spec.assignment == Assignment::PerConnection && !spec.is_open(), Key::Schedule,
         "only a load with a rate has a schedule"),
        (spec.spacing != Spacing::Even && !spec.is_open(), Key::Arrivals,
         "only a load with a rate has arrivals to spread"),
        (spec.pipeline > 1 && spec.is_held(), Key::Pipeline, "held connections send nothing"),
        (spec.pipeline > 1 && per_request, Key::Pipeline,
         "a connection per request cannot have several in flight"),
    ];
    let so = all.into_iter().filter(|(is_so, ..)| *is_so);
    so.map(|(_, key, message)| Fault::new(key, message))
        .collect()
}

struct Reader {
    spec: FlowSpec,
    /// Connections are held; with a time, one request is sent on each so often.
    held: Option<Option<Duration>>,
    tls: TlsSpec,
    expect: Option<ExpectSpec>,
    length: Duration,
}

impl Reader {
    fn take(&mut self, key: Key, text: &str) -> Result<(), Fault> {
        let bad = |error: &dyn ToString| Fault::new(key, error.to_string());
        let spec = &mut self.spec;
        match key {
            Key::Connections => {
                spec.connections = at_least_one(key, text)?;
            }
            Key::Connection => self.policy(text)?,
            Key::Close => {
                let words = [("fin", Close::Fin), ("reset", Close::Reset)];
                spec.close = one_of(key, text, &words)?;
            }
            Key::ConnectRate => {
                spec.connect_rate = Some(parse_rate(text).map_err(|error| bad(&error))?);
            }
            Key::Pipeline => {
                let depth = text.parse().ok();
                let depth = depth.filter(|depth| (1..=DEEPEST).contains(depth));
                let wanted = format!("a whole number from 1 to {DEEPEST}");
                spec.pipeline = depth.ok_or_else(|| is_not(key, text, &wanted))?;
            }
            Key::Rate => {
                let segments = parse_segments(text, self.length).map_err(|error| bad(&error))?;
                spec.arrivals = match segments[..] {
                    [Segment { from, to, .. }] if from == to => ArrivalsSpec::Constant(from),
                    _ => ArrivalsSpec::Varied(segments),
                };
            }
            Key::Arrivals => spec.spacing = parse_spacing(text).map_err(|error| bad(&error))?,
            Key::Trace => {
                let file = text.to_owned();
                spec.arrivals = ArrivalsSpec::Trace(TraceSpec { file, speed: 1.0 });
            }
            Key::TraceSpeed => {
                let speed = Limits::TRACE_SPEED
                    .read(text)
                    .map_err(|error| bad(&error))?;
                if let ArrivalsSpec::Trace(trace) = &mut spec.arrivals {
                    trace.speed = speed;
                }
            }
            Key::Schedule => {
                let words = [
                    ("global", Assignment::Global),
                    ("per-connection", Assignment::PerConnection),
                ];
                spec.assignment = one_of(key, text, &words)?;
            }
            Key::Overflow => {
                let words = [("queue", Overflow::Queue), ("drop", Overflow::Drop)];
                spec.overflow = one_of(key, text, &words)?;
            }
            Key::Limit => {
                let limit = at_least_one(key, text)?;
                spec.limit = Some(limit);
            }
            Key::Timeout => {
                let timeout = parse_duration(text).map_err(|error| bad(&error))?;
                if timeout < Duration::from_millis(1) {
                    return Err(is_not(key, text, "a duration of at least 1ms"));
                }
                spec.timeout = timeout;
            }
            Key::Expect => expectation(text, self.expect.get_or_insert_default())?,
            _ => self.tls(key, text)?,
        }
        Ok(())
    }

    fn tls(&mut self, key: Key, text: &str) -> Result<(), Fault> {
        let bad = |error: &dyn ToString| Fault::new(key, error.to_string());
        let tls = &mut self.tls;
        match key {
            Key::TlsVersion => {
                let versions = TlsVersion::parse_list(text);
                tls.versions = versions.map_err(|error| bad(&error).hint(&error.hint()))?;
            }
            Key::Ciphers => {
                let ciphers = names::parse_ciphers(text);
                tls.ciphers = ciphers.map_err(|error| bad(&error).hint(&error.hint()))?;
            }
            Key::Groups => {
                let groups = names::parse_groups(text);
                tls.groups = groups.map_err(|error| bad(&error).hint(&error.hint()))?;
            }
            Key::Alpn => {
                let names = text.split(',').map(|name| name.trim().to_owned());
                tls.alpn = names.filter(|name| !name.is_empty()).collect();
            }
            Key::ServerName => tls.server_name = Some(text.to_owned()),
            Key::Authorities => tls.trust = Trust::Ca(text.to_owned()),
            Key::Insecure => tls.trust = Trust::Insecure,
            Key::Resumption => {
                let share = text.parse();
                tls.resumption =
                    share.map_err(|error: TlsWordError| bad(&error).hint(&error.hint()))?;
            }
            Key::EarlyData => tls.early_data = true,
            Key::Certificate => {
                let (certificate, key) = (text.to_owned(), text.to_owned());
                tls.client = Some(ClientCertificate { certificate, key });
            }
            Key::CertificateKey => {
                if let Some(client) = &mut tls.client {
                    text.clone_into(&mut client.key);
                }
            }
            // What is said is that there is TLS.
            _ => {}
        }
        Ok(())
    }

    fn policy(&mut self, text: &str) -> Result<(), Fault> {
        let bad = || {
            is_not(Key::Connection, text, "a connection policy")
                .hint("write keep-alive, per-request, a number of requests (1000), a time (30s), hold or hold:10s")
                .nearest(text, &["keep-alive", "per-request", "hold"])
        };
        let some_time = |text: &str| {
            let time = parse_duration(text).ok();
            time.filter(|time| !time.is_zero()).ok_or_else(bad)
        };
        self.spec.lifetime = match (text, text.strip_prefix("hold:"), text.parse::<u32>()) {
            ("keep-alive", ..) => Lifetime::Kept,
            ("per-request" | "close", ..) | (_, _, Ok(1)) => Lifetime::Request,
            ("hold", ..) => {
                self.held = Some(None);
                Lifetime::Kept
            }
            (_, Some(every), _) => {
                self.held = Some(Some(some_time(every)?));
                Lifetime::Kept
            }
            (_, _, Ok(0)) => return Err(bad()),
            (_, _, Ok(requests)) => Lifetime::Requests(requests),
            (_, _, Err(_)) => Lifetime::Time(some_time(text)?.as_nanos() as u64),
        };
        Ok(())
    }

    /// What follows from several words.
    fn finish(&mut self, secure: bool) -> FlowSpec {
        let mut spec = self.spec.clone();
        match self.held {
            Some(None) => spec.arrivals = ArrivalsSpec::Held,
            Some(Some(every)) => {
                let rate = f64::from(spec.connections) / every.as_secs_f64();
                spec.arrivals = ArrivalsSpec::Constant(rate);
            }
            None => {}
        }
        if secure {
            spec.tls = Some(self.tls.clone());
        }
        if let Some(expect) = &self.expect {
            let requests = spec.requests.iter_mut();
            requests.for_each(|request| request.expect = Some(expect.clone()));
        }
        spec
    }
}

fn is_not(key: Key, text: &str, wanted: &str) -> Fault {
    Fault::new(key, format!("`{text}` is not {wanted}"))
}

fn at_least_one<T: std::str::FromStr + PartialEq + From<u8>>(
    key: Key,
    text: &str,
) -> Result<T, Fault> {
    let number = text.parse().ok().filter(|number| *number != T::from(0));
    number.ok_or_else(|| is_not(key, text, "a whole number of at least 1"))
}

fn one_of<T: Copy>(key: Key, text: &str, words: &[(&'static str, T)]) -> Result<T, Fault> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, meant)| *meant).ok_or_else(|| {
        let words: Vec<&'static str> = words.iter().map(|(word, _)| *word).collect();
        is_not(key, text, &format!("`{}`", words.join("` or `"))).nearest(text, &words)
    })
}

#[cfg(test)]
mod tests;
