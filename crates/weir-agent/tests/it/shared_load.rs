//! A load that several generators share, from the view of one of them.

use std::net::{Ipv4Addr, TcpListener};

use weir_agent::message::{Body, LoadEnd, LoadEvent, LoadJob, StartLoad, Stop};
use weir_model::deal::OtherThreads;

use crate::wire::{Line, load};

#[test]
fn a_load_that_is_shared_starts_when_it_is_told_to() {
    // The kernel takes connections, and nobody answers.
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut line = Line::greeted();
    let mut job = load();
    job.flows[0].peer = nobody.local_addr().unwrap();
    job.flows[0].spec.connections = 4;
    (job.others.before, job.others.behind) = (1, 2);
    let id = line.send(job.clone());
    assert!(matches!(next_event(&mut line, id), Some(LoadEvent::Ready)));
    // Somebody else's number starts nothing.
    let start = weir_agent::monotonic_ns() + 300_000_000;
    line.works(StartLoad { load: 99, at_ns: 1 });
    let at_ns = start;
    line.works(StartLoad { load: id, at_ns });
    match next_event(&mut line, id) {
        Some(LoadEvent::Started { at_ns }) => assert_eq!(at_ns, start),
        other => panic!("{other:?}"),
    }
    assert!(weir_agent::monotonic_ns() >= start);
    assert!(matches!(next_event(&mut line, id), Some(LoadEvent::Slice { flow: 0, .. })));
    assert!(next_event(&mut line, id).is_none());

    // One that is never started can be stopped, and has measured nothing.
    let id = line.send(job);
    assert!(matches!(next_event(&mut line, id), Some(LoadEvent::Ready)));
    line.send(Stop(id));
    match line.end_of(id) {
        Body::Done(end) => {
            let end: LoadEnd = serde_json::from_str(end.get()).unwrap();
            assert_eq!(end.arms[0].asking.wanted, 1);
        }
        other => panic!("{other:?}"),
    }
    line.close().unwrap();
}

fn next_event(line: &mut Line, id: u64) -> Option<LoadEvent> {
    let reply = line.reply().expect("an answer");
    assert_eq!(reply.id, id);
    match reply.body {
        Body::Event(event) => Some(serde_json::from_str(event.get()).expect("an event")),
        Body::Done(_) => None,
        Body::Failed(failure) => panic!("{failure}"),
    }
}

#[test]
fn one_that_cannot_be_dealt_fails() {
    let mut line = Line::greeted();
    let right = load();
    let few = LoadJob { others: OtherThreads { before: 0, behind: 1 }, ..right.clone() };
    assert!(line.fails(few).contains("more threads than connections"));
    let crowded = LoadJob { threads: vec![None; 5000], ..right.clone() };
    assert!(line.fails(crowded).contains("more threads than this host can use"));
    let sliced = LoadJob { is_whole: true, slices: vec![right.slices[0]; 2], ..right };
    assert!(line.fails(sliced).contains("slices of its own"));
    line.close().unwrap();
}
