//! `weir agent`: the hidden command that serves a weir on another host.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use weir_agent::client::SILENCE;
use weir_agent::server::{self, Options};
use weir_sut::Launcher;

use crate::args;
use crate::commands::parameters;
use crate::failure::Failure;
use crate::signals;

/// Serves on standard input and output until the input ends, which means that the peer has gone.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let options = Options {
        weir: args::version().to_owned(),
        // Right even when the file has been replaced or removed since.
        launcher: Launcher::new(PathBuf::from("/proc/self/exe")),
        catalog: parameters::read_catalog(&[])?,
        silence: Some(SILENCE),
        stop: signals::stop_flag()?,
    };
    // Past the standard library's buffer: every message goes out as it is.
    let stdout = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| Failure::failed(format!("standard output: {error}")))?;
    server::serve(io::stdin(), File::from(stdout), options).map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}
