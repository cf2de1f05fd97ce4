//! Checks that every seed has the result that its name says, and that the targets hold for it and for mutations of it.

use weir_agent::message::Incoming;
use weir_fuzz::dice::Dice;
use weir_http::ParseError;
use weir_http::request::{self, RequestParser};
use weir_http::response::{self, ClosedError, ResponseParser};
use weir_load::Trace;
use weir_load::tls::{Connector, Input, Received, Session, TlsErrorKind};
use weir_model::tls::{TlsSpec, Trust};

use crate::mutate::mutated;
use crate::seeds::{self, Seed};

/// Number of mutations of all seeds of a target; they take a few seconds without optimization.
const MUTATIONS: usize = 5_000;

/// Number of mutations for the agent target, each of which needs a server with its threads.
const AGENT_MUTATIONS: usize = 1_000;

/// Number of mutations for the TLS target, each of which needs some thirty handshakes.
const TLS_MUTATIONS: usize = 200;

/// Replays the seeds of a target, then `mutations` mutations of them.
fn hold(target: &str, mutations: usize, holds: fn(&[u8])) {
    let seeds = seeds::of(target);
    for (_, bytes) in &seeds {
        holds(bytes);
    }
    let mut dice = Dice::of(target.as_bytes());
    let any = |dice: &mut Dice| &seeds[dice.below(seeds.len() as u32) as usize];
    for number in 0..mutations {
        let ((name, seed), (_, other)) = (any(&mut dice), any(&mut dice));
        let bytes = mutated(&mut dice, seed, other);
        let held = std::panic::catch_unwind(|| holds(&bytes));
        let input = bytes.escape_ascii();
        assert!(held.is_ok(), "mutation {number}, of {name}: \"{input}\"");
    }
}

#[test]
fn responses_hold() {
    hold("response", MUTATIONS, weir_fuzz::response);
}

#[test]
fn requests_hold() {
    hold("request", MUTATIONS, weir_fuzz::request);
}

#[test]
fn chunked_content_holds() {
    hold("chunked", MUTATIONS, weir_fuzz::chunked);
}

#[test]
fn tls_servers_hold() {
    hold("tls", TLS_MUTATIONS, weir_fuzz::tls);
}

#[test]
fn traces_hold() {
    hold("trace", MUTATIONS, weir_fuzz::trace);
}

#[test]
fn histograms_hold() {
    hold("histogram", MUTATIONS, weir_fuzz::histogram);
}

#[test]
fn agents_hold() {
    hold("agent", AGENT_MUTATIONS, weir_fuzz::agent);
}

#[test]
fn agent_seeds_are_what_their_names_say() {
    for (name, bytes) in seeds::of("agent") {
        let mut unread = &bytes[..];
        let mut bad = false;
        loop {
            match weir_agent::frame::read::<Incoming>(&mut unread) {
                Ok(Some(incoming)) => bad |= incoming.understand().is_err(),
                Ok(None) => break,
                Err(_) => {
                    bad = true;
                    break;
                }
            }
        }
        assert_eq!(bad, name.starts_with("bad-"), "{name}");
    }
}

#[test]
fn the_limit_of_a_size_line_is_not_that_of_all_together() {
    let many = [&b"1\r\na\r\n".repeat(6000)[..], b"0\r\n\r\n"].concat();
    weir_fuzz::chunked(&many);
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let sure = weir_fuzz::reference::responses(&[&head[..], &many].concat(), false);
    assert_eq!(sure[0].end.read.content_bytes, 6000);
}

/// Result of parsing the bytes of a connection.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Complete,
    Early,
    Bad(ParseError),
}

/// Checks that the result of a seed is the one that its name says.
fn check_name(seed: &Seed, fate: &Fate) {
    let (name, bytes) = seed;
    let right = match fate {
        Fate::Bad(_) => name.starts_with("bad-"),
        Fate::Early => name.starts_with("early-"),
        Fate::Complete => !name.starts_with("bad-") && !name.starts_with("early-"),
    };
    assert!(right, "{name}: {fate:?}: \"{}\"", bytes.escape_ascii());
}

fn feed_responses(bytes: &[u8], to_head: bool) -> Fate {
    let mut parser = ResponseParser::default();
    let mut remaining = bytes;
    loop {
        parser.begin(to_head);
        match parser.feed(remaining) {
            Ok(fed) if matches!(fed.event, response::Progress::Complete(_)) => {
                remaining = &remaining[fed.consumed..];
                if remaining.is_empty() {
                    return Fate::Complete;
                }
            }
            Ok(_) => break,
            Err(error) => return Fate::Bad(error),
        }
    }
    match parser.finish_on_close() {
        Ok(_) => Fate::Complete,
        Err(ClosedError::Early | ClosedError::Unanswered) => Fate::Early,
    }
}

fn feed_requests(bytes: &[u8]) -> Fate {
    let mut parser = RequestParser::default();
    let mut remaining = bytes;
    while !remaining.is_empty() {
        match parser.feed(remaining) {
            Ok(fed) => {
                remaining = &remaining[fed.consumed..];
                if fed.event == request::Progress::NeedMore {
                    return Fate::Early;
                }
            }
            Err(error) => return Fate::Bad(error),
        }
    }
    Fate::Complete
}

/// Feeds the bytes to a new TLS client as a server's first ones. Returns the error, or `None` if the client waits for
/// more.
fn feed_tls(bytes: &[u8]) -> Option<TlsErrorKind> {
    let spec = TlsSpec { trust: Trust::Insecure, ..TlsSpec::default() };
    let mut connector = Connector::new(&spec, "localhost").expect("nothing that is refused");
    let mut buffer = bytes.to_vec();
    let mut out = Vec::new();
    let mut session = Session::begin(&mut connector, &mut out).expect("random numbers");
    let mut input = Input::new(&mut buffer);
    match session.next(&mut input, &mut out) {
        Ok(Received::Nothing) => None,
        Ok(other) => panic!("{other:?} without a handshake of its own"),
        Err(error) => Some(error.kind()),
    }
}

#[test]
fn tls_seeds_are_what_their_names_say() {
    for (name, bytes) in seeds::of("tls") {
        let error = feed_tls(&bytes);
        let right = match name.split('-').next().unwrap_or_default() {
            "alert" => error == Some(TlsErrorKind::AlertReceived),
            "clear" => error == Some(TlsErrorKind::NotTls),
            "oversize" => error == Some(TlsErrorKind::OversizedRecord),
            "early" => error.is_none(),
            "bad" => error.is_some(),
            _ => false,
        };
        assert!(right, "{name}: {error:?}");
    }
}

#[test]
fn histogram_seeds_are_what_their_names_say() {
    for (name, bytes) in seeds::of("histogram") {
        let read = weir_record::decode(&bytes);
        assert_eq!(read.is_err(), name.starts_with("bad-"), "{name}: {read:?}");
    }
}

#[test]
fn trace_seeds_are_what_their_names_say() {
    for (name, bytes) in seeds::of("trace") {
        let read = Trace::from_reader(&bytes[..], &name, 1.0);
        let right = read.is_err() == name.starts_with("bad-");
        assert!(right, "{name}: {read:?}");
    }
}

#[test]
fn seeds_are_what_their_names_say() {
    for seed in seeds::of("response") {
        check_name(&seed, &feed_responses(&seed.1, seed.0.starts_with("head-")));
    }
    for seed in seeds::of("request") {
        check_name(&seed, &feed_requests(&seed.1));
    }
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for seed in seeds::of("chunked") {
        check_name(&seed, &feed_responses(&[&head[..], &seed.1].concat(), false));
    }
}

#[test]
fn the_reference_is_sure_of_what_usual_servers_and_clients_send() {
    // Were it sure of nothing, it would never disagree.
    for server in ["nginx", "apache", "haproxy", "envoy", "caddy"] {
        let seeds = seeds::of("response");
        let seeds: Vec<_> = seeds.iter().filter(|(name, _)| name.starts_with(server)).collect();
        assert!(!seeds.is_empty(), "{server}");
        for (name, bytes) in seeds {
            let sure = weir_fuzz::reference::responses(bytes, false);
            let last = sure.last().map(|message| message.used);
            assert_eq!(last, Some(bytes.len()), "{name}");
        }
    }
    for (name, bytes) in seeds::of("request") {
        if name.starts_with("curl") || name.starts_with("browser") {
            let sure = weir_fuzz::reference::requests(&bytes);
            let last = sure.last().map(|message| message.used);
            assert_eq!(last, Some(bytes.len()), "{name}");
        }
    }
}
