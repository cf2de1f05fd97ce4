//! `weir launch`: the hidden step between weir and a proxy that it starts.

use std::process::ExitCode;

use crate::args::LaunchArgs;
use crate::failure::Failure;

/// Becomes the program; comes back only when that failed.
pub(crate) fn run(args: LaunchArgs) -> Result<ExitCode, Failure> {
    Err(Failure::failed(weir_sut::launch::launch_main(
        args.arguments,
    )))
}
