//! Requests to the kernel over netlink(7), one at a time, and its answers.
//!
//! A socket belongs to the network namespace of the thread that opened it, whichever thread uses it later.

use std::ffi::CStr;
use std::fmt::Debug;
use std::io;
use std::marker::PhantomData;
use std::time::Duration;

use netlink_packet_core::{
    ErrorMessage, NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_DUMP_INTR,
    NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage, NetlinkPayload,
    NetlinkSerializable, NlasIterator,
};
use netlink_sys::{Socket, SocketAddr};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};

/// Maximum time to wait for an answer. The kernel answers within microseconds, but may have to wait for a lock that all
/// namespaces share while many of them are removed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Size of the receive buffer: more than the 32 KiB that the kernel puts into a datagram of a dump (af_netlink.c).
const DATAGRAM_BYTES: usize = 64 << 10;

/// Number of times that a list is requested if it changes while the kernel reads it out.
const DUMP_ATTEMPTS: u32 = 16;

/// `NLMSGERR_ATTR_MSG` of linux/netlink.h: the text of an extended acknowledgement.
const WORDS_ATTRIBUTE: u16 = 1;

/// Error with which the kernel answers a request.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Error number from the kernel.
    pub(crate) source: io::Error,
    /// Text of the kernel's extended acknowledgement, if it sent one.
    pub(crate) words: Option<String>,
}

impl From<io::Error> for Refusal {
    fn from(source: io::Error) -> Refusal {
        Refusal { source, words: None }
    }
}

impl Refusal {
    /// Returns true if the refusal has this error number.
    pub(crate) fn is(&self, errno: Errno) -> bool {
        self.source.raw_os_error() == Some(errno.raw_os_error())
    }

    /// Reads an error message. Its text follows the header of the request, which NETLINK_CAP_ACK keeps free of the
    /// request's body.
    fn of(message: &ErrorMessage, flags: u16) -> Refusal {
        let explained = NLM_F_ACK_TLVS | NLM_F_CAPPED;
        let attributes = if flags & explained == explained {
            message.header.get(HEADER_BYTES..).unwrap_or_default()
        } else {
            &[]
        };
        Refusal { source: message.to_io(), words: words(attributes) }
    }
}

/// Length of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;

fn words(attributes: &[u8]) -> Option<String> {
    let attribute = NlasIterator::new(attributes)
        .map_while(Result::ok)
        .find(|attribute| attribute.kind() == WORDS_ATTRIBUTE)?;
    let text = CStr::from_bytes_until_nul(attribute.value()).ok()?;
    Some(text.to_string_lossy().into_owned())
}

/// A connection to one family of netlink, with messages of type `M`.
#[derive(Debug)]
pub(crate) struct Netlink<M> {
    socket: Socket,
    sequence: u32,
    datagram: Vec<u8>,
    messages: PhantomData<fn(M) -> M>,
}

impl<M: NetlinkSerializable + NetlinkDeserializable + Clone + Debug> Netlink<M> {
    /// Opens a connection in the calling thread's network namespace. `protocol` is one of [`netlink_sys::protocols`].
    pub(crate) fn open(protocol: isize) -> io::Result<Netlink<M>> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Kernels before 4.12 explain nothing.
        let _ = socket.set_cap_ack(true).and_then(|()| socket.set_ext_ack(true));
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Netlink {
            socket,
            sequence: 0,
            datagram: vec![0; DATAGRAM_BYTES],
            messages: PhantomData,
        })
    }

    /// Sends a request to do something or to describe one object; returns the answers. `flags` are added to REQUEST and
    /// ACK.
    pub(crate) fn ask(&mut self, message: M, flags: u16) -> Result<Vec<M>, Refusal> {
        self.send(message, NLM_F_REQUEST | NLM_F_ACK | flags)?;
        Ok(self.answers()?.messages)
    }

    /// Requests a list and returns it as of one moment.
    pub(crate) fn list(&mut self, message: &M) -> Result<Vec<M>, Refusal> {
        for _ in 0..DUMP_ATTEMPTS {
            self.send(message.clone(), NLM_F_REQUEST | NLM_F_DUMP)?;
            let answers = self.answers()?;
            if !answers.interrupted {
                return Ok(answers.messages);
            }
        }
        Err(io::Error::new(io::ErrorKind::Interrupted, "the list changes too quickly to be read")
            .into())
    }

    fn send(&mut self, message: M, flags: u16) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut packet =
            NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(message));
        packet.header.flags = flags;
        packet.header.sequence_number = self.sequence;
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(drop)
    }

    /// Receives the answers until the kernel marks the last one.
    fn answers(&mut self) -> Result<Answers<M>, Refusal> {
        let mut answers = Answers { messages: Vec::new(), interrupted: false };
        loop {
            let length = self.receive()?;
            if answers.read(&self.datagram[..length], self.sequence)? {
                return Ok(answers);
            }
        }
    }

    fn receive(&mut self) -> io::Result<usize> {
        loop {
            let mut room = &mut self.datagram[..];
            match self.socket.recv(&mut room, 0) {
                Ok(length) => return Ok(length),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        format!("the kernel did not answer within {} s", PATIENCE.as_secs()),
                    ));
                }
                Err(e) => return Err(e),
            }
        }
    }
}

struct Answers<M> {
    messages: Vec<M>,
    interrupted: bool,
}

impl<M: NetlinkDeserializable> Answers<M> {
    /// Reads the messages of a datagram; returns true if the last answer is among them. Answers to an earlier request,
    /// which timed out, are skipped.
    fn read(&mut self, mut datagram: &[u8], sequence: u32) -> Result<bool, Refusal> {
        while !datagram.is_empty() {
            let message = NetlinkMessage::<M>::deserialize(datagram).map_err(unreadable)?;
            let NetlinkMessage { header, payload, .. } = message;
            let length = (header.length as usize).next_multiple_of(ALIGNMENT);
            datagram = datagram.get(length..).unwrap_or_default();
            if header.sequence_number != sequence {
                continue;
            }
            self.interrupted |= header.flags & NLM_F_DUMP_INTR != 0;
            match payload {
                NetlinkPayload::InnerMessage(message) => self.messages.push(message),
                NetlinkPayload::Error(error) if error.code.is_some() => {
                    return Err(Refusal::of(&error, header.flags));
                }
                NetlinkPayload::Error(_) => return Ok(true),
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(-done.code).into());
                }
                NetlinkPayload::Done(_) => return Ok(true),
                _ => {}
            }
        }
        Ok(false)
    }
}

/// `NLMSG_ALIGNTO` of linux/netlink.h.
const ALIGNMENT: usize = 4;

fn unreadable(error: impl std::fmt::Display) -> Refusal {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_refusal_are_found() {
        // One attribute of another kind (NLMSGERR_ATTR_OFFS), then the words.
        let mut attributes = vec![8, 0, 2, 0, 1, 2, 3, 4];
        attributes.extend([12, 0, 1, 0]);
        attributes.extend(b"not now\0");
        assert_eq!(words(&attributes).as_deref(), Some("not now"));
        assert_eq!(words(&attributes[..8]), None);
        assert_eq!(words(&attributes[..14]), None, "cut short");
        assert_eq!(words(&[]), None);
    }
}
