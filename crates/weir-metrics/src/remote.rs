//! Remote write of Prometheus, versions 1.0 and 2.0: changed series are sent every few seconds, and the last ones at the
//! end.
//!
//! A thread of its own sends; whoever measures never waits for it. What a receiver does not take in time waits in a queue
//! of bounded length, of which the oldest batch is dropped.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use axum::http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Collected, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::oneshot;

use crate::backfill::Moment;
use crate::feed::{SharedStore, locked};
use crate::write_messages::{Change, Encoded, encode};

/// Time between collections of changed series.
const INTERVAL: Duration = Duration::from_secs(2);
/// Number of collections after which series that have not changed are sent too: Prometheus forgets them after 5 min.
const ALL_EVERY: u32 = 30;
/// Maximum number of series in a request.
const BATCH: usize = 500;
/// Maximum number of batches that wait.
const MOST_BATCHES: usize = 200;
/// Time for a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Shortest and longest time before a request is repeated.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// Longest time that the end of weir waits for a receiver.
const FLUSH: Duration = Duration::from_secs(10);
/// Time without progress after which a past run is given up.
const STANDSTILL: Duration = Duration::from_secs(30);
/// Longest answer that is read, bytes.
const LONGEST_ANSWER: usize = 4096;
/// Nice value of the thread: measurements come first.
const POLITE: i32 = 10;

/// Version of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// 1.0, with classic histograms, which every receiver takes.
    V1,
    /// 2.0, with native histograms. A receiver that does not know it gets 1.0 instead.
    V2,
}

/// Numbers of samples that a receiver got, and did not get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Samples that the receiver took.
    pub delivered: u64,
    /// Samples that were dropped because the queue was full.
    pub dropped: u64,
    /// Samples that the receiver refused.
    pub refused: u64,
    /// Samples that were not delivered when the time was up.
    pub left: u64,
    /// Reason why the last failed request failed.
    pub last_error: String,
}

impl Delivery {
    /// Returns the number of samples that were not delivered.
    pub fn lost(&self) -> u64 {
        self.dropped + self.refused + self.left
    }
}

/// Changed series of one moment.
struct Batch {
    at_ms: i64,
    changes: Vec<Change>,
    /// Number of samples, which depends on the version.
    samples: u64,
}

#[derive(Default)]
struct Queue {
    batches: VecDeque<Batch>,
    delivery: Delivery,
}

impl Queue {
    fn count_left(&mut self) {
        self.delivery.left = self.batches.iter().map(|batch| batch.samples).sum();
    }
}

/// Sends the series of a store until it is ended.
pub struct RemoteWrite {
    queue: Arc<Mutex<Queue>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RemoteWrite {
    /// Starts to send to a receiver.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(url: Uri, version: Version, store: SharedStore) -> std::io::Result<RemoteWrite> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let queue = Arc::new(Mutex::new(Queue::default()));
        let (stop, stopped) = oneshot::channel();
        let sending = Sending::to(url, version, Arc::clone(&queue));
        let thread =
            std::thread::Builder::new().name("weir-remote-write".to_owned()).spawn(move || {
                let _ = rustix::process::setpriority_process(None, POLITE);
                runtime.block_on(sending.run(&store, stopped));
            })?;
        Ok(RemoteWrite { queue, stop: Some(stop), thread: Some(thread) })
    }

    /// Sends what has changed last, for at most 10 s, and returns what was delivered.
    pub fn end(mut self) -> Delivery {
        self.stop_and_wait();
        locked_queue(&self.queue).delivery.clone()
    }

    fn stop_and_wait(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for RemoteWrite {
    fn drop(&mut self) {
        self.stop_and_wait();
    }
}

fn locked_queue(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends the moments of a past run, in order. Gives up when nothing was taken for 30 s.
///
/// # Errors
/// The kernel has no descriptors left.
pub fn deliver(url: Uri, version: Version, moments: Vec<Moment>) -> std::io::Result<Delivery> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let mut queue = Queue::default();
    for Moment { at_ms, changes } in moments {
        queue.batches.extend(changes.chunks(BATCH).map(|part| Batch {
            at_ms,
            changes: part.to_vec(),
            samples: part.len() as u64,
        }));
    }
    let queue = Arc::new(Mutex::new(queue));
    let mut sending = Sending::to(url, version, Arc::clone(&queue));
    runtime.block_on(async {
        loop {
            let before = locked_queue(&queue).batches.len();
            let sent = tokio::time::timeout(STANDSTILL, sending.send_all(true)).await;
            if sent.is_ok() || locked_queue(&queue).batches.len() == before {
                return;
            }
        }
    });
    let mut queue = locked_queue(&queue);
    queue.count_left();
    Ok(queue.delivery.clone())
}

/// Outcome of a request.
enum Answer {
    Taken,
    /// The receiver does not know the version.
    OtherVersion,
    /// Failure for now: the wait that the receiver asks for, and the reason.
    Later(Option<Duration>, String),
    /// Never taken.
    Refused(String),
}

struct Sending {
    url: Uri,
    version: Version,
    queue: Arc<Mutex<Queue>>,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Sending {
    fn to(url: Uri, version: Version, queue: Arc<Mutex<Queue>>) -> Sending {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Sending { url, version, queue, client }
    }

    async fn run(mut self, store: &SharedStore, mut stopped: oneshot::Receiver<()>) {
        let queue = Arc::clone(&self.queue);
        let collecting = async {
            let mut round = 0_u32;
            loop {
                tokio::time::sleep(INTERVAL).await;
                round += 1;
                collect(&queue, store, round.is_multiple_of(ALL_EVERY));
            }
        };
        tokio::select! {
            () = collecting => {}
            () = self.send_all(false) => {}
            _ = &mut stopped => {}
        }
        collect(&queue, store, true);
        let _ = tokio::time::timeout(FLUSH, self.send_all(true)).await;
        locked_queue(&queue).count_left();
    }

    /// Sends batches as they come; with `is_last` until there are none.
    async fn send_all(&mut self, is_last: bool) {
        let mut back_off = BACK_OFF.0;
        loop {
            let next = self.next();
            let Some((body, at_ms, samples)) = next else {
                if is_last {
                    return;
                }
                tokio::time::sleep(BACK_OFF.0).await;
                continue;
            };
            match self.send(body).await {
                Answer::Taken => {
                    back_off = BACK_OFF.0;
                    self.done(at_ms, |delivery| delivery.delivered += samples);
                }
                Answer::OtherVersion => self.version = Version::V1,
                Answer::Refused(error) => self.done(at_ms, |delivery| {
                    delivery.refused += samples;
                    delivery.last_error = error;
                }),
                Answer::Later(wait, error) => {
                    locked_queue(&self.queue).delivery.last_error = error;
                    tokio::time::sleep(wait.unwrap_or(back_off).min(BACK_OFF.1)).await;
                    back_off = (back_off * 2).min(BACK_OFF.1);
                }
            }
        }
    }

    /// Returns the oldest batch as a request body, with its time and its number of samples.
    fn next(&self) -> Option<(Bytes, i64, u64)> {
        let mut queue = locked_queue(&self.queue);
        let batch = queue.batches.front_mut()?;
        let Encoded { body, samples } = encode(&batch.changes, batch.at_ms, self.version);
        batch.samples = samples;
        Some((body.into(), batch.at_ms, samples))
    }

    /// Removes the batch that was sent, unless it was dropped meanwhile.
    fn done(&self, at_ms: i64, count: impl FnOnce(&mut Delivery)) {
        let mut queue = locked_queue(&self.queue);
        if queue.batches.front().is_some_and(|batch| batch.at_ms == at_ms) {
            queue.batches.pop_front();
            count(&mut queue.delivery);
        }
    }

    async fn send(&self, body: Bytes) -> Answer {
        let (media, version) = match self.version {
            Version::V1 => ("application/x-protobuf", "0.1.0"),
            Version::V2 => ("application/x-protobuf;proto=io.prometheus.write.v2.Request", "2.0.0"),
        };
        let request = Request::post(self.url.clone())
            .header(CONTENT_TYPE, media)
            .header(CONTENT_ENCODING, "snappy")
            .header(USER_AGENT, "weir")
            .header("X-Prometheus-Remote-Write-Version", version)
            .body(Full::new(body));
        let request = match request {
            Ok(request) => request,
            Err(error) => return Answer::Refused(error.to_string()),
        };
        match tokio::time::timeout(PATIENCE, self.client.request(request)).await {
            Err(_) => Answer::Later(None, format!("no answer within {} s", PATIENCE.as_secs())),
            Ok(Err(error)) => Answer::Later(None, cause(&error)),
            Ok(Ok(response)) => self.judge(response).await,
        }
    }

    async fn judge<B>(&self, response: Response<B>) -> Answer
    where
        B: axum::body::HttpBody<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let status = response.status();
        let head = response.headers();
        // A receiver of 1.0 may take a message of 2.0 for an empty one.
        let is_counted = head.contains_key("X-Prometheus-Remote-Write-Samples-Written");
        if self.version == Version::V2
            && (status == StatusCode::UNSUPPORTED_MEDIA_TYPE || status.is_success() && !is_counted)
        {
            return Answer::OtherVersion;
        }
        if status.is_success() {
            return Answer::Taken;
        }
        let wait = head.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let body = tokio::time::timeout(
            PATIENCE,
            Limited::new(response.into_body(), LONGEST_ANSWER).collect(),
        );
        let received = body.await.ok().and_then(Result::ok).map(Collected::to_bytes);
        let message = String::from_utf8_lossy(&received.unwrap_or_default()).trim().to_owned();
        let error = format!("{status}: {message}");
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            Answer::Later(wait.map(Duration::from_secs), error)
        } else {
            Answer::Refused(error)
        }
    }
}

/// Returns the innermost cause of a failure: the outer ones name no reason.
fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Puts the changed series into the queue.
fn collect(queue: &Mutex<Queue>, store: &SharedStore, all_series: bool) {
    let changes = locked(store).changes(all_series);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut queue = locked_queue(queue);
    for (number, part) in changes.chunks(BATCH).enumerate() {
        if queue.batches.len() == MOST_BATCHES {
            let oldest = queue.batches.pop_front();
            queue.delivery.dropped += oldest.map_or(0, |batch| batch.samples);
        }
        // A millisecond apart, so that each has a time of its own.
        let at_ms = since.as_millis() as i64 + number as i64;
        let samples = part.len() as u64;
        queue.batches.push_back(Batch { at_ms, changes: part.to_vec(), samples });
    }
}
