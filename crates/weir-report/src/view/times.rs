//! Breakdown of request times: bars and a table for each load and arm, and the share of the kernel.

use weir_analysis::findings::{TimePart, TimeRow, ToldBy, WhereTimeGoes};

use crate::input::ReportInput;
use crate::number;
use crate::tree::{
    Bar, Bars, Block, Cell, Chart, Column, Heading, Kind, Row, Style, Table, clause, figure,
};

/// All parts of a request in order, each with name, colour and description.
const PARTS: [(TimePart, &str, usize, &str); 8] = [
    (TimePart::Outside, "outside", 0, "seen by the generator and not by the proxy"),
    (TimePart::Client, "client", 6, "the proxy read the request"),
    (TimePart::Queue, "queue", 5, "it waited for a free connection"),
    (TimePart::Connect, "connect", 4, "it opened a connection to the origin"),
    (TimePart::Origin, "origin", 1, "it waited for the origin"),
    (TimePart::Answer, "answer", 3, "it received the rest of the origin's answer"),
    (TimePart::Proxy, "proxy", 2, "all else in the proxy"),
    (
        TimePart::ProxyAndOrigin,
        "proxy and origin",
        2,
        "all in the proxy, whose log does not tell more",
    ),
];

/// Returns the section. Empty if the breakdown was not measured.
pub(super) fn section(input: &ReportInput<'_>) -> Vec<Block> {
    let all = &input.findings.where_time_goes;
    if all.is_empty() {
        return Vec::new();
    }
    let heading = Heading::section("time", "Where the time goes");
    let method = "requests in the proxies' logs, matched with response times of the same rank: single requests cannot be matched, so the parts of a quantile are the mean of the requests around it in the proxy's log. Proxies write a log for \
                this, so the run's other figures are those of proxies with such a log";
    let mut blocks = vec![Block::Heading(heading), clause(Style::Soft, method)];
    let loads = input.header.study.loads.len();
    blocks.extend(all.iter().flat_map(|found| of_arm(found, loads > 1)));
    blocks
}

fn of_arm(found: &WhereTimeGoes, name_load: bool) -> Vec<Block> {
    let rate = found.rate.map(|rate| format!(" at {} requests/s", number::rate(rate)));
    let load =
        if name_load { format!("{} under {}", found.arm, found.load) } else { found.arm.clone() };
    let name = load + &rate.unwrap_or_default();
    let mut blocks = vec![Block::Heading(Heading::part(name.clone()))];
    if found.rows.is_empty() {
        let none = "the proxy logged nothing that weir could read: see samples/missing.csv";
        blocks.push(clause(Style::Soft, none));
    } else {
        blocks.push(chart(found, &name));
        blocks.push(table(found, &name));
    }
    blocks.push(clause(Style::Soft, basis(found)));
    blocks
}

fn of_row(row: &TimeRow) -> &'static str {
    match row.quantile {
        None => "mean",
        Some(q) if q < 0.6 => "p50",
        Some(q) if q < 0.95 => "p90",
        Some(q) if q < 0.995 => "p99",
        Some(_) => "p99.9",
    }
}

fn chart(found: &WhereTimeGoes, name: &str) -> Block {
    let bars = found.rows.iter().filter(|row| !row.parts.is_empty()).map(bar);
    let caption = PARTS
        .iter()
        .filter(|known| has(found, known.0))
        .map(|(_, name, _, means)| format!("{name}: {means}"));
    let caption: Vec<String> = caption.collect();
    let title = format!("Where the time goes: {name}");
    figure(caption.join("; "), Chart::Bars(Bars { title, bars: bars.collect() }))
}

fn bar(row: &TimeRow) -> Bar {
    let parts = row.parts.iter().filter_map(|(part, us)| {
        let (_, name, hue, _) = PARTS.iter().find(|known| known.0 == *part)?;
        Some((*name, *hue, us * 1000.0))
    });
    Bar { name: of_row(row).to_owned(), parts: parts.collect() }
}

fn has(found: &WhereTimeGoes, part: TimePart) -> bool {
    let mut parts = found.rows.iter().flat_map(|row| &row.parts);
    parts.any(|(known, _)| *known == part)
}

fn table(found: &WhereTimeGoes, name: &str) -> Block {
    let shown: Vec<_> = PARTS.iter().filter(|known| has(found, known.0)).collect();
    let parts = shown.iter().map(|(_, head, _, _)| Column::new(*head));
    let columns = std::iter::once(Column::new("seen"))
        .chain(parts)
        .chain([Column::new("requests").small("looked at")]);
    // A mean of what is told in whole steps is no better than a tenth of one.
    let step = (found.resolution_us as f64 / 10.0).max(0.1);
    let rows = found.rows.iter().map(|row| {
        let cells = shown.iter().map(|(shown, ..)| {
            match row.parts.iter().find(|(part, _)| part == shown) {
                Some((_, us)) => Cell::from(number::time((us / step).round() * step * 1000.0)),
                None => Cell::from(number::NONE),
            }
        });
        let count = Cell::from(number::count(row.requests));
        let cells = std::iter::once(Cell::from(number::time(row.seen_us * 1000.0)))
            .chain(cells)
            .chain([count]);
        Row::new(of_row(row), cells)
    });
    let label = format!("Where the time goes: {name}");
    let table = Table::new(Kind::Figures, label, "time").columns(columns);
    Block::Table(table.rows(rows))
}

/// Describes the sources of the breakdown, and further known times.
fn basis(found: &WhereTimeGoes) -> String {
    let (looked_at, of) = found.requests;
    let mut words = match looked_at {
        0 => Vec::new(),
        _ => vec![format!(
            "by the proxy's own log: {} of {} requests, in steps of {}",
            number::count(looked_at),
            number::count(of),
            number::time(found.resolution_us as f64 * 1000.0)
        )],
    };
    if found.rows.iter().any(|row| row.parts.is_empty()) {
        words.push(
            "quantiles without parts are too close to this resolution, or too few requests are around them"
                .to_owned(),
        );
    }
    words.push(match &found.accept {
        None => "how long connections waited in the accept queue is not known".to_owned(),
        Some(accept) => {
            let quantiles = accept.below_us.map(|below| {
                let [p50, _, p99, p999] = below.map(|us| number::time(us as f64 * 1000.0));
                format!(", p50 below {p50}, p99 below {p99}, p99.9 below {p999}")
            });
            format!(
                "accept queue {}: {} connections waited for {} in the mean{}",
                by(accept.by),
                number::count(accept.connections),
                number::time(accept.mean_us * 1000.0),
                quantiles.unwrap_or_default()
            )
        }
    });
    words.extend(found.retransmitted.as_ref().map(|sent| {
        let sides = [
            (Some(sent.inbound), "by the proxy to clients"),
            (sent.outbound, "by the proxy to the origin"),
            (sent.clients, "by clients to the proxy"),
        ]
        .into_iter()
        .filter_map(|(sent, side)| Some((sent?, side)));
        let sides: Vec<String> =
            sides.map(|(sent, side)| format!("{} {side}", number::share(sent))).collect();
        let shares = match sent.by {
            ToldBy::Ebpf => sides.join(", "),
            ToldBy::Samples => number::share(sent.inbound),
        };
        format!("segments sent again {} for each thousand requests: {shares}", by(sent.by))
    }));
    words.join("; ")
}

fn by(who: ToldBy) -> &'static str {
    match who {
        ToldBy::Ebpf => "by eBPF",
        ToldBy::Samples => "by samples of counters",
    }
}
