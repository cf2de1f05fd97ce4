//! Queues of listeners.

use weir_doctor::QueueProblem;

use crate::numbers::{count, counted, rounded_rate};

pub(super) fn title(problem: &QueueProblem) -> String {
    match problem {
        QueueProblem::BacklogCapped { backlog, somaxconn } => format!(
            "a backlog of {} is capped at {} by net.core.somaxconn",
            count(*backlog),
            count(*somaxconn)
        ),
        QueueProblem::SomaxconnInert { somaxconn, backlog, .. } => format!(
            "net.core.somaxconn {} does nothing: nginx listens with a backlog of {}",
            count(*somaxconn),
            count(*backlog)
        ),
        QueueProblem::BacklogNotInForce { queue, settings } => format!(
            "the running nginx still has room for {} connections, and its settings now say {}: \
             restart it",
            count(*queue),
            count(*settings)
        ),
        QueueProblem::BacklogShort { queue, connections_per_second: Some(rate), .. } => format!(
            "the accept queue of {} is full after {:.0} ms at {} new connections/s",
            count(*queue),
            *queue as f64 / rate * 1e3,
            rounded_rate(*rate)
        ),
        QueueProblem::BacklogShort { queue, clients, .. } => format!(
            "{} clients that connect at once find room for {}",
            count(*clients),
            count(*queue)
        ),
        QueueProblem::ListenOverflows { overflows } => {
            let verb = if *overflows == 1 { "has" } else { "have" };
            let connections = counted(*overflows, "connection");
            format!("{connections} {verb} found an accept queue full since boot")
        }
        QueueProblem::SynQueueDrops { dropped: 0 } => {
            "SYN cookies are off: a full SYN queue drops connections".to_owned()
        }
        QueueProblem::SynQueueDrops { dropped } => {
            let verb = if *dropped == 1 { "has" } else { "have" };
            format!("{} {verb} been dropped by a full SYN queue", counted(*dropped, "SYN"))
        }
        QueueProblem::AbortOnOverflow => {
            "clients that find the accept queue full are reset at once".to_owned()
        }
    }
}

pub(super) fn mechanism(problem: &QueueProblem) -> String {
    let text = match problem {
        QueueProblem::BacklogCapped { .. } => {
            "The accept queue holds the smaller of listen(2)'s backlog and somaxconn as it was \
             when listen(2) was called. A connection that finds it full is dropped, and its client \
             tries again after 1 s, 3 s, 7 s: a step in the response time that does not come from \
             a slow proxy."
        }
        QueueProblem::SomaxconnInert { default_backlog, .. } => {
            return format!(
                "The accept queue holds the smaller of the two. nginx asks for {default_backlog} \
                 on Linux unless its listen directive says backlog=, so raising somaxconn alone \
                 changes nothing above {default_backlog}."
            );
        }
        QueueProblem::BacklogNotInForce { .. } => {
            "listen(2) was called before the settings were changed, and a queue keeps the size \
             that it was opened with."
        }
        QueueProblem::BacklogShort { .. } => {
            "Connections that come while no worker accepts wait in the accept queue; those beyond \
             it are dropped, and their clients try again after 1 s. It holds the smaller of \
             backlog= and net.core.somaxconn: raise both. A backlog bridges a burst; it does not \
             make a worker accept faster."
        }
        QueueProblem::ListenOverflows { .. } => {
            "The counter covers all listeners in this network namespace since boot; check whether \
             it still grows. Each such client waits at least 1 s for its next SYN. If the workers' \
             CPUs are busy, add workers before you make the queue longer."
        }
        QueueProblem::SynQueueDrops { .. } => {
            "Without SYN cookies, connections that are being opened are bounded by \
             tcp_max_syn_backlog for each listener. With them a full queue is answered by cookies, \
             and nobody is turned away."
        }
        QueueProblem::AbortOnOverflow => {
            "By default such a client tries again and gets through once a burst is over; with this \
             it sees \"Connection reset\"."
        }
    };
    text.to_owned()
}
