//! One hand for every host.
//!
//! Everything that touches a host goes through one small message protocol: framed ([`frame`]),
//! versioned ([`hello`]). `weir agent` serves it on its standard input and output; a place is only a
//! way to reach such a server. There is no listening port and no key of weir's: the transport's own
//! authentication is the security.

pub mod frame;
pub mod hello;
