//! `weir sysctl`: what a privileged pod does with a setting of its node's kernel.

use std::process::ExitCode;

use weir_host::sysctl;

use crate::args::SysctlArgs;
use crate::failure::Failure;
use crate::terminal;

/// Which boot of the machine it is.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Prints the boot and the value, each on a line. The value is changed before if it is the one that it must be; if it is
/// another, that is printed and nothing is done.
pub(crate) fn run(args: &SysctlArgs) -> Result<ExitCode, Failure> {
    let read = || sysctl::read(&args.name).map_err(Failure::failed);
    let mut value = read()?;
    if let (Some(from), Some(to)) = (&args.from, &args.to)
        && value == *from
    {
        sysctl::write(&args.name, to).map_err(Failure::failed)?;
        value = read()?;
    }
    let boot = std::fs::read_to_string(BOOT);
    let boot = boot.map_err(|error| Failure::failed(format!("{BOOT}: {error}")))?;
    terminal::print(&format!("{}\n{value}\n", boot.trim()))?;
    Ok(ExitCode::SUCCESS)
}
