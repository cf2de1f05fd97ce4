//! `weir launch`: the hidden command between weir and a proxy that it starts.

use std::process::ExitCode;

use crate::args::LaunchArgs;
use crate::failure::Failure;

/// Replaces this process by the program; returns only if that failed.
pub(crate) fn run(args: LaunchArgs) -> Result<ExitCode, Failure> {
    Err(Failure::failed(weir_sut::launch::launch_main(args.arguments)))
}
