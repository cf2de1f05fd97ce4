//! Large content on sockets that bypass the kernel's TCP.

use std::net::SocketAddr;
use std::time::Duration;

use weir_bypass::{Bypass, Ends, Hop};
use weir_load::{Io, Plan};
use weir_origin::Content;

use crate::support::{GET, PATIENCE, flow, measure, origin};

const LARGE: u64 = 1 << 20;
const REQUESTS: u64 = 200;

/// Attaches a bypass for a local server; prints the reason and returns `None` if that is not possible.
#[allow(clippy::print_stderr)]
fn bypass(server: SocketAddr) -> Option<Bypass> {
    let attached = Bypass::attach(&[]).and_then(|mut bypass| {
        let namespaces = Some(Ends::within(bypass.namespace_of_this_thread()?));
        bypass.add(Hop { server, namespaces })?;
        Ok(bypass)
    });
    attached.inspect_err(|error| eprintln!("skipped: {error}")).ok()
}

fn large_content_comes_whole(io: Io) {
    let server = origin(|config| config.content = Content::text(LARGE));
    let address = server.addresses()[0];
    let Some(bypass) = bypass(address) else {
        return;
    };
    let mut large_flow = flow(address, GET, 4, REQUESTS);
    large_flow.keeps_content = true;
    let slices = Plan::seconds(Duration::ZERO, Duration::from_secs(60));
    let mut plan = Plan::single(large_flow, slices, io);
    plan.drain = PATIENCE;
    let (all, _) = measure(&plan).expect("it runs");
    assert_eq!(all.errors.total(), 0, "{:?}", all.errors.counts());
    assert_eq!(all.completed_whole, REQUESTS);
    assert_eq!(all.content_bytes, REQUESTS * LARGE);
    let counts = bypass.counters().expect("counters").total;
    assert!(counts.redirected_bytes > 0, "{counts:?}");
    assert!(counts.redirected_bytes + counts.tcp_bytes >= all.content_bytes);
}

#[test]
fn large_content_comes_whole_by_epoll() {
    large_content_comes_whole(Io::Epoll);
}

#[test]
fn large_content_comes_whole_by_io_uring() {
    if weir_load::reactor::uring::probe().is_ok() {
        large_content_comes_whole(Io::Uring);
    }
}
