//! Errors of what an agent does, as failures that it tells.

use std::path::PathBuf;

use weir_bypass::BypassError;
use weir_host::HostError;
use weir_host::journal::JournalError;
use weir_host::sysctl::SysctlError;
use weir_load::tls::SetupError;
use weir_sut::SutError;

use crate::message::{Failure, FailureKind};

/// An error and what to do about it, for a remark.
pub(super) fn in_a_line(error: &impl std::fmt::Display, hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

impl From<SutError> for Failure {
    fn from(error: SutError) -> Failure {
        let hint = error.hint();
        let kind = if error.is_bad_input() { FailureKind::BadInput } else { FailureKind::Other };
        Failure { kind, ..Failure::other(error).with_hint(hint) }
    }
}

impl From<weir_probe::ProbeError> for Failure {
    fn from(error: weir_probe::ProbeError) -> Failure {
        Failure::other(error)
    }
}

/// Errors that say what to do about them.
macro_rules! with_hints {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                let hint = error.hint();
                Failure::other(error).with_hint(hint)
            }
        })*
    };
}

with_hints!(BypassError, HostError, JournalError, SetupError, SysctlError);

/// A file that could not be written.
pub(super) fn unwritable(path: PathBuf) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::other(format!("cannot write {}: {error}", path.display()))
}
