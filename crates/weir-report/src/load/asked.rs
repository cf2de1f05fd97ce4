//! Description of a load in a few words, as it was requested.

use weir_model::load::{Arrivals, Assignment, Close, LeftOut, Lifetime, Overflow, Spacing};
use weir_model::load_report::LoadShape;
use weir_model::quantity::format_duration;

use crate::number::{plural, tenths};

/// Describes arrivals, connections and their lifetime.
pub(super) fn load(load: &LoadShape) -> String {
    let connections = plural(load.connections.into(), "connection");
    let lifetime = match load.lifetime {
        Lifetime::Kept => String::new(),
        Lifetime::Request => " at a time, one for each request".to_owned(),
        Lifetime::Requests(most) => format!(", renewed after {}", plural(most.into(), "request")),
        Lifetime::Time(ns) => {
            let time = std::time::Duration::from_nanos(ns);
            format!(", renewed after {}", format_duration(time))
        }
    };
    let close = match load.close {
        Close::Fin => "",
        Close::Reset => ", closed by a RESET",
    };
    let pipeline = match load.pipeline {
        0 | 1 => String::new(),
        depth => format!(", PIPELINED {depth} deep"),
    };
    let assignment = match load.assignment {
        Assignment::Global => "",
        Assignment::PerConnection => ", each connection with a schedule of its own",
    };
    let overflow = match load.overflow {
        Overflow::Queue => "",
        Overflow::Drop => ", dropped when none is idle",
    };
    let arrivals = describe_arrivals(&load.arrivals);
    format!("{arrivals}{assignment}{overflow}, {connections}{lifetime}{close}{pipeline}")
}

/// Describes the arrivals in a few words.
fn describe_arrivals(arrivals: &Arrivals) -> String {
    match arrivals {
        Arrivals::Closed => "closed loop".to_owned(),
        Arrivals::Constant { rate: r } => format!("open loop, {} requests/s intended", tenths(*r)),
        Arrivals::Varied { segments, spacing } => {
            let mut rates: Vec<String> =
                segments.iter().flat_map(|part| [part.from, part.to]).map(tenths).collect();
            rates.dedup();
            let spread = match spacing {
                Spacing::Even => String::new(),
                Spacing::Poisson { seed } => format!(", Poisson arrivals (seed {seed})"),
                Spacing::Burst { size } => format!(", in bursts of {size}"),
            };
            let rates = rates.join(" → ");
            format!("open loop, {rates} requests/s intended{spread}")
        }
        Arrivals::Trace { file, arrivals, left_out, .. } => {
            let sent = plural(*arrivals, "arrival");
            let omitted = match LeftOut::told(left_out) {
                (0, _) => String::new(),
                (lines, _) => format!(" ({lines} of its {} lines left out)", arrivals + lines),
            };
            format!("open loop, {sent} of {file}{omitted}")
        }
        Arrivals::Held => "connections held".to_owned(),
    }
}
