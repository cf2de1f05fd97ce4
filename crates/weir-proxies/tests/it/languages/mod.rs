//! Tests with configurations in the manner of users', on their own and with the real programs.

#![allow(clippy::unwrap_used, reason = "what cannot be had or read in a test ends the test")]
#![allow(clippy::print_stdout, reason = "what is skipped says so")]

mod asked;
mod document;
mod foreign;
mod haproxy;
mod nginx;
mod replaced;
mod replaced_envoy;
mod replaced_haproxy;
mod replaced_nginx;
mod support;
mod vanished;
