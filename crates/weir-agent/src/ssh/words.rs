//! Standard error of ssh and, through ssh, of the agent.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::process::ChildStderr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Number of last bytes that are kept, since a host may write without end.
const KEPT: usize = 8 << 10;

/// The last output of a process, gathered by a thread of its own.
///
/// The thread ends with the last process that holds the other end of the pipe. This may be one that ssh has left in the
/// background as the user configured (`ControlPersist`), so waits for the thread are bounded.
#[derive(Debug)]
pub(super) struct Words(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    tail: Mutex<Tail>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Tail {
    bytes: VecDeque<u8>,
    ended: bool,
}

impl Words {
    /// Starts the gathering thread.
    pub(super) fn gather(from: ChildStderr) -> io::Result<Words> {
        let shared = Arc::new(Shared::default());
        let gathered = Arc::clone(&shared);
        thread::Builder::new().name("ssh-words".to_owned()).spawn(move || gathered.fill(from))?;
        Ok(Words(shared))
    }

    /// Returns the output so far, made safe for a terminal.
    pub(super) fn now(&self) -> String {
        self.0.lock().text()
    }

    /// Returns the whole output if it ends within this time, else the output so far.
    pub(super) fn all(&self, at_most: Duration) -> String {
        let tail = self.0.lock();
        let waited = self.0.ended.wait_timeout_while(tail, at_most, |tail| !tail.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.text()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fill(&self, mut from: impl Read) {
        let mut buffer = [0; 1024];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => self.lock().push(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.lock().ended = true;
        self.ended.notify_all();
    }
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let surplus = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..surplus);
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        printable(&bytes).trim_end().to_owned()
    }
}

/// Converts untrusted bytes to text without characters that control a terminal.
pub(super) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .filter(|&c| c == '\n' || c == '\t' || !c.is_control())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_kept_and_no_more() {
        let mut tail = Tail::default();
        for number in 0..10_000 {
            tail.push(format!("line {number}\n").as_bytes());
        }
        assert_eq!(tail.bytes.len(), KEPT);
        assert!(tail.text().ends_with("line 9999"));
    }

    #[test]
    fn a_host_cannot_command_the_terminal() {
        assert_eq!(printable(b"\x1b[2Jhello\r\n\x07there\xff"), "[2Jhello\nthere\u{fffd}");
    }
}
