//! Metrics for Prometheus, from the events of a command (docs/metrics.md).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use weir_metrics::feed::SharedStore;
use weir_metrics::{Feed, Server, ServerError};

use super::{Consumer, Event};
use crate::args::{self, ProgressArgs};
use crate::failure::Failure;
use crate::{signals, terminal};

/// Keeps metrics up to date and serves them.
struct Exporter {
    feed: Feed,
    server: Option<Server>,
    /// Set when the user wants to stop; nobody is waited for then.
    stop: Arc<AtomicBool>,
}

/// Starts to export metrics, if the user wants that.
///
/// # Errors
/// The address cannot be listened on.
pub(super) fn exporter(args: &ProgressArgs) -> Result<Option<Box<dyn Consumer>>, Failure> {
    let Some(address) = args.metrics else {
        return Ok(None);
    };
    let store = SharedStore::default();
    let server = Server::start(address, Arc::clone(&store)).map_err(|error| refused(&error))?;
    announce(server.address(), address.port() == 0);
    Ok(Some(Box::new(Exporter {
        feed: Feed::new(store, args::version()),
        server: Some(server),
        stop: signals::stop_flag()?,
    })))
}

/// Says what the user cannot know: a port that the kernel chose, and who can read metrics on other addresses.
fn announce(address: SocketAddr, is_chosen: bool) {
    if is_chosen {
        terminal::tell(&format!("weir: metrics are at http://{address}/metrics\n"));
    }
    if !address.ip().is_loopback() {
        terminal::tell(&format!(
            "weir: note: whoever reaches {address} can read names and figures of this load or run at /metrics\n"
        ));
    }
}

fn refused(error: &ServerError) -> Failure {
    let failure = Failure::input(format!("--metrics: {error}"));
    match error {
        ServerError::Listen(..) => {
            failure.hint("give another port, or port 0 for one that is free: --metrics 127.0.0.1:0")
        }
        ServerError::Thread(_) => failure,
    }
}

impl Consumer for Exporter {
    fn take(&mut self, event: &Event) {
        match event {
            Event::LoadBegun { .. } => {
                let now = jiff::Timestamp::now();
                self.feed.begin(&format!("load-{}", now.strftime("%Y%m%dT%H%M%SZ")), "");
            }
            Event::LoadState(state) => self.feed.load_state(state),
            Event::Flow(measured) => self.feed.measured(measured),
            Event::Verdicts { verdicts } => self.feed.verdicts(verdicts),
            Event::Lab(event) => self.feed.take(event),
            Event::Interval(_) | Event::Asked { .. } => {}
        }
    }

    fn is_analyzed(&self) -> bool {
        true
    }

    fn counts_flows(&self) -> bool {
        true
    }

    fn end(&mut self) {
        if let Some(server) = self.server.take() {
            server.wait_for_visits(|| self.stop.load(Ordering::Relaxed));
        }
    }
}
