//! Metrics for Prometheus, from the events of a command (docs/metrics.md).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Uri;
use weir_metrics::feed::SharedStore;
use weir_metrics::{Delivery, Feed, RemoteWrite, Server, ServerError, Version};
use weir_report::secrets::{masked, visible};

use super::{Consumer, Event};
use crate::args::{self, ProgressArgs};
use crate::failure::Failure;
use crate::{signals, terminal};

/// Keeps metrics up to date and serves them.
struct Exporter {
    feed: Feed,
    server: Option<Server>,
    /// Sender to a receiver, and the receiver's name for messages.
    sender: Option<(RemoteWrite, String)>,
    /// Set when the user wants to stop; nobody is waited for then.
    stop: Arc<AtomicBool>,
}

/// Starts to export metrics, if the user wants that.
///
/// # Errors
/// The address cannot be listened on.
pub(super) fn exporter(args: &ProgressArgs) -> Result<Option<Box<dyn Consumer>>, Failure> {
    if args.metrics.is_none() && args.remote_write.url.is_none() {
        return Ok(None);
    }
    let store = SharedStore::default();
    let server = match args.metrics {
        Some(address) => Some(serve(address, &store)?),
        None => None,
    };
    let sender = match &args.remote_write.url {
        Some(url) => Some(send(url, args.remote_write.version, &store)?),
        None => None,
    };
    Ok(Some(Box::new(Exporter {
        feed: Feed::new(store, args::version()),
        server,
        sender,
        stop: signals::stop_flag()?,
    })))
}

fn serve(address: SocketAddr, store: &SharedStore) -> Result<Server, Failure> {
    let server = Server::start(address, Arc::clone(store)).map_err(|error| refused(&error))?;
    announce(server.address(), address.port() == 0);
    Ok(server)
}

fn send(url: &Uri, version: u8, store: &SharedStore) -> Result<(RemoteWrite, String), Failure> {
    let version = if version == 1 { Version::V1 } else { Version::V2 };
    let sender = RemoteWrite::start(url.clone(), version, Arc::clone(store))
        .map_err(|error| Failure::failed(format!("--remote-write: {error}")))?;
    Ok((sender, url.to_string()))
}

/// Says what a receiver did not get.
fn report_lost(receiver: &str, delivery: &Delivery) {
    let (lost, all) = (delivery.lost(), delivery.lost() + delivery.delivered);
    if lost > 0 {
        let error = visible(&delivery.last_error);
        let text = format!(
            "weir: --remote-write {receiver}: {lost} of {all} samples were not delivered: {error}\n"
        );
        terminal::tell(&masked(&text));
    }
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
        if let Some((sender, receiver)) = self.sender.take() {
            report_lost(&receiver, &sender.end());
        }
        if let Some(server) = self.server.take() {
            server.wait_for_visits(|| self.stop.load(Ordering::Relaxed));
        }
    }
}
