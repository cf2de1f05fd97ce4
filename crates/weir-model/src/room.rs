//! Resources that the connections of a load need: descriptors, threads, ports and local addresses, computed here for
//! studies, for the lab and for `weir load`.

use crate::flow::{LoadSpec, SourceSpec};
use crate::load::Lifetime;

/// Descriptors that a weir process needs beside its connections: logs, listeners, counters, pipes, the run folder.
pub const OTHERS: u64 = 64;

/// Descriptors that a study needs in addition: files that are sampled, logs of all tables of the run folder.
pub const OF_STUDY: u64 = 192;

/// Soft limit of open descriptors with which proxies start. It is systemd's default for services
/// (DefaultLimitNOFILE=1024:524288 in systemd-system.conf(5)), so that a stock proxy has the same limit as in
/// production.
pub const STOCK_NOFILE: u64 = 1024;

/// Soft limit to which a process that samples raises its own, if it may: it keeps six files of each sampled process open.
pub const FOR_SAMPLES: u64 = 16_384;

/// Maximum number of generator threads for any number of connections, unless the generator has more CPUs than that.
pub const MOST_THREADS: u64 = 64;

/// Threads of a generator with so many CPUs at most, whoever asks for them: each takes some MiB, and more of them only
/// wait for one another.
pub fn most_threads(cpus: usize) -> usize {
    (MOST_THREADS as usize).max(4 * cpus)
}

/// Maximum number of local addresses for the connections to one arm: all addresses of a network of 256, except the
/// network's own, the broadcast address and the arm's.
pub const MOST_SOURCES: u64 = 253;

/// Minimum number of local addresses for connections that are renewed. Ports of closed connections are blocked for a
/// while (TIME_WAIT, RFC 9293 §3.6.1), and the fewer ports are free, the longer the kernel searches.
const SOURCES_OF_RENEWED: u64 = 4;

/// Descriptors that a load needs in the generator's process.
///
/// If each of the generator's threads has a descriptor table of its own, the limit applies to each table. Such a table
/// begins as a copy of the process's, so the other descriptors of the process count in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// Descriptors in the process's own table: an origin server's connections, logs, listeners.
    pub of_process: u64,
    /// Descriptors of the generator's connections.
    pub of_generator: u64,
    /// Maximum number of threads.
    pub most_threads: u64,
    /// True if each thread can have a descriptor table of its own.
    pub own_tables: bool,
}

impl Descriptors {
    /// Computes the needs of a load to `arms` arms. `at_origin` is true if the origin server is in the same process.
    /// Held connections send nothing, so they need no descriptors in the origin server.
    pub fn of_load(load: &LoadSpec, arms: u64, at_origin: bool, own_tables: bool) -> Descriptors {
        let asking = load.asking();
        let origin = if at_origin { asking * arms } else { 0 };
        Descriptors {
            of_process: origin + arms * 4 + OTHERS,
            of_generator: (asking + load.held()) * arms,
            // Every thread has a share of every flow, so each flow must have a connection for it.
            most_threads: fewest(load),
            own_tables,
        }
    }

    /// Adds what a study needs beside the connections of its loads.
    pub fn of_study(self) -> Descriptors {
        Descriptors { of_process: self.of_process + OF_STUDY, ..self }
    }

    /// Returns the needs of each of `generators` generators.
    pub fn dealt(self, generators: u64) -> Descriptors {
        let generators = generators.max(1);
        Descriptors {
            of_generator: self.of_generator.div_ceil(generators),
            most_threads: (self.most_threads / generators).max(1),
            ..self
        }
    }

    /// Number of descriptors if all are in one table.
    pub fn at_most(self) -> u64 {
        self.of_process + self.of_generator
    }

    /// Number of descriptors in the table of each of `threads` threads.
    pub fn for_each_of(self, threads: u64) -> u64 {
        if self.own_tables {
            self.of_process + self.of_generator.div_ceil(threads.max(1))
        } else {
            self.at_most()
        }
    }

    /// Returns the number of threads: one for each CPU, or as many as are needed with `limit` descriptors for each.
    pub fn threads(self, limit: u64, cpus: u64) -> u64 {
        let needed = self.needed_threads(limit).min(MOST_THREADS);
        needed.max(cpus).min(self.most_threads).max(1)
    }

    /// Number of threads that are needed for every connection to have a descriptor; 1 if more threads would not help.
    pub fn needed_threads(self, limit: u64) -> u64 {
        match limit.saturating_sub(self.of_process) {
            room if room > 0 && self.own_tables => self.of_generator.div_ceil(room),
            _ => 1,
        }
    }
}

/// Number of connections of the smallest flow that sends requests.
fn fewest(load: &LoadSpec) -> u64 {
    let fewest =
        load.flows().filter(|flow| !flow.is_held()).map(|flow| u64::from(flow.connections)).min();
    fewest.unwrap_or(u64::MAX)
}

/// Number of descriptors that the origin server needs under the largest of `loads`, including those of a generator in
/// the same process.
pub fn at_origin(loads: &[LoadSpec], arms: u64) -> u64 {
    let most = loads.iter().map(LoadSpec::asking).max().unwrap_or(0);
    most * 2 * arms + arms * 4 + OTHERS
}

/// Number of local addresses for the connections of a load to one arm. Half of the ports of each address must suffice,
/// since other programs use ports too, and the kernel is slow to find the last free ones.
pub fn sources(load: &LoadSpec, local_ports: u64) -> u8 {
    let enough = (load.asking() + load.held()).div_ceil((local_ports / 2).max(1));
    let least = load.flows().map(|flow| match (&flow.sources, flow.lifetime) {
        (SourceSpec::Count(count), _) => u64::from(*count),
        (_, Lifetime::Kept) => 1,
        _ => SOURCES_OF_RENEWED,
    });
    enough.max(least.max().unwrap_or(1)).min(MOST_SOURCES) as u8
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::flow::{ArrivalsSpec, FlowSpec};

    #[test]
    fn connections_beyond_the_limit_of_one_thread_take_more_threads() {
        let wanted = Descriptors {
            of_process: 118,
            of_generator: 100_050,
            most_threads: 50,
            own_tables: true,
        };
        assert_eq!(wanted.threads(u64::MAX, 2), 2);
        let in_one = Descriptors { own_tables: false, ..wanted };
        assert_eq!(in_one.threads(20_000, 2), 2);
        assert_eq!(wanted.threads(20_000, 2), 6);
        assert!(wanted.for_each_of(6) <= 20_000);
        assert!(wanted.for_each_of(5) > 20_000);
        assert_eq!(wanted.threads(20_000, 8), 8, "no fewer than CPUs");
        let few = Descriptors { most_threads: 3, ..wanted };
        assert_eq!(few.threads(20_000, 8), 3, "each must have one that asks");
        let dealt = wanted.dealt(4);
        assert_eq!((dealt.of_generator, dealt.most_threads), (25_013, 12));
        assert_eq!(dealt.threads(20_000, 1), 2);
        assert_eq!(few.dealt(2).threads(20_000, 8), 1, "two of three");
    }

    #[test]
    fn there_are_source_addresses_for_all_connections() {
        let count = |held, lifetime, ports, sources| {
            let main = FlowSpec { lifetime, sources, ..FlowSpec::new(50, ArrivalsSpec::Closed) };
            let mut load = LoadSpec::new("l", main, Duration::from_secs(1));
            load.beside.push(FlowSpec::held(held));
            super::sources(&load, ports)
        };
        use SourceSpec::{Count, Needed};
        assert_eq!(count(10_000, Lifetime::Kept, 28_232, Needed), 1);
        assert_eq!(count(100_000, Lifetime::Kept, 28_232, Needed), 8);
        assert_eq!(count(1_000_000, Lifetime::Kept, 5_000, Needed), 253);
        assert_eq!(count(0, Lifetime::Request, 28_232, Needed), 4);
        assert_eq!(count(0, Lifetime::Kept, 28_232, Count(7)), 7);
    }

    #[test]
    fn a_load_takes_descriptors_in_all_arms_and_at_the_origin() {
        let main = FlowSpec::new(50, ArrivalsSpec::Closed);
        let mut load = LoadSpec::new("l", main, Duration::from_secs(1));
        load.beside.push(FlowSpec::held(1000));
        load.beside.push(FlowSpec::new(5, ArrivalsSpec::Closed));
        let wanted = Descriptors::of_load(&load, 3, true, true);
        let expected = Descriptors {
            of_process: 55 * 3 + 12 + OTHERS,
            of_generator: 1055 * 3,
            most_threads: 5,
            own_tables: true,
        };
        assert_eq!(wanted, expected);
        assert_eq!(at_origin(&[load], 3), 55 * 2 * 3 + 12 + OTHERS);
    }
}
