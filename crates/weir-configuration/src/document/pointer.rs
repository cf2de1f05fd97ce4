//! JSON pointers (RFC 6901).

use std::fmt;

use super::tree::camel;

/// The way from the root of a document to a value: keys, and numbers of items of lists from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Reads `/a/b~1c/0`; the empty text is the root.
    pub fn parse(text: &str) -> Pointer {
        let unescaped = |token: &str| token.replace("~1", "/").replace("~0", "~");
        Pointer(text.split('/').skip(1).map(unescaped).collect())
    }

    /// The tokens, unescaped.
    pub fn tokens(&self) -> &[String] {
        &self.0
    }

    /// The pointer one step further.
    pub fn child(&self, token: impl fmt::Display) -> Pointer {
        let mut tokens = self.0.clone();
        tokens.push(token.to_string());
        Pointer(tokens)
    }

    /// The pointer that goes on with another one.
    pub fn join(&self, below: impl Into<Pointer>) -> Pointer {
        let below = below.into().0;
        Pointer(self.0.iter().cloned().chain(below).collect())
    }

    /// Whether it goes on from another one, in either spelling of Envoy's fields.
    pub(super) fn is_below(&self, other: &Pointer) -> bool {
        let is_same = |(own, other): (&String, &String)| own == other || camel(own) == camel(other);
        self.0.len() > other.0.len() && self.0.iter().zip(&other.0).all(is_same)
    }

    /// Its first steps.
    pub(super) fn first(&self, steps: usize) -> Pointer {
        Pointer(self.0[..steps.min(self.0.len())].to_vec())
    }
}

impl From<&str> for Pointer {
    fn from(text: &str) -> Pointer {
        Pointer::parse(text)
    }
}

impl From<&Pointer> for Pointer {
    fn from(pointer: &Pointer) -> Pointer {
        pointer.clone()
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaped = |token: &String| token.replace('~', "~0").replace('/', "~1");
        self.0
            .iter()
            .try_for_each(|token| write!(f, "/{}", escaped(token)))
    }
}
