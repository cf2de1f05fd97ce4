//! HTTP/1.1 messages without IO.
