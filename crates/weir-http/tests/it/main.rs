//! Tests of the parsers and the encoder through their public interface.

mod driver;
mod encode;
mod request;
mod response;
mod response_properties;
mod sink;
mod valid;
