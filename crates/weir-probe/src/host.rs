//! Properties of the machine that a reader of a report needs to judge or repeat it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::Path;

use rustix::process::{Pid, Resource, getrlimit};
use weir_model::environment::Environment;
use weir_model::quantity::CpuSet;

use crate::ProbeError;

/// Sysctls that determine how much a proxy can carry, or the limits that a busy one may reach. Any that a kernel does
/// not have, or a container does not show, are left out of the environment.
const SYSCTLS: &str = "\
    fs.file-max fs.nr_open net.core.busy_poll net.core.busy_read net.core.default_qdisc \
    net.core.netdev_budget net.core.netdev_max_backlog net.core.rmem_max net.core.somaxconn \
    net.core.wmem_max net.ipv4.ip_local_port_range net.ipv4.tcp_abort_on_overflow \
    net.ipv4.tcp_autocorking net.ipv4.tcp_congestion_control net.ipv4.tcp_fastopen \
    net.ipv4.tcp_fin_timeout net.ipv4.tcp_max_orphans net.ipv4.tcp_max_syn_backlog \
    net.ipv4.tcp_max_tw_buckets net.ipv4.tcp_mem net.ipv4.tcp_notsent_lowat net.ipv4.tcp_rmem \
    net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_syncookies net.ipv4.tcp_timestamps \
    net.ipv4.tcp_tw_reuse net.ipv4.tcp_wmem net.netfilter.nf_conntrack_max vm.swappiness";

/// Describes this host. Unknown values stay empty: a lab must also run where little is visible. `versions` and
/// `program_sums` are left to the callers that run the programs.
pub fn environment() -> Environment {
    let cpuinfo = text("/proc/cpuinfo");
    let uname = rustix::system::uname();
    Environment {
        kernel: format!(
            "{} {}",
            uname.release().to_string_lossy(),
            uname.version().to_string_lossy()
        ),
        distribution: distribution(),
        cpu_model: cpu_model(&cpuinfo, &uname.machine().to_string_lossy()),
        cpus: allowed_cpus().map(|cpus| cpus.to_string()).unwrap_or_default(),
        memory_bytes: memory_bytes(&text("/proc/meminfo")),
        virtualization: virtualization(&cpuinfo),
        nofile: own_nofile(),
        sysctls: sysctls(),
        versions: BTreeMap::new(),
        program_sums: Vec::new(),
        privileges: privileges().to_owned(),
    }
}

/// Returns the privileges with which weir runs.
fn privileges() -> &'static str {
    // Of a namespace without any other user than this one (user_namespaces(7)).
    let users = text("/proc/self/uid_map");
    let is_own = users.lines().count() == 1 && users.split_whitespace().nth(2) == Some("1");
    match (rustix::process::geteuid().is_root(), is_own) {
        (true, _) => "root",
        (false, true) => "unprivileged, in a user namespace",
        (false, false) => "unprivileged",
    }
}

/// Returns the CPUs that this process may run on (sched_getaffinity(2)), within the limits of cgroups, containers and
/// `taskset`.
///
/// # Errors
/// Fails if the kernel refuses, for example because the machine has more than 1024 CPUs.
pub fn allowed_cpus() -> Result<CpuSet, ProbeError> {
    const ASKED: &str = "the CPU affinity";
    let mask = rustix::thread::sched_getaffinity(None).map_err(|e| ProbeError::read(ASKED, e))?;
    let cpus = (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&cpu| mask.is_set(cpu))
        .filter_map(|cpu| u32::try_from(cpu).ok())
        .collect();
    CpuSet::new(cpus).ok_or_else(|| ProbeError::malformed(ASKED, "empty"))
}

/// Returns the union of the CPUs that these processes may use, ascending; empty if unknown. A process that is the
/// parent of another one in the list does no work itself and is ignored.
pub fn cpus_of(processes: &[u32]) -> Vec<u64> {
    let parents: BTreeSet<u32> =
        processes.iter().filter_map(|pid| crate::process::parent(*pid)).collect();
    let masks = processes
        .iter()
        .filter(|pid| !parents.contains(pid))
        .flat_map(|pid| threads(*pid))
        .filter_map(|thread| {
            let thread = Pid::from_raw(i32::try_from(thread).ok()?)?;
            rustix::thread::sched_getaffinity(Some(thread)).ok()
        });
    let masks: Vec<_> = masks.collect();
    let all = 0..rustix::thread::CpuSet::MAX_CPU;
    all.filter(|&cpu| masks.iter().any(|mask| mask.is_set(cpu))).map(|cpu| cpu as u64).collect()
}

fn threads(pid: u32) -> Vec<u32> {
    std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns the CPUs that are online, as seen by programs that do not check which they may use, for example by nginx's
/// `worker_processes auto`.
///
/// # Errors
/// Fails if `/sys` is not mounted.
pub fn online_cpus() -> Result<CpuSet, ProbeError> {
    const PATH: &str = "/sys/devices/system/cpu/online";
    let text = crate::read_text(PATH)?;
    text.parse().map_err(|_| ProbeError::malformed(PATH, &text))
}

/// Returns the number of bytes that an unprivileged process may still write to the file system of a path.
///
/// # Errors
/// Fails if there is no such path.
pub fn free_disk_bytes(path: &Path) -> Result<u64, ProbeError> {
    let stat = rustix::fs::statvfs(path).map_err(|e| ProbeError::read(path, e))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Returns the soft and hard limit of open descriptors of this process; `u64::MAX` is unlimited.
pub fn own_nofile() -> (u64, u64) {
    let limit = getrlimit(Resource::Nofile);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// Returns the number of local ports that the kernel gives to outgoing connections of one source address
/// (net.ipv4.ip_local_port_range), or the kernel's default if that cannot be read.
pub fn local_ports() -> u64 {
    let range = local_port_range().unwrap_or(32_768..=60_999);
    u64::from(range.end() - range.start()) + 1
}

/// Returns the range of local ports for outgoing connections (ip_local_port_range in ip(7)); `None` if it cannot be
/// read.
pub fn local_port_range() -> Option<RangeInclusive<u16>> {
    range_of(&text("/proc/sys/net/ipv4/ip_local_port_range"))
}

/// A range such as `32768\t60999`, both ends included.
pub(crate) fn range_of(range: &str) -> Option<RangeInclusive<u16>> {
    let mut ends = range.split_ascii_whitespace().map(str::parse);
    let (low, high) = (ends.next()?.ok()?, ends.next()?.ok()?);
    (low <= high).then_some(low..=high)
}

fn sysctls() -> BTreeMap<String, String> {
    SYSCTLS
        .split(' ')
        .filter_map(|name| {
            let path = format!("/proc/sys/{}", name.replace('.', "/"));
            let value = std::fs::read_to_string(path).ok()?;
            let value: Vec<&str> = value.split_ascii_whitespace().collect();
            Some((name.to_owned(), value.join(" ")))
        })
        .collect()
}

/// Returns the text of a file, empty if it cannot be read.
fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn distribution() -> String {
    // os-release(5): the second is for systems that keep /etc empty.
    ["/etc/os-release", "/usr/lib/os-release"]
        .into_iter()
        .find_map(|path| pretty_name(&text(path)))
        .unwrap_or_default()
}

fn pretty_name(os_release: &str) -> Option<String> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(value.trim_matches(['"', '\'']).to_owned())
}

/// Returns the value of the first `key : value` in cpuinfo.
fn cpuinfo_value<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim())
    })
}

fn cpu_model(cpuinfo: &str, machine: &str) -> String {
    // x86 names the model; ARM gives the numbers of implementer and part, other kinds their own.
    if let Some(model) = cpuinfo_value(cpuinfo, "model name") {
        return model.to_owned();
    }
    let implementer = cpuinfo_value(cpuinfo, "CPU implementer");
    let part = cpuinfo_value(cpuinfo, "CPU part");
    let Some((implementer, part)) = implementer.zip(part) else {
        return machine.to_owned();
    };
    format!("{machine} implementer {implementer} part {part}")
}

fn memory_bytes(meminfo: &str) -> u64 {
    meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|value| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}

fn virtualization(cpuinfo: &str) -> String {
    let [vendor, product] =
        ["sys_vendor", "product_name"].map(|name| text(&format!("/sys/class/dmi/id/{name}")));
    let dmi = format!("{} {}", vendor.trim(), product.trim());
    let mut flags = cpuinfo_value(cpuinfo, "flags").unwrap_or_default().split_ascii_whitespace();
    hypervisor(flags.any(|flag| flag == "hypervisor"), dmi.trim())
}

/// Returns the name of the hypervisor according to the firmware; empty if there is no sign of one.
fn hypervisor(flagged: bool, dmi: &str) -> String {
    const TELLTALE: &str = "Amazon EC2|Bochs|Firecracker|Google Compute|HVM domU|KVM|OpenStack|\
        Parallels|QEMU|Virtual Machine|VirtualBox|VMware|Xen";
    // The firmware of a rented bare-metal machine may name the provider, and has no such flag; ARM
    // has no such flag at all.
    let bare_metal = dmi.contains(".metal");
    let is_named = TELLTALE.split('|').any(|name| dmi.contains(name)) && !bare_metal;
    match (flagged, is_named) {
        (_, true) => dmi.to_owned(),
        (true, false) if dmi.is_empty() => "a hypervisor without a name".to_owned(),
        (true, false) => format!("a hypervisor ({dmi})"),
        (false, false) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_counted_with_both_ends() {
        assert_eq!(range_of("32768\t60999\n"), Some(32_768..=60_999));
        assert_eq!(range_of("5 5"), Some(5..=5));
        for wrong in ["", "1024", "9 8", "a b"] {
            assert_eq!(range_of(wrong), None, "{wrong}");
        }
        let range = local_port_range().expect("this kernel has a range");
        assert_eq!(local_ports(), range.count() as u64);
    }

    #[test]
    fn the_cpu_is_named_on_x86_and_numbered_on_arm() {
        let x86 = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.7GHz\nflags\t: fpu hypervisor\n";
        assert_eq!(cpu_model(x86, "x86_64"), "Some CPU @ 2.7GHz");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        let numbered = "aarch64 implementer 0x41 part 0xd0c";
        assert_eq!(cpu_model(arm, "aarch64"), numbered);
        assert_eq!(cpu_model("", "riscv64"), "riscv64");
    }

    #[test]
    fn a_hypervisor_is_told_by_flag_or_firmware() {
        for (flagged, dmi, said) in [
            (false, "Dell Inc. PowerEdge", ""),
            (false, "Amazon EC2 m7g.large", "Amazon EC2 m7g.large"),
            (false, "Amazon EC2 c7i.metal-24xl", ""),
            (true, "", "a hypervisor without a name"),
            (true, "Acme Cloud", "a hypervisor (Acme Cloud)"),
        ] {
            assert_eq!(hypervisor(flagged, dmi), said);
        }
    }

    #[test]
    fn memory_and_distribution_are_read_from_their_formats() {
        let meminfo = "MemFree: 1 kB\nMemTotal:        2048 kB\n";
        assert_eq!(memory_bytes(meminfo), 2048 * 1024);
        assert_eq!(memory_bytes(""), 0);
        let os_release = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        let name = pretty_name(os_release);
        assert_eq!(name.as_deref(), Some("Debian GNU/Linux 12 (bookworm)"));
        assert_eq!(pretty_name("NAME=x\n"), None);
    }
}
