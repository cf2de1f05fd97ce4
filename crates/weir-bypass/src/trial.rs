//! Connection on loopback that tests whether this kernel's sockmap can be used.
//!
//! Kernels differ in the bytes that FIONREAD counts on a bypassed socket: TCP's alone, redirected ones alone, or all.
//! nginx calls FIONREAD after every receive that filled its buffer, and stops reading when it returns 0.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::io::ioctl_fionread;

use crate::{Bypass, BypassError, Ends, Hop};

/// Bytes that are redirected in one message.
const SMALL: usize = 5000;
/// Bytes that exceed a queue, so that TCP carries a part.
const LARGE: usize = 1 << 20;
/// Time limit for operations that a kernel does at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the trial, and removes its endpoint again.
pub(crate) fn run(bypass: &mut Bypass) -> Result<(), BypassError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let hop = Hop {
        server: listener.local_addr()?,
        namespaces: Some(Ends::within(bypass.namespace_of_this_thread()?)),
    };
    bypass.add(hop)?;
    let mut client = TcpStream::connect(hop.server)?;
    let (server, _) = listener.accept()?;
    for socket in [&client, &server] {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
    }
    client.write_all(&vec![b'a'; SMALL])?;
    await_unread(&server, SMALL as u64, "redirected bytes")?;
    if bypass.counters()?.total.redirected_bytes != SMALL as u64 {
        return unfit("what one end sent was not redirected to the other");
    }
    read_all(&server, SMALL)?;

    client.set_nonblocking(true)?;
    let sent = fill(&mut client, LARGE)?;
    if bypass.counters()?.total.full == 0 {
        return unfit("a receive queue grows without limit");
    }
    await_unread(&server, 300 * 1024, "redirected bytes and TCP's")?;
    read_all(&server, sent)?;
    bypass.remove(hop)
}

/// Sends pieces until `most` bytes are sent or the kernel has no room; returns the number of bytes sent.
fn fill(client: &mut TcpStream, most: usize) -> io::Result<usize> {
    let piece = [b'b'; 16 * 1024];
    let mut sent = 0;
    while sent < most {
        match client.write(&piece) {
            Ok(n) => sent += n,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
            Err(e) => return Err(e),
        }
    }
    Ok(sent)
}

/// Waits until FIONREAD returns at least `least` bytes.
fn await_unread(socket: &TcpStream, least: u64, of: &str) -> Result<(), BypassError> {
    let until = Instant::now() + PATIENCE;
    loop {
        let unread = ioctl_fionread(socket).map_err(io::Error::from)?;
        if unread >= least {
            return Ok(());
        }
        if Instant::now() > until {
            return unfit(&format!("FIONREAD tells of {unread} bytes, not of {least} {of}"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn read_all(mut socket: &TcpStream, count: usize) -> Result<(), BypassError> {
    let until = Instant::now() + PATIENCE;
    let (mut buffer, mut remaining) = (vec![0; count], count);
    while remaining > 0 {
        match socket.read(&mut buffer[..remaining]) {
            // A receive that waits is woken by what comes by TCP before that is in the one queue.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {}
            Err(e) => return unfit(&format!("bytes that were sent did not come: {e}")),
            Ok(0) => return unfit("bytes that were sent did not come"),
            Ok(read) => remaining -= read,
        }
    }
    Ok(())
}

fn unfit(found: &str) -> Result<(), BypassError> {
    Err(BypassError::Unfit(found.to_owned()))
}
