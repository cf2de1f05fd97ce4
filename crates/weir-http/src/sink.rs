//! Receivers for the fields and the content of a response.

/// Receives the fields and the content of a response in pieces, as they arrive: the parser holds no buffer, so a name,
/// a value or content may be cut anywhere, and pieces may be empty. The concatenated pieces do not depend on the cuts.
///
/// Passed on are the final response's head and its content without the chunked coding; neither interim responses (1xx,
/// RFC 9110 §15.2) nor trailer sections. `()` ignores everything and costs nothing.
pub trait Sink {
    /// Begins a field; the previous one is complete. The last one is complete when the response is.
    #[inline]
    fn field(&mut self) {}

    /// Receives a piece of the field's name, which is a token (RFC 9110 §5.6.2).
    #[inline]
    fn name(&mut self, piece: &[u8]) {
        let _ = piece;
    }

    /// Receives a piece of the field's value as it arrived, without the line's end. White space around the value is no
    /// part of it; the beginning of a folded line counts as a space (RFC 9112 §5.2).
    #[inline]
    fn value(&mut self, piece: &[u8]) {
        let _ = piece;
    }

    /// Receives a piece of the content.
    #[inline]
    fn content(&mut self, piece: &[u8]) {
        let _ = piece;
    }
}

impl Sink for () {}
