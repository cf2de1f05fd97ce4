//! Lines of sysctl files.

use weir_doctor::SysctlFileProblem;

pub(super) fn title(problem: &SysctlFileProblem) -> String {
    let text = match problem {
        SysctlFileProblem::SysctlNoSuchName { name } => {
            return format!("this kernel has no sysctl `{name}`");
        }
        SysctlFileProblem::TwRecycleAdvice { exists: true } => {
            "tcp_tw_recycle breaks clients behind NAT"
        }
        SysctlFileProblem::TwRecycleAdvice { .. } => "tcp_tw_recycle was removed in Linux 4.12",
        SysctlFileProblem::PortRangeHalf => {
            "the port range has one number: its upper end is left as it was"
        }
        SysctlFileProblem::PortRangePrivileged { low, unprivileged } => {
            return format!(
                "a port range from {low} is refused: ports below {unprivileged} are privileged"
            );
        }
        SysctlFileProblem::PortRangeParity => "both ends of the port range are even, or both odd",
        SysctlFileProblem::SysctlOverridden { name, value } => {
            return format!("{name} is set twice: {value} wins");
        }
        SysctlFileProblem::SysctlNotLive { name, live, in_file } => {
            return format!("{name} is {live}, not {in_file} as its file says");
        }
        SysctlFileProblem::SysctlConfNotRead => "/etc/sysctl.conf is not read at boot by systemd",
    };
    text.to_owned()
}

pub(super) fn mechanism(problem: &SysctlFileProblem) -> &'static str {
    match problem {
        SysctlFileProblem::SysctlNoSuchName { .. } => {
            "systemd-sysctl skips unknown names and logs this at debug level only, so nobody \
             learns that the line has no effect."
        }
        SysctlFileProblem::TwRecycleAdvice { .. } => {
            "It refused connections whose timestamps went backwards, as those of several hosts \
             behind one address do, and was removed. Nothing replaces it: keep connections instead."
        }
        SysctlFileProblem::PortRangeHalf => {
            "The setting is two numbers. Unquoted in a shell, the second is lost: write \
             net.ipv4.ip_local_port_range='1024 65535'."
        }
        SysctlFileProblem::PortRangePrivileged { .. } => {
            "The range must not reach below ip_unprivileged_port_start; the kernel refuses it, and \
             the old range stays in force."
        }
        SysctlFileProblem::PortRangeParity => {
            "The kernel looks for ports of one parity first for connect(2), of the other for \
             bind(2); its documentation advises one even and one odd end, so that there are as \
             many of both."
        }
        SysctlFileProblem::SysctlOverridden { .. } => {
            "Files are applied in the order of their names, whatever folder they are in; the last \
             line of a key wins. A file of the same name in /etc hides those in /run and /usr/lib \
             whole."
        }
        SysctlFileProblem::SysctlNotLive { .. } => {
            "The file was written and not applied; or the kernel refused the value; or something \
             changed it later; or the proxy's network namespace was made afterwards: new ones \
             begin with the kernel's defaults, not with the host's settings."
        }
        SysctlFileProblem::SysctlConfNotRead => {
            "systemd-sysctl reads only the folders sysctl.d. Distributions that have it read \
             /etc/sysctl.conf do so by a link, /etc/sysctl.d/99-sysctl.conf. `sysctl --system` \
             reads it all the same, so that it seems to work until the next boot."
        }
    }
}
