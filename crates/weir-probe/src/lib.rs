//! Cheap readers of the kernel's counters of processes, CPUs and the host.
//!
//! There are two kinds of reader. [`ProcessCpu`], [`ThreadCpu`] and [`CpuTimesReader`] are read in every slice of a
//! trial, so they open their file under `/proc` once and read it again with `pread` at offset 0: the kernel generates
//! the text anew for each such read, and no path is walked and nothing is allocated. Everything else is read once per
//! run or once per proxy and is written for clarity.
//!
//! All counters only ever grow: callers take differences. Times are nanoseconds.

pub mod cpu;
pub mod fault;
pub mod hold_ups;
pub mod host;
mod listening;
pub mod machine;
pub mod network;
pub mod process;
pub mod sample;
pub mod throttle;
pub mod waits;

pub use cpu::{CpuTimes, CpuTimesReader, keep_to};
pub use hold_ups::HoldUpMeter;
pub use host::{
    allowed_cpus, cpus_of, environment, free_disk_bytes, local_port_range, local_ports,
};
pub use listening::{Listening, error_log_of, listening_at, users_listening_at};
pub use machine::Machine;
pub use network::{NetstatReader, listen_overflows, port_is_free, source_towards};
pub use process::{ProcessCpu, ProcessId, ThreadCpu, memory_bytes};
pub use throttle::{ThrottleReader, bounded_groups};
pub use waits::{WaitMeter, Waits};

use std::io;
use std::path::{Path, PathBuf};

/// Reason why something could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The kernel refused the read; its error is in `source`.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path, or a description, of the thing to read.
        path: PathBuf,
        /// Error from the kernel.
        source: io::Error,
    },
    /// The file exists, but its text is not as its manual page says.
    #[error("{} does not read as expected: `{text}`", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// The line, or its beginning.
        text: String,
    },
    /// The process ended and was reaped.
    #[error("process {pid} is gone")]
    Gone {
        /// Process id.
        pid: u32,
    },
    /// A requested CPU is not in `/proc/stat`: it is offline or does not exist.
    #[error("CPU {cpu} is not online")]
    CpuOffline {
        /// Number of the CPU.
        cpu: u32,
    },
}

impl ProbeError {
    /// Creates an error for a read that the kernel refused.
    fn read(path: impl AsRef<Path>, source: impl Into<io::Error>) -> ProbeError {
        ProbeError::Read { path: path.as_ref().to_owned(), source: source.into() }
    }

    /// Creates an error for unexpected text, shortened to fit a line.
    fn malformed(path: impl AsRef<Path>, text: impl AsRef<[u8]>) -> ProbeError {
        let text = String::from_utf8_lossy(text.as_ref());
        ProbeError::Malformed {
            path: path.as_ref().to_owned(),
            text: text.chars().take(80).collect(),
        }
    }
}

/// Reads a whole small file of `/proc` or `/sys`.
fn read_text(path: impl AsRef<Path>) -> Result<String, ProbeError> {
    std::fs::read_to_string(&path).map_err(|e| ProbeError::read(path, e))
}
