//! Figures of a load: rates, times, and outcomes of requests.

use weir_model::load::{Arrivals, ErrorKind, Lifetime};
use weir_model::load_report::{LoadReport, NameCount, TimeReport};
use weir_model::record::GeneratorStart;

use crate::number::{bytes_per_second, count, plural, tenths, time};
use crate::tree::{Block, Cell, Column, Kind, Row, Style, Table, Text, clause, fact};

/// Quantiles of the table, with their common names.
const SHOWN: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// A name and its lines.
type Fact = (String, Vec<Text>);

fn facts(name: &str, lines: impl IntoIterator<Item = String>) -> Fact {
    (name.to_owned(), lines.into_iter().map(Text::from).collect())
}

/// Returns all figures of a report. `with_generator` adds those of the generator.
pub(super) fn figures(report: &LoadReport, with_generator: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    if !is_held(report) || report.results.counts.offered > 0 {
        blocks.push(Block::Facts(vec![rates(report)]));
    }
    if report.results.response_time.count > 0 {
        blocks.push(Block::Table(times(report)));
    }
    if report.results.response_time.count > 0 && !is_open(report) {
        let by_construction = "in a closed loop a request is due when it is sent, so response_time equals service_time by \
                               construction; only an open loop (-R) shows what users would wait";
        blocks.push(clause(Style::Plain, by_construction));
    }
    let mut all = own_times(report);
    if report.results.counts.completed_whole > 0 || !is_held(report) {
        all.push(fact("responses", responses(report)));
    }
    all.push(connections(report));
    all.extend(tls(report));
    all.push(errors(report));
    all.extend(generator(report).filter(|_| with_generator));
    all.extend(generators(report).filter(|_| with_generator));
    blocks.push(Block::Facts(all));
    blocks.extend(never_ended(report).map(|text| clause(Style::Warning, text)));
    blocks
}

pub(super) fn is_open(report: &LoadReport) -> bool {
    !matches!(report.results.load.arrivals, Arrivals::Closed | Arrivals::Held)
}

fn is_held(report: &LoadReport) -> bool {
    report.results.load.arrivals == Arrivals::Held
}

fn rates(report: &LoadReport) -> Fact {
    let rates = &report.results.rates;
    let mut rows = Vec::new();
    let mut share = String::new();
    if let Some(intended) = rates.intended {
        rows.push(rate_line("intended", intended, ""));
    }
    if let Some(intended) = rates.intended.filter(|intended| *intended > 0.0) {
        share = format!("   {:.2} % of intended", 100.0 * rates.offered / intended);
    }
    rows.push(rate_line("offered", rates.offered, &share));
    if report.results.counts.dropped > 0 {
        let dropped = report.results.counts.dropped as f64 / report.phases.sustain;
        let remark = format!("   {}", plural(report.results.counts.dropped, "request"));
        rows.push(rate_line("dropped", dropped, &remark));
    }
    let remark = format!("   {}", plural(report.results.counts.completed, "response"));
    rows.push(rate_line("completed", rates.completed, &remark));
    let received = bytes_per_second(rates.received_bytes);
    rows.push(format!("received  {received:>24}"));
    facts("rate", rows)
}

fn rate_line(name: &str, figure: f64, remark: &str) -> String {
    format!("{name:<10}{:>13} requests/s{remark}", tenths(figure))
}

fn times(report: &LoadReport) -> Table {
    let both = [&report.results.response_time, &report.results.service_time];
    let row = |name: &str, cell: &dyn Fn(&TimeReport) -> String| {
        Row::new(name, both.map(|times| Cell::from(cell(times))))
    };
    let mut rows = Vec::new();
    if is_open(report) {
        rows.push(Row::new("", ["since due", "since sent"].map(Cell::from)));
    }
    rows.extend(SHOWN.map(|(name, quantile)| row(name, &|times| at(times, quantile))));
    rows.push(row("max", &|times| time(times.max as f64)));
    rows.push(row("mean", &|times| time(times.mean)));
    Table::new(Kind::Figures, "Response and service times", "")
        .columns(["response_time", "service_time"].map(Column::new))
        .rows(rows)
}

/// Formats a quantile of the document. `-` if the document does not state it.
fn at(times: &TimeReport, quantile: f64) -> String {
    let mut all = times.quantiles.iter();
    let stated = all.find(|(q, _)| (q - quantile).abs() < 1e-9);
    stated.map_or_else(|| "-".to_owned(), |&(_, ns)| time(ns as f64))
}

/// Returns times other than request times: dispatch lag, and the time to open connections.
fn own_times(report: &LoadReport) -> Vec<Fact> {
    let lag = is_open(report).then_some(("dispatch lag", &report.results.dispatch_lag));
    let opening = [
        ("connect time", &report.results.connect_time),
        ("TLS handshake", &report.results.tls_time),
    ];
    let shown =
        lag.into_iter().chain(opening).filter(|(_, times)| times.count > 0).map(|(name, times)| {
            let (half, tail, max) = (at(times, 0.5), at(times, 0.999), time(times.max as f64));
            fact(name, format!("p50 {half}, p99.9 {tail}, max {max}"))
        });
    let mut shown: Vec<Fact> = shown.collect();
    resolution(report)
        .filter(|_| is_open(report) && report.results.response_time.count > 0)
        .into_iter()
        .for_each(|fact| shown.insert(1.min(shown.len()), fact));
    shown
}

/// Returns the precision of response times. They include the delay of sending a request, and the delay of waking the
/// thread for its response.
fn resolution(report: &LoadReport) -> Option<Fact> {
    let woken = report.generator.woken_late_ns?;
    let sent = &report.results.dispatch_lag.quantiles;
    let sent_p50 = sent.iter().find(|(q, _)| *q == 0.5)?.1;
    let sent_p99 = sent.iter().find(|(q, _)| *q == 0.99)?.1;
    let (half, tail) = (time((sent_p50 + woken[0]) as f64), time((sent_p99 + woken[1]) as f64));
    let exact = format!("the response time's p50 is known to {half}, its p99 to {tail}");
    Some(fact("resolution", exact))
}

/// Returns the resources of the load generator itself. Without them it is unclear if the server or the generator was
/// measured.
fn generator(report: &LoadReport) -> Option<Fact> {
    let cpu_ns: u64 = report.generator_cpu_ns.iter().sum();
    if cpu_ns == 0 || report.results.counts.completed_whole == 0 {
        return None;
    }
    let cpu_per_response = time(cpu_ns as f64 / report.results.counts.completed_whole as f64);
    let io = match report.generator.io.as_str() {
        // While the load goes on, which one it is is not known here.
        "" | "auto" => String::new(),
        io => format!(", {io}"),
    };
    let cpu = time(cpu_ns as f64);
    let awake = match report.generator.spun_ns.iter().sum::<u64>() {
        0 => String::new(),
        spun => format!(", {} of it awake for arrivals", time(spun as f64)),
    };
    let spent = format!("{cpu} of CPU time, {cpu_per_response} per response{awake}{io}");
    Some(fact("generator", spent))
}

/// Returns a line for each of several generators, and the spread of their start times.
fn generators(report: &LoadReport) -> Option<Fact> {
    let starts: Vec<GeneratorStart> =
        report.generators.iter().map(|one| one.start.clone()).collect();
    let (spread, unsure) = GeneratorStart::spread_ns(&starts)?;
    let [spread, unsure] = [spread, unsure].map(|ns| time(ns as f64));
    let lines = report.generators.iter().map(|one| {
        let (half, tail) = (at(&one.response_time, 0.5), at(&one.response_time, 0.99));
        let late = if is_open(report) {
            format!(", late by {} at p99", at(&one.dispatch_lag, 0.99))
        } else {
            String::new()
        };
        let responses = plural(one.completed, "response");
        let host = &one.start.host;
        format!("{host}: {responses}, p50 {half}, p99 {tail}{late}")
    });
    let apart = format!("started {spread} apart, by clocks that are known to {unsure}");
    Some(facts("generators", lines.chain([apart])))
}

/// Returns the results of TLS handshakes: versions, ciphers and groups.
fn tls(report: &LoadReport) -> Option<Fact> {
    let tls = report.results.tls.as_ref()?;
    let resumed = match tls.handshakes {
        0 => String::new(),
        all => format!(", {:.1} % resumed", 100.0 * tls.resumed as f64 / all as f64),
    };
    let early = match tls.early_data {
        0 => String::new(),
        early => format!(", {} with early data", count(early)),
    };
    let handshakes = plural(tls.handshakes, "handshake");
    let agreed = [&tls.versions, &tls.ciphers, &tls.groups]
        .map(|list| join_names(list))
        .into_iter()
        .filter(|text| !text.is_empty());
    let lines = std::iter::once(format!("{handshakes}{resumed}{early}")).chain(agreed);
    Some(facts("TLS", lines))
}

fn join_names(names: &[NameCount]) -> String {
    let texts: Vec<String> = names
        .iter()
        .map(|name| match names.len() {
            1 => name.name.clone(),
            _ => format!("{} × {}", count(name.count), name.name),
        })
        .collect();
    texts.join(", ")
}

/// Formats the responses of the whole trial by class. Codes are listed for every class that is not all 200. Responses
/// outside the measured time, which the rate excludes, are counted.
fn responses(report: &LoadReport) -> String {
    let mut classes = Vec::new();
    for class in report.results.statuses.chunk_by(|a, b| a.status / 100 == b.status / 100) {
        let total: u64 = class.iter().map(|status| status.count).sum();
        let codes =
            class.iter().map(|status| format!("{} × {}", count(status.count), status.status));
        let codes: Vec<_> = codes.collect();
        let codes = match class {
            [only] if only.status == 200 => String::new(),
            _ => format!(" ({})", codes.join(", ")),
        };
        let (class, total) = (class[0].status / 100, count(total));
        classes.push(format!("{class}xx {total}{codes}"));
    }
    let all: u64 = report.results.statuses.iter().map(|status| status.count).sum();
    let when = if report.phases.ramp_up > 0.0 { "before or after" } else { "after" };
    match (classes.is_empty(), all.saturating_sub(report.results.counts.completed)) {
        (true, _) => "none".to_owned(),
        (false, 0) => classes.join("   "),
        (false, others) => {
            format!("{}; {} of them {when} the measured time", classes.join("   "), count(others))
        }
    }
}

fn connections(report: &LoadReport) -> Fact {
    let counts = &report.results.counts;
    let requested = count(report.results.load.connections.into());
    let (opened, open) = (count(counts.connects), count(counts.connected));
    let reopened = match counts.reconnects {
        0 => "none".to_owned(),
        reopened => count(reopened),
    };
    let is_for_each = report.results.load.lifetime == Lifetime::Request && report.flows.is_empty();
    let mut lines = vec![if is_for_each {
        format!("{opened} opened, one for each request")
    } else {
        format!("{requested} asked for, {open} open at the start, {reopened} reopened")
    }];
    if counts.lost > 0 && !is_for_each {
        let lost = count(counts.lost);
        lines.push(format!("{lost} closed by the server while idle"));
    }
    facts("connections", lines)
}

/// Explanation of requests that are lost at a server that closes idle connections (RFC 9112 section 9.5).
const KEEPALIVE_RACE: &str =
    ", as may be where the server closes an idle connection just as a request is sent";

fn errors(report: &LoadReport) -> Fact {
    let lines = report.results.errors.iter().map(|error| {
        let colon = if error.words.is_empty() { "" } else { ": " };
        let (count, kind, words) = (count(error.count), kind(error.kind), &error.words);
        let is_race = error.kind == ErrorKind::ClosedUnanswered && report.results.counts.lost > 0;
        let cause = if is_race { KEEPALIVE_RACE } else { "" };
        format!("{count} × {kind}{colon}{words}{cause}")
    });
    // They count as failed as well, unless somebody said which are right.
    let bad = report
        .results
        .statuses
        .iter()
        .filter(|status| status.status >= 400 && !report.results.load.status_expected);
    let bad: u64 = bad.map(|status| status.count).sum();
    let bad = (bad > 0).then(|| format!("{} × status of 400 or above", count(bad)));
    let none = (report.results.errors.is_empty() && bad.is_none()).then(|| "none".to_owned());
    facts("errors", lines.chain(bad).chain(none))
}

fn kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Connect => "could not connect",
        ErrorKind::Send => "could not send",
        ErrorKind::Receive => "could not receive",
        ErrorKind::ClosedEarly => "closed in the middle of a response",
        ErrorKind::ClosedUnanswered => "closed without an answer",
        ErrorKind::Malformed => "not an HTTP response",
        ErrorKind::HeadTooLarge => "head of the response too large",
        ErrorKind::Unsolicited => "bytes without a request",
        ErrorKind::Timeout => "no complete response in time",
        ErrorKind::Tls => "TLS failed",
        ErrorKind::Unexpected => "response not as expected",
    }
}

/// Describes censored requests. They are reported apart from errors because the times above exclude them.
fn never_ended(report: &LoadReport) -> Option<String> {
    let censored = &report.results.censored;
    let total = censored.in_flight + censored.queued;
    let (are, which) = match total {
        0 => return None,
        1 => ("is", "it"),
        _ => ("are", "the oldest"),
    };
    let requests = plural(total, "request");
    let oldest = time(censored.oldest_ns as f64);
    let is_begun =
        report.results.counts.received_bytes > 0 && report.results.counts.completed_whole == 0;
    let unanswered = if is_begun { "answered in part" } else { "sent and not answered" };
    let parts =
        [(censored.in_flight, unanswered), (censored.queued, "due but without an idle connection")]
            .into_iter()
            .filter(|(number, _)| *number > 0);
    let parts: Vec<String> =
        parts.map(|(number, what)| format!("{} {what}", count(number))).collect();
    Some(format!(
        "{requests} never ended and {are} in none of these times; {which} had waited {oldest}: {}",
        parts.join(", ")
    ))
}
