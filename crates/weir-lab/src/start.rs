//! How several generators start one load together, and how far apart they did.
//!
//! Each says when its connections are open. When all have said so, their clocks are compared with this process's, and all
//! are told one start, each by its own clock. What they say of their starts is compared by the same clocks.

use weir_agent::AgentError;
use weir_model::record::GeneratorStart;

use crate::host::Host;

/// From when all are ready to the start, nanoseconds: time for the message of it, beside round trips.
const LEAD_NS: u64 = 100_000_000;

/// The start of a load that is dealt to some generators; one alone starts by itself.
pub(crate) struct Start<'a> {
    generators: Vec<Generator<'a>>,
}

struct Generator<'a> {
    host: &'a Host,
    /// How far its clock is ahead of this process's, and by how much that may be wrong, nanoseconds.
    clock: (i64, u64),
    is_ready: bool,
    /// By this process's clock.
    started_ns: Option<u64>,
}

impl<'a> Start<'a> {
    /// Of generators on these hosts, whose clocks are so far ahead.
    pub(crate) fn of(generators: impl Iterator<Item = (&'a Host, i64)>) -> Start<'a> {
        let of_one = |(host, ahead_ns)| Generator {
            host,
            clock: (ahead_ns, 0),
            is_ready: false,
            started_ns: None,
        };
        Start {
            generators: generators.map(of_one).collect(),
        }
    }

    /// A generator is ready. The last one's word has all start; `load` is the number of each one's load.
    ///
    /// # Errors
    /// A host is gone.
    pub(crate) fn ready(
        &mut self,
        generator: usize,
        load: impl Fn(usize) -> u64,
    ) -> Result<(), AgentError> {
        let was_ready = std::mem::replace(&mut self.generators[generator].is_ready, true);
        if was_ready || !self.generators.iter().all(|one| one.is_ready) {
            return Ok(());
        }
        // Now: to open connections may have taken half a minute, and clocks drift.
        for one in self.generators.iter_mut() {
            one.clock = one.host.clock_offset_ns()?;
        }
        let unsure_ns = self.generators.iter().map(|one| one.clock.1).max();
        let start = weir_agent::monotonic_ns() + LEAD_NS + 4 * unsure_ns.unwrap_or(0);
        for (place, one) in self.generators.iter().enumerate() {
            let at_ns = start.wrapping_add_signed(one.clock.0);
            one.host.start_load(load(place), at_ns)?;
        }
        Ok(())
    }

    /// A generator has started at this moment of its clock: when that was by this process's.
    pub(crate) fn started(&mut self, generator: usize, at_ns: u64) -> u64 {
        let one = &mut self.generators[generator];
        let here_ns = at_ns.wrapping_add_signed(one.clock.0.wrapping_neg());
        one.started_ns = Some(here_ns);
        here_ns
    }

    /// When each of several started.
    pub(crate) fn starts(&self) -> Vec<GeneratorStart> {
        let started = || self.generators.iter().filter_map(|one| one.started_ns);
        let first = started().min().unwrap_or(0);
        let of_one = |one: &Generator<'_>| GeneratorStart {
            host: one.host.called().to_owned(),
            after_ns: one.started_ns.map_or(0, |at| at.saturating_sub(first)),
            unsure_ns: one.clock.1,
        };
        match &self.generators[..] {
            [_] => Vec::new(),
            several => several.iter().map(of_one).collect(),
        }
    }
}
