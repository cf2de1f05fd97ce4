//! Workers and the CPUs that they may use.

use weir_doctor::CpuProblem;

use crate::numbers::{count, counted, rounded_rate};

pub(super) fn title(problem: &CpuProblem) -> String {
    match problem {
        CpuProblem::WorkersAboveCpus { workers, cpus } => {
            format!("{} share {cpus:.2} CPUs", counted(*workers, "worker"))
        }
        CpuProblem::WorkersBelowCpus { workers, cpus } => format!(
            "{} cannot use more than {} of {} CPUs",
            counted(*workers, "worker"),
            count(*workers),
            count(*cpus)
        ),
        CpuProblem::ListenersShared { workers, connections_per_second } => format!(
            "{} share one accept queue at {} new connections/s",
            counted(*workers, "worker"),
            rounded_rate(*connections_per_second)
        ),
    }
}

pub(super) fn mechanism(problem: &CpuProblem) -> &'static str {
    match problem {
        CpuProblem::WorkersAboveCpus { .. } => {
            "`auto` counts the CPUs that are online, not the quota. More workers use up the \
             group's time before a period ends, and then all of them stand still until the next \
             one: pauses of tens of milliseconds that look like a slow network."
        }
        CpuProblem::WorkersBelowCpus { .. } => {
            "A worker is one thread and runs on one CPU at a time. If the origin servers run on \
             the same CPUs, this may be intended."
        }
        CpuProblem::ListenersShared { .. } => {
            "Workers that share a socket accept unevenly. With reuseport each worker has its own \
             socket and queue, and the kernel spreads connections by a hash. Connections in the \
             queue of a worker that is stuck then have to wait: measure both."
        }
    }
}
