//! Summary of the connections of one side.

use super::diagnosis::Connection;
use super::rows::{Counter, Why};

/// Computes sums and quantiles over the connections of one side.
pub(super) fn together(connections: &[Connection]) -> [(&'static str, Counter); 8] {
    let quantile = |of: &dyn Fn(&Connection) -> Option<u64>, quantile: f64| -> Counter {
        let mut values: Vec<u64> = connections.iter().filter_map(of).collect();
        values.sort_unstable();
        let place = (values.len() as f64 * quantile) as usize;
        let place = place.min(values.len().saturating_sub(1));
        values.get(place).copied().ok_or_else(too_old)
    };
    let sum = |of: &dyn Fn(&Connection) -> Option<u64>| -> Counter {
        let sum: Option<u64> = connections.iter().map(of).sum();
        sum.ok_or_else(too_old)
    };
    [
        ("count", Ok(connections.len() as u64)),
        ("retransmits_total", sum(&|each| Some(each.retransmits))),
        ("rtt_us", quantile(&|each| Some(each.rtt_us), 0.5)),
        ("rtt_p99_us", quantile(&|each| Some(each.rtt_us), 0.99)),
        ("delivery_bytes_per_s", quantile(&|each| each.delivery, 0.5)),
        ("unacked", sum(&|each| Some(each.unacked))),
        ("rwnd_limited_us", sum(&|each| each.rwnd_limited_us)),
        ("sndbuf_limited_us", sum(&|each| each.sndbuf_limited_us)),
    ]
}

fn too_old() -> Why {
    "the kernel's tcp_info does not have it".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_a_side_are_told_by_their_median_and_sum() {
        let connection = |rtt_us, delivery| Connection {
            unacked: 1,
            rtt_us,
            retransmits: 2,
            delivery,
            rwnd_limited_us: None,
            sndbuf_limited_us: Some(3),
        };
        let told = together(&[connection(9, Some(1)), connection(1, None), connection(5, Some(8))]);
        let value = |name| &told.iter().find(|(own, _)| *own == name).unwrap().1;
        let known = ["count", "rtt_us", "rtt_p99_us", "retransmits_total", "sndbuf_limited_us"]
            .map(|name| *value(name).as_ref().unwrap());
        assert_eq!(known, [3, 5, 9, 6, 9]);
        assert_eq!(*value("delivery_bytes_per_s"), Ok(8));
        assert!(value("rwnd_limited_us").as_ref().is_err_and(|why| why.contains("tcp_info")));
    }
}
