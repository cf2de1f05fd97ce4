//! JSON pointers (RFC 6901).

use std::fmt;

use super::tree::camel;

/// Way from the root of a document to a value: keys, and indices of list items counted from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(Vec<String>);

impl Pointer {
    /// Parses a pointer such as `/a/b~1c/0`; the empty text is the root.
    pub fn parse(text: &str) -> Pointer {
        Pointer(
            text.split('/')
                .skip(1)
                .map(|token| token.replace("~1", "/").replace("~0", "~"))
                .collect(),
        )
    }

    /// Returns the tokens, unescaped.
    pub fn tokens(&self) -> &[String] {
        &self.0
    }

    /// Returns the pointer with one more token.
    pub fn child(&self, token: impl fmt::Display) -> Pointer {
        let mut tokens = self.0.clone();
        tokens.push(token.to_string());
        Pointer(tokens)
    }

    /// Returns this pointer followed by another one.
    pub fn join(&self, below: impl Into<Pointer>) -> Pointer {
        Pointer(self.0.iter().cloned().chain(below.into().0).collect())
    }

    /// Returns true if this pointer continues `other`, in either spelling of Envoy's fields.
    pub fn is_below(&self, other: &Pointer) -> bool {
        self.0.len() > other.0.len()
            && self
                .0
                .iter()
                .zip(&other.0)
                .all(|(own, other)| own == other || camel(own) == camel(other))
    }

    /// Returns the pointer with only its first `steps` tokens.
    pub fn first(&self, steps: usize) -> Pointer {
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
        self.0
            .iter()
            .try_for_each(|token| write!(f, "/{}", token.replace('~', "~0").replace('/', "~1")))
    }
}
