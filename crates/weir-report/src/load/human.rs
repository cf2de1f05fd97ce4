//! The summary that an engineer reads on a terminal.

use std::fmt::Write as _;

use weir_model::load::{Arrivals, ErrorKind, Lifetime};
use weir_model::load_report::{FlowReport, LoadReport, NameCount, TimeReport};
use weir_model::quantity::CpuSet;
use weir_model::record::Validity;

use super::asked;
use super::spectrum::rows;
use super::text::{bytes_per_second, count, counted, rate, time};
use super::times::{HistogramError, histogram};

/// Quantiles of the table, with the names that engineers know them by.
const SHOWN: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// The result in words and tables, at most 100 columns wide but for long URLs. `detailed` adds the
/// percentile spectrum, `color` a colour for the validity (ANSI escape sequences).
pub fn human(report: &LoadReport, detailed: bool, color: bool) -> String {
    let mut page = Page {
        text: String::new(),
        color,
    };
    what_was_run(&mut page, report);
    validity(&mut page, report);
    figures(&mut page, report);
    generator(&mut page, report);
    for flow in &report.flows {
        one_flow(&mut page, report, flow);
    }
    if detailed && report.response_time.count > 0 {
        spectrum(&mut page, report)
            .unwrap_or_else(|error| page.line(&format!("\nno percentile spectrum: {error}")));
    }
    page.text
}

/// What was measured: rates, times, and how the requests ended.
fn figures(page: &mut Page, report: &LoadReport) {
    rates(page, report);
    if report.response_time.count > 0 {
        times(page, report);
    }
    page.line("");
    own_times(page, report);
    if report.counts.completed_whole > 0 || !is_held(report) {
        responses(page, report);
    }
    connections(page, report);
    tls(page, report);
    errors(page, report);
    never_ended(page, report);
}

/// One of several flows, by the same figures.
fn one_flow(page: &mut Page, report: &LoadReport, flow: &FlowReport) {
    let alone = of_flow(report, flow);
    page.line(&format!("\n── {} ──", flow.name));
    page.line(&asked::load(&flow.load));
    if flow.target.url != report.target.url {
        page.line(&format!("{} {}", flow.target.method, flow.target.url));
    }
    figures(page, &alone);
}

/// A document about one flow alone.
fn of_flow(report: &LoadReport, flow: &FlowReport) -> LoadReport {
    let flow = flow.clone();
    LoadReport {
        target: flow.target,
        load: flow.load,
        rates: flow.rates,
        counts: flow.counts,
        statuses: flow.statuses,
        errors: flow.errors,
        censored: flow.censored,
        response_time: flow.response_time,
        service_time: flow.service_time,
        first_byte: flow.first_byte,
        dispatch_lag: flow.dispatch_lag,
        connect_time: flow.connect_time,
        tls_time: flow.tls_time,
        tls: flow.tls,
        flows: Vec::new(),
        ..report.clone()
    }
}

/// Text under way, with the few shapes of line that the summary has.
struct Page {
    text: String,
    color: bool,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A line with a label in front; no label continues the line before.
    fn labelled(&mut self, label: &str, line: &str) {
        let _ = writeln!(self.text, "{label:<14}{line}");
    }

    /// A word in a colour, if there are colours.
    fn paint(&self, validity: Validity, word: &str) -> String {
        let code = match validity {
            Validity::Valid => "32",
            Validity::Suspect => "33",
            Validity::Invalid => "31",
        };
        match self.color {
            true => format!("\x1b[1;{code}m{word}\x1b[0m"),
            false => word.to_owned(),
        }
    }
}

fn is_open(report: &LoadReport) -> bool {
    !matches!(report.load.arrivals, Arrivals::Closed | Arrivals::Held)
}

fn is_held(report: &LoadReport) -> bool {
    report.load.arrivals == Arrivals::Held
}

fn what_was_run(page: &mut Page, report: &LoadReport) {
    let target = &report.target;
    let content = match target.content_bytes {
        0 => String::new(),
        bytes => format!(" with {} of content", counted(bytes, "byte")),
    };
    page.line(&format!(
        "{} {}{content} at {}",
        target.method, target.url, target.address
    ));
    let shape = match report.flows.len() {
        0 => asked::load(&report.load),
        flows => {
            let connections = counted(report.load.connections.into(), "connection");
            format!("{flows} flows at once, {connections}, here together and below one by one")
        }
    };
    let threads = counted(report.load.cpus.len() as u64, "thread");
    page.line(&format!(
        "{shape}, {threads} {}",
        pinning(&report.load.cpus)
    ));
    let ramp_up = match report.phases.ramp_up {
        seconds if seconds > 0.0 => format!(" after {} of ramp_up", time(seconds * 1e9)),
        _ => String::new(),
    };
    let sustain = time(report.phases.sustain * 1e9);
    let interrupted = match report.outcome.as_str() {
        "interrupted" => ", then interrupted: the figures are those until then",
        _ => "",
    };
    page.line(&format!("measured for {sustain}{ramp_up}{interrupted}"));
}

fn pinning(cpus: &[Option<u32>]) -> String {
    let pinned: Option<Vec<u32>> = cpus.iter().copied().collect();
    match pinned.and_then(CpuSet::new) {
        Some(set) if set.cpus().len() == 1 => format!("on CPU {set}"),
        Some(set) => format!("on CPUs {set}"),
        None => "not pinned".to_owned(),
    }
}

fn validity(page: &mut Page, report: &LoadReport) {
    let worst = report.validity.iter().map(|reason| reason.validity).max();
    let worst = worst.unwrap_or(Validity::Valid);
    let meaning = match worst {
        Validity::Valid => "",
        Validity::Suspect => ": use these figures with care",
        Validity::Invalid => ": do not use these figures",
    };
    let word = page.paint(worst, word(worst));
    page.line(&format!("\n{word}{meaning}"));
    for reason in &report.validity {
        let word = page.paint(reason.validity, self::word(reason.validity));
        page.line(&format!("  {word} {}: {}", reason.rule, reason.seen));
    }
}

fn word(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => "VALID",
        Validity::Suspect => "SUSPECT",
        Validity::Invalid => "INVALID",
    }
}

fn rates(page: &mut Page, report: &LoadReport) {
    if is_held(report) && report.counts.offered == 0 {
        return;
    }
    let rates = &report.rates;
    page.line("");
    let mut label = "rate";
    let mut row = |page: &mut Page, name: &str, figure: f64, remark: &str| {
        let line = format!("{name:<10}{:>13} requests/s{remark}", rate(figure));
        page.labelled(std::mem::take(&mut label), &line);
    };
    if let Some(intended) = rates.intended {
        row(page, "intended", intended, "");
        let share = 100.0 * rates.offered / intended;
        row(
            page,
            "offered",
            rates.offered,
            &format!("   {share:.2} % of intended"),
        );
    } else {
        row(page, "offered", rates.offered, "");
    }
    if report.counts.dropped > 0 {
        let remark = format!("   {}", counted(report.counts.dropped, "request"));
        let dropped = report.counts.dropped as f64 / report.phases.sustain;
        row(page, "dropped", dropped, &remark);
    }
    let remark = format!("   {}", counted(report.counts.completed, "response"));
    row(page, "completed", rates.completed, &remark);
    let received = bytes_per_second(rates.received_bytes);
    page.labelled("", &format!("received  {received:>24}"));
}

fn times(page: &mut Page, report: &LoadReport) {
    page.line("");
    let (response, service) = (&report.response_time, &report.service_time);
    page.labelled(
        "",
        &format!("{:>13}   {:>13}", "response_time", "service_time"),
    );
    if is_open(report) {
        page.labelled("", &format!("{:>13}   {:>13}", "since due", "since sent"));
    }
    for (name, quantile) in SHOWN {
        let cells = (at(response, quantile), at(service, quantile));
        page.labelled(name, &format!("{:>13}   {:>13}", cells.0, cells.1));
    }
    let (slowest, cells) = (time(response.max as f64), time(service.max as f64));
    page.labelled("max", &format!("{slowest:>13}   {cells:>13}"));
    let (mean, cells) = (time(response.mean), time(service.mean));
    page.labelled("mean", &format!("{mean:>13}   {cells:>13}"));
    if !is_open(report) {
        page.line("in a closed loop a request is due when it is sent, so response_time equals");
        page.line(
            "service_time by construction; only an open loop (-R) shows what users would wait",
        );
    }
}

/// A quantile that the document states.
fn at(times: &TimeReport, quantile: f64) -> String {
    let stated = times
        .quantiles
        .iter()
        .find(|(q, _)| (q - quantile).abs() < 1e-9);
    stated.map_or_else(|| "-".to_owned(), |&(_, ns)| time(ns as f64))
}

/// Times that are not the requests' own: how late they were sent, and what connections took.
fn own_times(page: &mut Page, report: &LoadReport) {
    let lag = is_open(report).then_some(("dispatch lag", &report.dispatch_lag));
    let opening = [
        ("connect time", &report.connect_time),
        ("TLS handshake", &report.tls_time),
    ];
    for (name, times) in lag.into_iter().chain(opening) {
        if times.count > 0 {
            let (half, tail, max) = (at(times, 0.5), at(times, 0.999), time(times.max as f64));
            page.labelled(name, &format!("p50 {half}, p99.9 {tail}, max {max}"));
        }
    }
}

/// What the load generator itself took: without it nobody can tell whose time was measured.
fn generator(page: &mut Page, report: &LoadReport) {
    let cpu_ns: u64 = report.generator_cpu_ns.iter().sum();
    if cpu_ns == 0 || report.counts.completed_whole == 0 {
        return;
    }
    let each = time(cpu_ns as f64 / report.counts.completed_whole as f64);
    let io = match report.generator.io.as_str() {
        "" => String::new(),
        io => format!(", {io}"),
    };
    let line = format!(
        "{} of CPU time, {each} per response{io}",
        time(cpu_ns as f64)
    );
    page.labelled("generator", &line);
}

/// What TLS handshakes agreed on.
fn tls(page: &mut Page, report: &LoadReport) {
    let Some(tls) = &report.tls else { return };
    let names = |names: &[NameCount]| {
        let each = names.iter().map(|one| match names.len() {
            1 => one.name.clone(),
            _ => format!("{} × {}", count(one.count), one.name),
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let resumed = match tls.handshakes {
        0 => String::new(),
        all => format!(", {:.1} % resumed", 100.0 * tls.resumed as f64 / all as f64),
    };
    let early = match tls.early_data {
        0 => String::new(),
        early => format!(", {} with early data", count(early)),
    };
    let handshakes = counted(tls.handshakes, "handshake");
    page.labelled("TLS", &format!("{handshakes}{resumed}{early}"));
    let agreed = [&tls.versions, &tls.ciphers, &tls.groups].map(|list| names(list));
    let agreed: Vec<_> = agreed.iter().filter(|text| !text.is_empty()).collect();
    for text in agreed {
        page.labelled("", text);
    }
}

/// Responses by class, with codes wherever a class is not all 200.
fn responses(page: &mut Page, report: &LoadReport) {
    let mut classes = Vec::new();
    for class in report
        .statuses
        .chunk_by(|a, b| a.status / 100 == b.status / 100)
    {
        let total: u64 = class.iter().map(|status| status.count).sum();
        let codes: Vec<_> = class
            .iter()
            .map(|status| format!("{} × {}", count(status.count), status.status))
            .collect();
        let codes = match class {
            [only] if only.status == 200 => String::new(),
            _ => format!(" ({})", codes.join(", ")),
        };
        classes.push(format!(
            "{}xx {}{codes}",
            class[0].status / 100,
            count(total)
        ));
    }
    let line = if classes.is_empty() {
        "none".to_owned()
    } else {
        classes.join("   ")
    };
    page.labelled("responses", &line);
}

fn connections(page: &mut Page, report: &LoadReport) {
    let counts = &report.counts;
    if report.load.lifetime == Lifetime::Request && report.flows.is_empty() {
        let opened = count(counts.connects);
        page.labelled(
            "connections",
            &format!("{opened} opened, one for each request"),
        );
        return;
    }
    let reconnects = match counts.reconnects {
        0 => "none reopened".to_owned(),
        reopened => format!("{} reopened", count(reopened)),
    };
    let asked = count(report.load.connections.into());
    let open = count(counts.connected);
    page.labelled(
        "connections",
        &format!("{asked} asked for, {open} open at the start, {reconnects}"),
    );
    if counts.lost > 0 {
        let lost = format!("{} closed by the server while idle", count(counts.lost));
        page.labelled("", &lost);
    }
}

fn errors(page: &mut Page, report: &LoadReport) {
    let mut label = "errors";
    for error in &report.errors {
        let words = match error.words.is_empty() {
            true => String::new(),
            false => format!(": {}", error.words),
        };
        let line = format!("{} × {}{words}", count(error.count), kind(error.kind));
        page.labelled(std::mem::take(&mut label), &line);
    }
    if report.errors.is_empty() {
        page.labelled(label, "none");
    }
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
        ErrorKind::Unsolicited => "bytes that no request had asked for",
        ErrorKind::Timeout => "no complete response in time",
        ErrorKind::Tls => "TLS failed",
        ErrorKind::Unexpected => "response not as expected",
    }
}

/// Censored requests. They are told apart from errors because the times above do not contain them.
fn never_ended(page: &mut Page, report: &LoadReport) {
    let censored = &report.censored;
    let total = censored.in_flight + censored.queued;
    if total == 0 {
        return;
    }
    let (are, which) = if total == 1 {
        ("is", "it")
    } else {
        ("are", "the oldest")
    };
    let requests = counted(total, "request");
    let oldest = time(censored.oldest_ns as f64);
    page.line(&format!(
        "\n{requests} never ended and {are} in none of these times; {which} had waited {oldest}"
    ));
    let mut parts = Vec::new();
    if censored.in_flight > 0 {
        parts.push(format!(
            "{} sent and not answered",
            count(censored.in_flight)
        ));
    }
    if censored.queued > 0 {
        parts.push(format!(
            "{} due but without an idle connection",
            count(censored.queued)
        ));
    }
    page.line(&format!("  {}", parts.join(", ")));
}

/// Along the axis of HdrHistogram's plots. In a closed loop one column says it all.
fn spectrum(page: &mut Page, report: &LoadReport) -> Result<(), HistogramError> {
    let response = histogram(&report.response_time)?;
    let service = is_open(report)
        .then(|| histogram(&report.service_time))
        .transpose()?;
    let service_head = service.as_ref().map_or("", |_| "   service_time");
    page.line(&format!(
        "\n{:>10} {:>12} {:>13}{service_head} {:>12}",
        "quantile", "1 in", "response_time", "responses"
    ));
    for row in rows(&response) {
        let one_in = match row.one_in() {
            n if n.is_finite() => format!("{n:.2}"),
            _ => "inf".to_owned(),
        };
        let service = service
            .as_ref()
            .map(|histogram| histogram.value_at_quantile(row.quantile));
        let service = service.map_or(String::new(), |ns| format!("{:>15}", time(ns as f64)));
        page.line(&format!(
            "{:>10.6} {one_in:>12} {:>13}{service} {:>12}",
            row.quantile,
            time(row.value as f64),
            count(row.count)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn an_open_loop_shows_both_times_and_what_went_wrong() {
        insta::assert_snapshot!(human(&sample::open_loop(), false, false));
    }

    #[test]
    fn a_closed_loop_says_what_it_cannot_show() {
        insta::assert_snapshot!(human(&sample::closed_loop(), false, false));
    }

    #[test]
    fn nothing_answered_shows_no_times() {
        insta::assert_snapshot!(human(&sample::nothing_answered(), true, false));
    }

    #[test]
    fn the_detailed_summary_ends_with_the_spectrum() {
        let report = sample::open_loop();
        let (short, long) = (human(&report, false, false), human(&report, true, false));
        insta::assert_snapshot!(long.strip_prefix(&short).unwrap());
    }

    #[test]
    fn a_histogram_that_cannot_be_read_costs_the_spectrum_alone() {
        let mut report = sample::closed_loop();
        report.response_time.histogram = "?".to_owned();
        let (short, long) = (human(&report, false, false), human(&report, true, false));
        let rest = long.strip_prefix(&short).unwrap();
        assert!(
            rest.starts_with("\nno percentile spectrum: the histogram is not base64"),
            "{rest}"
        );
    }

    #[test]
    fn colour_changes_no_letter() {
        let report = sample::open_loop();
        let colored = human(&report, true, true);
        assert!(colored.contains("\x1b[1;33mSUSPECT\x1b[0m"));
        let plain = colored.replace("\x1b[1;33m", "").replace("\x1b[0m", "");
        assert_eq!(plain, human(&report, true, false));
    }

    #[test]
    fn lines_fit_a_terminal() {
        for report in [
            sample::open_loop(),
            sample::closed_loop(),
            sample::nothing_answered(),
        ] {
            for line in human(&report, true, false).lines() {
                assert!(line.chars().count() <= 100, "{line}");
            }
        }
    }

    #[test]
    fn one_request_that_never_ended_is_not_a_plural() {
        let mut report = sample::closed_loop();
        report.censored.in_flight = 1;
        report.censored.oldest_ns = 1_500_000_000;
        let text = human(&report, false, false);
        assert!(
            text.contains(
                "\n1 request never ended and is in none of these times; it had waited 1.50 s\n"
            ),
            "{text}"
        );
    }
}
