//! Writing to a peer that may have stopped reading.
//!
//! A pipe or a socket that nobody empties fills up, and a write to it then blocks forever: a writer would not notice
//! that the host at the other end has vanished. Bytes are therefore written only when there is room for them.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Size of one write, bytes: a pipe that has any room has room for this many (`PIPE_BUF`, pipe(7)), and a writable
/// socket for more.
const PIECE: usize = 4096;

/// Interval at which the writer checks if waiting still makes sense.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// A writer that waits for room only as long as `may_wait` permits. Once it has given up, it accepts nothing more,
/// since bytes after half a message cannot be understood.
pub struct Patient<W> {
    to: W,
    may_wait: Box<dyn Fn(Duration) -> bool + Send>,
    given_up: bool,
}

impl<W: Write + AsFd> Patient<W> {
    /// Creates a writer over an unbuffered one. `may_wait` gets the time waited for room so far, and returns true to go
    /// on.
    pub fn new(to: W, may_wait: impl Fn(Duration) -> bool + Send + 'static) -> Patient<W> {
        Patient { to, may_wait: Box::new(may_wait), given_up: false }
    }

    fn await_room(&mut self) -> io::Result<()> {
        let mut begun = None;
        while !self.given_up {
            let fd = self.to.as_fd();
            match poll(&mut [PollFd::new(&fd, PollFlags::OUT)], Some(&LOOK)) {
                Ok(0) => {}
                Err(Errno::INTR) => continue,
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            let since = begun.get_or_insert_with(Instant::now);
            self.given_up = !(self.may_wait)(since.elapsed());
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

impl<W: Write + AsFd> Write for Patient<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.await_room()?;
        self.to.write(&bytes[..bytes.len().min(PIECE)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_peer_that_reads_gets_everything() {
        let (own, mut theirs) = UnixStream::pair().unwrap();
        let mut patient = Patient::new(own, |_| true);
        let sent: Vec<u8> = (0..1 << 20).map(|byte: u32| byte as u8).collect();
        let reader = std::thread::spawn(move || {
            let mut received = Vec::new();
            theirs.read_to_end(&mut received).map(|_| received)
        });
        patient.write_all(&sent).unwrap();
        drop(patient);
        assert_eq!(reader.join().unwrap().unwrap(), sent);
    }

    #[test]
    fn a_peer_that_does_not_is_given_up_for_good() {
        let (reader, writer) = io::pipe().unwrap();
        let mut patient = Patient::new(writer, |waited| waited < Duration::from_millis(1));
        let error = patient.write_all(&vec![0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // Though there is room again.
        drop(std::thread::spawn(move || io::copy(&mut { reader }, &mut io::sink())));
        let error = patient.write_all(b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
