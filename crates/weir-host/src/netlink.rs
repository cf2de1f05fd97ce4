//! Questions to the kernel over netlink(7), one at a time, and its answers.
//!
//! A socket belongs to the network namespace of the thread that opened it, whoever uses it later.

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

/// The kernel answers within microseconds; it may have to wait for a lock that all namespaces share
/// while many of them are taken down.
const PATIENCE: Duration = Duration::from_secs(20);

/// More than the 32 KiB that the kernel puts into a datagram of a dump (af_netlink.c).
const DATAGRAM_BYTES: usize = 64 << 10;

/// A list that changes while the kernel reads it out is asked for again this often.
const DUMP_ATTEMPTS: u32 = 16;

/// `NLMSGERR_ATTR_MSG` of linux/netlink.h: the words of an extended acknowledgement.
const WORDS_ATTRIBUTE: u16 = 1;

/// What the kernel answers instead of doing it.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// Its error number.
    pub(crate) source: io::Error,
    /// What it says about it.
    pub(crate) words: Option<String>,
}

impl From<io::Error> for Refusal {
    fn from(source: io::Error) -> Refusal {
        Refusal {
            source,
            words: None,
        }
    }
}

impl Refusal {
    /// Whether it gives this error number.
    pub(crate) fn is(&self, errno: Errno) -> bool {
        self.source.raw_os_error() == Some(errno.raw_os_error())
    }

    /// Of the message that refuses. The words follow the header of the request, which
    /// NETLINK_CAP_ACK keeps free of the request's body.
    fn of(message: &ErrorMessage, flags: u16) -> Refusal {
        let explained = NLM_F_ACK_TLVS | NLM_F_CAPPED;
        let attributes = match flags & explained == explained {
            true => message.header.get(HEADER_BYTES..).unwrap_or_default(),
            false => &[],
        };
        Refusal {
            source: message.to_io(),
            words: words(attributes),
        }
    }
}

/// Length of `struct nlmsghdr`.
const HEADER_BYTES: usize = 16;

fn words(attributes: &[u8]) -> Option<String> {
    let found = NlasIterator::new(attributes)
        .map_while(Result::ok)
        .find(|attribute| attribute.kind() == WORDS_ATTRIBUTE)?;
    let text = CStr::from_bytes_until_nul(found.value()).ok()?;
    Some(text.to_string_lossy().into_owned())
}

/// A conversation with one family of netlink, in messages of type `M`.
#[derive(Debug)]
pub(crate) struct Netlink<M> {
    socket: Socket,
    sequence: u32,
    datagram: Vec<u8>,
    messages: PhantomData<fn(M) -> M>,
}

impl<M: NetlinkSerializable + NetlinkDeserializable + Clone + Debug> Netlink<M> {
    /// Begins one, in the calling thread's network namespace. `protocol`: one of
    /// [`netlink_sys::protocols`].
    pub(crate) fn open(protocol: isize) -> io::Result<Netlink<M>> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Kernels before 4.12 explain nothing.
        let _ = socket
            .set_cap_ack(true)
            .and_then(|()| socket.set_ext_ack(true));
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        Ok(Netlink {
            socket,
            sequence: 0,
            datagram: vec![0; DATAGRAM_BYTES],
            messages: PhantomData,
        })
    }

    /// Has something done, or something told about one thing. `flags`: besides REQUEST and ACK.
    pub(crate) fn ask(&mut self, message: M, flags: u16) -> Result<Vec<M>, Refusal> {
        self.send(message, NLM_F_REQUEST | NLM_F_ACK | flags)?;
        Ok(self.answers()?.messages)
    }

    /// Has a list told, as it is at one moment.
    pub(crate) fn list(&mut self, message: &M) -> Result<Vec<M>, Refusal> {
        for _ in 0..DUMP_ATTEMPTS {
            self.send(message.clone(), NLM_F_REQUEST | NLM_F_DUMP)?;
            let answers = self.answers()?;
            if !answers.interrupted {
                return Ok(answers.messages);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::Interrupted,
            "the list changes too quickly to be read",
        )
        .into())
    }

    fn send(&mut self, message: M, flags: u16) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut packet = NetlinkMessage::new(
            NetlinkHeader::default(),
            NetlinkPayload::InnerMessage(message),
        );
        packet.header.flags = flags;
        packet.header.sequence_number = self.sequence;
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(drop)
    }

    /// What comes until the kernel says that this is all.
    fn answers(&mut self) -> Result<Answers<M>, Refusal> {
        let mut answers = Answers {
            messages: Vec::new(),
            interrupted: false,
        };
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
    /// Reads the messages of a datagram; true with the last of them all. Answers to an earlier
    /// question, which ran out of time, are passed over.
    fn read(&mut self, mut datagram: &[u8], sequence: u32) -> Result<bool, Refusal> {
        while !datagram.is_empty() {
            let message = NetlinkMessage::<M>::deserialize(datagram).map_err(unreadable)?;
            let NetlinkMessage {
                header, payload, ..
            } = message;
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
