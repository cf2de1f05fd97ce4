//! The load engine on real sockets.

mod kept_open;
mod requests;
mod stall;
