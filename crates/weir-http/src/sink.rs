//! Who wants to see what a response holds.

/// Takes the fields and the content of a response, piece by piece as they come: the parser holds no
/// buffer, so a name, a value or content may be cut anywhere, and pieces may be empty. What the
/// pieces of one thing come to does not depend on the cuts.
///
/// Shown are the final response's head and its content without the chunked coding; neither interim
/// responses (1xx, RFC 9110 §15.2) nor trailer sections. `()` looks at nothing and costs nothing.
pub trait Sink {
    /// A field begins, and the one before it is complete. The last one is complete when the response
    /// is.
    #[inline]
    fn field(&mut self) {}

    /// A piece of the field's name, which is a token (RFC 9110 §5.6.2).
    #[inline]
    fn name(&mut self, piece: &[u8]) {
        let _ = piece;
    }

    /// A piece of the field's value as it came, without the line's end. White space around the value
    /// is no part of it; the begin of a folded line counts as a space (RFC 9112 §5.2).
    #[inline]
    fn value(&mut self, piece: &[u8]) {
        let _ = piece;
    }

    /// A piece of the content.
    #[inline]
    fn content(&mut self, piece: &[u8]) {
        let _ = piece;
    }
}

impl Sink for () {}
