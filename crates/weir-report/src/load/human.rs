//! The summary that an engineer reads on a terminal.

use weir_analysis::findings::LimiterFindings;
use weir_model::load_report::{FlowReport, LoadReport};
use weir_model::quantity::CpuSet;
use weir_model::record::Validity;
use weir_sentences::validity::describe;

use super::asked;
use super::figures::{figures, is_open};
use super::spectrum::list_rows;
use super::times::{HistogramError, histogram};
use crate::number::{self, plural, time};
use crate::render;
use crate::secrets::visible;
use crate::tree::{
    Block, Callout, Cell, Code, Column, Document, Heading, Kind, Row, Style, Table, Text, clause,
    list,
};
use crate::view::limiter;

/// Formats the result in words and tables, at most `width` columns wide and never more than 100, except for long URLs.
/// `limiter` is the resource that limits the server, if that was analysed. `detailed` adds the percentile spectrum,
/// `color` a colour for the validity (ANSI escape sequences).
pub fn human(
    report: &LoadReport,
    limiter: Option<&LimiterFindings>,
    detailed: bool,
    color: bool,
    width: usize,
) -> String {
    let mut blocks = Vec::from(what_was_run(report));
    let notes = report.notes.iter();
    blocks.extend(notes.map(|note| clause(Style::Warning, visible(note).into_owned())));
    blocks.extend(validity(report));
    blocks.extend(figures(report, true));
    for flow in &report.flows {
        blocks.extend(one_flow(report, flow));
    }
    let card = limiter
        .map(|limiter| limiter::card(Heading::section("", "What limits it"), limiter, false));
    blocks.extend(card.unwrap_or_default());
    if detailed && report.results.response_time.count > 0 {
        blocks.push(spectrum(report).map(Block::Table).unwrap_or_else(|error| {
            clause(Style::Warning, format!("no percentile spectrum: {error}"))
        }));
    }
    let document = Document { blocks, ..Document::default() };
    render::terminal(&document, color, width.min(100))
}

/// Returns the figures of one of several flows.
fn one_flow(report: &LoadReport, flow: &FlowReport) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading(Heading::section("", format!("── {} ──", flow.name))),
        clause(Style::Plain, asked::load(&flow.results.load)),
    ];
    if flow.results.target.url != report.results.target.url {
        blocks.push(line(format!("{} {}", flow.results.target.method, flow.results.target.url)));
    }
    blocks.extend(figures(&alone(report, flow), false));
    blocks
}

/// Returns a line that is not wrapped, so that a URL stays whole.
fn line(text: String) -> Block {
    Block::Code(Code { language: "", text })
}

/// Returns a report of one flow alone.
fn alone(report: &LoadReport, flow: &FlowReport) -> LoadReport {
    LoadReport { results: flow.results.clone(), flows: Vec::new(), ..report.clone() }
}

fn what_was_run(report: &LoadReport) -> [Block; 3] {
    let target = &report.results.target;
    let content = match target.content_bytes {
        0 => String::new(),
        bytes => format!(" with {} of content", plural(bytes, "byte")),
    };
    let (method, url, address) = (&target.method, &target.url, &target.address);
    let request = format!("{method} {url}{content} at {address}");
    let shape = match report.flows.len() {
        0 => asked::load(&report.results.load),
        flows => {
            let connections = plural(report.results.load.connections.into(), "connection");
            format!("{flows} flows at once, {connections}, here together and below one by one")
        }
    };
    let threads = plural(report.results.load.cpus.len() as u64, "thread");
    let pinning = match report.generators.len() {
        0 => pinning(&report.results.load.cpus),
        several => format!("of {several} generators"),
    };
    let ramp_up = match report.phases.ramp_up {
        seconds if seconds > 0.0 => format!(" after {} of ramp_up", time(seconds * 1e9)),
        _ => String::new(),
    };
    let sustain = time(report.phases.sustain * 1e9);
    let interrupted = match report.outcome.as_str() {
        "interrupted" => ", then interrupted: the figures cover the time until then",
        _ => "",
    };
    let measured = if report.phases.sustain > 0.0 {
        format!("measured for {sustain}{ramp_up}{interrupted}")
    } else {
        format!("ended{ramp_up}: nothing was measured")
    };
    let load = format!("{shape}, {threads} {pinning}");
    [line(request), clause(Style::Plain, load), clause(Style::Plain, measured)]
}

fn pinning(cpus: &[Option<u32>]) -> String {
    let pinned: Option<Vec<u32>> = cpus.iter().copied().collect();
    match pinned.and_then(CpuSet::new) {
        Some(set) if set.cpus().len() == 1 => format!("on CPU {set}"),
        Some(set) => format!("on CPUs {set}"),
        None => "not pinned".to_owned(),
    }
}

fn validity(report: &LoadReport) -> impl Iterator<Item = Block> {
    let worst =
        report.validity.iter().map(|reason| reason.validity).max().unwrap_or(Validity::Valid);
    let reasons = report.validity.iter().map(|reason| {
        let explanation = format!(" {}: {}", reason.rule(), describe(reason));
        Text::from("  ").badge(reason.validity).plain(explanation)
    });
    let callout = Block::Callout(Callout {
        label: "",
        badge: worst,
        paragraphs: Vec::new(),
        basis: match worst {
            Validity::Valid => "",
            Validity::Suspect => "use these figures with care",
            Validity::Invalid => "do not use these figures",
        }
        .to_owned(),
    });
    std::iter::once(callout).chain(list(reasons, true))
}

/// Returns the spectrum at the points of HdrHistogram's plots. In a closed loop one column is enough, because both
/// times are equal.
fn spectrum(report: &LoadReport) -> Result<Table, HistogramError> {
    let response = histogram(&report.results.response_time)?;
    let service = is_open(report).then(|| histogram(&report.results.service_time)).transpose()?;
    let mut columns = vec![Column::new("1 in"), Column::new("response_time")];
    columns.extend(service.as_ref().map(|_| Column::new("service_time")));
    columns.push(Column::new("responses"));
    let rows = list_rows(&response).into_iter().map(|row| {
        let one_in = match row.one_in() {
            n if n.is_finite() => format!("{n:.2}"),
            _ => "inf".to_owned(),
        };
        let mut cells = vec![one_in, time(row.value as f64)];
        cells.extend(
            service
                .as_ref()
                .map(|histogram| time(histogram.value_at_quantile(row.quantile) as f64)),
        );
        cells.push(number::count(row.count));
        Row::new(format!("  {:.6}", row.quantile), cells.into_iter().map(Cell::from))
    });
    Ok(Table::new(Kind::Figures, "Percentile spectrum", "  quantile").columns(columns).rows(rows))
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn an_open_loop_shows_both_times_and_what_went_wrong() {
        insta::assert_snapshot!(human(&sample::open_loop(), None, false, false, 100));
    }

    #[test]
    fn a_closed_loop_says_what_it_cannot_show() {
        insta::assert_snapshot!(human(&sample::closed_loop(), None, false, false, 100));
    }

    #[test]
    fn nothing_answered_shows_no_times() {
        insta::assert_snapshot!(human(&sample::nothing_answered(), None, true, false, 100));
    }

    #[test]
    fn the_detailed_summary_ends_with_the_spectrum() {
        let report = sample::open_loop();
        let (short, long) =
            (human(&report, None, false, false, 100), human(&report, None, true, false, 100));
        insta::assert_snapshot!(long.strip_prefix(&short).unwrap());
    }

    #[test]
    fn a_histogram_that_cannot_be_read_costs_the_spectrum_alone() {
        let mut report = sample::closed_loop();
        report.results.response_time.histogram = "?".to_owned();
        let (short, long) =
            (human(&report, None, false, false, 100), human(&report, None, true, false, 100));
        let spectrum = long.strip_prefix(&short).unwrap();
        let note = "note: no percentile spectrum: the histogram is not base64";
        assert!(spectrum.starts_with(note), "{spectrum}");
    }

    #[test]
    fn colour_changes_no_letter() {
        let report = sample::open_loop();
        let colored = human(&report, None, true, true, 100);
        assert!(colored.contains("\x1b[33mSUSPECT\x1b[0m"));
        let pieces = colored.split("\x1b[").map(|piece| match piece.split_once('m') {
            Some((code, tail)) if code.bytes().all(|b| b.is_ascii_digit() || b == b';') => tail,
            _ => piece,
        });
        assert_eq!(pieces.collect::<String>(), human(&report, None, true, false, 100));
    }

    #[test]
    fn lines_fit_a_terminal() {
        for (report, width) in
            sample::all().into_iter().flat_map(|one| [(one.clone(), 100), (one, 40)])
        {
            for line in human(&report, None, true, false, width).lines() {
                let is_url = line.contains("http://") || line.contains("https://");
                assert!(line.chars().count() <= width || is_url, "{line}");
            }
        }
    }

    #[test]
    fn figures_stay_below_each_other_where_the_terminal_is_narrow() {
        let [wide, narrow] =
            [60, 40].map(|width| human(&sample::open_loop(), None, false, false, width));
        let rates = "rate          intended        1,000.0 requests/s\n              offered           999.9 requests/s\n\
                     \x20             99.99 % of intended\n              completed         999.8 requests/s\n";
        assert!(wide.contains(rates), "{wide}");
        let (intended, received) = ("\nrate          intended 1,000.0", "received 1.17 MiB/s\n");
        assert!(narrow.contains(intended) && narrow.contains(received), "{narrow}");
        for text in [wide, narrow] {
            assert!(text.contains("\nresolution    the response time's"), "{text}");
            assert!(text.contains("\nconnections   50 asked for,"), "{text}");
        }
    }

    #[test]
    fn responses_that_the_rate_leaves_out_are_told_from_the_others() {
        let mut report = sample::closed_loop();
        report.phases.ramp_up = 0.0;
        for (all, said) in [
            (9_998, "responses     2xx 9,998\n"),
            (10_018, "responses     2xx 10,018; 20 of them after the measured time\n"),
        ] {
            report.results.statuses[0].count = all;
            let text = human(&report, None, false, false, 100);
            assert!(text.contains("9,998 responses\n"), "{text}");
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn one_request_that_never_ended_is_not_a_plural() {
        let mut report = sample::closed_loop();
        report.results.censored.in_flight = 1;
        report.results.censored.oldest_ns = 1_500_000_000;
        let text = human(&report, None, false, false, 100);
        let sentence =
            "1 request never ended and is in none of these times; it had waited 1.50 s: 1 sent";
        assert!(text.contains(sentence), "{text}");
    }
}
