//! Null server: answers whatever it receives with the same response.
//!
//! The engine is calibrated against it: a server that costs as little as possible, so that the engine is measured and
//! not the server.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, SocketFlags, sockopt};

/// Longest time between two checks of the stop flag.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Maximum number of events per wait.
const BATCH: usize = 256;

/// Event data that marks the listener.
const LISTENER: u64 = u64::MAX;

/// A running null server; dropping it stops it.
#[derive(Debug)]
pub struct NullServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Errno>>>,
}

impl NullServer {
    /// Listens on a port of 127.0.0.1 chosen by the kernel, with one thread, on `cpu` if given. Every received piece is
    /// answered with `response`, so each request must arrive in one piece.
    ///
    /// # Errors
    /// A socket or thread could not be created.
    pub fn start(cpu: Option<u32>, response: Vec<u8>) -> std::io::Result<NullServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("weir-null".to_owned()).spawn(move || {
            if let Some(cpu) = cpu {
                // Anywhere else will do as well.
                let _ = weir_probe::keep_to(None, &[cpu]);
            }
            serve(&listener, &response, &until)
        })?;
        Ok(NullServer { address, stop, thread: Some(thread) })
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It served nothing but a calibration, which has noticed if it failed.
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, response: &[u8], stop: &AtomicBool) -> Result<(), Errno> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let interest = epoll::EventFlags::IN;
    epoll::add(&set, listener, epoll::EventData::new_u64(LISTENER), interest)?;
    let mut connections: Vec<Option<OwnedFd>> = Vec::new();
    let mut events = Vec::with_capacity(BATCH);
    let mut buffer = vec![0; 64 * 1024];
    while !stop.load(Ordering::Relaxed) {
        events.clear();
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&set, spare, Some(&LOOK)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        for event in &events {
            match event.data.u64() {
                LISTENER => accept(listener, &set, &mut connections)?,
                place => answer(&mut connections[place as usize], response, &mut buffer),
            }
        }
    }
    Ok(())
}

fn accept(
    listener: &TcpListener,
    set: &OwnedFd,
    connections: &mut Vec<Option<OwnedFd>>,
) -> Result<(), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    while let Ok(socket) = net::accept_with(listener.as_fd(), flags) {
        sockopt::set_tcp_nodelay(&socket, true)?;
        let data = epoll::EventData::new_u64(connections.len() as u64);
        epoll::add(set, &socket, data, epoll::EventFlags::IN)?;
        connections.push(Some(socket));
    }
    Ok(())
}

fn answer(connection: &mut Option<OwnedFd>, response: &[u8], buffer: &mut [u8]) {
    let Some(socket) = connection else { return };
    match net::recv(&*socket, buffer, RecvFlags::empty()) {
        Ok((0, _)) => *connection = None,
        // Responses are short and the client waits for each: there is always room for one.
        Ok(_) => drop(net::send(&*socket, response, SendFlags::NOSIGNAL)),
        Err(Errno::AGAIN | Errno::INTR) => {}
        Err(_) => *connection = None,
    }
}
