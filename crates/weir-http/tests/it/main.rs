//! Tests of the parsers and the encoder through their public interface.

mod driver;
mod encode;
mod request;
mod response;
mod sink;
mod valid;
