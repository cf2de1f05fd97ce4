//! Files that a user has named, which may be pipes: opened without waiting forever for a writer.

use std::fs::{File, OpenOptions};
use std::io::{self, Cursor, ErrorKind, IsTerminal, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// Time after which a pipe that nobody opens for writing is given up.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// Opens a file for reading. A pipe that somebody has open for writing, like `<(…)` of a shell, is waited for, however
/// slow the writer is. A pipe that nobody opens is given up after five seconds. A device without anything to read is
/// given up at once.
///
/// # Errors
/// Nobody writes to the pipe, or the kernel refuses, as it does for a socket.
pub fn open_to_read(path: &Path) -> io::Result<impl Read + use<>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let mut options = OpenOptions::new();
    let mut file = options.read(true).custom_flags(flags).open(path)?;
    let is_pipe = file.metadata()?.file_type().is_fifo();
    let first = if is_pipe { first_of_pipe(&mut file)? } else { Vec::new() };
    if is_pipe || file.is_terminal() {
        let flags = fcntl_getfl(&file)?;
        fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    }
    Ok(Cursor::new(first).chain(file))
}

/// Reads the bytes that a pipe holds by now. Returns no bytes if a writer has not written yet or has closed the pipe.
fn first_of_pipe(file: &mut File) -> io::Result<Vec<u8>> {
    let begun = Instant::now();
    let mut bytes = vec![0; 1 << 12];
    loop {
        match file.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Vec::new()),
            Ok(0) if !was_closed(file)? => {}
            read => {
                bytes.truncate(read?);
                return Ok(bytes);
            }
        }
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::other("it is a pipe, and nobody writes to it"));
        }
        thread::sleep(LOOK);
    }
}

/// Returns true if a writer had the pipe open and no longer has (pipe(7)).
fn was_closed(file: &File) -> io::Result<bool> {
    let mut descriptors = [PollFd::new(file, PollFlags::IN)];
    poll(&mut descriptors, Some(&Timespec::default()))?;
    Ok(descriptors[0].revents().contains(PollFlags::HUP))
}
