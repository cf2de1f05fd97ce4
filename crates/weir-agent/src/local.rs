//! An agent in this process: the same messages over a pair of sockets.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::client::{Client, Served};
use crate::server::{self, Options};

/// Name of this host in errors.
pub const PLACE: &str = "this host";

/// Starts an agent on a thread of its own.
///
/// # Errors
/// The kernel could not create the pair of sockets or the thread.
pub fn start(options: Options) -> io::Result<Client> {
    let weir = options.weir.clone();
    let (own, theirs) = UnixStream::pair()?;
    let (reader, writer) = (theirs.try_clone()?, theirs);
    let thread = std::thread::Builder::new().name("weir-agent".to_owned()).spawn(move || {
        // What it would say, the asking side says as well.
        let _ = server::serve(reader, HangUp(writer), options);
    })?;
    let (reader, writer) = (own.try_clone()?, HangUp(own));
    Client::greet(PLACE, &weir, reader, writer, Box::new(Thread(thread))).map_err(io::Error::other)
}

struct Thread(JoinHandle<()>);

impl Served for Thread {
    fn end(self: Box<Self>, _: Duration) {
        let _ = self.0.join();
    }
}

/// Writing half of a socket. Dropping it shuts the connection down, although the reading half stays open.
#[derive(Debug)]
pub struct HangUp(UnixStream);

impl HangUp {
    /// Creates a writer from one descriptor of a socket whose reading half is another descriptor.
    pub fn new(socket: UnixStream) -> HangUp {
        HangUp(socket)
    }
}

impl Write for HangUp {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl AsFd for HangUp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for HangUp {
    fn drop(&mut self) {
        // The other side may have gone first.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}
