//! Closed loops in which nobody was busy.

use weir_analysis::findings::IdleLoad;

use crate::numbers;

/// Returns a sentence about a load that its connections limited, with its figures.
pub fn describe_idle_load(load: &IdleLoad) -> String {
    let clause = explain_idle_load(load);
    format!("T{}.", &clause[1..])
}

/// Returns a clause about a load that its connections limited, with its figures.
pub(crate) fn explain_idle_load(load: &IdleLoad) -> String {
    let IdleLoad { connections, response_s: (shortest, longest), busiest, others } = *load;
    let [lowest_rate, highest_rate] =
        [longest, shortest].map(|seconds| numbers::rate(connections as f64 / seconds.max(1e-9)));
    let waiting = match others {
        Some(others) => format!(
            "; responses may have waited for other processes, which had {:.0} % of the proxy's CPUs",
            others * 100.0
        ),
        None => String::new(),
    };
    format!(
        "the connections were the limit: {connections} connections × {} ms for a response allow {}/s, and no CPU was \
         busy{} ({:.0} % at most); this says nothing about how much the proxy carries{waiting}",
        format_range(format!("{:.3}", shortest * 1e3), format!("{:.3}", longest * 1e3)),
        format_range(lowest_rate, highest_rate),
        if others.is_some() { " with the run" } else { "" },
        busiest * 100.0
    )
}

/// Returns `low to high`, or one of them if both are written alike.
fn format_range(low: String, high: String) -> String {
    if low == high { low } else { format!("{low} to {high}") }
}
