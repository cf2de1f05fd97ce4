//! The kernel's tables and its memory.

use weir_doctor::TableProblem;

use crate::numbers::count;

pub(super) fn title(problem: &TableProblem) -> String {
    match problem {
        TableProblem::ConntrackFull { most, needed, .. } if needed > most => format!(
            "connection tracking has room for {} connections and would need {}",
            count(*most),
            count(*needed)
        ),
        TableProblem::ConntrackFull { entries, most, .. } => {
            format!("connection tracking is nearly full: {} of {}", count(*entries), count(*most))
        }
        TableProblem::TimeWaitCutShort { sockets } => {
            format!("TIME_WAIT is cut short above {} sockets", count(*sockets))
        }
        TableProblem::TcpMem { pages, needed, clients } if needed > pages => format!(
            "all TCP sockets together may buffer {} pages; {} clients need at least {}",
            count(*pages),
            count(*clients),
            count(*needed)
        ),
        TableProblem::TcpMem { .. } => {
            "tcp_mem allows TCP more memory than there is: its unit is pages".to_owned()
        }
    }
}

pub(super) fn mechanism(problem: &TableProblem) -> &'static str {
    match problem {
        TableProblem::ConntrackFull { .. } => {
            "Every tracked connection has an entry, closed ones for \
             nf_conntrack_tcp_timeout_time_wait seconds more. With the table full, packets of new \
             connections are dropped: \"nf_conntrack: table full, dropping packet\". The value is \
             the initial network namespace's to change."
        }
        TableProblem::TimeWaitCutShort { .. } => {
            "Sockets beyond it are destroyed at once. Late segments of an old connection can then \
             reach a new one, which TIME_WAIT exists to prevent. The kernel's documentation says \
             not to lower it."
        }
        TableProblem::TcpMem { .. } => {
            "tcp_mem counts pages, not bytes, over all sockets. The kernel computes it at boot \
             from the memory of the host; beyond the third number, sockets get no more memory. \
             Values copied from elsewhere are nearly always worse."
        }
    }
}
