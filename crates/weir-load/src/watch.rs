//! Events on the host during a trial: CPU time taken by the hypervisor, listen queues that overflow.

use weir_model::load_report::GeneratorReport;
use weir_model::quantity::CpuSet;
use weir_probe::{CpuTimes, CpuTimesReader, listen_overflows};

use crate::plan::Plan;
use crate::reactor::Io;
use crate::trial::Outcome;

/// Counters of the host at the beginning of a trial.
pub struct Watch {
    cpus: Option<CpuTimesReader>,
    times: CpuTimes,
    overflows: u64,
}

impl Watch {
    /// Reads the counters. A counter that cannot be read counts as 0: a result without it is still useful.
    pub fn begin(plan: &Plan) -> Watch {
        let cpus: Option<Vec<u32>> = plan.cpus.iter().copied().collect();
        let set = cpus.and_then(CpuSet::new);
        let mut cpus = set.and_then(|set| CpuTimesReader::open(&set).ok());
        let times = cpus.as_mut().and_then(|cpus| cpus.read().ok());
        Watch { cpus, times: times.unwrap_or_default(), overflows: listen_overflows() }
    }

    /// Returns the changes since the beginning, without figures known only at the end of a trial; `io` is the
    /// generator's backend.
    pub fn seen(&mut self, io: Io) -> GeneratorReport {
        let now = self.cpus.as_mut().and_then(|cpus| cpus.read().ok());
        let spent = now.unwrap_or(self.times) - self.times;
        let all = spent.busy_ns + spent.idle_ns + spent.steal_ns;
        GeneratorReport {
            io: io.name().to_owned(),
            steal: spent.steal_ns as f64 / all.max(1) as f64,
            listen_overflows: listen_overflows() - self.overflows,
            ..GeneratorReport::default()
        }
    }

    /// Returns the changes at the end of the trial.
    pub fn end(&mut self, outcome: &Outcome) -> GeneratorReport {
        GeneratorReport {
            spun_ns: outcome.spun_ns.clone(),
            longest_gap_ns: outcome.longest_gap_ns.clone(),
            woken_late_ns: Some(outcome.woken_late).filter(|late| late[1] > 0),
            starved: outcome.starved,
            ..self.seen(outcome.io)
        }
    }
}
