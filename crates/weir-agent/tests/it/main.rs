//! Agents on the real thing: a real ssh to a real sshd of the test's own, on loopback.

mod ssh;
mod ssh_faults;
mod ssh_support;
