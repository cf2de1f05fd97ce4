//! Summary of the connections of one side.

use super::diagnosis::Connection;
use super::rows::{Counter, Why};

/// Computes sums and quantiles over the connections of one side.
pub(super) fn together(connections: &[Connection]) -> [(&'static str, Counter); 8] {
    [
        ("count", Ok(connections.len() as u64)),
        ("retransmits_total", sum(connections, |connection| Some(connection.retransmits))),
        ("rtt_us", find_quantile(connections, |connection| Some(connection.rtt_us), 0.5)),
        ("rtt_p99_us", find_quantile(connections, |connection| Some(connection.rtt_us), 0.99)),
        ("delivery_bytes_per_s", find_quantile(connections, |connection| connection.delivery, 0.5)),
        ("unacked", sum(connections, |connection| Some(connection.unacked))),
        ("rwnd_limited_us", sum(connections, |connection| connection.rwnd_limited_us)),
        ("sndbuf_limited_us", sum(connections, |connection| connection.sndbuf_limited_us)),
    ]
}

fn find_quantile(
    connections: &[Connection],
    value: impl Fn(&Connection) -> Option<u64>,
    quantile: f64,
) -> Counter {
    let mut values: Vec<u64> = connections.iter().filter_map(value).collect();
    values.sort_unstable();
    let index = (values.len() as f64 * quantile) as usize;
    values.get(index.min(values.len().saturating_sub(1))).copied().ok_or_else(too_old)
}

fn sum(connections: &[Connection], value: impl Fn(&Connection) -> Option<u64>) -> Counter {
    connections.iter().map(value).sum::<Option<u64>>().ok_or_else(too_old)
}

fn too_old() -> Why {
    "the kernel's tcp_info does not have it".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_a_side_are_told_by_their_median_and_sum() {
        let values = std::collections::BTreeMap::from(together(&[
            connection(9, Some(1)),
            connection(1, None),
            connection(5, Some(8)),
        ]));
        let counted = ["count", "rtt_us", "rtt_p99_us", "retransmits_total", "sndbuf_limited_us"]
            .map(|name| *values[name].as_ref().unwrap());
        assert_eq!(counted, [3, 5, 9, 6, 9]);
        assert_eq!(values["delivery_bytes_per_s"], Ok(8));
        assert!(values["rwnd_limited_us"].as_ref().is_err_and(|why| why.contains("tcp_info")));
    }

    fn connection(rtt_us: u64, delivery: Option<u64>) -> Connection {
        Connection {
            unacked: 1,
            rtt_us,
            retransmits: 2,
            delivery,
            rwnd_limited_us: None,
            sndbuf_limited_us: Some(3),
        }
    }
}
