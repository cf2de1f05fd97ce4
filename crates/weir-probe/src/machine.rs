//! Hardware properties of a host that may spoil a measurement: governors of CPU frequency, CPUs that share a core or a
//! NUMA node, and CPUs that serve a network card's interrupts. Everything is read from sysfs and /proc.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use weir_model::quantity::CpuSet;
use weir_model::record::CardFacts;

/// Root folder of a host's files: `/`, or another folder in tests.
#[derive(Debug, Clone)]
pub struct Machine(PathBuf);

impl Default for Machine {
    fn default() -> Machine {
        Machine::below("/")
    }
}

impl Machine {
    /// Creates a host whose `/proc` and `/sys` are in a folder.
    pub fn below(root: impl Into<PathBuf>) -> Machine {
        Machine(root.into())
    }

    /// Returns the CPUs by the governor that chooses their frequency (scaling_governor of cpufreq).
    ///
    /// # Errors
    /// Returns a sentence on why the governors are unknown.
    pub fn governors(&self, cpus: &CpuSet) -> Result<BTreeMap<String, CpuSet>, String> {
        let governors = grouped(cpus, |cpu| {
            self.line(&format!("{}/cpufreq/scaling_governor", folder(cpu))).ok()
        });
        if governors.is_empty() {
            Err(format!(
                "/{}/cpufreq is missing: the firmware or a hypervisor chooses the frequency",
                folder(cpus.cpus()[0])
            ))
        } else {
            Ok(governors)
        }
    }

    /// Returns the sets of CPUs that are threads of one core, if they contain any of these CPUs; empty if each has a
    /// core of its own.
    ///
    /// # Errors
    /// Returns a sentence on why the siblings are unknown.
    pub fn siblings(&self, cpus: &CpuSet) -> Result<Vec<CpuSet>, String> {
        let mut cores = BTreeSet::new();
        for &cpu in cpus.cpus() {
            let core = self.cpus(&format!("{}/topology/thread_siblings_list", folder(cpu)))?;
            cores.insert(core.cpus().to_vec());
        }
        let shared = cores.into_iter().filter(|core| core.len() > 1);
        Ok(shared.filter_map(CpuSet::new).collect())
    }

    /// Returns the CPUs of each NUMA node that has any.
    ///
    /// # Errors
    /// Returns a sentence on why the nodes are unknown.
    pub fn nodes(&self) -> Result<BTreeMap<u32, CpuSet>, String> {
        let path = "sys/devices/system/node";
        let entries = fs::read_dir(self.0.join(path))
            .map_err(|error| format!("cannot read /{path}: {error}"))?;
        let numbers = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter_map(|name| name.strip_prefix("node")?.parse().ok());
        Ok(numbers
            .filter_map(|number| {
                let cpus = self.cpus(&format!("{path}/node{number}/cpulist")).ok()?;
                Some((number, cpus))
            })
            .collect())
    }

    /// Returns the facts about the network card of an interface; `None` if it has no card, like loopback and links
    /// between namespaces.
    pub fn card(&self, interface: &str) -> Option<CardFacts> {
        let interface_folder = format!("sys/class/net/{interface}");
        let device = fs::canonicalize(self.0.join(&interface_folder).join("device")).ok()?;
        let queues = fs::read_dir(self.0.join(&interface_folder).join("queues")).ok()?;
        let names: Vec<String> =
            queues.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        let [receive, send] = ["rx-", "tx-"]
            .map(|kind| names.iter().filter(|name| name.starts_with(kind)).count() as u32);
        let node = self.line(&format!("{interface_folder}/device/numa_node")).ok();
        Some(CardFacts {
            name: interface.to_owned(),
            queues: (receive, send),
            interrupts: self.served_by(&device),
            spreads: names.iter().any(|name| {
                let mask = self.line(&format!("{interface_folder}/queues/{name}/rps_cpus"));
                mask.is_ok_and(|mask| mask.bytes().any(|digit| !matches!(digit, b'0' | b',')))
            }),
            // -1: at none.
            node: node.and_then(|node| node.parse().ok()),
        })
    }

    /// Returns the CPUs to which the interrupts of a device go, of those interrupts that have occurred at least once.
    /// Interrupts of a virtual device are those of its bus device.
    fn served_by(&self, device: &Path) -> Option<CpuSet> {
        let numbers: Vec<u32> = device
            .ancestors()
            .take(2)
            .find_map(|device| {
                let entries = fs::read_dir(device.join("msi_irqs")).ok()?;
                let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
                Some(names.filter_map(|name| name.to_str()?.parse().ok()).collect())
            })
            .or_else(|| {
                Some(vec![fs::read_to_string(device.join("irq")).ok()?.trim().parse().ok()?])
            })?;
        let table = self.text("proc/interrupts").ok()?;
        let active = list_active(&table);
        let cpus = numbers.iter().filter(|number| active.contains(number)).filter_map(|number| {
            ["effective_affinity_list", "smp_affinity_list"]
                .iter()
                .find_map(|name| self.cpus(&format!("proc/irq/{number}/{name}")).ok())
        });
        CpuSet::new(cpus.flat_map(|set| set.cpus().to_vec()).collect())
    }

    fn text(&self, path: &str) -> Result<String, String> {
        let read = fs::read_to_string(self.0.join(path));
        read.map_err(|error| format!("cannot read /{path}: {error}"))
    }

    fn line(&self, path: &str) -> Result<String, String> {
        Ok(self.text(path)?.trim().to_owned())
    }

    fn cpus(&self, path: &str) -> Result<CpuSet, String> {
        let line = self.line(path)?;
        line.parse().map_err(|error| format!("/{path}: {error}"))
    }
}

fn folder(cpu: u32) -> String {
    format!("sys/devices/system/cpu/cpu{cpu}")
}

/// Groups CPUs by the value that `of` returns for each.
fn grouped(cpus: &CpuSet, of: impl Fn(u32) -> Option<String>) -> BTreeMap<String, CpuSet> {
    let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for &cpu in cpus.cpus() {
        if let Some(name) = of(cpu) {
            groups.entry(name).or_default().push(cpu);
        }
    }
    groups.into_iter().filter_map(|(name, cpus)| Some((name, CpuSet::new(cpus)?))).collect()
}

/// Returns the numbers of interrupts that have occurred, from lines like `24:  1  0  IO-APIC …` of /proc/interrupts
/// with a column for each CPU.
fn list_active(table: &str) -> BTreeSet<u32> {
    let mut lines = table.lines();
    let cpus = lines.next().unwrap_or("").split_ascii_whitespace().count();
    lines
        .filter_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let mut counts = rest
                .split_ascii_whitespace()
                .take(cpus)
                .map(|count| count.parse::<u64>().unwrap_or(0));
            counts.any(|count| count > 0).then(|| number.trim().parse().ok())?
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    /// Creates a host from lines that each contain a path and the file's text.
    fn machine(files: &str) -> (tempfile::TempDir, Machine) {
        let folder = tempfile::tempdir().unwrap();
        for line in files.lines() {
            let (path, text) = line.trim().split_once(' ').unwrap();
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace(';', "\n") + "\n").unwrap();
        }
        let machine = Machine::below(folder.path());
        (folder, machine)
    }

    #[test]
    fn cpus_are_told_by_governor_core_and_node() {
        // The third node has memory alone.
        let (_folder, machine) = machine(
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor powersave
             sys/devices/system/cpu/cpu1/cpufreq/scaling_governor performance
             sys/devices/system/cpu/cpu2/cpufreq/scaling_governor powersave
             sys/devices/system/cpu/cpu0/topology/thread_siblings_list 0,2
             sys/devices/system/cpu/cpu2/topology/thread_siblings_list 0,2
             sys/devices/system/node/node0/cpulist 0-1
             sys/devices/system/node/node1/cpulist 2-3
             sys/devices/system/node/node2/cpulist ;",
        );
        let governors = machine.governors(&set("0-2")).unwrap();
        let wanted = [("performance", "1"), ("powersave", "0,2")]
            .map(|(name, cpus)| (name.to_owned(), set(cpus)));
        assert_eq!(governors, BTreeMap::from(wanted));
        assert_eq!(machine.siblings(&set("0,2")).unwrap(), [set("0,2")]);
        let nodes = machine.nodes().unwrap();
        assert_eq!(nodes, BTreeMap::from([(0, set("0-1")), (1, set("2-3"))]));
        // What is not there has a reason.
        let why = machine.governors(&set("5")).unwrap_err();
        assert!(why.contains("cpu5/cpufreq"), "{why}");
        assert!(machine.siblings(&set("5")).is_err());
        assert_eq!(machine.card("lo"), None);
    }

    #[test]
    fn a_card_s_interrupts_are_those_of_its_bus_device_that_have_come() {
        let (folder, machine) = machine(
            "sys/devices/pci0/00:03.0/msi_irqs/37 msix
             sys/devices/pci0/00:03.0/msi_irqs/38 msix
             sys/devices/pci0/00:03.0/msi_irqs/39 msix
             sys/devices/pci0/00:03.0/virtio2/numa_node -1
             sys/devices/pci0/00:03.0/virtio2/net/eth0/queues/rx-0/rps_cpus 0000,00000000
             sys/devices/pci0/00:03.0/virtio2/net/eth0/queues/tx-0/xps_cpus 3
             proc/interrupts CPU0 CPU1;37: 0 0 PCI config;38: 7 0 PCI in;39: 0 9 PCI out;LOC: 5 5 timer
             proc/irq/37/effective_affinity_list 5
             proc/irq/38/effective_affinity_list 0
             proc/irq/39/smp_affinity_list 1-2",
        );
        let device = folder.path().join("sys/devices/pci0/00:03.0/virtio2/net/eth0");
        fs::create_dir_all(folder.path().join("sys/class/net")).unwrap();
        symlink(&device, folder.path().join("sys/class/net/eth0")).unwrap();
        symlink("../..", device.join("device")).unwrap();
        let mut wanted = CardFacts {
            name: "eth0".to_owned(),
            queues: (1, 1),
            interrupts: Some(set("0-2")),
            spreads: false,
            node: None,
        };
        assert_eq!(machine.card("eth0"), Some(wanted.clone()));
        fs::write(device.join("queues/rx-0/rps_cpus"), "0000,00000003\n").unwrap();
        wanted.spreads = true;
        assert_eq!(machine.card("eth0"), Some(wanted));
    }
}
