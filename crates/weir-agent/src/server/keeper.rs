//! A thread that lives as long as an arm.
//!
//! A proxy dies with the thread that started it (see `weir_sut::launch`), and runs in the network namespace of that
//! thread. Each arm therefore has a thread in the arm's namespace, which does all work that must be done there.

use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use weir_host::Network;

use crate::message::Failure;

type Work = Box<dyn FnOnce() + Send>;

/// A thread that does the work it is given, in order. It ends when the keeper is dropped.
pub(super) struct Keeper {
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread, in the given namespace or in that of the calling thread.
    pub(super) fn start(network: Option<&Network>) -> Result<Keeper, Failure> {
        let (work, todo) = channel::<Work>();
        let thread = std::thread::Builder::new()
            .name("weir-arm".to_owned())
            .spawn(move || {
                for work in todo {
                    weir_probe::fault::at("arm");
                    work();
                }
            })
            .map_err(Failure::other)?;
        let keeper = Keeper { work: Some(work), thread: Some(thread) };
        if let Some(network) = network.cloned() {
            keeper.run(move || network.join())??;
        }
        Ok(keeper)
    }

    /// Runs some work on the thread and waits for its result.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let (send, done) = channel();
        let work: Work = Box::new(move || drop(send.send(work())));
        let to = self.work.as_ref().ok_or_else(report_end)?;
        to.send(work).map_err(|_| report_end())?;
        done.recv().map_err(|_| report_end())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn report_end() -> Failure {
    Failure::other("the thread of an arm has ended")
}
