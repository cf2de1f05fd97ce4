//! Agents in real conditions: the protocol on a real server, and a real ssh to a real sshd of the test's own, on
//! loopback.

mod clock;
mod link;
mod samples;
mod shared_load;
mod ssh;
mod ssh_faults;
mod wire;
