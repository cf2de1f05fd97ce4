//! The server on real sockets.

mod client;
mod content;
mod http;
mod lifecycle;
mod protocols;
mod timing;
