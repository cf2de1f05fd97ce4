//! Checks that this machine can open the connections of a load: descriptors, ports, and the capacity of the proxies.

use std::ops::Range;

use weir_model::room::{Descriptors, MOST_SOURCES, MOST_THREADS};
use weir_model::study::LoadSpec;
use weir_parameters::Catalog;

use crate::arms;
use crate::check::Checker;
use crate::load::Draft;
use crate::machine::CheckContext;
use crate::proxy;

/// Number of held connections per spare one that a proxy must have besides. A worker closes idle connections when fewer
/// than one in sixteen of its own is free (ngx_drain_connections in nginx), and workers do not share connections out
/// quite evenly.
const SPARE: u32 = 10;

/// Reason why a load's connections cannot be opened, and advice.
struct Shortage {
    message: String,
    hint: &'static str,
}

/// Data for the check.
pub(crate) struct Room<'a> {
    pub(crate) arms: &'a [arms::Draft],
    pub(crate) proxy: Option<&'a proxy::Draft>,
    pub(crate) catalog: &'a Catalog,
    pub(crate) context: &'a CheckContext,
}

impl Room<'_> {
    /// Removes the optional loads that this machine has no room for from `loads`, and returns a sentence on each group
    /// of them with the reason. Any other load without room is an error.
    pub(crate) fn check(&self, loads: &mut Vec<Draft>, check: &mut Checker) -> Vec<String> {
        // By what is short, with the loads concerned: the cells of a matrix often lack the same.
        let mut left_out: Vec<(String, Vec<String>)> = Vec::new();
        let mut reported: Vec<Range<usize>> = Vec::new();
        let mut remaining = loads.len();
        loads.retain(|load| {
            let Some(shortage) = self.shortage(&load.spec) else {
                return true;
            };
            // The last one that is left says what is wrong when nothing can be measured.
            if load.optional && remaining > 1 {
                remaining -= 1;
                let same = left_out.iter_mut().find(|(why, _)| *why == shortage.message);
                let name = load.spec.name.clone();
                match same {
                    Some((_, names)) => names.push(name),
                    None => left_out.push((shortage.message, vec![name])),
                }
                return false;
            }
            if !reported.contains(&load.places.connections) {
                reported.push(load.places.connections.clone());
                check.error(load.places.connections.clone(), shortage.message).hint(shortage.hint);
            }
            true
        });
        left_out.into_iter().map(sentence).collect()
    }

    fn shortage(&self, load: &LoadSpec) -> Option<Shortage> {
        self.of_weir(load).or_else(|| self.of_ports(load)).or_else(|| self.of_a_proxy(load))
    }

    /// Checks weir's own descriptors. Every connection takes one. If there is an origin server, which is in the same
    /// process, an active connection takes another one there.
    ///
    /// The load engine uses as many threads as it needs if each can have its own table of descriptors. Such a table
    /// begins as a copy of the process's, including the origin server's connections.
    fn of_weir(&self, load: &LoadSpec) -> Option<Shortage> {
        let (arms, limit) = (self.arms.len() as u64, self.context.most_descriptors);
        let has_origin = self.proxy.is_some_and(|proxy| !proxy.serves_files());
        let wanted =
            Descriptors::of_load(load, arms, has_origin, self.context.own_tables).of_study();
        let threads = if wanted.own_tables { MOST_THREADS.min(wanted.most_threads) } else { 1 };
        let needed = wanted.for_each_of(threads);
        (needed > limit).then(|| Shortage {
            message: format!(
                "{} to {} need {} descriptors, and the limit is {limit}{}",
                named(load),
                match arms {
                    1 => "the only arm".to_owned(),
                    arms => format!("each of {arms} arms"),
                },
                wanted.at_most(),
                match threads {
                    1 => String::new(),
                    threads => format!(" for each of {threads} threads"),
                }
            ),
            hint: "use fewer connections, or raise the limit with `ulimit -Hn` before weir starts",
        })
    }

    /// Checks local ports. Arms have their own addresses, so each has all ports to itself.
    fn of_ports(&self, load: &LoadSpec) -> Option<Shortage> {
        let ports = self.context.local_ports.saturating_mul(MOST_SOURCES);
        (load.asking() + load.held() > ports).then(|| Shortage {
            message: format!(
                "{} need one local port each, and {MOST_SOURCES} source addresses have {ports}",
                named(load)
            ),
            hint: "use fewer connections, or widen net.ipv4.ip_local_port_range",
        })
    }

    /// Checks the descriptors and connections of the proxies. A proxy without enough descriptors would refuse clients,
    /// whatever its other settings. One without enough connections lets clients wait, which a load may be meant to show
    /// (it is a remark then), but held connections never make room for active ones.
    fn of_a_proxy(&self, load: &LoadSpec) -> Option<Shortage> {
        let proxy = self.proxy?;
        let clients = load.asking();
        self.arms.iter().find_map(|draft| {
            let (arm, settings) = (&draft.arm.name, &draft.arm.settings);
            let held = load.held() as u32;
            let held = held + held / SPARE;
            let of_arm = draft.proxy(&proxy.spec);
            let limits = self
                .context
                .client_limits(self.catalog, of_arm, settings, held)?;
            let beside = match load.held() {
                0 => String::new(),
                held => format!(" beside {held} held connections"),
            };
            let (what, limit, hint) = if limits.descriptors < clients {
                let hint = "use fewer connections, or raise the proxy's limit of descriptors, such as nginx's `worker_rlimit_nofile` (and `ulimit -Hn`, which it cannot exceed)";
                ("descriptors", limits.descriptors, hint)
            } else if load.held() > 0 && limits.connections < clients {
                let hint = "hold fewer connections, or raise the proxy's limit of connections, such as nginx's `worker_connections`";
                ("connections", limits.connections, hint)
            } else {
                return None;
            };
            let message = format!(
                "the proxy of arm `{arm}` has {what} for {limit} clients{beside}, and the load needs {clients}"
            );
            Some(Shortage { message, hint })
        })
    }
}

/// Formats a sentence on the loads that are left out, with the reason.
fn sentence((why, loads): (String, Vec<String>)) -> String {
    match &loads[..] {
        [first, .., last] => {
            let count = loads.len();
            format!("{count} loads, `{first}` to `{last}`, are left out: {why}")
        }
        loads => format!("load `{}` is left out: {why}", loads.concat()),
    }
}

/// Formats the connections of a load: `50 connections`, `50 connections and 10000 held ones`.
fn named(load: &LoadSpec) -> String {
    match load.held() {
        0 => format!("{} connections", load.asking()),
        held => format!("{} connections and {held} held ones", load.asking()),
    }
}
