//! Large content on sockets that go past the kernel's TCP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_bypass::{Bypass, Ends, Hop};
use weir_load::{Control, Flow, Io, Plan, RequestSet, SliceData, run};
use weir_model::load::Arrivals;
use weir_origin::{Content, Origin, OriginConfig};

const LARGE: u64 = 1 << 20;
const REQUESTS: u64 = 200;

/// A bypass of an address here; `None`, with the reason, where it may not be had.
fn bypass(server: SocketAddr) -> Option<Bypass> {
    let attached = Bypass::attach(&[]).and_then(|mut bypass| {
        let here = Ends::within(bypass.namespace_of_this_thread()?);
        bypass.add(Hop {
            server,
            namespaces: Some(here),
        })?;
        Ok(bypass)
    });
    match attached {
        Ok(bypass) => Some(bypass),
        Err(error) => {
            #[allow(clippy::print_stderr)]
            {
                eprintln!("skipped: {error}");
            }
            None
        }
    }
}

fn large_content_comes_whole(io: Io) {
    let mut config = OriginConfig::new(vec!["127.0.0.1:0".parse().expect("an address")]);
    config.content = Content::text(LARGE);
    let origin = Origin::start(config).expect("the origin server starts");
    let address = origin.addresses()[0];
    let Some(bypass) = bypass(address) else {
        return;
    };
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    let requests = RequestSet::plain(request, false);
    let mut flow = Flow::new(address, requests, 4, Arrivals::Closed);
    flow.timeout = Duration::from_secs(20);
    flow.limit = Some(REQUESTS);
    flow.keeps_content = true;
    let plan = Plan {
        flows: vec![flow],
        slices: Plan::seconds(Duration::ZERO, Duration::from_secs(60)),
        ramp_up: Duration::ZERO,
        drain: Duration::from_secs(20),
        spin: Duration::ZERO,
        io,
        cpus: vec![None],
    };
    let control = Control::new(1, Arc::new(AtomicBool::new(false)));
    let mut all = SliceData::new();
    run(&plan, &control, None, |_, data| all.add(&data[0])).expect("it runs");
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
