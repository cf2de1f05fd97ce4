//! Reads the kernel's lists of sockets (sock_diag(7)) and queueing disciplines (rtnetlink(7)), message by message.
//!
//! Lists may have tens of thousands of entries, so only the counted parts of an entry are kept: the types of the
//! netlink crates take ten times as long. Structures are those of linux/inet_diag.h, linux/tcp.h and linux/rtnetlink.h,
//! which only grow at their end.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
    socket_with,
};

/// Time limit for the kernel to send the next part of a list.
const PATIENCE: Duration = Duration::from_secs(2);

/// Buffer size in bytes: more than the 32 KiB that the kernel puts into a datagram of a list (af_netlink.c).
const DATAGRAM: usize = 64 << 10;

const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;

/// Message types (linux/netlink.h).
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// Request for sockets of both families in one walk (linux/inet_diag.h). The newer request type walks the sockets once
/// for each family.
const TCPDIAG_GETSOCK: u16 = 18;
/// Request for a single socket.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const IPPROTO_TCP: u8 = 6;
/// Attribute of an answer that contains `tcp_info`.
const INET_DIAG_INFO: u16 = 2;
/// Attribute of an answer that contains the memory of a socket, and the offset of its dropped packets
/// (linux/sock_diag.h).
const INET_DIAG_SKMEMINFO: u16 = 7;
const SK_MEMINFO_DROPS: usize = 8 * 4;

const RTM_GETQDISC: u16 = 38;
const TCA_STATS: u16 = 3;
/// Parent of a root queueing discipline, one that is attached to its link.
const ROOT: u32 = u32::MAX;

/// Length of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Length of `struct inet_diag_msg`.
const ANSWER: usize = 72;
/// Length of `struct tcmsg`.
const DISCIPLINE: usize = 20;
/// Length of `struct inet_diag_sockid`.
const ID: usize = 48;

/// Number of sockets requested at once.
const BATCH: usize = 32;

/// TCP states, indexed by the kernel's numbers (net/tcp_states.h) minus one.
pub(super) const STATES: [&str; 11] = [
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSE",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
];

pub(super) const ESTABLISHED: u8 = 1;
pub(super) const SYN_RECV: u8 = 3;
const TIME_WAIT: u8 = 6;
const LISTEN: u8 = 10;

/// A socket in a list of the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Socket {
    /// State in the kernel's numbering.
    pub(super) state: u8,
    pub(super) port: u16,
    pub(super) remote_port: u16,
    pub(super) receive_queue: u32,
    pub(super) send_queue: u32,
    /// Inode; 0 for a connection that has not been accepted yet.
    pub(super) inode: u32,
    /// Connections dropped by a listener; `None` if not requested, or on kernels older than Linux 4.7.
    pub(super) drops: Option<u32>,
    family: u8,
    id: [u8; ID],
}

impl Socket {
    fn of(answer: &[u8]) -> Option<Socket> {
        let message = answer.get(..ANSWER)?;
        let memory = attribute(&answer[ANSWER..], INET_DIAG_SKMEMINFO);
        Some(Socket {
            family: message[0],
            state: message[1],
            port: u16::from_be_bytes([message[4], message[5]]),
            remote_port: u16::from_be_bytes([message[6], message[7]]),
            receive_queue: u32_at(message, 56)?,
            send_queue: u32_at(message, 60)?,
            inode: u32_at(message, 68)?,
            drops: memory.and_then(|memory| u32_at(memory, SK_MEMINFO_DROPS)),
            id: message[4..4 + ID].try_into().ok()?,
        })
    }
}

/// Fields of a connection's `struct tcp_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) unacked: u64,
    pub(super) rtt_us: u64,
    pub(super) retransmits: u64,
    /// Delivery rate, since Linux 4.9; the fields after it since 4.10.
    pub(super) delivery: Option<u64>,
    pub(super) rwnd_limited_us: Option<u64>,
    pub(super) sndbuf_limited_us: Option<u64>,
}

impl Connection {
    fn of(info: &[u8]) -> Option<Connection> {
        Some(Connection {
            unacked: u32_at(info, 24)?.into(),
            rtt_us: u32_at(info, 68)?.into(),
            retransmits: u32_at(info, 100)?.into(),
            delivery: u64_at(info, 160),
            rwnd_limited_us: u64_at(info, 176),
            sndbuf_limited_us: u64_at(info, 184),
        })
    }
}

/// A netlink socket to the kernel, for one network namespace.
#[derive(Debug)]
pub(super) struct Diagnosis {
    socket: OwnedFd,
    sequence: u32,
    datagram: Vec<u8>,
}

impl Diagnosis {
    /// Opens a socket for queries about sockets, in the calling thread's namespace.
    pub(super) fn of_sockets() -> io::Result<Diagnosis> {
        Diagnosis::open(Some(netlink::SOCK_DIAG))
    }

    /// Opens a socket for queries about links, in the calling thread's namespace.
    pub(super) fn of_links() -> io::Result<Diagnosis> {
        // NETLINK_ROUTE is protocol 0.
        Diagnosis::open(None)
    }

    fn open(protocol: Option<Protocol>) -> io::Result<Diagnosis> {
        let (family, flags) = (AddressFamily::NETLINK, SocketFlags::CLOEXEC);
        let socket = socket_with(family, SocketType::RAW, flags, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Diagnosis { socket, sequence: 0, datagram: vec![0; DATAGRAM] })
    }

    pub(super) fn listeners(&mut self, each: &mut dyn FnMut(Socket)) -> io::Result<()> {
        self.sockets(1 << LISTEN, 1 << (INET_DIAG_SKMEMINFO - 1), each)
    }

    /// Lists sockets in TIME_WAIT.
    pub(super) fn closed(&mut self, each: &mut dyn FnMut(Socket)) -> io::Result<()> {
        self.sockets(1 << TIME_WAIT, 0, each)
    }

    /// Lists all sockets except listeners and those in TIME_WAIT, of which the kernel keeps a count.
    pub(super) fn others(&mut self, each: &mut dyn FnMut(Socket)) -> io::Result<()> {
        let all = (1..=STATES.len() as u8).filter(|state| ![TIME_WAIT, LISTEN].contains(state));
        self.sockets(all.map(|state| 1 << state).sum(), 0, each)
    }

    /// Lists sockets in these states (a bit set), with the attributes selected by the bits of `extensions`.
    fn sockets(
        &mut self,
        states: u32,
        extensions: u8,
        each: &mut dyn FnMut(Socket),
    ) -> io::Result<()> {
        // `struct inet_diag_req`, all zero but these.
        let mut request = [0; 60];
        request[3] = extensions;
        request[52..56].copy_from_slice(&states.to_ne_bytes());
        self.send(&[message(TCPDIAG_GETSOCK, REQUEST | DUMP, self.sequence + 1, &request)])?;
        self.answers(1, &mut |answer| {
            if let Some(socket) = Socket::of(answer) {
                each(socket);
            }
        })
    }

    /// Returns information about these connections, except those that have ended meanwhile.
    pub(super) fn connections(&mut self, sockets: &[Socket]) -> io::Result<Vec<Connection>> {
        let mut connections = Vec::new();
        for batch in sockets.chunks(BATCH) {
            let sequence = self.sequence + 1;
            let questions = batch.iter().map(|socket| {
                // `struct inet_diag_req_v2`.
                let mut request = [0; 8 + ID];
                request[0] = socket.family;
                request[1] = IPPROTO_TCP;
                request[2] = 1 << (INET_DIAG_INFO - 1);
                request[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
                request[8..].copy_from_slice(&socket.id);
                message(SOCK_DIAG_BY_FAMILY, REQUEST, sequence, &request)
            });
            let questions: Vec<Vec<u8>> = questions.collect();
            self.send(&questions)?;
            self.answers(questions.len(), &mut |answer| {
                let info = answer.get(ANSWER..).and_then(|tail| attribute(tail, INET_DIAG_INFO));
                connections.extend(info.and_then(Connection::of));
            })?;
        }
        Ok(connections)
    }

    /// Returns the number of packets dropped by the root disciplines of all links.
    pub(super) fn discipline_drops(&mut self) -> io::Result<u64> {
        let request = [0; DISCIPLINE];
        self.send(&[message(RTM_GETQDISC, REQUEST | DUMP, self.sequence + 1, &request)])?;
        let mut drops = 0;
        self.answers(1, &mut |answer| {
            // `struct tc_stats`: bytes, packets, drops.
            let stats = answer.get(DISCIPLINE..).and_then(|rest| attribute(rest, TCA_STATS));
            let dropped = stats.and_then(|stats| u32_at(stats, 12));
            if u32_at(answer, 12) == Some(ROOT) {
                drops += u64::from(dropped.unwrap_or(0));
            }
        })?;
        Ok(drops)
    }

    fn send(&mut self, messages: &[Vec<u8>]) -> io::Result<()> {
        self.sequence += 1;
        send(&self.socket, &messages.concat(), SendFlags::empty())?;
        Ok(())
    }

    /// Receives the answers to this many requests: each is a list, or a single message, or an error that there is none.
    fn answers(&mut self, questions: usize, handle: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut pending = questions;
        while pending > 0 {
            let (length, _) = match recv(&self.socket, &mut self.datagram[..], RecvFlags::empty()) {
                Err(rustix::io::Errno::INTR) => continue,
                received => received?,
            };
            let mut messages = self.datagram.get(..length).unwrap_or_default();
            while let Some((kind, flags, sequence, body)) = next(&mut messages) {
                if sequence != self.sequence {
                    // The end of an answer that nobody waited for.
                    continue;
                }
                match kind {
                    DONE => pending = pending.saturating_sub(1),
                    // One question's is that a socket has gone; a list's is that there is none.
                    ERROR if questions > 1 => pending = pending.saturating_sub(1),
                    ERROR => return Err(refusal(body)),
                    _ => {
                        handle(body);
                        // What is no part of a list is the whole answer.
                        if flags & MULTI == 0 {
                            pending = pending.saturating_sub(1);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Flag `NLM_F_MULTI` of messages that are part of a list.
const MULTI: u16 = 2;

fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend([0; 4]);
    message.extend(body);
    message
}

/// Splits the next message from a datagram: type, flags, sequence number, body.
fn next<'a>(rest: &mut &'a [u8]) -> Option<(u16, u16, u32, &'a [u8])> {
    let length = u32_at(rest, 0)? as usize;
    let body = rest.get(HEADER..length)?;
    let (kind, flags) = (u16_at(rest, 4)?, u16_at(rest, 6)?);
    let sequence = u32_at(rest, 8)?;
    *rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, flags, sequence, body))
}

/// Returns the first attribute of a type (netlink(7), `struct nlattr`).
fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = u16_at(rest, 0)? as usize;
        let value = rest.get(4..length)?;
        if u16_at(rest, 2)? == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

/// Converts the error number in `struct nlmsgerr`.
fn refusal(body: &[u8]) -> io::Error {
    let number = u32_at(body, 0).unwrap_or(0) as i32;
    io::Error::from_raw_os_error(number.wrapping_neg())
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_attributes_are_taken_off_and_cut_ones_end_it() {
        let datagram = [message(7, MULTI, 3, &[1, 2, 3]), vec![0], message(9, 0, 4, &[])].concat();
        let mut remaining = &datagram[..];
        assert_eq!(next(&mut remaining), Some((7, MULTI, 3, &[1, 2, 3][..])));
        assert_eq!(next(&mut remaining), Some((9, 0, 4, &[][..])));
        assert_eq!(next(&mut remaining), None);
        assert_eq!(next(&mut &datagram[..18]), None);
        let endless = [0; 32];
        assert_eq!(next(&mut &endless[..]), None);

        let attributes = [6, 0, 1, 0, 9, 9, 0, 0, 5, 0, 2, 0, 8, 0, 0, 0];
        assert_eq!(attribute(&attributes, 2), Some(&[8][..]));
        assert_eq!(attribute(&attributes, 3), None);
        assert_eq!(attribute(&endless, 3), None);
    }

    #[test]
    fn a_connection_of_an_old_kernel_lacks_what_came_later() {
        let mut info = vec![0; 192];
        for (at, value) in [(24, 2_u8), (68, 5), (100, 7), (160, 9), (176, 11), (184, 13)] {
            info[at] = value;
        }
        let connection = Connection::of(&info).unwrap();
        assert_eq!((connection.unacked, connection.rtt_us, connection.retransmits), (2, 5, 7));
        let later = (connection.delivery, connection.rwnd_limited_us, connection.sndbuf_limited_us);
        assert_eq!(later, (Some(9), Some(11), Some(13)));
        assert_eq!(Connection::of(&info[..160]).unwrap().delivery, None);
        assert_eq!(Connection::of(&info[..90]), None);
    }
}
