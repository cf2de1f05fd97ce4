//! Calibration of the load engine: CPU time of a request when only the engine itself can be the limit.
//!
//! The server is a [`NullServer`] on another CPU. Costs are CPU time per request, which does not depend on whether
//! generator or server is saturated; a rate would.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_model::calibration::WayCalibration;
use weir_model::load::Arrivals;
use weir_model::spin::Spin;

use crate::ledger::{SliceData, new_histogram};
use crate::null_server::NullServer;
use crate::plan::{Flow, Plan};
use crate::reactor::Io;
use crate::request_set::RequestSet;
use crate::trial::{Control, LoadError, floor, run};

/// Connections of every run.
const CONNECTIONS: u32 = 50;

/// Rate at which punctuality is measured, requests per second.
const LAG_RATE: f64 = 10_000.0;

/// Quantiles of the dispatch lag.
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// CPUs, length and rounds of a calibration.
#[derive(Debug, Clone)]
pub struct Calibrating {
    /// CPU to which the generator's thread is pinned.
    pub generator: Option<u32>,
    /// CPU to which the null server is pinned.
    pub server: Option<u32>,
    /// Length of each run.
    pub length: Duration,
    /// Number of runs of each kind; 0 counts as 1.
    pub rounds: u32,
    /// Flag that ends the calibration; the figures are then those of the rounds up to that point.
    pub stop: Arc<AtomicBool>,
}

/// Measures one I/O backend: floor and engine in turns, then punctuality.
///
/// # Errors
/// The backend does not work here, or the null server could not be started.
pub fn calibrate(io: Io, how: &Calibrating) -> Result<WayCalibration, LoadError> {
    let server = NullServer::start(how.server, response()).map_err(LoadError::Thread)?;
    let mut floors = Vec::new();
    let mut requests = Vec::new();
    for _ in 0..how.rounds.max(1) {
        let closed = build_plan(server.address(), Arrivals::Closed, io, how);
        let least = floor(&closed, how.length, &how.stop)?;
        floors.push(least.cpu_ns as f64 / least.requests.max(1) as f64);
        let mut all = SliceData::new();
        run(&closed, &control(how), None, |_, data| all.add(&data[0]))?;
        requests.push(all.cpu_ns as f64 / all.completed_whole.max(1) as f64);
    }
    let mut lag = new_histogram();
    let arrivals = Arrivals::Constant { rate: LAG_RATE };
    let open = Plan { spin: Spin::Auto, ..build_plan(server.address(), arrivals, io, how) };
    let outcome = run(&open, &control(how), None, |_, data| {
        // Same bounds everywhere.
        let _ = lag.add(&data[0].histograms.dispatch_lag);
    })?;
    let request_ns = median(&mut requests);
    Ok(WayCalibration {
        io: outcome.io.name().to_owned(),
        floor_ns: median(&mut floors),
        request_ns,
        capacity: 1e9 / request_ns,
        lag_rate: LAG_RATE,
        lag: QUANTILES
            .into_iter()
            .map(|quantile| (quantile, lag.value_at_quantile(quantile)))
            .collect(),
    })
}

fn build_plan(server: SocketAddr, arrivals: Arrivals, io: Io, how: &Calibrating) -> Plan {
    let requests = RequestSet::plain(REQUEST.to_vec(), false);
    let flow = Flow::new(server, requests, CONNECTIONS, arrivals);
    let slices = Plan::seconds(Duration::ZERO, how.length);
    Plan { cpus: vec![how.generator], ..Plan::single(flow, slices, io) }
}

fn control(how: &Calibrating) -> Control {
    Control::new(1, Arc::clone(&how.stop))
}

/// Returns a response with 1 KiB of content and a head such as servers send.
fn response() -> Vec<u8> {
    let mut response =
        b"HTTP/1.1 200 OK\r\nServer: null\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\n\
        Content-Type: text/plain\r\nContent-Length: 1024\r\nConnection: keep-alive\r\n\r\n"
            .to_vec();
    response.resize(response.len() + 1024, b'x');
    response
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}
