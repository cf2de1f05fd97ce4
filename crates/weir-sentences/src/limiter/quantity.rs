//! Quantities, conditions on them, and the reasons why they are unknown.

use weir_analysis::findings::LimiterFindings;
use weir_limits::{Absent, Bound, ConditionEvidence, Divisor, Figure, Input, Quantities};

use crate::numbers::with_unit;

/// Prefix of the meaning of quantities that are 1 or 0.
const FLAG: &str = "1 where ";

/// Returns a description of a quantity; of a flag, what it says if it is 1.
pub fn describe_quantity(name: &str) -> String {
    let Some(known) = Quantities::builtin().get(name) else {
        return name.replace('_', " ");
    };
    match known.means.strip_prefix(FLAG) {
        Some(flag) => flag.split(", 0 where").next().unwrap_or(flag).to_owned(),
        None => known.means.clone(),
    }
}

/// Returns a description of the quantity that a condition is about, or of both if it is about the share of one in
/// another.
pub fn describe_measure(condition: &ConditionEvidence) -> String {
    let name = describe_quantity(&condition.quantity);
    match &condition.of {
        Some(of) => format!("{name}, as a share of: {}", describe_quantity(of)),
        None => name,
    }
}

/// Returns true if a condition is about a flag, 1 or 0.
pub fn is_flag(condition: &ConditionEvidence) -> bool {
    let quantity = Quantities::builtin().get(&condition.quantity);
    condition.of.is_none() && quantity.is_some_and(|quantity| quantity.means.starts_with(FLAG))
}

/// Formats a value of the quantity that a condition is about: `93 %`, `yes`.
pub fn format_value(condition: &ConditionEvidence, value: f64) -> String {
    if !is_flag(condition) {
        with_unit(value, &condition.unit)
    } else if value > 0.5 {
        "yes".to_owned()
    } else {
        "no".to_owned()
    }
}

/// Describes a condition with its value: `use of the CPUs: 40 %, not above 93 %`.
pub fn describe_condition(condition: &ConditionEvidence) -> String {
    let name = describe_measure(condition);
    let value = format_value(condition, condition.value);
    if is_flag(condition) {
        // What rules ask of a flag is a number between its two values.
        format!("{name}: {value}")
    } else {
        format!("{name}: {value}, {}", describe_outcome(condition))
    }
}

/// Describes the bound of a condition, and on which side of it the value is: `not above 93 %`.
pub fn describe_outcome(condition: &ConditionEvidence) -> String {
    let not = if condition.holds { "" } else { "not " };
    format!("{not}{}", describe_bound(condition.bound, &condition.unit))
}

/// Describes a bound for values in this unit: `above 93 %`. The unit of a share of another quantity is `share`.
pub fn describe_bound(bound: Bound, unit: &str) -> String {
    match bound {
        Bound::Above(bound) => format!("above {}", with_unit(bound, unit)),
        Bound::Below(bound) => format!("below {}", with_unit(bound, unit)),
        Bound::Grows(factor) => format!("{factor} times that at a low load"),
    }
}

/// Describes a quantity that a limiter could not be judged without, and why it is unknown.
pub fn describe_missing(found: &LimiterFindings, name: &str) -> String {
    let means = describe_quantity(name);
    let evidence = &found.evidence;
    let read_of = evidence.quantities.get(name).and_then(|fact| fact.read_of);
    match (evidence.absent.get(name), read_of) {
        (Some(absent), _) => format!("{means}: {}", why_absent(absent)),
        (None, Some((read, all))) => format!("{means}: read in {read} of {all} pods alone"),
        (None, None) => means,
    }
}

/// Returns the reason why a quantity is unknown, without rows and columns of samples.
fn why_absent(absent: &Absent) -> String {
    match absent {
        Absent::Missing { why, .. } => format!("it cannot be read ({why})"),
        Absent::NotSampled(_) | Absent::SampledOnce(_) => "no sample has it".to_owned(),
        Absent::WentBack(_) => "its counter was reset meanwhile".to_owned(),
        Absent::CameOrWent(_) => "processes, threads or devices came or went meanwhile".to_owned(),
        Absent::Clock(_) => "the times of its samples do not ascend".to_owned(),
        Absent::NotGiven(what) => format!("not known: {}", describe_input(what)),
        Absent::OfNothing(what) => format!("zero: {}", divisor(what)),
    }
}

/// Returns the name of a datum of a trial.
pub(crate) fn describe_input(input: &Input) -> String {
    match input {
        Input::Figure(known) => figure(*known).to_owned(),
        Input::Quantity(name) => describe_quantity(name),
        Input::Setting(ids) => ids.join(" or "),
        Input::Errors => "its errors".to_owned(),
        Input::ResponseTimes => "its response times".to_owned(),
    }
}

/// Returns the name of a divisor.
fn divisor(divisor: &Divisor) -> String {
    match divisor {
        Divisor::Requests => "the number of requests".to_owned(),
        Divisor::Quantity(name) => describe_quantity(name),
        Divisor::Columns(columns) => columns.clone(),
    }
}

/// Returns the name of a figure of a trial.
fn figure(figure: Figure) -> &'static str {
    match figure {
        Figure::RateIntended => "the rate asked for",
        Figure::RateOffered => "the rate sent",
        Figure::RateCompleted => "the rate answered",
        Figure::Saturated => "whether the load was carried",
        Figure::Closed => "whether the loop is closed",
        Figure::ServiceTimeS => "the time of a response from its sending on",
        Figure::DispatchLagS => "how late the generator was",
        Figure::OriginTimeS => "the time of the origin's responses",
        Figure::BytesPerS => "bytes per second",
        Figure::NetworkBytesPerS => "the throughput of the network between generator and proxy",
        Figure::OpenedPerRequest => "connections that the load opens for each request",
        Figure::OpenedAgainPerRequest => "connections opened again for each request",
        Figure::FullHandshakesPerS => "full TLS handshakes",
        Figure::AsksCompressed => "whether requests ask for compressed responses",
        Figure::CrossesLink => "whether the load comes from another host",
        Figure::ProxyCpuCount => "the number of the proxy's CPUs",
        Figure::Workers => "the number of workers",
        Figure::OthersCpu => "the CPU time of other processes",
        Figure::ProxyCpus => "the CPU time of the proxy",
        Figure::ProxySockets => "the sockets of the proxy",
    }
}
