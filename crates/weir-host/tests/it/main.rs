//! Tests of changes to a host on this machine's kernel, in namespaces that the tests make themselves.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot be set up has failed, and one that is left out says why"
)]

mod journal;
mod links;
mod listeners;
mod networks;
mod samples;
mod support;
mod sysctls;
