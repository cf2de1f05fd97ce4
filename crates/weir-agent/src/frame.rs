//! Frames: a length of four bytes, big-endian, and as many bytes of JSON.
//!
//! The length is checked before anything is allocated, so a peer that is not an agent, or is malicious, costs
//! [`LARGEST`] bytes at most.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum size of a frame, in bytes. The largest frame that weir sends holds a slice's histograms, some hundred
/// kilobytes.
pub const LARGEST: usize = 16 << 20;

/// Error of reading or writing a message.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer closed the connection in the middle of a frame, or reading or writing failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The frame, of this many bytes, is larger than [`LARGEST`].
    #[error("a message of {0} bytes is larger than any that weir sends ({LARGEST})")]
    TooLarge(u64),
    /// The frame is not a valid message.
    #[error("a message cannot be understood: {0}")]
    Malformed(serde_json::Error),
}

/// Writes one message and flushes the writer.
///
/// # Errors
/// The peer has gone, or the message is too large, which is a mistake of weir's.
pub fn write<T: Serialize>(to: &mut impl Write, message: &T) -> Result<(), FrameError> {
    // One write for both, so that no packet carries a length alone.
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message).map_err(FrameError::Malformed)?;
    let length = bytes.len() - 4;
    if length > LARGEST {
        return Err(FrameError::TooLarge(length as u64));
    }
    bytes[..4].copy_from_slice(&(length as u32).to_be_bytes());
    to.write_all(&bytes)?;
    Ok(to.flush()?)
}

/// Reads one message. Returns `None` if the peer closed the connection between two messages.
///
/// # Errors
/// See [`FrameError`]. After an error, nothing sensible can be read from this peer.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> Result<Option<T>, FrameError> {
    let mut length = [0; 4];
    match read_up_to(from, &mut length)? {
        0 => return Ok(None),
        4 => {}
        _ => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > LARGEST {
        return Err(FrameError::TooLarge(length as u64));
    }
    // Grown as bytes come: a length alone must not cost memory.
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let message = serde_json::from_slice(&bytes).map_err(FrameError::Malformed)?;
    Ok(Some(message))
}

/// Reads until the buffer is full or the input ends; returns the number of bytes read.
fn read_up_to(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = Vec::new();
        write(&mut bytes, &["a", "ü"]).unwrap();
        write(&mut bytes, &["b"]).unwrap();
        let mut from = &bytes[..];
        assert_eq!(read::<Vec<String>>(&mut from).unwrap().unwrap(), ["a", "ü"]);
        assert_eq!(read::<Vec<String>>(&mut from).unwrap().unwrap(), ["b"]);
        assert!(read::<Vec<String>>(&mut from).unwrap().is_none());
    }

    #[test]
    fn a_gibibyte_is_refused_before_it_is_read() {
        let mut bytes = (1_u32 << 30).to_be_bytes().to_vec();
        bytes.extend(b"[]");
        let error = read::<Vec<String>>(&mut &bytes[..]).unwrap_err();
        assert!(matches!(error, FrameError::TooLarge(length) if length == 1 << 30));
    }

    /// Following deep nesting would exhaust the stack: a million levels in two megabytes.
    #[test]
    fn nesting_is_followed_no_further_than_any_message_needs() {
        use crate::message::{Incoming, Reply};
        let deep = "[".repeat(1 << 20) + &"]".repeat(1 << 20);
        let bare = frame_text(&deep);
        let refused = read::<serde_json::Value>(&mut &bare[..]).unwrap_err();
        assert!(matches!(refused, FrameError::Malformed(_)), "{refused}");
        let asks = frame_text(&format!("{{\"id\": 1, \"ask\": {deep}}}"));
        if let Ok(Some(asked)) = read::<Incoming>(&mut &asks[..]) {
            assert!(asked.understand().is_err());
        }
        let tells = frame_text(&format!("{{\"id\": 1, \"body\": {{\"failed\": {deep}}}}}"));
        assert!(read::<Reply>(&mut &tells[..]).is_err());
    }

    fn frame_text(text: &str) -> Vec<u8> {
        let length = (text.len() as u32).to_be_bytes();
        [&length[..], text.as_bytes()].concat()
    }

    #[test]
    fn half_a_message_is_an_error_and_none_is_the_end() {
        let mut bytes = Vec::new();
        write(&mut bytes, &["abc"]).unwrap();
        for length in 1..bytes.len() {
            assert!(read::<Vec<String>>(&mut &bytes[..length]).is_err(), "{length}");
        }
    }
}
