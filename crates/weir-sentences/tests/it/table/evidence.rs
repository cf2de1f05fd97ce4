//! Clauses about quantities, conditions on them, and the reasons why they are unknown.

use weir_analysis::fixture;
use weir_limits::{Absent, Bound, ConditionEvidence, Divisor, Fact, Figure, Input};
use weir_sentences::limiter::{
    describe_condition, describe_measure, describe_missing, format_value,
};

use super::Row;
use super::limiter::fact;

/// Busy CPUs, as a symptom of their limit.
pub(super) fn busy() -> ConditionEvidence {
    evidence("cpu", "share", 0.983, Bound::Above(0.93), true)
}

fn evidence(
    quantity: &str,
    unit: &str,
    value: f64,
    bound: Bound,
    holds: bool,
) -> ConditionEvidence {
    ConditionEvidence {
        quantity: quantity.to_owned(),
        of: None,
        value,
        at_low_load: None,
        unit: unit.to_owned(),
        bound,
        holds,
        from: Vec::new(),
    }
}

pub(super) fn rows() -> Vec<Row> {
    let share = ConditionEvidence {
        of: Some("connections".to_owned()),
        ..evidence("outbound_established", "share", 0.5, Bound::Above(0.9), false)
    };
    let switches = evidence("switches_per_request", "", 6.0, Bound::Grows(1.5), true);
    let flag = evidence("compression_on", "", 1.0, Bound::Above(0.5), true);
    let negative = evidence("saturated", "", 0.0, Bound::Above(0.5), false);
    vec![
        ("Above its bound", describe_condition(&busy())),
        (
            "Not above its bound",
            describe_condition(&evidence("cpu", "share", 0.6, Bound::Above(0.93), false)),
        ),
        (
            "Below its bound",
            describe_condition(&evidence("cpu", "share", 0.6, Bound::Below(0.85), true)),
        ),
        ("More than at a low load", describe_condition(&switches)),
        ("A share of another quantity", describe_condition(&share)),
        ("A flag that is set", describe_condition(&flag)),
        ("A flag that is not set", describe_condition(&negative)),
        ("The name of a share in a table", describe_measure(&share)),
        ("The value of a flag in a table", format_value(&flag, 0.0)),
        (
            "A quantity that is not in the catalog",
            describe_measure(&evidence("so_far_unknown", "", 1.0, Bound::Above(0.5), true)),
        ),
    ]
}

/// Returns the clause about memory that is unknown for this reason.
fn absent(reason: Absent) -> String {
    let mut limiter = fixture::limiter("stock");
    limiter.evidence.absent.insert("memory".to_owned(), reason);
    describe_missing(&limiter, "memory")
}

fn not_given(input: Input) -> String {
    absent(Absent::NotGiven(input))
}

pub(super) fn missing_rows() -> Vec<Row> {
    let (column, table) = ("processes.resident_bytes", "processes".to_owned());
    let denied = Absent::Missing { column: column.to_owned(), why: "no permission".to_owned() };
    let ids = ["gzip", "gzip_comp_level"].map(str::to_owned);
    let total = "cpus.user_ns+idle_ns".to_owned();
    let mut partly = fixture::limiter("stock");
    let read = Fact { read_of: Some((1, 2)), ..fact(0.5, "share") };
    partly.evidence.quantities.insert("memory".to_owned(), read);
    let mut rows = vec![
        ("It cannot be read", absent(denied)),
        ("It was never sampled", absent(Absent::NotSampled(column.to_owned()))),
        ("It was sampled once", absent(Absent::SampledOnce(column.to_owned()))),
        ("Its counter went back", absent(Absent::WentBack(column.to_owned()))),
        ("Processes came or went", absent(Absent::CameOrWent(table.clone()))),
        ("The clock of the samples stood still", absent(Absent::Clock(table))),
        ("Another quantity is unknown", not_given(Input::Quantity("cpu_others".to_owned()))),
        ("Settings are unknown", not_given(Input::Setting(ids.into()))),
        ("Errors are unknown", not_given(Input::Errors)),
        ("Response times are unknown", not_given(Input::ResponseTimes)),
        ("There was no request", absent(Absent::OfNothing(Divisor::Requests))),
        (
            "Another quantity is zero",
            absent(Absent::OfNothing(Divisor::Quantity("connections".to_owned()))),
        ),
        ("Columns are zero", absent(Absent::OfNothing(Divisor::Columns(total)))),
        ("Some pods were read", describe_missing(&partly, "memory")),
        (
            "It is known, but not at a low load",
            describe_missing(&fixture::limiter("stock"), "memory"),
        ),
    ];
    rows.extend(FIGURES.map(|(figure, case)| (case, not_given(Input::Figure(figure)))));
    rows
}

/// All figures of a trial.
const FIGURES: [(Figure, &str); 20] = [
    (Figure::RateIntended, "No intended rate"),
    (Figure::RateOffered, "No rate sent"),
    (Figure::RateCompleted, "No rate answered"),
    (Figure::Saturated, "Not known if the load was carried"),
    (Figure::Closed, "Not known if the loop is closed"),
    (Figure::ServiceTimeS, "No service time"),
    (Figure::DispatchLagS, "No lateness of the generator"),
    (Figure::OriginTimeS, "No time of the origin"),
    (Figure::BytesPerS, "No throughput"),
    (Figure::NetworkBytesPerS, "No throughput of the network"),
    (Figure::OpenedPerRequest, "No connections that the load opens"),
    (Figure::OpenedAgainPerRequest, "No connections opened again"),
    (Figure::FullHandshakesPerS, "No handshakes"),
    (Figure::AsksCompressed, "Not known if requests ask for compressed responses"),
    (Figure::CrossesLink, "Not known if the load crosses a link"),
    (Figure::ProxyCpuCount, "No number of CPUs"),
    (Figure::Workers, "No number of workers"),
    (Figure::OthersCpu, "No CPU time of others"),
    (Figure::ProxyCpus, "No CPU time of the proxy"),
    (Figure::ProxySockets, "No sockets of the proxy"),
];
