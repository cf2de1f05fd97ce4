//! `weir origin` as a process.

use crate::program::{Running, weir};

/// Starts an origin server on a free port, and returns it with its address.
pub fn start(flags: &str) -> (Running, String) {
    let line = format!("origin --listen 127.0.0.1:0 {flags}");
    serving(Running::start(&mut weir(line.split_whitespace())))
}

/// Waits until a started origin server serves, and returns it with its address.
pub fn serving(mut origin: Running) -> (Running, String) {
    origin.wait_until("the address", |origin| printed_address(origin).is_some());
    let address = printed_address(&origin).expect("just seen");
    (origin, address)
}

fn printed_address(origin: &Running) -> Option<String> {
    let text = origin.stderr();
    let (_, after) = text.split_once("serving on http://")?;
    Some(after.split_once("/\n")?.0.to_owned())
}
