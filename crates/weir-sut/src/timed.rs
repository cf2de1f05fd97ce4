//! A connection on which a question and its whole answer have one end of their time: whoever sends a byte now and
//! then is not waited for longer than whoever sends none.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with,
};

/// A connection, and until when everything on it may last.
#[derive(Debug)]
pub struct TimedStream {
    socket: OwnedFd,
    until: Instant,
}

impl TimedStream {
    /// Connects to an address.
    pub fn to_address(address: &SocketAddr, until: Instant) -> io::Result<TimedStream> {
        let stream =
            TcpStream::connect_timeout(address, remaining_time(until)?).map_err(in_time)?;
        let socket = stream.into();
        Ok(TimedStream { socket, until })
    }

    /// Connects to a socket of the file system, by way of its folder's descriptor: a path may be too long for an
    /// address. One whose queue is full is waited for as long as for an answer (unix(7)).
    pub(crate) fn to_socket(path: &Path, until: Instant) -> io::Result<TimedStream> {
        let (folder, name) = path.parent().zip(path.file_name()).ok_or(ErrorKind::InvalidInput)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        let short = format!("/proc/self/fd/{}/{}", folder.as_raw_fd(), name.display());
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let stream = TimedStream { socket, until };
        stream.within_time(Timeout::Send, || {
            connect(&stream.socket, &SocketAddrUnix::new(&short)?)
        })?;
        Ok(stream)
    }

    /// The user who listens at the other end, of a socket of the file system.
    pub(crate) fn peer_user(&self) -> io::Result<u32> {
        Ok(socket_peercred(&self.socket)?.uid.as_raw())
    }

    /// Does something that waits, once more where the process was stopped meanwhile (signal(7)).
    fn within_time<T>(
        &self,
        timeout: Timeout,
        mut work: impl FnMut() -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        loop {
            set_socket_timeout(self.socket.as_fd(), timeout, Some(remaining_time(self.until)?))?;
            match work().map_err(io::Error::from) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                done => return done.map_err(in_time),
            }
        }
    }
}

impl Read for TimedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let received = self
            .within_time(Timeout::Recv, || recv(&self.socket, &mut *buffer, RecvFlags::empty()));
        received.map(|(length, _)| length)
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.within_time(Timeout::Send, || send(&self.socket, bytes, SendFlags::NOSIGNAL))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Time until then.
fn remaining_time(until: Instant) -> io::Result<Duration> {
    let remaining = until.saturating_duration_since(Instant::now());
    if remaining.is_zero() {
        return Err(too_late());
    }
    Ok(remaining)
}

fn too_late() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "no whole answer came in time")
}

/// The kernel has several names for a wait whose time is over.
fn in_time(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => too_late(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(400);

    /// Tells that a question has ended for want of time, though each of its bytes came soon.
    fn ends_in_time(ask: impl FnOnce(Instant) -> io::Result<()>) {
        let begun = Instant::now();
        let error = ask(begun + PATIENCE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        // A machine may be busy.
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    fn drip(mut to: impl Write) {
        while to.write_all(b"a").is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    }

    #[test]
    fn an_answer_that_comes_byte_by_byte_is_not_waited_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || drip(listener.accept().unwrap().0));
        ends_in_time(|until| {
            let mut stream = TimedStream::to_address(&address, until)?;
            stream.write_all(b"?\n")?;
            stream.read_to_end(&mut Vec::new()).map(drop)
        });
    }

    #[test]
    fn a_socket_is_asked_through_a_long_path_and_a_full_queue_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let long_folder = folder.path().join("a".repeat(120));
        std::fs::create_dir(&long_folder).unwrap();
        // Its own address may not be as long.
        let held = std::fs::File::open(&long_folder).unwrap();
        let short = format!("/proc/self/fd/{}/socket", held.as_raw_fd());
        let listener = UnixListener::bind(&short).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        let stream = TimedStream::to_socket(&long_folder.join("socket"), until).unwrap();
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(stream.peer_user().unwrap(), user);
        // The one that nobody has accepted fills the queue.
        rustix::net::listen(&listener, 0).unwrap();
        ends_in_time(|until| TimedStream::to_socket(&long_folder.join("socket"), until).map(drop));
    }
}
