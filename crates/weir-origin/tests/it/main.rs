//! The server on real sockets.

mod client;
mod content;
mod foreign;
mod http;
mod lifecycle;
mod timing;
