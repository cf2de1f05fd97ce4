//! Helpers of several tests: an origin server and a trial.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_load::{Control, Flow, LoadError, Outcome, Plan, RequestSet, SliceData, run};
use weir_model::load::Arrivals;
use weir_origin::{Origin, OriginConfig};

/// Time limit for anything in these tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// Starts an origin server on a port chosen by the kernel.
pub(crate) fn origin(change: impl FnOnce(&mut OriginConfig)) -> Origin {
    let mut config = OriginConfig::new(vec![(Ipv4Addr::LOCALHOST, 0).into()]);
    change(&mut config);
    Origin::start(config).expect("the origin server starts")
}

/// Creates a closed loop with `limit` requests.
pub(crate) fn flow(peer: SocketAddr, request: &str, connections: u32, limit: u64) -> Flow {
    let requests = RequestSet::plain(request.as_bytes().to_vec(), request.starts_with("HEAD"));
    let mut flow = Flow::new(peer, requests, connections, Arrivals::Closed);
    flow.timeout = PATIENCE;
    flow.limit = Some(limit);
    flow
}

/// Runs a plan; returns the figures of its first flow, and the outcome.
pub(crate) fn measure(plan: &Plan) -> Result<(SliceData, Outcome), LoadError> {
    let control = Control::new(plan.cpus.len(), Arc::new(AtomicBool::new(false)));
    let mut all = SliceData::new();
    let outcome = run(plan, &control, None, |_, data| all.add(&data[0]))?;
    Ok((all, outcome))
}
