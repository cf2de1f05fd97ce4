//! The endpoint `/metrics`, on a thread of its own.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::oneshot;

use crate::feed::{SharedStore, locked};
use crate::openmetrics::{self, TextFormat};
use crate::protobuf;

/// Nice value of the thread: measurements come first.
const POLITE: i32 = 10;

/// Failure to serve metrics.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The thread cannot be started.
    #[error("cannot serve metrics: {0}")]
    Thread(io::Error),
}

/// Longest time that the end of weir waits for a scraper's next visit.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Time between looks whether a scraper came.
const LOOK: Duration = Duration::from_millis(20);

/// Maximum number of scrapers that are told apart.
const MOST_SCRAPERS: usize = 16;

/// Visits of a scraper, which keeps its connection.
#[derive(Debug, Clone, Copy)]
struct Visits {
    count: u64,
    last: Instant,
    /// Time between the last two.
    interval: Option<Duration>,
}

/// Visits by the scraper's address and port.
type Scrapers = Arc<Mutex<BTreeMap<SocketAddr, Visits>>>;

fn locked_scrapers(scrapers: &Scrapers) -> MutexGuard<'_, BTreeMap<SocketAddr, Visits>> {
    scrapers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes a visit. Of many scrapers the one that has not come for longest is forgotten.
fn note_visit(scrapers: &Scrapers, peer: SocketAddr) {
    let now = Instant::now();
    let mut scrapers = locked_scrapers(scrapers);
    if let Some(visits) = scrapers.get_mut(&peer) {
        visits.interval = Some(now - visits.last);
        (visits.last, visits.count) = (now, visits.count + 1);
        return;
    }
    if scrapers.len() == MOST_SCRAPERS {
        let oldest = scrapers.iter().min_by_key(|(_, visits)| visits.last);
        if let Some(oldest) = oldest.map(|(peer, _)| *peer) {
            scrapers.remove(&oldest);
        }
    }
    scrapers.insert(peer, Visits { count: 1, last: now, interval: None });
}

/// Data behind the answers.
#[derive(Clone)]
struct Served {
    store: SharedStore,
    scrapers: Scrapers,
}

/// A server of metrics that answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    scrapers: Scrapers,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on an address and answers there with what `store` has.
    ///
    /// # Errors
    /// The address is in use or not one of this host.
    pub fn start(address: SocketAddr, store: SharedStore) -> Result<Server, ServerError> {
        let listener =
            TcpListener::bind(address).map_err(|error| ServerError::Listen(address, error))?;
        let address = listener.local_addr().map_err(|error| ServerError::Listen(address, error))?;
        listener.set_nonblocking(true).map_err(ServerError::Thread)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(ServerError::Thread)?;
        let scrapers = Scrapers::default();
        let served = Served { store, scrapers: Arc::clone(&scrapers) };
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new()
            .name("weir-metrics".to_owned())
            .spawn(move || {
                let _ = rustix::process::setpriority_process(None, POLITE);
                runtime.block_on(async move {
                    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                    let router = Router::new().route("/metrics", get(metrics)).with_state(served);
                    // Connections that are left open must not keep weir from ending.
                    tokio::select! {
                        _ = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()) => {}
                        _ = stopped => {}
                    }
                });
            })
            .map_err(ServerError::Thread)?;
        Ok(Server { address, scrapers, stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns true if a scraper that comes regularly has not come again, and may still.
    fn awaits(&self, peer: SocketAddr, before: Visits) -> bool {
        let Some(interval) = before.interval else { return false };
        let until = before.last + (interval * 2).min(LONGEST_WAIT);
        let scrapers = locked_scrapers(&self.scrapers);
        let is_missing = scrapers.get(&peer).is_some_and(|visits| visits.count == before.count);
        is_missing && Instant::now() < until
    }

    /// Waits until every scraper that comes regularly has seen the last figures, unless `is_stopped`. Returns at once if
    /// none has come twice.
    pub fn wait_for_visits(&self, is_stopped: impl Fn() -> bool) {
        let before = locked_scrapers(&self.scrapers).clone();
        while !is_stopped() && before.iter().any(|(peer, visits)| self.awaits(*peer, *visits)) {
            std::thread::sleep(LOOK);
        }
        // The last answer is being sent.
        std::thread::sleep(LOOK);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Protobuf,
    OpenMetrics,
    Plain,
}

impl Format {
    /// Returns the first format of an Accept header that weir can write. Scrapers name their favourite first.
    fn accepted(accept: &str) -> Format {
        let names = accept.split(',').map(|range| range.split(';').next().unwrap_or("").trim());
        names
            .filter_map(|name| match name {
                "application/vnd.google.protobuf" => Some(Format::Protobuf),
                "application/openmetrics-text" => Some(Format::OpenMetrics),
                "text/plain" | "text/*" | "*/*" => Some(Format::Plain),
                _ => None,
            })
            .next()
            .unwrap_or(Format::Plain)
    }

    fn content_type(self) -> &'static str {
        match self {
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

async fn metrics(
    State(served): State<Served>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
) -> Response {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    let format = Format::accepted(accept);
    note_visit(&served.scrapers, peer);
    let store = locked(&served.store);
    let body = match format {
        Format::Protobuf => protobuf::delimited(&store),
        Format::OpenMetrics => openmetrics::text(&store, TextFormat::OpenMetrics).into_bytes(),
        Format::Plain => openmetrics::text(&store, TextFormat::Plain).into_bytes(),
    };
    (StatusCode::OK, [(CONTENT_TYPE, format.content_type())], body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrapers_get_the_format_that_they_name_first() {
        for (accept, format) in [
            ("", Format::Plain),
            ("*/*", Format::Plain),
            ("text/html, application/json", Format::Plain),
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::OpenMetrics,
            ),
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8",
                Format::Protobuf,
            ),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }
}
