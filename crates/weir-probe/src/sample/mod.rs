//! Samples all counters of a host at once, as tables: those of `limits/counters.yaml`, read every second during a
//! trial.
//!
//! Files are opened once and read again with `pread`; sockets are counted with the kernel's dump (sock_diag(7)), only
//! as often as that is cheap. A value that cannot be read is absent, never zero, and [`Sampler::missing`] gives the
//! reason, once.

mod cgroups;
mod connections;
mod diagnosis;
mod host;
mod namespace;
mod owner;
mod pace;
mod processes;
mod rows;
mod source;
mod told;

use std::collections::BTreeMap;

use weir_model::sample::{MissingCounter, SampleRow};

use cgroups::Groups;
use host::HostFiles;
pub use namespace::Namespace;
use processes::TaskTable;
use rows::Rows;
use source::Files;
pub use told::{END, PodFiles, SCRIPT, TABLES};

/// Value of the key `role` for the generator.
pub const GENERATOR: &str = "generator";
/// Value of the key `role` for a proxy.
pub const PROXY: &str = "proxy";
/// Value of the key `role` for the origin server.
pub const ORIGIN: &str = "origin";
/// Value of the key `role` for several roles in one network namespace.
const SHARED: &str = "shared";

/// A role on a host, with the processes and the namespace to sample.
#[derive(Debug)]
pub struct SampledRole {
    /// [`GENERATOR`], [`PROXY`] or [`ORIGIN`].
    pub role: &'static str,
    /// Arm of the role; empty if it belongs to none.
    pub arm: String,
    /// Network namespace with its sockets.
    pub namespace: Option<Namespace>,
    /// Processes or threads of the role.
    pub tasks: Tasks,
}

/// Processes or threads to sample.
#[derive(Debug)]
pub enum Tasks {
    /// These processes and their children, which are searched for repeatedly.
    Processes(Vec<u32>),
    /// Threads of this process whose names begin with this prefix.
    Threads(&'static str),
    /// Processes of a pod's container, as printed by its shell.
    PodFiles(PodFiles),
}

/// Role and arm to which counters belong.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Whose {
    role: &'static str,
    arm: String,
}

/// Readers of all tables.
#[derive(Debug)]
pub struct Sampler {
    /// Counters of the host; `None` if another sampler reads those of the same host.
    host: Option<HostFiles>,
    namespaces: Vec<(Whose, Namespace)>,
    tasks: Vec<(Whose, TaskTable)>,
    groups: Vec<(Whose, Groups)>,
    missing: BTreeMap<(String, String, String), String>,
}

impl Sampler {
    /// Opens everything that can be opened. [`Sampler::missing`] lists the rest after the first reading.
    pub fn open(places: Vec<SampledRole>) -> Sampler {
        let mut sampler = Sampler {
            host: Some(HostFiles::open(&Files::Here)),
            namespaces: Vec::new(),
            tasks: Vec::new(),
            groups: Vec::new(),
            missing: BTreeMap::new(),
        };
        for place in places {
            let whose = Whose { role: place.role, arm: place.arm };
            if let Some(namespace) = place.namespace {
                sampler.add_namespace(whose.clone(), namespace);
            }
            let pids: &[u32] = match &place.tasks {
                Tasks::Processes(pids) => pids,
                Tasks::Threads(_) => &[std::process::id()],
                Tasks::PodFiles(_) => &[],
            };
            sampler.groups.push((whose.clone(), Groups::of(pids)));
            sampler.tasks.push((whose, TaskTable::open(place.tasks)));
        }
        sampler
    }

    /// Creates the readers for a pod of a proxy, from the output of its shell. There must have been output before,
    /// because the files of its control group are looked up here. Counters of the pod's node are read if `has_node`.
    pub fn of_pod(told: &PodFiles, arm: &str, has_node: bool) -> Sampler {
        let whose = Whose { role: PROXY, arm: arm.to_owned() };
        let files = Files::PodFiles(told.clone());
        Sampler {
            host: has_node.then(|| HostFiles::open(&files)),
            namespaces: vec![(whose.clone(), Namespace::of_pod(told))],
            tasks: vec![(whose.clone(), TaskTable::open(Tasks::PodFiles(told.clone())))],
            groups: vec![(whose, Groups::of_pod(told))],
            missing: BTreeMap::new(),
        }
    }

    /// Adds a namespace. One that several places share is read once, and belongs to none of them alone.
    fn add_namespace(&mut self, whose: Whose, namespace: Namespace) {
        let mut same = self
            .namespaces
            .iter_mut()
            .map(|(whose, known)| (whose, &*known))
            .filter(|(_, known)| known.is(&namespace));
        let Some((known, _)) = same.next() else {
            return self.namespaces.push((whose, namespace));
        };
        if known.role != whose.role {
            known.role = SHARED;
        }
        if known.arm != whose.arm {
            known.arm.clear();
        }
    }

    /// Reads all tables. `at_ns` is the time on CLOCK_MONOTONIC.
    pub fn read(&mut self, at_ns: u64) -> Vec<SampleRow> {
        let mut rows = Rows::new(at_ns, &mut self.missing);
        if let Some(host) = &mut self.host {
            host.read(&mut rows);
        }
        // Processes right behind the CPUs: the times of one are held against those of the other.
        for (whose, tasks) in &mut self.tasks {
            tasks.read(whose, &mut rows);
        }
        for (whose, namespace) in &mut self.namespaces {
            namespace.read(whose, &mut rows);
        }
        for (whose, groups) in &mut self.groups {
            groups.read(whose, &mut rows);
        }
        rows.take()
    }

    /// Returns the counters that could not be read so far, each once.
    pub fn missing(&self) -> Vec<MissingCounter> {
        self.missing
            .iter()
            .map(|((table, column, role), why)| MissingCounter {
                table: table.clone(),
                column: column.clone(),
                role: role.clone(),
                why: why.clone(),
            })
            .collect()
    }
}
