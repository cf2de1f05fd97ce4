//! A load dealt to several generators: each has its share of the connections and of the rate, and all have the
//! same slices. What they count is added.

use weir_agent::message::{FlowJob, LoadJob};
use weir_model::load::{Arrivals, Segment, Spacing};

/// Each generator's share: as many as there are generators, or connections of the flow that has fewest.
pub(crate) fn deal(job: &LoadJob, generators: usize) -> Vec<LoadJob> {
    let fewest = job
        .flows
        .iter()
        .filter(|flow| !flow.spec.is_held())
        .map(|flow| flow.spec.connections)
        .min()
        .unwrap_or(1);
    let shares = (generators as u32).clamp(1, fewest.max(1));
    let share = |number: u32| LoadJob {
        flows: job
            .flows
            .iter()
            .map(|flow| share_of(flow, number, shares))
            .collect(),
        traces: job
            .traces
            .iter()
            .map(|trace| trace.share(number as usize, shares as usize))
            .collect(),
        ..job.clone()
    };
    (0..shares).map(share).collect()
}

/// The `number`-th of so many shares of a flow.
fn share_of(flow: &FlowJob, number: u32, shares: u32) -> FlowJob {
    let part = |whole: u32| whole / shares + u32::from(number < whole % shares);
    let factor = 1.0 / f64::from(shares);
    let mut spec = flow.spec.clone();
    spec.connections = part(spec.connections);
    spec.connect_rate = spec.connect_rate.map(|rate| rate * factor);
    FlowJob {
        spec,
        arrivals: match &flow.arrivals {
            Arrivals::Constant { rate } => Arrivals::Constant {
                rate: rate * factor,
            },
            Arrivals::Varied { segments, spacing } => Arrivals::Varied {
                segments: segments
                    .iter()
                    .map(|segment| Segment {
                        from: segment.from * factor,
                        to: segment.to * factor,
                        ns: segment.ns,
                    })
                    .collect(),
                spacing: match *spacing {
                    Spacing::Even => Spacing::Even,
                    // As many bursts as without others, each with a share of its requests.
                    Spacing::Burst { size } => Spacing::Burst {
                        size: part(size).max(1),
                    },
                    // Independent processes add up to one (superposition); the same seed would be the same one.
                    Spacing::Poisson { seed } => Spacing::Poisson {
                        seed: seed ^ (u64::from(number) << 32),
                    },
                },
            },
            same @ (Arrivals::Closed | Arrivals::Held | Arrivals::Trace { .. }) => same.clone(),
        },
        ..flow.clone()
    }
}
