//! Reasons why sockets cannot be bypassed on this host, and the remedies.

use std::io;
use std::net::SocketAddr;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;

/// Reason why sockets cannot be bypassed on this host.
#[derive(Debug, thiserror::Error)]
pub enum BypassError {
    /// The process may not load BPF programs, or not these.
    #[error("cannot {0}: not permitted")]
    NotPermitted(&'static str),
    /// cgroup v2 is not mounted, or this process's group is not visible.
    #[error("no cgroup2 mount shows the group of this process: {0}")]
    NoCgroup(String),
    /// The kernel does not provide BTF, the description of its own structures.
    #[error("cannot read the kernel's BTF: {0}")]
    NoBtf(#[source] aya::BtfError),
    /// The kernel is older than the minimum, Linux 5.17.
    #[error("this kernel ({0}) is too old for a bypass that ends with its process")]
    KernelTooOld(String),
    /// The kernel refused a program, a map or a link.
    #[error("cannot {doing}: {words}")]
    Refused {
        /// Operation that failed.
        doing: &'static str,
        /// Message of the kernel or the loader.
        words: String,
    },
    /// The loopback trial failed: with this kernel, programs would not receive the bytes that were sent.
    #[error("this kernel's sockmap cannot be used: {0}")]
    Unfit(String),
    /// The loopback trial could not be run.
    #[error("cannot try the bypass on loopback: {0}")]
    Trial(#[from] io::Error),
    /// There are more endpoints than the maps have room for.
    #[error("cannot bypass {hop} too: there is room for {room} endpoints")]
    TooManyHops {
        /// Endpoint for which there was no room.
        hop: SocketAddr,
        /// Maximum number of endpoints.
        room: u32,
    },
    /// The endpoint is bypassed already.
    #[error("{0} is bypassed already")]
    Twice(SocketAddr),
    /// The endpoint was never bypassed.
    #[error("{0} is not bypassed")]
    Unknown(SocketAddr),
}

/// Kernel version on which the bypass is known to work.
const SEEN: &str = "it was seen to work on Linux 6.18";

impl BypassError {
    /// Returns the remedy, if one is known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            BypassError::NotPermitted(_) => {
                "it needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON (or CAP_SYS_ADMIN): run weir as \
                 root, or in a container that is given them"
            }
            BypassError::NoCgroup(_) => {
                "`mount -t cgroup2 none /sys/fs/cgroup/unified` as root, or a container that sees \
                 its own group"
            }
            BypassError::NoBtf(_) => "it takes a kernel that was built with CONFIG_DEBUG_INFO_BTF",
            BypassError::KernelTooOld(_) => "it takes Linux 5.17 at the least; SEEN",
            BypassError::Refused { .. } => {
                "it takes a kernel with CONFIG_BPF_SYSCALL, CONFIG_CGROUP_BPF and \
                 CONFIG_BPF_STREAM_PARSER; SEEN"
            }
            BypassError::Unfit(_) => "SEEN; older ones lose sight of redirected bytes",
            BypassError::Trial(_) => "is the interface `lo` up?",
            BypassError::TooManyHops { .. } | BypassError::Twice(_) | BypassError::Unknown(_) => {
                return None;
            }
        };
        Some(hint.replace("SEEN", SEEN))
    }

    /// Makes an error of the loader's message about a program or a map.
    pub(crate) fn loading(doing: &'static str, error: EbpfError) -> BypassError {
        if refused_for_want_of_rights(&error) {
            return BypassError::NotPermitted(doing);
        }
        let words = match &error {
            EbpfError::ProgramError(ProgramError::LoadError { io_error, verifier_log }) => {
                format!("{io_error}: {}", verdict(&verifier_log.to_string()))
            }
            other => chain(other),
        };
        BypassError::Refused { doing, words }
    }

    pub(crate) fn program(doing: &'static str, error: ProgramError) -> BypassError {
        BypassError::loading(doing, error.into())
    }

    pub(crate) fn map(doing: &'static str, error: MapError) -> BypassError {
        BypassError::loading(doing, error.into())
    }
}

/// Finds the verifier's verdict, which stands at the end of its log of hundreds of lines.
fn verdict(log: &str) -> String {
    let statistics = ["verification time", "stack depth", "processed "];
    log.lines()
        .map(str::trim)
        .rev()
        .find(|line| !line.is_empty() && !statistics.iter().any(|s| line.starts_with(s)))
        .unwrap_or("the verifier says nothing")
        .to_owned()
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = next.source();
    }
    words
}

fn refused_for_want_of_rights(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            // EACCES is what the verifier says of a program that it does not accept.
            return rustix::io::Errno::from_io_error(io) == Some(rustix::io::Errno::PERM);
        }
        cause = error.source();
    }
    false
}
