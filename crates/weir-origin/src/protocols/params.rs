//! Variables in which a gateway describes a request, with names as in CGI (RFC 3875 §4.1).

use super::ForeignRequest;
use crate::responses::Responses;

/// The variables of a request that matter.
#[derive(Debug, Default)]
pub(super) struct Params {
    target: Vec<u8>,
    is_head: bool,
    /// Number of bytes of content that follow.
    pub(super) length: u64,
}

impl Params {
    /// Stores a variable if it matters.
    pub(super) fn take(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"REQUEST_URI" => self.target = value.to_vec(),
            b"REQUEST_METHOD" => self.is_head = value == b"HEAD",
            b"CONTENT_LENGTH" => {
                let length = std::str::from_utf8(value).ok();
                // Empty for a request without content.
                self.length = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            }
            _ => {}
        }
    }

    /// Returns the request that the variables describe.
    pub(super) fn request(&self, id: u32, responses: &Responses) -> ForeignRequest {
        ForeignRequest {
            id,
            content: responses.content_of(&self.target),
            is_head: self.is_head,
            is_call: false,
            yes: None,
        }
    }
}
