//! Measures what waking up for every request costs on this machine: the lower bound of the CPU time of a punctual open
//! loop.
//!
//! ```text
//! wakeups [RATE [SECONDS]]
//! ```
//!
//! One thread, without any code of weir: it sleeps until an arrival is due (`sleep`), also sends a request (`send`),
//! and also waits for responses between arrivals (`all`). A server on another thread answers 64 connections.

use std::error::Error;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZero;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, clock_gettime};

const CONNECTIONS: usize = 64;
const REQUEST: [u8; 100] = [b'q'; 100];
const RESPONSE: [u8; 250] = [b'r'; 250];

/// Work done for an arrival; each variant includes the one before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Sleep,
    Send,
    All,
}

type Ready = Vec<epoll::Event>;

/// Waits until a connection is readable, at most for `limit`; `None` waits without a limit.
fn wait(poll: impl AsFd, ready: &mut Ready, limit: Option<Duration>) -> io::Result<()> {
    let timeout = limit.map(Timespec::try_from).transpose().map_err(io::Error::other)?;
    ready.clear();
    let spare = rustix::buffer::spare_capacity(ready);
    match epoll::wait(poll, spare, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Registers the connections with a new epoll instance, under their indices.
fn watch(connections: &[TcpStream]) -> io::Result<OwnedFd> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, connection) in connections.iter().enumerate() {
        connection.set_nodelay(true)?;
        connection.set_nonblocking(true)?;
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&poll, connection, data, epoll::EventFlags::IN)?;
    }
    Ok(poll)
}

/// Answers requests until a connection is closed.
fn serve(connections: &[TcpStream], poll: impl AsFd) -> io::Result<()> {
    let (mut ready, mut buffer) = (Ready::with_capacity(CONNECTIONS), [0; 4096]);
    loop {
        wait(&poll, &mut ready, None)?;
        for event in &ready {
            let mut connection = &connections[event.data.u64() as usize];
            match connection.read(&mut buffer)? {
                0 => return Ok(()),
                _ => connection.write_all(&RESPONSE)?,
            }
        }
    }
}

/// Measures the mean CPU time of this thread per arrival.
fn measure(work: Work, gap: Duration, arrivals: u32) -> Result<Duration, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let pairs: io::Result<Vec<(TcpStream, TcpStream)>> = (0..CONNECTIONS)
        .map(|_| Ok((TcpStream::connect(address)?, listener.accept()?.0)))
        .collect();
    let (own, servers): (Vec<_>, Vec<_>) = pairs?.into_iter().unzip();
    let poll = watch(&own)?;
    let server_poll = watch(&servers)?;
    let server = thread::spawn(move || serve(&servers, server_poll));

    let (mut ready, mut buffer) = (Ready::with_capacity(CONNECTIONS), [0; 4096]);
    // By default a sleep may end 50 µs late, so that several end together.
    rustix::thread::set_current_timer_slack(NonZero::new(1))?;
    let (begin, before) = (Instant::now(), read_cpu_time());
    for arrival in 1..=arrivals {
        let due = begin + gap * arrival;
        while let Some(left) = due.checked_duration_since(Instant::now()) {
            if work < Work::All {
                thread::sleep(left);
                continue;
            }
            wait(&poll, &mut ready, Some(left))?;
            for event in &ready {
                match (&own[event.data.u64() as usize]).read(&mut buffer) {
                    Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
                    _ => {}
                }
            }
        }
        if work > Work::Sleep {
            (&own[arrival as usize % CONNECTIONS]).write_all(&REQUEST)?;
        }
    }
    let cpu_time = read_cpu_time() - before;
    drop(own);
    // Responses that nobody read make a reset of the end: it is over either way.
    let _ = server.join();
    Ok(cpu_time / arrivals)
}

fn read_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[allow(clippy::print_stdout)] // It is what an example is for.
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().map_or(Ok(default), |word| word.parse());
    let (rate, seconds): (u32, u32) = (number(20_000)?, number(5)?);
    if rate == 0 || seconds == 0 || rate.checked_mul(seconds).is_none() {
        return Err("RATE and SECONDS are above 0, their product below 4 billion".into());
    }
    println!("| at {rate}/s | CPU time for an arrival, µs |\n|---|---|");
    let rows = [
        (Work::Sleep, "sleep"),
        (Work::Send, "sleep, send"),
        (Work::All, "sleep, send, wait for responses"),
    ];
    for (work, name) in rows {
        let cost = measure(work, Duration::from_secs(1) / rate, rate * seconds)?;
        println!("| {name} | {:.1} |", cost.as_secs_f64() * 1e6);
    }
    Ok(())
}
