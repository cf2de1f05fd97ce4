//! A flow in the notation that people write: the same words in a study and as options of `weir load`.
//!
//! The caller passes the words as they were typed, each with its [`Key`], and gets the [`FlowSpec`] or all [`Fault`]s.
//! The caller adds the position of a word (line and column, or a flag).

mod expect;

use std::time::Duration;

use crate::arrivals::{parse_segments, parse_spacing};
use crate::load::{Assignment, Close, Lifetime, Overflow, Segment, Spacing};
use crate::nearest::nearest;
use crate::quantity::{Limits, QuantityError, parse_rate, parse_time};
use crate::request::ExpectSpec;
use crate::tls::{ClientCertificate, TlsSpec, TlsVersion, TlsWordError, Trust, names};

use self::expect::expectation;
use super::{ArrivalsSpec, FlowSpec, TraceSpec};

/// Maximum number of requests in flight on one connection; beyond it, a server's buffers are measured.
pub const DEEPEST: u16 = 1024;

/// Setting of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// Number of connections.
    Connections,
    /// Lifetime of a connection: `keep-alive`, `per-request`, `1000`, `30s`, `hold`, `hold:10s`.
    Connection,
    /// Way to close connections: `fin`, `reset`.
    Close,
    /// Maximum number of connections opened per second.
    ConnectRate,
    /// Requests in flight on one connection.
    Pipeline,
    /// Requests per second, over time.
    Rate,
    /// Spacing of arrivals: `even`, `poisson:7`, `burst:50`.
    Arrivals,
    /// File of recorded arrivals.
    Trace,
    /// Factor by which the replay of a trace is faster than the recording.
    TraceSpeed,
    /// Rule that assigns due requests to connections: `global`, `per-connection`.
    Schedule,
    /// Treatment of a request that is due when no connection is idle: `queue`, `drop`.
    Overflow,
    /// Maximum number of requests.
    Limit,
    /// Time limit for a response.
    Timeout,
    /// Expectation on a response: `status=200`, `size=1KiB`; may be given many times.
    Expect,
    /// Use of TLS.
    Secure,
    /// TLS versions to offer.
    TlsVersion,
    /// Cipher suites to offer.
    Ciphers,
    /// Key exchange groups to offer.
    Groups,
    /// Application protocols to offer.
    Alpn,
    /// Server name to send (SNI) and to look for in the certificate.
    ServerName,
    /// File of the trusted certificate authorities.
    Authorities,
    /// Acceptance of any certificate.
    Insecure,
    /// Share of new connections that resume an earlier session.
    Resumption,
    /// Sending of the first request in the first flight of a resumed connection.
    EarlyData,
    /// File of the client's certificate.
    Certificate,
    /// File of the client certificate's private key.
    CertificateKey,
}

/// Names of each key: in a study (the last part, if the name is nested) and as a flag of `weir load`.
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
    /// Name of this key in a study.
    pub fn word(self) -> &'static str {
        self.names().0
    }

    /// Flag of `weir load` for this key.
    pub fn flag(self) -> &'static str {
        self.names().1
    }

    /// Returns the key with this name in a study.
    pub fn of_word(word: &str) -> Option<Key> {
        let named = NAMES.iter().find(|(_, own, _)| *own == word);
        named.map(|(key, ..)| *key)
    }

    fn names(self) -> (&'static str, &'static str) {
        let named = NAMES.iter().find(|(key, ..)| *key == self);
        named.map_or(("", ""), |(_, word, flag)| (word, flag))
    }

    /// Returns true if this key has an effect only with TLS. `--insecure` is not one: it does no harm without TLS.
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

/// A setting as the user gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSetting {
    /// The setting.
    pub key: Key,
    /// Value as typed.
    pub text: String,
}

/// An error in a setting of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The setting that has the error.
    pub key: Key,
    /// Index of the wrong value among all that were given; `None` if the error lies in a combination of settings.
    pub at: Option<usize>,
    /// Description of the error.
    pub message: String,
    /// Advice on how to fix the error.
    pub hint: Option<String>,
    /// Valid word that was most likely meant; `None` if none is close.
    pub nearest: Option<&'static str>,
}

impl Fault {
    /// Creates a fault in the setting `key`.
    pub fn new(key: Key, message: impl ToString) -> Fault {
        Fault { key, at: None, message: message.to_string(), hint: None, nearest: None }
    }

    /// Returns true if the setting has an effect only with TLS.
    pub fn is_about_tls(&self) -> bool {
        self.key.is_of_tls()
    }

    /// Adds advice on how to fix the error.
    pub fn hint(self, hint: &str) -> Fault {
        let hint = Some(hint.to_owned());
        Fault { hint, ..self }
    }

    fn nearest(self, text: &str, words: &[&'static str]) -> Fault {
        Fault { nearest: nearest(text, words), ..self }
    }
}

/// Reads a flow from the settings that the user gave; settings that are missing or wrong are taken from `base`.
/// `length` is the time that a changing rate covers: the load's duration, or the slice of a study.
///
/// Returns the flow and all errors: first those in single settings, in the order given, then contradictions between
/// settings.
pub fn read(said: &[FlowSetting], base: FlowSpec, length: Duration) -> (FlowSpec, Vec<Fault>) {
    let mut reader =
        Reader { spec: base, held: None, tls: TlsSpec::default(), expect: None, length };
    let mut faults: Vec<Fault> = said
        .iter()
        .enumerate()
        .filter_map(|(at, said)| {
            let fault = reader.take(said.key, said.text.trim()).err()?;
            Some(Fault { at: Some(at), ..fault })
        })
        .collect();
    let is_said = |key| said.iter().any(|said| said.key == key);
    let spec = reader.finish(is_said(Key::Secure));
    if !is_said(Key::Secure)
        && let Some(vain) = said.iter().find(|said| said.key.is_of_tls())
    {
        faults.push(Fault::new(vain.key, "requests go out without TLS"));
    }
    let timed = [Key::Rate, Key::Trace].into_iter().find(|key| is_said(*key));
    if reader.held.is_some() && timed.is_some() {
        let fault = Fault::new(Key::Connection, "held connections have no rate and no trace");
        faults.push(fault.hint("`hold:10s` sends one request on each connection every 10 s"));
    }
    if is_said(Key::TraceSpeed) && !is_said(Key::Trace) {
        let fault = Fault::new(Key::TraceSpeed, "only a trace has a speed");
        faults.push(fault.hint("name the file whose arrivals are repeated, such as access.log"));
    }
    faults.extend(contradictions(&spec));
    (spec, faults)
}

/// Settings of a flow that have no effect because of another setting.
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
    all.into_iter()
        .filter(|(is_so, ..)| *is_so)
        .map(|(_, key, message)| Fault::new(key, message))
        .collect()
}

struct Reader {
    spec: FlowSpec,
    /// Set if connections are held; with a time, each connection sends one request per that time.
    held: Option<Option<Duration>>,
    tls: TlsSpec,
    expect: Option<ExpectSpec>,
    length: Duration,
}

impl Reader {
    fn take(&mut self, key: Key, text: &str) -> Result<(), Fault> {
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
                spec.connect_rate = Some(parse_rate(text).map_err(|error| refuse(key, &error))?);
            }
            Key::Pipeline => {
                let depth = text.parse().ok().filter(|depth| (1..=DEEPEST).contains(depth));
                let wanted = format!("a whole number from 1 to {DEEPEST}");
                spec.pipeline = depth.ok_or_else(|| is_not(key, text, &wanted))?;
            }
            Key::Rate => {
                let segments =
                    parse_segments(text, self.length).map_err(|error| refuse(key, &error))?;
                spec.arrivals = match segments[..] {
                    [Segment { from, to, .. }] if from == to => ArrivalsSpec::Constant(from),
                    _ => ArrivalsSpec::Varied(segments),
                };
            }
            Key::Arrivals => {
                spec.spacing = parse_spacing(text).map_err(|error| refuse(key, &error))?;
            }
            Key::Trace => {
                let file = text.to_owned();
                spec.arrivals = ArrivalsSpec::Trace(TraceSpec { file, speed: 1.0 });
            }
            Key::TraceSpeed => {
                let speed = Limits::TRACE_SPEED.read(text).map_err(|error| refuse(key, &error))?;
                if let ArrivalsSpec::Trace(trace) = &mut spec.arrivals {
                    trace.speed = speed;
                }
            }
            Key::Schedule => {
                let words =
                    [("global", Assignment::Global), ("per-connection", Assignment::PerConnection)];
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
                let timeout = parse_time(text).map_err(|error| refuse(key, &error))?;
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
        let tls = &mut self.tls;
        match key {
            Key::TlsVersion => {
                let versions = TlsVersion::parse_list(text);
                tls.versions = versions.map_err(|error| refuse(key, &error).hint(&error.hint()))?;
            }
            Key::Ciphers => {
                let ciphers = names::parse_ciphers(text);
                tls.ciphers = ciphers.map_err(|error| refuse(key, &error).hint(&error.hint()))?;
            }
            Key::Groups => {
                let groups = names::parse_groups(text);
                tls.groups = groups.map_err(|error| refuse(key, &error).hint(&error.hint()))?;
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
                    share.map_err(|error: TlsWordError| refuse(key, &error).hint(&error.hint()))?;
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
        let some_time = |text: &str| match parse_time(text) {
            Ok(time) if !time.is_zero() => Ok(time),
            Err(error @ QuantityError::OutOfRange { .. }) => Err(refuse(Key::Connection, &error)),
            _ => Err(bad()),
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

    /// Builds the flow, applying settings that depend on several words.
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
            spec.requests.iter_mut().for_each(|request| request.expect = Some(expect.clone()));
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
    text.parse()
        .ok()
        .filter(|number| *number != T::from(0))
        .ok_or_else(|| is_not(key, text, "a whole number of at least 1"))
}

fn refuse(key: Key, error: &dyn ToString) -> Fault {
    Fault::new(key, error.to_string())
}

fn one_of<T: Copy>(key: Key, text: &str, words: &[(&'static str, T)]) -> Result<T, Fault> {
    words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant).ok_or_else(|| {
        let words: Vec<&'static str> = words.iter().map(|(word, _)| *word).collect();
        is_not(key, text, &format!("`{}`", words.join("` or `"))).nearest(text, &words)
    })
}

#[cfg(test)]
mod tests;
