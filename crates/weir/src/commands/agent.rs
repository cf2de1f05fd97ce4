//! `weir agent`: the hidden other end of every place.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use weir_agent::client::SILENCE;
use weir_agent::server::{self, Options};
use weir_sut::Launcher;

use crate::args;
use crate::commands::parameters;
use crate::failure::Failure;
use crate::signals;

/// Serves on standard input and output until the input ends: then its peer has gone.
pub(crate) fn run() -> Result<ExitCode, Failure> {
    let options = Options {
        weir: args::version().to_owned(),
        // Right even when the file has been replaced or removed since.
        launcher: Launcher::new(PathBuf::from("/proc/self/exe")),
        catalog: parameters::catalog(&[])?,
        silence: Some(SILENCE),
        stop: signals::stop_flag()?,
    };
    server::serve(io::stdin(), io::stdout(), options).map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}
