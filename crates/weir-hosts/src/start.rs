//! Common start of several generators for one load, and the differences between their starts.
//!
//! Each generator reports when its connections are open. When all have done so, their clocks are compared with this
//! process's, and all get one start time, each by its own clock. The starts that they report are compared by the same
//! clocks.

use weir_agent::AgentError;
use weir_model::record::GeneratorStart;

use crate::host::Host;

/// Time between the last generator's readiness and the start, nanoseconds: enough for the message, in addition to round
/// trips.
const LEAD_NS: u64 = 100_000_000;

/// Start of a load that is divided among generators; a single generator starts by itself.
pub struct Start<'a> {
    generators: Vec<Generator<'a>>,
}

struct Generator<'a> {
    host: &'a Host,
    /// Lead of the generator's clock over this process's, and its error bound, nanoseconds.
    clock: (i64, u64),
    is_ready: bool,
    /// Start by this process's clock, nanoseconds; `None` before it is reported.
    started_ns: Option<u64>,
}

impl<'a> Start<'a> {
    /// Prepares the start of generators on these hosts, with how far each host's clock is ahead, nanoseconds.
    pub fn of(generators: impl Iterator<Item = (&'a Host, i64)>) -> Start<'a> {
        Start {
            generators: generators
                .map(|(host, ahead_ns)| Generator {
                    host,
                    clock: (ahead_ns, 0),
                    is_ready: false,
                    started_ns: None,
                })
                .collect(),
        }
    }

    /// Marks a generator as ready; the last one starts all. `load` returns the number of each generator's load.
    ///
    /// # Errors
    /// A host is lost.
    pub fn ready(
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

    /// Notes that a generator started at `at_ns` of its clock; returns that time by this process's clock.
    pub fn started(&mut self, generator: usize, at_ns: u64) -> u64 {
        let sender = &mut self.generators[generator];
        let here_ns = at_ns.wrapping_add_signed(sender.clock.0.wrapping_neg());
        sender.started_ns = Some(here_ns);
        here_ns
    }

    /// Returns the start of each generator relative to the first; empty for a single generator.
    pub fn starts(&self) -> Vec<GeneratorStart> {
        if self.generators.len() == 1 {
            return Vec::new();
        }
        let started = self.generators.iter().filter_map(|generator| generator.started_ns);
        let first = started.min().unwrap_or(0);
        let starts = self.generators.iter().map(|generator| GeneratorStart {
            host: generator.host.called().to_owned(),
            after_ns: generator.started_ns.map_or(0, |at| at.saturating_sub(first)),
            unsure_ns: generator.clock.1,
        });
        starts.collect()
    }
}
