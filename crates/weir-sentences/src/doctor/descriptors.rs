//! Limits of connections and descriptors.

use weir_doctor::DescriptorProblem;

use crate::numbers::count;

pub(super) fn title(problem: &DescriptorProblem) -> String {
    match problem {
        DescriptorProblem::WorkerConnectionsTooFew { room, clients } => {
            format!("nginx has room for {} clients, {} are needed", count(*room), count(*clients))
        }
        DescriptorProblem::DescriptorsTooFew { limit, needed } => format!(
            "a worker may open {} descriptors and would need {}",
            count(*limit),
            count(*needed)
        ),
        DescriptorProblem::WorkerConnectionsAboveDescriptors { connections, limit } => format!(
            "worker_connections {} cannot be reached: a worker has {} descriptors",
            count(*connections),
            count(*limit)
        ),
        DescriptorProblem::RlimitNotTaken { set, limit } => format!(
            "worker_rlimit_nofile {} is not in force: workers have {}",
            count(*set),
            count(*limit)
        ),
        DescriptorProblem::DescriptorsAboveNrOpen { set, nr_open } => format!(
            "a limit of {} descriptors is refused: fs.nr_open is {}",
            count(*set),
            count(*nr_open)
        ),
        DescriptorProblem::FileMaxTooLow { most, needed } => {
            format!("the host may open {} files and would need {}", count(*most), count(*needed))
        }
        DescriptorProblem::LimitsConfNotForServices { unit } => {
            format!("nofile in limits.conf does not reach {unit}")
        }
    }
}

pub(super) fn mechanism(problem: &DescriptorProblem) -> &'static str {
    match problem {
        DescriptorProblem::WorkerConnectionsTooFew { .. } => {
            "A worker counts every connection against worker_connections, those to origin servers \
             and to FastCGI, uwsgi, SCGI and memcached too: a client whose request is being \
             answered takes two. When connections run out a worker stops accepting, and clients \
             wait in the accept queue."
        }
        DescriptorProblem::DescriptorsTooFew { .. } => {
            "Every connection takes a descriptor, and so does every file that is sent. Above the \
             soft limit accept(2) and socket(2) fail: \"Too many open files\". nginx sets its \
             workers' limit to worker_rlimit_nofile, whatever the shell or the unit gave it, if it \
             is privileged to."
        }
        DescriptorProblem::WorkerConnectionsAboveDescriptors { .. } => {
            "Every connection takes a descriptor. nginx starts with no more than a warning; \
             connections above the limit cannot be opened."
        }
        DescriptorProblem::RlimitNotTaken { .. } => {
            "Either nginx has not been reloaded since, or it may not raise its hard limit \
             (CAP_SYS_RESOURCE, which containers often lack): then it logs an alert \
             \"setrlimit(RLIMIT_NOFILE) failed\" and keeps the limit that it had."
        }
        DescriptorProblem::DescriptorsAboveNrOpen { .. } => {
            "fs.nr_open is the most that any process may have, including root's: setrlimit(2) \
             fails above it, and the process keeps the limit that it had."
        }
        DescriptorProblem::FileMaxTooLow { .. } => {
            "fs.file-max bounds all processes of the host together, containers included: it \
             belongs to no namespace. Processes with CAP_SYS_ADMIN are exempt, nginx's workers are \
             not."
        }
        DescriptorProblem::LimitsConfNotForServices { .. } => {
            "limits.conf is read by pam_limits at login. A service is started by systemd, which \
             uses LimitNOFILE= of its unit; for nginx's workers, set worker_rlimit_nofile."
        }
    }
}
