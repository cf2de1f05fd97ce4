//! A local web page over the program: runs and their reports, an editor for studies, and what a run does while it works.
//!
//! ```text
//! browser ──HTTP, token──► access ──► api ──┬─► runs      folders and samples of this user
//!                                           ├─► program   answers of commands: `weir report`, `weir compare`, …
//!                                           └─► jobs      runs as processes of their own: `weir run`
//! ```
//!
//! The server measures nothing and decides nothing. What it shows is what the commands print, and a run is a process of
//! its own, which neither a browser that is closed nor a page that hangs can disturb. So the page can do no more than
//! its user can at a terminal.

mod access;
mod api;
mod assets;
mod jobs;
mod listen;
mod program;
mod runs;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::Notify;

pub use access::Token;
pub use listen::{Identity, IdentityError};

use access::Guard;
use jobs::Jobs;
use program::Program;

/// Time between looks at the flag that ends the server.
const LOOK: Duration = Duration::from_millis(100);

/// Functions of the program that the page needs with data, not as text.
#[derive(Debug, Clone)]
pub struct Workbench {
    /// Path of this very program.
    pub program: PathBuf,
    /// Version of the program.
    pub version: &'static str,
    /// Folder of the user's studies, with the runs below it, in `runs/`.
    pub folder: PathBuf,
    /// Ready-made studies.
    pub ready_made: Vec<StudyText>,
    /// Checks the text of a study, whose files are relative to the folder.
    pub check: fn(&str) -> Checked,
}

/// The text of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StudyText {
    /// Name of the study: of a file, without its ending.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The outcome of the check of a study.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Errors, in the order of the text; empty if the study can be run.
    pub errors: Vec<Problem>,
    /// Description of the study with its arms and its length; empty if there are errors.
    pub plan: String,
}

/// An error in a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Length of the offending text in characters.
    pub length: usize,
    /// Description of the error.
    pub message: String,
    /// Advice on how to resolve it.
    pub hint: Option<String>,
}

/// Properties of a server.
#[derive(Debug)]
pub struct Options {
    /// Address to listen on. Anything but loopback needs an identity.
    pub listen: SocketAddr,
    /// Certificate and key for HTTPS.
    pub identity: Option<Identity>,
    /// True if nothing may be changed or started.
    pub is_read_only: bool,
}

/// A server that could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// No random token could be made, or the server's thread not begun.
    #[error("the server cannot begin: {0}")]
    Begin(#[source] std::io::Error),
}

/// Everything that requests share.
#[derive(Debug)]
struct Shared {
    bench: Workbench,
    program: Program,
    jobs: Jobs,
    is_read_only: bool,
}

/// Serves the page until `stop` is set. `begun` gets the URL, with the token in its fragment, which browsers send to
/// nobody.
///
/// Runs that go on at the end are interrupted as by Ctrl-C, so that they put their settings back.
///
/// # Errors
/// The address cannot be listened on.
pub fn serve(
    bench: Workbench,
    options: Options,
    stop: &AtomicBool,
    begun: impl FnOnce(&str),
) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Begin)?;
    runtime.block_on(async {
        let listener = listen::Listener::bind(options.listen, options.identity)
            .await
            .map_err(|error| ServeError::Listen(options.listen, error))?;
        let address = listener.address().map_err(ServeError::Begin)?;
        let token = Token::random().map_err(ServeError::Begin)?;
        let guard = Guard::new(&token, address, listener.is_encrypted());
        let url = format!("{}/#{}", guard.origin(), token.text());
        let shared = Arc::new(Shared {
            program: Program::new(&bench.program, &bench.folder),
            jobs: Jobs::default(),
            is_read_only: options.is_read_only,
            bench,
        });
        let ending = Arc::new(Notify::new());
        let ended = Arc::clone(&ending);
        let router = api::router(Arc::clone(&shared), guard);
        let server = axum::serve(listener, router);
        begun(&url);
        let serving = tokio::spawn(async move {
            tokio::select! {
                served = server => served,
                () = ended.notified() => Ok(()),
            }
        });
        while !stop.load(Ordering::Relaxed) && !serving.is_finished() {
            tokio::time::sleep(LOOK).await;
        }
        shared.jobs.end_all().await;
        ending.notify_one();
        match serving.await {
            Ok(Err(error)) => Err(ServeError::Begin(error)),
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    })
}
