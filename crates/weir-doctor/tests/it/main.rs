//! Hosts laid out in a folder, read and judged as a real one is.

mod cluster;
mod false_alarms;
mod host;
mod judged;
mod read;
mod shown;
mod upstreams;
