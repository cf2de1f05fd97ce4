//! Test of whether io_uring can be used here, by using it.

use std::os::fd::AsFd;

use io_uring::{Probe, cqueue, opcode};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};

use super::buffers::{Buffers, Lease};
use super::ring::{Ring, errno};
use super::tag::{Kind, Tag};

/// Reason why io_uring cannot be used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The kernel has no io_uring, or a seccomp filter makes it appear so.
    #[error("this kernel has no io_uring, or a seccomp filter hides it")]
    Absent,
    /// The kernel has io_uring, but its use is not permitted.
    #[error(
        "io_uring is forbidden here: by the sysctl kernel.io_uring_disabled, or by the container's \
         seccomp profile"
    )]
    Forbidden,
    /// A feature that the reactor needs is missing.
    #[error("this kernel's io_uring lacks {what}, which Linux {since} has")]
    Lacks {
        /// Name of the missing feature.
        what: &'static str,
        /// First Linux version with the feature.
        since: &'static str,
    },
    /// All features are present, but a request failed.
    #[error("io_uring does not work here: {0}")]
    Fails(#[from] Errno),
}

/// Checks that [`super::Uring`] works here: creates a small ring with all the features used, and receives a few bytes.
///
/// # Errors
/// The reason why io_uring cannot be used.
pub fn probe() -> Result<(), Unavailable> {
    let mut ring = Ring::new(8, 16).map_err(setup)?;
    features(&ring)?;
    operations(&ring)?;
    let lacks_buffers = lacking("provided buffer rings", "5.19");
    let mut buffers = Buffers::new(&ring, 4, 16).map_err(lacks_buffers)?;
    let outcome = receive(&mut ring, &mut buffers);
    ring.cancel_all();
    outcome
}

fn lacking(what: &'static str, since: &'static str) -> impl Fn(Errno) -> Unavailable {
    move |errno| match errno {
        Errno::INVAL | Errno::OPNOTSUPP => Unavailable::Lacks { what, since },
        Errno::PERM | Errno::ACCESS => Unavailable::Forbidden,
        errno => Unavailable::Fails(errno),
    }
}

fn setup(errno: Errno) -> Unavailable {
    match errno {
        Errno::NOSYS => Unavailable::Absent,
        errno => lacking("SINGLE_ISSUER and DEFER_TASKRUN", "6.1")(errno),
    }
}

fn features(ring: &Ring) -> Result<(), Unavailable> {
    let has = ring.parameters();
    let (stable, silent) = (has.is_feature_submit_stable(), has.is_feature_skip_cqe_on_success());
    needs([
        (has.is_feature_nodrop(), "completions that are never dropped", "5.5"),
        (stable, "requests that are read at submission", "5.5"),
        (has.is_feature_fast_poll(), "waiting without threads", "5.7"),
        (has.is_feature_ext_arg(), "a timeout of the wait", "5.11"),
        (silent, "silent success", "5.17"),
    ])
}

/// Checks features, each given as presence, name, and first Linux version with it.
fn needs(needed: [(bool, &'static str, &'static str); 5]) -> Result<(), Unavailable> {
    match needed.into_iter().find(|(has, ..)| !has) {
        Some((_, what, since)) => Err(Unavailable::Lacks { what, since }),
        None => Ok(()),
    }
}

fn operations(ring: &Ring) -> Result<(), Unavailable> {
    let mut probe = Probe::new();
    ring.submitter()
        .register_probe(&mut probe)
        .map_err(|error| lacking("a list of its operations", "5.6")(errno(&error)))?;
    let needed = [
        (opcode::Connect::CODE, "CONNECT", "5.5"),
        (opcode::AsyncCancel::CODE, "ASYNC_CANCEL", "5.5"),
        (opcode::Send::CODE, "SEND", "5.6"),
        (opcode::Recv::CODE, "RECV", "5.6"),
        (opcode::Close::CODE, "CLOSE", "5.6"),
    ];
    needs(needed.map(|(code, what, since)| (probe.is_supported(code), what, since)))
}

/// Receives twice by one multishot request.
fn receive(ring: &mut Ring, buffers: &mut Buffers) -> Result<(), Unavailable> {
    let flags = SocketFlags::CLOEXEC;
    let (here, there) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    ring.receive_many(here.as_fd(), Tag::new(Kind::Receive, 0, 0));
    for byte in [1, 2] {
        send(&there, &[byte], SendFlags::NOSIGNAL)?;
        // The byte is there before the wait begins, so the bound is only for a broken kernel.
        ring.turn(Some(super::monotonic_ns() + 1_000_000_000));
        let done = ring.pop().ok_or(Errno::TIME)?;
        if done.result() < 0 {
            let errno = Errno::from_raw_os_error(-done.result());
            return Err(lacking("multishot receive", "6.0")(errno));
        }
        let lease = Lease::of(done.flags()).ok_or(Errno::PROTO)?;
        let right = buffers.bytes(&lease, 1) == [byte];
        buffers.give_back(lease);
        if !right || done.result() != 1 || !cqueue::more(done.flags()) {
            return Err(Unavailable::Fails(Errno::PROTO));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_apart() {
        assert_eq!(setup(Errno::NOSYS), Unavailable::Absent);
        assert_eq!(setup(Errno::PERM), Unavailable::Forbidden);
        let words = setup(Errno::INVAL).to_string();
        assert!(words.contains("DEFER_TASKRUN") && words.contains("6.1"), "{words}");
        assert_eq!(setup(Errno::NOMEM), Unavailable::Fails(Errno::NOMEM));
    }
}
