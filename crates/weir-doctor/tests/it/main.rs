//! Hosts laid out in a folder, read and judged like a real one.

mod cluster;
mod false_alarms;
mod json;
mod judged;
mod read;
mod upstreams;
