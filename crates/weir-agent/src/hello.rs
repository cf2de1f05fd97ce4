//! The first message of each side, which must stay readable by every other version.

use std::io::{Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::frame::{self, FrameError};

/// Version of the protocol. It changes with every change of a message.
pub const PROTOCOL: u32 = 10;

/// Value of the greeting's `magic` field, which tells an agent from any other program at the other end.
const MAGIC: &str = "weir-agent";

/// Maximum length of each text of a received greeting, in characters; longer ones are cut.
const LONGEST: usize = 80;

/// The first message of each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Always `weir-agent`.
    magic: String,
    /// [`PROTOCOL`].
    protocol: u32,
    /// Exact version of weir.
    pub weir: String,
}

/// Reason why client and agent cannot talk.
#[derive(Debug, thiserror::Error)]
pub enum HelloError {
    /// No message was received, or an invalid one.
    #[error("the peer is not a weir agent: {0}")]
    Frame(#[from] FrameError),
    /// The peer ended without a greeting.
    #[error("the agent ended before it said anything")]
    Silent,
    /// No whole greeting came for as long as the other side may be silent.
    #[error("no weir said hello within {} s", .0.as_secs())]
    Late(Duration),
    /// The peer is another program, which calls itself by this name.
    #[error("the peer is not a weir agent: it calls itself `{0}`")]
    Stranger(String),
    /// The peer is a weir with another version of the protocol.
    #[error(
        "the agent speaks version {theirs} of the protocol (weir {weir}), and this weir version \
         {PROTOCOL}"
    )]
    Version {
        /// Version of the peer's protocol.
        theirs: u32,
        /// The peer's version of weir.
        weir: String,
    },
}

/// Sends a greeting and reads the peer's. Both sides send first, so neither waits for the other.
///
/// # Errors
/// The peer is not an agent of this protocol version.
pub fn greet(
    reader: &mut impl Read,
    writer: &mut impl Write,
    weir: &str,
) -> Result<Hello, HelloError> {
    let ours = Hello { magic: MAGIC.to_owned(), protocol: PROTOCOL, weir: weir.to_owned() };
    frame::write(writer, &ours)?;
    let mut peer: Hello = frame::read(reader)?.ok_or(HelloError::Silent)?;
    // Whoever it is, a message quotes a line of it and not megabytes.
    for text in [&mut peer.magic, &mut peer.weir] {
        let end = text.char_indices().nth(LONGEST).map(|(at, _)| at);
        text.truncate(end.unwrap_or(text.len()));
    }
    if peer.magic != MAGIC {
        return Err(HelloError::Stranger(peer.magic));
    }
    match peer.protocol {
        PROTOCOL => Ok(peer),
        theirs => Err(HelloError::Version { theirs, weir: peer.weir }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(hello: &Hello) -> Result<Hello, HelloError> {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, hello).unwrap();
        greet(&mut &bytes[..], &mut std::io::sink(), "1.0")
    }

    #[test]
    fn another_version_is_refused_with_both_numbers() {
        let mut hello =
            Hello { magic: MAGIC.to_owned(), protocol: PROTOCOL, weir: "0.9".to_owned() };
        assert_eq!(answer(&hello).unwrap(), hello);
        hello.protocol = PROTOCOL + 1;
        let words = answer(&hello).unwrap_err().to_string();
        let both = [PROTOCOL + 1, PROTOCOL].map(|version| format!("version {version}"));
        assert!(both.iter().all(|one| words.contains(one)), "{words}");
        hello.weir = "ž".repeat(1 << 20);
        let words = answer(&hello).unwrap_err().to_string();
        assert!(words.len() < 400, "{} bytes", words.len());
        hello.magic = "sftp".to_owned();
        assert!(matches!(answer(&hello), Err(HelloError::Stranger(_))));
    }

    #[test]
    fn a_shell_that_prints_a_banner_is_no_agent() {
        let banner = b"Welcome to example!\r\n";
        let error = greet(&mut &banner[..], &mut std::io::sink(), "1.0").unwrap_err();
        assert!(matches!(error, HelloError::Frame(_)), "{error}");
    }
}
