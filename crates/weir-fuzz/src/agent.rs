//! Properties that must hold for the messages to and from an agent.

use std::io::{self, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use weir_agent::frame::{self, FrameError, LARGEST};
use weir_agent::hello::{self, Hello};
use weir_agent::message::{
    ArmStarted, Ask, Body, Description, Incoming, LoadEnd, LoadEvent, Reading, Reply, Request,
    WatchEnd,
};
use weir_agent::server::{Options, serve};
use weir_parameters::Catalog;
use weir_sut::Launcher;

/// Maximum number of requests from one input that are given to a server.
const ASKED: usize = 32;

/// Checks bytes as frames in both directions: requests to an agent, and replies from one.
///
/// # Panics
/// A property does not hold.
pub fn agent(data: &[u8]) {
    let _ = frame::read::<Hello>(&mut { data });
    replies(data);
    let encoded = requests(data);
    if !encoded.is_empty() {
        answered(&encoded);
    }
}

/// Decodes frames until the first invalid one; checks that an invalid frame gives the right error.
fn frames<T: serde::de::DeserializeOwned>(data: &[u8]) -> Vec<T> {
    let (mut rest, mut read) = (data, Vec::new());
    loop {
        let before = rest;
        match frame::read(&mut rest) {
            Ok(Some(message)) => read.push(message),
            Ok(None) => break assert!(before.is_empty()),
            Err(FrameError::TooLarge(length)) => break assert!(length > LARGEST as u64),
            Err(FrameError::Io(error)) => {
                break assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
            }
            Err(FrameError::Malformed(_)) => break,
        }
        assert!(rest.len() + 4 <= before.len(), "a frame has a length");
    }
    read
}

/// Checks that a reply that can be decoded can be encoded and decoded again.
fn replies(data: &[u8]) {
    for reply in frames::<Reply>(data) {
        let (Body::Event(raw) | Body::Done(raw)) = reply.body else {
            continue;
        };
        let text = raw.get();
        if let Ok(event @ LoadEvent::Slice { .. }) = serde_json::from_str::<LoadEvent>(text) {
            let again = serde_json::to_string(&event).expect("own words");
            assert!(serde_json::from_str::<LoadEvent>(&again).is_ok());
        }
        let _ = serde_json::from_str::<Reading>(text);
        let _ = serde_json::from_str::<WatchEnd>(text);
        let _ = serde_json::from_str::<LoadEnd>(text);
        let _ = serde_json::from_str::<ArmStarted>(text);
        let _ = serde_json::from_str::<Description>(text);
    }
}

/// Requests of the input that have no effect on the host, and those that cannot be decoded, as frames numbered from 0.
fn requests(data: &[u8]) -> Vec<Vec<u8>> {
    let mut encoded = Vec::new();
    for incoming in frames::<Incoming>(data).into_iter().take(ASKED) {
        let id = encoded.len() as u64;
        let mut bytes = Vec::new();
        match incoming.understand() {
            Err(failure) => {
                assert!(!failure.evidence.is_empty());
                let nothing = serde_json::json!({"id": id, "ask": null});
                frame::write(&mut bytes, &nothing).expect("memory takes it");
            }
            Ok(ask) => {
                let request = Request { id, ask };
                frame::write(&mut bytes, &request).expect("memory takes it");
                let again: Incoming =
                    frame::read(&mut &bytes[..]).expect("own words").expect("one");
                assert!(again.understand().is_ok());
                if !touches_nothing(&request.ask) {
                    continue;
                }
            }
        }
        encoded.push(bytes);
    }
    encoded
}

fn touches_nothing(ask: &Ask) -> bool {
    match ask {
        Ask::Ping(_) | Ask::Clock(_) | Ask::Stop(_) | Ask::Rows(_) | Ask::PutBack(_) => true,
        // There are no arms.
        Ask::Alive(_) | Ask::Log(_) | Ask::Renew(_) | Ask::End(_) => true,
        Ask::WatchJob(job) => job.proxies.is_none() && job.generator.is_none(),
        _ => false,
    }
}

/// Checks that a real server answers every request once, and ends when there are no more.
fn answered(asked: &[Vec<u8>]) {
    let (mut client, server_end) = UnixStream::pair().expect("a pair of sockets");
    let mut input = Vec::new();
    let greeting = hello::greet(&mut io::empty(), &mut input, "fuzz");
    assert!(greeting.is_err(), "nobody greets back");
    input.extend(asked.concat());
    let options = Options {
        weir: "fuzz".to_owned(),
        launcher: Launcher::new(PathBuf::from("/bin/false")),
        catalog: Catalog::builtin(),
        silence: None,
        stop: Arc::default(),
    };
    let server = thread::spawn(move || {
        let served = serve(io::Cursor::new(input), server_end.try_clone()?, options);
        server_end.shutdown(Shutdown::Both)?;
        served.map_err(io::Error::other)
    });
    let mut reply_bytes = Vec::new();
    client.read_to_end(&mut reply_bytes).expect("it ends");
    server.join().expect("no panic").expect("it was greeted");
    let mut unread = &reply_bytes[..];
    assert!(frame::read::<Hello>(&mut unread).is_ok_and(|hello| hello.is_some()));
    let mut ends: Vec<u64> = frames::<Reply>(unread)
        .into_iter()
        .filter(|reply| !matches!(reply.body, Body::Event(_)))
        .map(|reply| reply.id)
        .collect();
    ends.sort_unstable();
    let all: Vec<u64> = (0..asked.len() as u64).collect();
    assert_eq!(ends, all);
}
