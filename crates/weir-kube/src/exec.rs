//! An agent in a pod, started through the API server's exec stream.
//!
//! The stream is copied to and from one end of a pair of sockets. The other end is used like the connection to any
//! other agent.

use std::net::{IpAddr, Shutdown};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinHandle;
use weir_agent::client::SILENCE;
use weir_agent::hello::{self, Hello};
use weir_agent::{Client, HangUp, Served};

use crate::error::KubeError;
use crate::inner::Inner;
use crate::objects::{CONTAINER, PROGRAM};
use crate::pods::{self, Pod};

/// Time limit for the stream to end if there was no greeting.
const GRACE: Duration = Duration::from_secs(2);
/// Time limit for the API server to report what became of a pod.
const FATE: Duration = Duration::from_secs(3);
/// Number of last bytes of the agent's standard error that are kept.
const LARGEST_STDERR: usize = 4096;
/// Size of the stream's buffers, bytes.
const BUFFER: usize = 64 << 10;

/// An agent that has sent its greeting.
#[derive(Debug)]
pub struct Connected {
    /// Output of the agent.
    pub reader: UnixStream,
    /// Input of the agent. When it is dropped, the agent puts everything back and ends.
    pub writer: HangUp,
    /// The exec stream. Declared after the other two, so that it is dropped after them.
    pub session: Session,
    /// The agent's greeting.
    pub hello: Hello,
    /// The pod's address.
    pub address: Option<IpAddr>,
}

/// The exec stream of an agent.
pub struct Session {
    inner: Arc<Inner>,
    pod: String,
    output: Arc<Mutex<SideOutput>>,
    /// Receives a message when the stream ends.
    end: Mutex<Receiver<()>>,
    pump: JoinHandle<()>,
}

/// Output besides the agent's messages.
#[derive(Default)]
struct SideOutput {
    stderr: Vec<u8>,
    /// Message of the API server about the end of the command; `None` if the command succeeded.
    status: Option<String>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Session").field("pod", &self.pod).finish_non_exhaustive()
    }
}

/// Returns a client for an agent in a pod. `place` is the agent's name in errors.
pub fn client(place: &str, connected: Connected) -> Client {
    let Connected { reader, writer, session, hello, .. } = connected;
    Client::over(place, hello, reader, writer, Box::new(session)).distant()
}

impl Served for Session {
    fn end(self: Box<Self>, at_most: Duration) {
        // Where one stream has been waited for in vain, the others are cut as well.
        let is_silent = self.inner.is_silent.load(Ordering::Relaxed);
        if !self.await_end(if is_silent { GRACE } else { at_most }) {
            self.inner.is_silent.store(true, Ordering::Relaxed);
        }
    }

    fn words(&self) -> String {
        let fate = self.inner.within(FATE, pods::fate(&self.inner, &self.pod));
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let words: Vec<String> = [Some(stderr), output.status.clone(), fate.flatten()]
            .into_iter()
            .flatten()
            .filter(|words| !words.is_empty())
            .collect();
        words.join("\n")
    }

    fn restore(&self) -> Option<String> {
        let (context, namespace) = (&self.inner.context, &self.inner.namespace);
        Some(format!("--on kubernetes:{context}/{namespace}"))
    }
}

impl Session {
    /// Waits for the stream to end, and cuts it after the time limit. Returns false if it had to be cut.
    fn await_end(&self, at_most: Duration) -> bool {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let is_cut = end.recv_timeout(at_most) == Err(RecvTimeoutError::Timeout);
        if is_cut {
            self.pump.abort();
        }
        !is_cut
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

/// Starts an agent in a pod and reads its greeting.
pub(crate) fn agent(
    inner: &Arc<Inner>,
    pod: &Pod,
    version: &str,
    at_most: Duration,
) -> Result<Connected, KubeError> {
    let until = Instant::now() + at_most;
    let process = inner.within(at_most, attach(inner, &pod.name)).unwrap_or_else(|| {
        Err(KubeError::Overdue {
            what: format!("the API server does not start an agent in pod `{}`", pod.name),
            within: at_most,
        })
    })?;
    let (mut reader, theirs) = UnixStream::pair()?;
    let mut writer = HangUp::new(reader.try_clone()?);
    let session = pump(inner, pod, process, theirs)?;
    let remaining = until.saturating_duration_since(Instant::now()).max(GRACE);
    reader.set_read_timeout(Some(remaining))?;
    let hello = match hello::greet(&mut reader, &mut writer, version) {
        Ok(hello) => hello,
        Err(error) => {
            drop(writer);
            session.await_end(GRACE);
            let words = session.words();
            let why =
                if words.is_empty() { error.to_string() } else { format!("{error}\n{words}") };
            return Err(KubeError::Agent { pod: pod.name.clone(), why });
        }
    };
    reader.set_read_timeout(None)?;
    // A stream that takes nothing for as long as an agent may be silent is cut.
    reader.set_write_timeout(Some(SILENCE))?;
    Ok(Connected { reader, writer, session, hello, address: pod.address })
}

async fn attach(inner: &Inner, pod: &str) -> Result<AttachedProcess, KubeError> {
    let pods: Api<v1::Pod> = Api::namespaced(inner.client.clone(), &inner.namespace);
    let params = AttachParams {
        container: Some(CONTAINER.to_owned()),
        stdin: true,
        max_stdin_buf_size: Some(BUFFER),
        max_stdout_buf_size: Some(BUFFER),
        ..AttachParams::default()
    };
    let process = pods.exec(pod, [PROGRAM, "agent"], &params).await;
    process.map_err(|error| inner.failed(&format!("start an agent in pod `{pod}`"), error))
}

/// Starts to copy bytes between the stream and a socket, until either ends.
fn pump(
    inner: &Arc<Inner>,
    pod: &Pod,
    mut process: AttachedProcess,
    theirs: UnixStream,
) -> Result<Session, KubeError> {
    theirs.set_nonblocking(true)?;
    let (ended, end) = channel();
    let output = Arc::new(Mutex::new(SideOutput::default()));
    let to = Arc::clone(&output);
    let pump = inner.spawn(async move {
        if let Err(error) = carry(&mut process, theirs, &to).await {
            note(&to, error.to_string());
        }
        let _ = ended.send(());
    });
    Ok(Session {
        inner: Arc::clone(inner),
        pod: pod.name.clone(),
        output,
        end: Mutex::new(end),
        pump,
    })
}

fn note(to: &Mutex<SideOutput>, words: String) {
    to.lock().unwrap_or_else(PoisonError::into_inner).status.get_or_insert(words);
}

async fn carry(
    process: &mut AttachedProcess,
    theirs: UnixStream,
    output: &Mutex<SideOutput>,
) -> std::io::Result<()> {
    let hang_up = theirs.try_clone()?;
    let (mut from_us, mut to_us) = tokio::net::UnixStream::from_std(theirs)?.into_split();
    let streams = (process.stdin(), process.stdout(), process.stderr());
    let (Some(mut stdin), Some(mut stdout), Some(mut errors)) = streams else {
        return Err(std::io::Error::other("the stream is not complete"));
    };
    let status = process.take_status();
    let forth = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_us, &mut stdin).await;
        // By this the agent knows that nobody asks any more.
        let _ = stdin.shutdown().await;
    });
    let back = async {
        let copied = tokio::io::copy(&mut stdout, &mut to_us).await;
        // Whoever reads sees the end; whoever writes is told.
        let _ = hang_up.shutdown(Shutdown::Both);
        copied
    };
    let beside = async {
        let mut piece = [0; 1024];
        while let Ok(length @ 1..) = errors.read(&mut piece).await {
            let stderr = &mut output.lock().unwrap_or_else(PoisonError::into_inner).stderr;
            stderr.extend_from_slice(&piece[..length]);
            let excess = stderr.len().saturating_sub(LARGEST_STDERR);
            stderr.drain(..excess);
        }
    };
    let (copied, ()) = tokio::join!(back, beside);
    forth.abort();
    if let Some(status) = status
        && let Some(status) = status.await
        && status.status.as_deref() != Some("Success")
    {
        note(output, status.message.unwrap_or_default());
    }
    copied.map(drop)
}
