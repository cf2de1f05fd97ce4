//! The part of memcached's text protocol with which gateways read: `get KEY`, and the value. Every key has one.

use std::collections::VecDeque;

use super::{ForeignRequest, Malformed, Protocol};
use crate::responses::Responses;

/// State of a memcached connection.
#[derive(Debug, Default)]
pub(super) struct Memcached {
    /// Keys that wait for their values. A gateway requests one at a time.
    keys: VecDeque<Vec<u8>>,
}

impl Protocol for Memcached {
    fn feed(
        &mut self,
        bytes: &[u8],
        responses: &Responses,
        requests: &mut Vec<ForeignRequest>,
        _out: &mut Vec<u8>,
    ) -> Result<usize, Malformed> {
        let mut used = 0;
        while let Some(end) = bytes[used..].iter().position(|byte| *byte == b'\n') {
            let line = &bytes[used..used + end];
            let argument = line.strip_prefix(b"get ").ok_or(Malformed)?;
            let key = argument.strip_suffix(b"\r").unwrap_or(argument);
            if key.is_empty() || key.contains(&b' ') {
                return Err(Malformed);
            }
            requests.push(ForeignRequest {
                id: 0,
                content: responses.content_of(key),
                is_head: false,
                is_call: false,
                yes: None,
            });
            self.keys.push_back(key.to_vec());
            used += end + 1;
        }
        Ok(used)
    }

    fn answer(&mut self, request: &ForeignRequest, responses: &Responses, out: &mut Vec<u8>) {
        let content = responses.bytes(request.content);
        out.extend_from_slice(b"VALUE ");
        out.extend(self.keys.pop_front().unwrap_or_default());
        // No flags, and the length.
        out.extend_from_slice(format!(" 0 {}\r\n", content.len()).as_bytes());
        out.extend_from_slice(content);
        out.extend_from_slice(b"\r\nEND\r\n");
    }

    fn is_over(&self) -> bool {
        false
    }
}
