//! Local ports for connections to origin servers.

use weir_doctor::PortProblem;

use crate::names::join_names;
use crate::numbers::{count, rounded_rate};

pub(super) fn title(problem: &PortProblem) -> String {
    match problem {
        PortProblem::OriginPortsRunOut { requests_per_second, connections_per_second } => format!(
            "{} requests/s without keepalive to the origin run out of ports at {}/s",
            rounded_rate(*requests_per_second),
            count(*connections_per_second)
        ),
        PortProblem::OriginPortsTooFew { clients, tuples } => format!(
            "{} clients may need as many connections to the origin; there are {} ports for them",
            count(*clients),
            count(*tuples)
        ),
        PortProblem::ListenPortInRange { ports } => {
            let ports: Vec<String> = ports.iter().map(u64::to_string).collect();
            let noun = if ports.len() == 1 { "port" } else { "ports" };
            let list = join_names(&ports);
            format!("{noun} {list} may be taken by an outgoing connection while nginx restarts")
        }
    }
}

pub(super) fn mechanism(problem: &PortProblem) -> &'static str {
    match problem {
        PortProblem::OriginPortsRunOut { .. } => {
            "The end that closes first keeps the pair of addresses and ports in TIME_WAIT for \
             60 s; this calculation assumes that it is nginx. The 60 s are fixed in Linux: \
             tcp_fin_timeout is about FIN_WAIT_2 and does not shorten them. With all tuples taken \
             connect(2) fails: \"Cannot assign requested address\". Kept connections avoid this; \
             tcp_tw_reuse 1 lets outgoing connections take over tuples after a second (2, the \
             default, does so on loopback alone); a wider range and more origin addresses help in \
             proportion."
        }
        PortProblem::OriginPortsTooFew { .. } => {
            "A connection is identified by the addresses and ports of both ends. From one address \
             to one origin address there can be no more connections than local ports. If all \
             clients have a request in flight at once, each has a connection to an origin server."
        }
        PortProblem::ListenPortInRange { .. } => {
            "The kernel gives ports of the range to outgoing connections. If one of them has a \
             listener's port at the moment of a restart, bind(2) fails: \"Address already in use\"."
        }
    }
}
