//! Widespread advice that does not, or no longer, have the effect it is given for.

use weir_doctor::AdviceProblem;

use crate::numbers::count;

pub(super) fn title(problem: &AdviceProblem) -> String {
    let text = match problem {
        AdviceProblem::FileMaxAdvice { value, kernel_value } if value < kernel_value => {
            return format!(
                "fs.file-max {} is below the kernel's own value, about {}",
                count(*value),
                count(*kernel_value)
            );
        }
        AdviceProblem::FileMaxAdvice { value, .. } => {
            return format!("fs.file-max {} is seldom what limits a proxy", count(*value));
        }
        AdviceProblem::FinTimeoutAdvice => "tcp_fin_timeout does not shorten TIME_WAIT",
        AdviceProblem::TwReuseAdvice { is_inert: true } => {
            "tcp_tw_reuse does nothing without tcp_timestamps"
        }
        AdviceProblem::TwReuseAdvice { .. } => {
            "tcp_tw_reuse works for outgoing connections only, such as those to the origin"
        }
        AdviceProblem::SocketBuffersInert => {
            "net.core buffer sizes do nothing for nginx's TCP sockets"
        }
        AdviceProblem::SynBacklogInert => "tcp_max_syn_backlog is ignored while SYN cookies are on",
        AdviceProblem::SysctlWithoutEffect => "settings that the kernel accepts and ignores",
        AdviceProblem::AcceptMutexAdvice => "accept_mutex is off by default since nginx 1.11.3",
    };
    text.to_owned()
}

pub(super) fn mechanism(problem: &AdviceProblem) -> &'static str {
    match problem {
        AdviceProblem::FileMaxAdvice { .. } => {
            "The kernel lets open files take a tenth of the memory, at about 1 KiB each. Numbers \
             in guides come from small machines. A proxy reaches its own limit first, \
             RLIMIT_NOFILE; and fs.file-max belongs to no namespace, so no container can set it."
        }
        AdviceProblem::FinTimeoutAdvice => {
            "It limits FIN_WAIT_2 of sockets that no process has any more. TIME_WAIT is 60 s in \
             Linux, fixed (TCP_TIMEWAIT_LEN). To have fewer sockets in TIME_WAIT, keep connections \
             to the origin."
        }
        AdviceProblem::TwReuseAdvice { .. } => {
            "A new outgoing connection may take over a tuple in TIME_WAIT when timestamps show \
             that it is safe. Connections from clients are not touched. The default, 2, does it \
             only on loopback."
        }
        AdviceProblem::SocketBuffersInert => {
            "The maxima limit what a program requests by SO_RCVBUF and SO_SNDBUF. nginx requests \
             nothing unless listen says so, and TCP has defaults of its own. Such sockets are \
             resized automatically, up to the third number of tcp_rmem and tcp_wmem."
        }
        AdviceProblem::SynBacklogInert => {
            "With SYN cookies there is no such limit on connections that are being opened. The \
             queue that overflows first under a normal load is the accept queue: backlog= and \
             somaxconn."
        }
        AdviceProblem::SysctlWithoutEffect => {
            "The names are left so that old files do not fail; the kernel's documentation says \
             that they have no effect."
        }
        AdviceProblem::AcceptMutexAdvice => {
            "Workers take turns accepting, so a new connection may wait for the next turn. It was \
             meant to avoid waking all workers for one connection, which EPOLLEXCLUSIVE and \
             reuseport prevent without turns."
        }
    }
}
