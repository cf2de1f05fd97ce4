//! `weir sysctl`: reads or changes a kernel setting of a node, in a privileged pod.

use std::process::ExitCode;

use weir_host::sysctl;

use crate::args::SysctlArgs;
use crate::failure::Failure;
use crate::terminal;

/// Path of the id of the machine's boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// Prints the boot id and the value, each on a line. Changes the value first if it equals `from`; otherwise only prints
/// it.
pub(crate) fn run(args: &SysctlArgs) -> Result<ExitCode, Failure> {
    let mut value = sysctl::read(&args.name).map_err(Failure::failed)?;
    if let (Some(from), Some(to)) = (&args.from, &args.to)
        && value == *from
    {
        sysctl::write(&args.name, to).map_err(Failure::failed)?;
        value = sysctl::read(&args.name).map_err(Failure::failed)?;
    }
    let boot = std::fs::read_to_string(BOOT)
        .map_err(|error| Failure::failed(format!("{BOOT}: {error}")))?;
    terminal::print(&format!("{}\n{value}\n", boot.trim()))?;
    Ok(ExitCode::SUCCESS)
}
