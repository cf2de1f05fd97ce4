//! Section of a load: its description, its arms, its validity.

use weir_analysis::findings::{ArmFindings, CountedReason, LoadFindings, TailFindings};
use weir_model::bursts::Bursts;
use weir_model::flow::ArrivalsSpec;
use weir_model::load::{Assignment, Close, Lifetime, Overflow, Spacing};
use weir_model::record::Validity;
use weir_model::study::{LoadSpec, Metric, Study};
use weir_model::tls::{Resumption, TlsSpec, TlsVersion};
use weir_sentences::validity::{describe, describe_frequency};

use super::{charts, compare, connections, counted, limit, looks, pairs, phases};
use crate::input::ReportInput;
use crate::number;
use crate::tree::{
    Block, Cell, Chart, Column, Fold, Heading, Kind, Outputs, Role, Row, Style, Table, Text,
    clause, figure, list, text,
};

/// Returns a section for each load that is not a cell of a matrix.
pub(super) fn sections(input: &ReportInput<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    // What arms change is said once where room is scarce.
    let mut is_said = false;
    for (place, load) in single(input).enumerate() {
        blocks.extend(section(input, load, place + 1, is_said));
        is_said |= load.validity != Validity::Invalid && !load.metrics.is_empty();
    }
    blocks
}

/// Returns the loads that are not cells of a matrix.
pub(super) fn single<'a>(input: &ReportInput<'a>) -> impl Iterator<Item = &'a LoadFindings> {
    let (study, loads) = (&input.header.study, &input.findings.loads);
    loads.iter().filter(|load| !is_cell(study, load))
}

/// Describes a load in a clause.
pub(super) fn described(study: &Study, load: &LoadFindings) -> String {
    let spec = study.loads.iter().find(|spec| spec.name == load.load);
    summary(spec, load)
}

/// Returns true if a load is a cell of a matrix.
fn is_cell(study: &Study, load: &LoadFindings) -> bool {
    let mut specs = study.loads.iter();
    specs.any(|spec| spec.name == load.load && spec.cell.is_some())
}

fn section(
    input: &ReportInput<'_>,
    load: &LoadFindings,
    number: usize,
    is_said: bool,
) -> Vec<Block> {
    let study = &input.header.study;
    let spec = study.loads.iter().find(|spec| spec.name == load.load);
    let id = format!("load-{number}");
    let heading = Heading::section(&id, format!("Load {}", load.load));
    let sentences = connections::sentences(spec, load).into_iter();
    let mut blocks = vec![
        Block::Heading(heading.badge(load.validity).remark(&measured(load))),
        clause(Style::Soft, summary(spec, load)),
        Block::Only(
            Outputs::TERMINAL,
            sentences.map(|sentence| clause(Style::Soft, sentence)).collect(),
        ),
    ];
    let figures = figure_blocks(input, load, spec, is_said);
    if load.validity == Validity::Invalid {
        blocks.extend(validity(load));
        let unusable = "not to be used; the other formats show its figures";
        blocks.push(Block::Only(Outputs::TERMINAL, vec![clause(Style::Plain, unusable)]));
        let fold = Block::Fold(Fold {
            summary: "Its figures anyway: not to be used".to_owned(),
            unusable: true,
            blocks: figures,
        });
        blocks.push(Block::Only(Outputs::FILES, vec![fold]));
    } else {
        let idle = load.idle.as_ref().map(weir_sentences::describe_idle_load);
        blocks.extend(idle.map(|sentence| text(Style::Soft, sentence)));
        let hold_ups = describe_hold_ups(load, is_open(spec, load));
        blocks.extend(hold_ups.map(|sentence| clause(Style::Soft, sentence)));
        let ineffective = load.ineffective.iter().map(weir_sentences::describe_ineffective);
        blocks.extend(ineffective.map(|sentence| clause(Style::Warning, sentence)));
        blocks.extend(figures);
        blocks.extend(validity(load));
    }
    blocks
}

fn figure_blocks(
    input: &ReportInput<'_>,
    load: &LoadFindings,
    spec: Option<&LoadSpec>,
    is_said: bool,
) -> Vec<Block> {
    let study = &input.header.study;
    let mut blocks = limit::blocks(load);
    blocks.extend(looks::blocks(study, load));
    blocks.extend(phases::blocks(load));
    let metrics = load.metrics.iter().filter(|_| study.arms.len() > 1);
    let metrics: Vec<Metric> = metrics.copied().collect();
    for (place, &metric) in metrics.iter().enumerate() {
        let mut about = compare::blocks(input, load, metric, is_said || place > 0);
        let pairs = pairs::blocks(input, load, metric);
        about.push(match place {
            0 => Block::Only(Outputs::ALL, pairs),
            _ => Block::Only(Outputs::FILES, pairs),
        });
        about.push(Block::Only(Outputs::HTML, compare::forests(input, load, metric)));
        // CPU per request stands beside the other metrics; alone it has a table of its own.
        let is_beside = metric == Metric::CpuPerRequest && place > 0;
        blocks.push(if is_beside {
            Block::Only(Outputs::FILES, about)
        } else {
            Block::Only(Outputs::ALL, about)
        });
    }
    blocks.extend(counted::telling(load));
    let open_loop = is_open(spec, load);
    blocks.push(Block::Only(Outputs::HTML, drawn(load, open_loop)));
    blocks.push(Block::Only(Outputs::FILES, arms(load, open_loop)));
    blocks.push(Block::Only(Outputs::FILES, connections::blocks(spec, load)));
    blocks.push(Block::Only(Outputs::HTML, counted::tables(study, load)));
    blocks
}

/// Draws response times by percentile, and figures over time.
fn drawn(load: &LoadFindings, open_loop: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    if let Some(lines) = charts::percentiles(&load.arms) {
        let due = if open_loop {
            "From the moment each request was due, so waiting counts."
        } else {
            "Closed loop: each arm has its own rate here, and a faster arm gets more requests. \
                 Compare response times under an open loop."
        };
        let axes = if lines.extent.is_log() {
            "Both axes are logarithmic."
        } else {
            "Each further nine of the percentile takes the same room."
        };
        blocks.push(part_heading(load, "Response time by percentile"));
        blocks.push(figure(format!("{due} {axes}"), Chart::Lines(lines)));
    }
    if load.arms.iter().any(|arm| !arm.over_time.is_empty()) {
        blocks.push(part_heading(load, "Over time"));
        blocks.push(figure(
            "Completed requests per second, one point for each block; the baseline behind each arm in grey.",
            charts::over_time(&load.arms, false),
        ));
        blocks.push(figure(
            "Median response time, one point for each block. Marks at the upper edge are points beyond the axis.",
            charts::over_time(&load.arms, true),
        ));
    }
    blocks
}

fn part_heading(load: &LoadFindings, text: &str) -> Block {
    Block::Heading(Heading::part(text).badge(load.validity))
}

/// Shows the figures of each arm without comparison.
fn arms(load: &LoadFindings, open_loop: bool) -> Vec<Block> {
    let all = &load.arms;
    if all.is_empty() {
        return Vec::new();
    }
    #[rustfmt::skip]
    let heads = [
        "completed/s", "offered/s", "CPU/request", "requests", "failures",
    ];
    let censored = all.iter().any(|arm| arm.censored > 0);
    let interrupts = all.iter().any(|arm| arm.interrupts.is_some());
    let columns = heads
        .map(Column::new)
        .into_iter()
        .chain(censored.then(|| Column::new("never ended")))
        .chain([Column::new("origin connects").small("per request")])
        .chain(interrupts.then(|| Column::new("interrupts").small("of its CPUs")));
    let counts = Table::new(Kind::Figures, "Rates and counts of each arm", "arm")
        .columns(columns)
        .rows(all.iter().map(|arm| counts(arm, (censored, interrupts))));
    let mut measured = all.iter().filter(|arm| arm.samples > 0);
    let service = measured.clone().any(|arm| arm.service_ns.iter().any(|ns| *ns > 0));
    let lag = measured.any(|arm| arm.dispatch_lag_ns.iter().any(|ns| *ns > 0));
    let mut note = "response time runs from the moment a request was due".to_owned();
    if service {
        note += ", service time from the moment it was sent";
    }
    if lag {
        note += "; dispatch lag is the generator's own delay";
    }
    if !open_loop {
        note += ". In a closed loop a request is due when the one before it was answered";
    }
    vec![
        Block::Heading(Heading::part("Figures of each arm").badge(load.validity)),
        Block::Table(counts),
        Block::Table(times(all, service, lag)),
        clause(Style::Soft, note),
    ]
}

fn counts(arm: &ArmFindings, (censored, interrupts): (bool, bool)) -> Row {
    let origin = number::share(arm.origin_connects_per_request.unwrap_or(f64::NAN));
    let share = number::percent(arm.interrupts.unwrap_or(f64::NAN));
    let cells = [
        number::rate(arm.rate_completed),
        number::rate(arm.rate_offered),
        number::time(arm.cpu_per_request_ns.unwrap_or(f64::NAN)),
        number::count(arm.samples),
        number::count(arm.failures),
    ]
    .into_iter()
    .chain(censored.then(|| number::count(arm.censored)))
    .chain([origin])
    .chain(interrupts.then_some(share));
    Row::new(&*arm.arm, cells.map(Cell::from))
}

/// Returns the quantiles of each arm: response times, and service times and dispatch lag if recorded.
fn times(arms: &[ArmFindings], service: bool, lag: bool) -> Table {
    let mut columns = vec![Column::new("response").small("p50")];
    columns.extend(["p90", "p99", "p99.9", "max"].map(|quantile| Column::new("").small(quantile)));
    let typical = arms.iter().any(|arm| !arm.tails.is_empty());
    columns.extend(typical.then(|| Column::new("").small("typical p99")));
    if service {
        columns.push(Column::new("service").small("p50"));
        columns.push(Column::new("").small("p99"));
    }
    if lag {
        columns.push(Column::new("dispatch lag").small("p99"));
    }
    let rows = arms.iter().map(|arm| {
        let mut cells = number::quantiles(&arm.response_ns, arm.samples).map(Cell::from).to_vec();
        for (tail, index) in arm.tails.iter().zip([2, 3]) {
            let quantile = std::mem::take(&mut cells[index]);
            cells[index] = quantile.small(tail_interval(tail));
        }
        let common = arm
            .tails
            .first()
            .and_then(|tail| tail.typical_ns)
            .map_or(number::NONE.to_owned(), |ns| number::time(ns as f64));
        cells.extend(typical.then(|| Cell::from(common)));
        let [p50, _, p99, ..] = number::quantiles(&arm.service_ns, arm.samples);
        let [_, _, lag_p99, ..] = number::quantiles(&arm.dispatch_lag_ns, arm.samples);
        let optional =
            service.then_some([p50, p99]).into_iter().flatten().chain(lag.then_some(lag_p99));
        cells.extend(optional.map(Cell::from));
        Row::new(&*arm.arm, cells)
    });
    Table::new(Kind::Figures, "Times of each arm", "arm").columns(columns).rows(rows)
}

/// Formats the interval of a quantile of all requests: `1.2 ms to 3 ms`. It has no end if that was not answered.
fn tail_interval(tail: &TailFindings) -> String {
    let Some((low, high)) = tail.interval_ns else {
        return String::new();
    };
    let low = number::time(low as f64);
    match high {
        Some(high) => format!("{low} to {}", number::time(high as f64)),
        None => format!("from {low}"),
    }
}

/// Shows the validity of the figures, and the reasons against it.
fn validity(load: &LoadFindings) -> Vec<Block> {
    let summary = if load.reasons.is_empty() {
        "Nothing speaks against these figures."
    } else {
        "Trials that are INVALID were left out before any outcome was looked at."
    };
    let heading = Block::Heading(Heading::part("Validity").badge(load.validity));
    let mut blocks = vec![Block::Only(Outputs::FILES, vec![heading, text(Style::Soft, summary)])];
    let arms: Vec<&str> = load.arms.iter().map(|arm| &*arm.arm).collect();
    let reasons = load.reasons.iter().map(|counted| reason(counted, &arms));
    blocks.extend(list(reasons, false));
    blocks
}

/// Formats a reason, with the arms that it concerns. `all` are all arms of the load.
pub(super) fn reason(counted: &CountedReason, all: &[&str]) -> Text {
    let is_of_all = all.iter().all(|arm| counted.arms.iter().any(|counted| counted == arm));
    let arms = if is_of_all && all.len() == 1 || !is_of_all && counted.arms.is_empty() {
        String::new()
    } else if is_of_all {
        "; all arms".to_owned()
    } else {
        format!("; {}", counted.arms.join(", "))
    };
    Text::validity(counted.reason.validity)
        .plain(" ")
        .and(Role::Strong, counted.reason.rule())
        .plain(format!(": {} ", describe(&counted.reason)))
        .and(Role::Soft, format!("({}{arms})", describe_frequency(counted)))
}

fn measured(load: &LoadFindings) -> String {
    if load.blocks == 0 {
        return "nothing was measured".to_owned();
    }
    format!(
        "{} of {} used, slices of {}",
        number::count(u64::from(load.blocks_used)),
        number::plural(u64::from(load.blocks), "block"),
        number::short_time(load.slice_ns as f64),
    )
}

/// Describes standstills of the machine and how they are treated. `None` if there were none, or they do not matter.
fn describe_hold_ups(load: &LoadFindings, is_open: bool) -> Option<String> {
    let Some(seen) = &load.hold_ups else {
        let missing = "whether the machine stood still at times is not known: there was no meter, which needs root";
        return (is_open && load.blocks > 0).then(|| missing.to_owned());
    };
    let share = number::percent(f64::from(seen.slices) / f64::from(seen.of.max(1)));
    let done = match (seen.left_out, &seen.more_often_of) {
        _ if seen.slices == 0 => return None,
        (true, _) => "these are left out of the typical p99, for all arms alike".to_owned(),
        (false, Some(arm)) => {
            format!("the typical p99 includes these too, because {arm} has clearly more of them")
        }
        (false, None) => {
            "the typical p99 includes these too, because fewer than half of the blocks would be left"
                .to_owned()
        }
    };
    Some(format!(
        "the machine stood still or was busy with something else in {share} of the slices; {done}"
    ))
}

/// Returns true if arrivals are independent of responses.
fn is_open(spec: Option<&LoadSpec>, load: &LoadFindings) -> bool {
    load.rate_intended.is_some() || spec.is_some_and(|spec| spec.is_open())
}

/// Formats a load: `closed loop, 50 connections to each arm, GET /`.
fn summary(spec: Option<&LoadSpec>, load: &LoadFindings) -> String {
    let mut parts = vec![match load.rate_intended {
        Some(rate) => format!("open loop at {} requests/s", number::asked(rate)),
        None if is_open(spec, load) => "open loop".to_owned(),
        None => "closed loop".to_owned(),
    }];
    if let Some(spec) = spec {
        let connections = number::plural(u64::from(spec.connections), "connection");
        parts.push(format!("{connections} to each arm"));
        parts.extend(manner(spec));
    }
    parts.join(", ")
}

/// Describes the properties of a load other than its rate and number of connections.
pub(super) fn manner(spec: &LoadSpec) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(bursts) = Bursts::of(spec) {
        parts.push(format!(
            "in bursts of {}, one every {}",
            number::count(u64::from(bursts.size)),
            number::short_time(bursts.period().as_nanos() as f64)
        ));
    }
    parts.extend(arrivals(spec));
    if spec.pipeline > 1 {
        parts.push(format!("PIPELINED, up to {} on a connection", spec.pipeline));
    }
    if spec.held() > 0 {
        parts.push(format!("{} held idle", number::count(spec.held())));
    }
    parts.extend(lifetime(spec.lifetime));
    if spec.close == Close::Reset {
        parts.push("connections closed by a RESET".to_owned());
    }
    parts.extend(spec.tls.as_ref().map(tls));
    parts.extend(asked(spec));
    parts
}

/// Describes how arrivals differ from even ones at a constant rate, and the treatment of arrivals that find no idle
/// connection.
fn arrivals(spec: &LoadSpec) -> Vec<String> {
    let mut parts = Vec::new();
    match &spec.arrivals {
        ArrivalsSpec::Varied(segments) => {
            let rates = segments.iter().flat_map(|part| [part.from, part.to]);
            let lowest = rates.clone().fold(f64::INFINITY, f64::min);
            let highest = rates.fold(0.0, f64::max);
            parts.push(format!(
                "the rate changing in every slice between {} and {}",
                number::asked(lowest),
                number::asked(highest)
            ));
        }
        ArrivalsSpec::Trace(trace) if trace.speed == 1.0 => {
            parts.push(format!("arrivals of the trace {}", trace.file));
        }
        ArrivalsSpec::Trace(trace) => parts.push(format!(
            "arrivals of the trace {} at {} times its speed",
            trace.file, trace.speed
        )),
        _ => {}
    }
    if let Spacing::Poisson { seed } = spec.spacing {
        parts.push(format!("Poisson arrivals (seed {seed})"));
    }
    if spec.assignment == Assignment::PerConnection {
        parts.push("a schedule for each connection".to_owned());
    }
    if spec.overflow == Overflow::Drop {
        parts.push("requests dropped while no connection is idle".to_owned());
    }
    parts
}

/// Describes the requests of the main flow, and the flows beside it.
fn asked(spec: &LoadSpec) -> Vec<String> {
    let mut parts = Vec::new();
    match &spec.requests[..] {
        // The trace itself is not in the run's folder: it may name requests of its own.
        [only] if matches!(spec.arrivals, ArrivalsSpec::Trace(_)) => {
            parts.push(format!("{} where the trace names no request", only.title()));
        }
        [only] => parts.push(only.title()),
        several => parts.push(format!("a mix of {} requests", several.len())),
    }
    let beside = spec.beside.iter().filter(|flow| !flow.is_held());
    parts.extend(beside.map(|flow| {
        let connections = number::plural(u64::from(flow.connections), "connection");
        let reset = match flow.close {
            Close::Fin => "",
            Close::Reset => " closed by a RESET",
        };
        format!("beside it {} with {connections}{reset}", flow.name)
    }));
    parts
}

/// Describes the lifetime of connections. `None` if they are kept.
fn lifetime(lifetime: Lifetime) -> Option<String> {
    Some(match lifetime {
        Lifetime::Kept => return None,
        Lifetime::Request => "a connection for each request".to_owned(),
        Lifetime::Requests(requests) => {
            format!("a new connection after {}", number::plural(u64::from(requests), "request"))
        }
        Lifetime::Time(ns) => format!("a new connection after {}", number::short_time(ns as f64)),
    })
}

/// Describes a TLS offer: `TLS 1.2 offered (ECDHE-RSA-AES256-GCM-SHA384), never resumed`.
fn tls(offer: &TlsSpec) -> String {
    let both = [TlsVersion::V1_2, TlsVersion::V1_3];
    let versions = if offer.versions.is_empty() { &both[..] } else { &offer.versions };
    let versions: Vec<&str> = versions.iter().map(|version| version.name()).collect();
    let ciphers = if offer.ciphers.is_empty() {
        String::new()
    } else {
        format!(" ({})", offer.ciphers.join(" "))
    };
    let resumed = match offer.resumption {
        Resumption::Off => "never resumed".to_owned(),
        Resumption::On => "resumed".to_owned(),
        Resumption::Ratio(share) => format!("{} resumed", number::level(share)),
    };
    format!("TLS {} offered{ciphers}, {resumed}", versions.join(" or "))
}
