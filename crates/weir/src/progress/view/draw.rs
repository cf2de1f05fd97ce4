//! The live view as lines of text, fitted to the terminal.

use std::fmt::Write;

use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use weir_model::progress::{LoadFigures, LoadPhase, LoadState, Quantiles, Verdict};
use weir_model::record::Validity;
use weir_report::{number, words};
use weir_sentences::validity::describe;

use super::state::{Bracket, State, shown};
use crate::progress::Lines;
use crate::progress::phrases::whole_seconds;

/// Columns of the label before a figure.
const LABEL: usize = 10;
/// Columns from which there is room for everything.
const WIDE: usize = 60;
const HELP: &str = "q: lines instead · Ctrl-C: end and report";

/// Draws the whole view.
pub(super) fn page(state: &State, lines: &Lines, is_colored: bool, buffer: &mut Buffer) {
    let area = buffer.area;
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut page = vec![bold(state.title.clone())];
    match &state.load {
        Some(load) => page.extend(load_page(state, load, width)),
        None => page.extend(run_page(state, lines, width)),
    }
    // What was said last fills the rest.
    let room = height.saturating_sub(page.len() + 2);
    let messages = lines.said();
    if state.load.is_none() && room > 0 && !messages.is_empty() {
        page.push(Line::default());
        let latest = &messages[messages.len().saturating_sub(room)..];
        page.extend(latest.iter().map(|line| dim(shown(line))));
    }
    page.truncate(height.saturating_sub(1));
    for (y, line) in (area.y..).zip(&page) {
        buffer.set_line(area.x, y, line, area.width);
    }
    if area.height > 0 {
        buffer.set_line(area.x, area.bottom() - 1, &dim(HELP), area.width);
    }
    if !is_colored {
        buffer.content.iter_mut().for_each(|cell| {
            cell.fg = Color::Reset;
        });
    }
}

fn load_page(state: &State, load: &LoadState, width: usize) -> Vec<Line<'static>> {
    let phase = match load.phase {
        LoadPhase::Connecting => "connecting",
        LoadPhase::RampUp => "ramp-up",
        LoadPhase::Measuring => "measuring",
        LoadPhase::Draining => "draining",
    };
    let share = match load.requests {
        Some(requests) => load.completed as f64 / requests.max(1) as f64,
        None => load.elapsed / load.length.max(1e-9),
    };
    let seconds = whole_seconds(std::time::Duration::from_secs_f64(load.left.max(0.0)));
    let remaining = format!("{} left", number::length(seconds));
    let demand = state.asked.map_or(String::new(), |rate| format!(" of {}", number::rate(rate)));
    let now = state.rates.back().copied().unwrap_or(0.0);
    let mut page = vec![
        bar(phase, share, &remaining, width),
        over_time(
            "rate",
            &format!("{}{demand}/s", number::rate(now)),
            state.rates.iter().copied(),
            width,
        ),
    ];
    let mut in_flight = number::count(load.in_flight);
    if width >= WIDE {
        let _ = write!(in_flight, ", {} open", number::plural(load.open, "connection"));
    }
    page.push(row("in flight", vec![Span::raw(in_flight)]));
    let Some(interval) = &state.interval else {
        return page;
    };
    let p99 = number::time(interval.interval.response_time.p99 as f64);
    page.push(over_time("p99", &p99, state.p99s.iter().copied(), width));
    page.push(Line::default());
    page.extend(quantiles(&interval.interval, &interval.so_far, width));
    page.push(Line::default());
    page.extend(errors(&interval.so_far));
    page.push(row("validity", vec![validity(interval.validity), Span::raw(" so far")]));
    page.extend(interval.reasons.iter().map(|reason| {
        let text = shown(&format!(" {}: {}", reason.rule(), describe(reason)));
        row("", vec![validity(reason.validity), Span::raw(text)])
    }));
    page
}

/// Returns lines with quantiles of the last interval and of everything so far.
fn quantiles(last: &LoadFigures, all: &LoadFigures, width: usize) -> Vec<Line<'static>> {
    type Column = (&'static str, fn(&Quantiles) -> u64);
    const COLUMNS: [Column; 5] = [
        ("p50", |times| times.p50),
        ("p99", |times| times.p99),
        ("max", |times| times.max),
        ("p90", |times| times.p90),
        ("p99.9", |times| times.p99_9),
    ];
    let shown: Vec<Column> = if width < WIDE {
        COLUMNS[..3].to_vec()
    } else {
        [0, 3, 1, 4, 2].map(|place| COLUMNS[place]).to_vec()
    };
    let cells = |text: &dyn Fn(&Column) -> String| {
        shown.iter().map(|column| format!("{:>9}", text(column))).collect::<String>()
    };
    let names = cells(&|(name, _)| (*name).to_owned());
    let mut lines = vec![dim(format!("{:LABEL$}{names}", "response"))];
    let label = format!("last {:.0} s", last.seconds);
    for (label, figures) in [(&*label, last), ("so far", all)] {
        let times = figures.response_time;
        let values = cells(&|(_, value)| number::time(value(&times) as f64));
        lines.push(row(label, vec![Span::raw(values)]));
    }
    lines
}

fn errors(all: &LoadFigures) -> Vec<Line<'static>> {
    if all.errors.is_empty() && all.never_ended == 0 {
        return vec![row("errors", vec![Span::raw("0")])];
    }
    let total = number::count(all.errors_total());
    let mut page = vec![row("errors", vec![Span::styled(total, Style::new().fg(Color::Red))])];
    page.extend(all.errors.iter().take(3).map(|error| {
        let text = format!("{:>9} {}", number::count(error.count), shown(&error.words));
        row("", vec![Span::raw(text)])
    }));
    if all.never_ended > 0 {
        let text = format!("{:>9} never answered", number::count(all.never_ended));
        page.push(row("", vec![Span::raw(text)]));
    }
    page
}

fn run_page(state: &State, lines: &Lines, width: usize) -> Vec<Line<'static>> {
    let mut page = Vec::new();
    if let (Some(left), Some(share)) = (lines.session_left(), lines.session_share()) {
        let remaining = format!("about {} left", number::length(whole_seconds(left)));
        page.push(bar("run", share, &remaining, width));
    }
    page.push(row("now", vec![Span::raw(shown(lines.current()))]));
    if let Some((done, of)) = state.blocks {
        let share = f64::from(done) / f64::from(of.max(1));
        let [done, of] = [done, of].map(|blocks| number::count(blocks.into()));
        let blocks = format!("block {done} of {of}");
        page.push(bar("load", share, &blocks, width));
        let rate = state.rates.back().copied().unwrap_or(0.0);
        let rate = format!("{}/s", number::rate(rate));
        page.push(over_time("baseline", &rate, state.rates.iter().copied(), width));
    }
    if !state.verdicts.is_empty() {
        page.push(Line::default());
        page.push(dim("so far, as if the run ended now"));
        let extent = widest_extent(&state.verdicts);
        page.extend(
            state.verdicts.iter().map(|shown_verdict| verdict(shown_verdict, extent, width)),
        );
    }
    if !state.brackets.is_empty() {
        page.push(Line::default());
        page.push(dim("between which rates each arm's capacity is, in requests/s"));
        page.extend(state.brackets.iter().map(|shown_bracket| bracket(shown_bracket, width)));
    }
    page
}

/// Returns the line of a comparison: `tuned  ▲ better  1.05–1.12  ├──●─┤`. A wide terminal gets a picture of the
/// interval.
fn verdict(one: &Verdict, extent: f64, width: usize) -> Line<'static> {
    let (sign, color) = match one.verdict.as_str() {
        "better" => ("▲", Color::Green),
        "worse" => ("▼", Color::Red),
        "equivalent" => ("■", Color::Cyan),
        "invalid" => ("×", Color::Red),
        _ => ("○", Color::Yellow),
    };
    let name = if width < WIDE {
        format!("{:.14}", one.arm)
    } else {
        format!("{} {}", one.arm, one.metric)
    };
    let column = if width < WIDE { 15 } else { width / 3 };
    let name = shown(&name);
    let mut spans = vec![
        Span::raw(format!("{:column$}", fitted(&name, column - 1))),
        Span::styled(sign, Style::new().fg(color)),
    ];
    if width >= WIDE {
        spans.push(Span::raw(format!(" {:13}", one.verdict)));
    }
    if let (Some(ratio), Some(interval)) = (one.ratio, one.interval) {
        let text = number::ratio_interval(ratio, interval);
        spans.push(Span::raw(format!(" {text:13}")));
        if width >= WIDE {
            let room = (width - column - 30).min(41);
            spans.push(Span::raw(forest(interval, ratio, extent, room)));
        }
    }
    if width < WIDE {
        // Without it two lines of an arm could not be told apart.
        let room = width.saturating_sub(column + 16);
        spans.push(Span::raw(format!(" {}", fitted(&shown(&one.metric), room))));
    }
    Line::from(spans)
}

/// Returns the distance from 1 that pictures of intervals cover. It follows the estimates, so that intervals visibly
/// shrink.
fn widest_extent(verdicts: &[Verdict]) -> f64 {
    verdicts
        .iter()
        .filter_map(|verdict| verdict.ratio)
        .filter(|ratio| ratio.is_finite())
        .map(|ratio| (ratio - 1.0).abs() * 1.5)
        .fold(0.05, f64::max)
}

/// Draws an interval around its estimate, with 1 in the middle.
fn forest((low, high): (f64, f64), ratio: f64, extent: f64, width: usize) -> String {
    let last = width.saturating_sub(1) as f64;
    let column = |value: f64| {
        let share = (value - (1.0 - extent)) / (2.0 * extent);
        (share.clamp(0.0, 1.0) * last).round() as usize
    };
    let (from, to) = (column(low), column(high));
    let cells = (0..width).map(|at| match at {
        _ if at == column(ratio) => '●',
        _ if at == from && low < 1.0 - extent => '‹',
        _ if at == to && high > 1.0 + extent => '›',
        _ if at == from => '├',
        _ if at == to => '┤',
        _ if (from..to).contains(&at) => '─',
        _ if at == column(1.0) => '│',
        _ => ' ',
    });
    cells.collect()
}

/// Returns the line of a search: `stock  9,000–10,200  ░░░████░░  9,000/s held for 65 s`, with the rest of the first
/// bracket, and the claim so far.
fn bracket(one: &Bracket, width: usize) -> Line<'static> {
    let column = if width < WIDE { 12 } else { width / 4 };
    let name = shown(&one.now.arm);
    let mut text = format!("{:column$}", fitted(&name, column - 1));
    let Some((low, high)) = one.now.between else {
        return Line::from(text + "nothing is known yet");
    };
    text += &format!("{:>17} ", format!("{}–{}", number::rate(low), number::rate(high)));
    let held = match one.now.held {
        Some(held) if width >= WIDE => {
            let rate = number::rate(held.rate);
            format!("  {rate}/s held for {:.0} s", held.seconds)
        }
        _ => String::new(),
    };
    let room = width.saturating_sub(column + 18 + held.len()).min(41);
    let (first, last) = one.first.unwrap_or((low, high));
    let (first, last) = (first.min(low), last.max(high));
    let [low_cell, high_cell] = [low, high].map(|rate| {
        let share = (rate - first) / (last - first).max(1e-9);
        (share * room.saturating_sub(1) as f64).round() as usize
    });
    let cells = (0..room).map(|at| if (low_cell..=high_cell).contains(&at) { '█' } else { '░' });
    let color = if one.is_done { Color::Green } else { Color::Cyan };
    Line::from(vec![
        Span::raw(text),
        Span::styled(cells.collect::<String>(), Style::new().fg(color)),
        Span::raw(held),
    ])
}

/// Returns a progress bar: `measuring  ██████░░░░  18 s left`.
fn bar(label: &str, share: f64, text: &str, width: usize) -> Line<'static> {
    let beside = LABEL + text.chars().count() + 1;
    let room = width.saturating_sub(beside).min(60);
    let full = (share.clamp(0.0, 1.0) * room as f64).round() as usize;
    row(
        label,
        vec![
            Span::styled("█".repeat(full), Style::new().fg(Color::Cyan)),
            Span::raw("░".repeat(room - full)),
            Span::raw(format!(" {text}")),
        ],
    )
}

/// Returns a line with a figure, and bars of its values over time in the remaining columns.
fn over_time(
    label: &str,
    figure: &str,
    values: impl DoubleEndedIterator<Item = f64> + Clone,
    width: usize,
) -> Line<'static> {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let figure = format!("{figure:<20} ");
    let room = width.saturating_sub(LABEL + figure.chars().count());
    let top = values.clone().fold(0.0, f64::max);
    let mut latest: Vec<char> = values
        .rev()
        .take(room)
        .map(|value| BARS[((value / top.max(1e-9) * 8.0).ceil() as usize).clamp(1, 8) - 1])
        .collect();
    latest.reverse();
    row(
        label,
        vec![
            Span::raw(figure),
            Span::styled(latest.into_iter().collect::<String>(), Style::new().fg(Color::Cyan)),
        ],
    )
}

fn validity(validity: Validity) -> Span<'static> {
    let color = match validity {
        Validity::Valid => Color::Green,
        Validity::Suspect => Color::Yellow,
        Validity::Invalid => Color::Red,
    };
    let style = Style::new().fg(color).add_modifier(Modifier::BOLD);
    Span::styled(words::validity(validity), style)
}

fn row(label: &str, spans: Vec<Span<'static>>) -> Line<'static> {
    let label = Span::styled(format!("{label:LABEL$}"), Style::new().add_modifier(Modifier::DIM));
    Line::from_iter(std::iter::once(label).chain(spans))
}

fn bold(text: String) -> Line<'static> {
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

fn dim(text: impl Into<String>) -> Line<'static> {
    Line::styled(text.into(), Style::new().add_modifier(Modifier::DIM))
}

/// Shortens the text to at most `most` characters.
fn fitted(text: &str, most: usize) -> String {
    if text.chars().count() > most {
        text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests;
