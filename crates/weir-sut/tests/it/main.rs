//! Real processes: the launcher, and the nginx that is installed on this machine.

mod launch;
mod life;
mod nginx;
mod support;
mod tls;
