//! Clocks of other hosts: an agent whose clock appears to be hours ahead or behind.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::value::to_raw_value;
use weir_agent::client::{Client, Served};
use weir_agent::message::{Ask, Body, Reply, Request};
use weir_agent::{frame, hello, monotonic_ns};

/// The connection, which is shut down when the client wants the agent to end.
struct Cut(UnixStream);

impl Served for Cut {
    fn end(self: Box<Self>, _: Duration) {
        // The agent may have gone first.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// Starts an agent whose clock is ahead by this much. Every other answer is late.
fn agent(ahead_ns: i64) -> Client {
    let (own, mut theirs) = UnixStream::pair().expect("sockets");
    std::thread::spawn(move || {
        let mut reader = theirs.try_clone().expect("a descriptor");
        hello::greet(&mut reader, &mut theirs, "far").expect("it is weir");
        let mut slow = true;
        while let Ok(Some(Request { id, ask })) = frame::read(&mut reader) {
            assert!(matches!(ask, Ask::Clock(_)));
            let now = monotonic_ns().saturating_add_signed(ahead_ns);
            // Every other answer is late, so that a mean of all would be wrong.
            slow = !slow;
            std::thread::sleep(Duration::from_millis(if slow { 200 } else { 0 }));
            let body = Body::Done(to_raw_value(&now).expect("a number"));
            frame::write(&mut theirs, &Reply { id, body }).expect("somebody listens");
        }
    });
    let [reader, cut] = [(); 2].map(|()| own.try_clone().expect("a descriptor"));
    Client::greet("far", "test", reader, own, Box::new(Cut(cut))).expect("it greets")
}

#[test]
fn the_offset_of_a_clock_is_found_from_the_quickest_answer() {
    const HOUR_NS: i64 = 3_600_000_000_000;
    let least = i64::try_from(monotonic_ns()).expect("no clock runs that long");
    for ahead in [5 * HOUR_NS, 0, -least / 2] {
        let client = agent(ahead);
        let (found, error) = client.clock_offset_ns().expect("it answers");
        // Half of a slow answer's time would show.
        assert!((found - ahead).abs() < 90_000_000, "{found} for {ahead}");
        assert!((found - ahead).unsigned_abs() <= error, "{error}");
    }
}
