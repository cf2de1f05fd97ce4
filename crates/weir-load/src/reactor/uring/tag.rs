//! Tags that identify requests: the 64 bits that the kernel returns with a completion.

/// Bits of a generation. A number is reused a billion times before a tag repeats.
const GENERATION_BITS: u32 = 30;

/// Kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Opens a connection.
    Connect,
    /// Receives bytes, or drops them.
    Receive,
    /// Sends a slot of the outbox; the tag's number is the slot's.
    Send,
    /// Cancels or closes. The outcome is ignored.
    Tidy,
}

/// Kind, generation and number of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) kind: Kind,
    /// Counter of the uses of the number.
    generation: u32,
    /// Number of a connection or slot.
    pub(super) number: u32,
}

impl Tag {
    pub(super) fn new(kind: Kind, generation: u32, number: u32) -> Tag {
        Tag { kind, generation: generation & ((1 << GENERATION_BITS) - 1), number }
    }

    /// Returns true if the tag belongs to this use of the number.
    pub(super) fn is_of(self, generation: u32) -> bool {
        self == Tag::new(self.kind, generation, self.number)
    }

    pub(super) fn encode(self) -> u64 {
        (self.kind as u64) << 62 | u64::from(self.generation) << 32 | u64::from(self.number)
    }

    pub(super) fn decode(bits: u64) -> Tag {
        let kind = match bits >> 62 {
            0 => Kind::Connect,
            1 => Kind::Receive,
            2 => Kind::Send,
            _ => Kind::Tidy,
        };
        Tag::new(kind, (bits >> 32) as u32, bits as u32)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn survives_the_way_through_the_kernel(which in 0..4u8, generation: u32, number: u32) {
            let kinds = [Kind::Connect, Kind::Receive, Kind::Send, Kind::Tidy];
            let tag = Tag::new(kinds[usize::from(which)], generation, number);
            let back = Tag::decode(tag.encode());
            prop_assert_eq!(back, tag);
            prop_assert!(back.is_of(generation));
            prop_assert!(!back.is_of(generation.wrapping_add(1)));
        }
    }
}
