//! All counters of a host in one go, as tables: what `limits/counters.yaml` says, read every second while a trial goes
//! on.
//!
//! Files are opened once and read again with `pread`; sockets are counted by the kernel's own dump (sock_diag(7)), only
//! as often as that is cheap. What cannot be read is absent, never zero, and [`Sampler::missing`] says why, once.

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
pub use told::{END, SCRIPT, TABLES, Told};

/// Of the generator: the value of the key `role`.
pub const GENERATOR: &str = "generator";
/// Of a proxy.
pub const PROXY: &str = "proxy";
/// Of the origin server.
pub const ORIGIN: &str = "origin";
/// Of several of them, in one network namespace.
const SHARED: &str = "shared";

/// Something that is looked at on a host.
#[derive(Debug)]
pub struct Place {
    /// [`GENERATOR`], [`PROXY`] or [`ORIGIN`].
    pub role: &'static str,
    /// The arm that it is of; empty: of none.
    pub arm: String,
    /// Where its sockets are.
    pub namespace: Option<Namespace>,
    /// What runs there.
    pub tasks: Tasks,
}

/// What runs at a place.
#[derive(Debug)]
pub enum Tasks {
    /// These processes and their children, which are looked for again and again.
    Processes(Vec<u32>),
    /// Threads of this very process whose name begins so.
    Threads(&'static str),
    /// Those of a pod's container, as its shell tells of them.
    Told(Told),
}

/// Whose counters they are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Whose {
    role: &'static str,
    arm: String,
}

/// Readers of all tables.
#[derive(Debug)]
pub struct Sampler {
    /// `None`: somebody else reads the same host's.
    host: Option<HostFiles>,
    namespaces: Vec<(Whose, Namespace)>,
    tasks: Vec<(Whose, TaskTable)>,
    groups: Vec<(Whose, Groups)>,
    missing: BTreeMap<(String, String, String), String>,
}

impl Sampler {
    /// Opens everything that can be opened. What cannot is told by [`Sampler::missing`] after the first reading.
    pub fn open(places: Vec<Place>) -> Sampler {
        let mut sampler = Sampler {
            host: Some(HostFiles::open(&Files::Here)),
            namespaces: Vec::new(),
            tasks: Vec::new(),
            groups: Vec::new(),
            missing: BTreeMap::new(),
        };
        for place in places {
            let whose = Whose {
                role: place.role,
                arm: place.arm,
            };
            if let Some(namespace) = place.namespace {
                sampler.add_namespace(whose.clone(), namespace);
            }
            let pids: &[u32] = match &place.tasks {
                Tasks::Processes(pids) => pids,
                Tasks::Threads(_) => &[std::process::id()],
                Tasks::Told(_) => &[],
            };
            sampler.groups.push((whose.clone(), Groups::of(pids)));
            sampler.tasks.push((whose, TaskTable::open(place.tasks)));
        }
        sampler
    }

    /// Readers of a pod of a proxy, by what its shell tells. It must have told once before, because what a control group has
    /// is looked up here. Counters of its node are read if `has_node`.
    pub fn of_pod(told: &Told, arm: &str, has_node: bool) -> Sampler {
        let whose = Whose {
            role: PROXY,
            arm: arm.to_owned(),
        };
        let files = Files::Told(told.clone());
        Sampler {
            host: has_node.then(|| HostFiles::open(&files)),
            namespaces: vec![(whose.clone(), Namespace::of_pod(told))],
            tasks: vec![(whose.clone(), TaskTable::open(Tasks::Told(told.clone())))],
            groups: vec![(whose, Groups::of_pod(told))],
            missing: BTreeMap::new(),
        }
    }

    /// One that several places share is read once, and is nobody's own.
    fn add_namespace(&mut self, whose: Whose, namespace: Namespace) {
        let known = self.namespaces.iter_mut();
        let same = known.map(|(whose, known)| (whose, &*known));
        let mut same = same.filter(|(_, known)| known.is(&namespace));
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

    /// Reads everything, `at_ns` by CLOCK_MONOTONIC.
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

    /// What could not be read so far, each once.
    pub fn missing(&self) -> Vec<MissingCounter> {
        let each = self.missing.iter();
        each.map(|((table, column, role), why)| MissingCounter {
            table: table.clone(),
            column: column.clone(),
            role: role.clone(),
            why: why.clone(),
        })
        .collect()
    }
}
