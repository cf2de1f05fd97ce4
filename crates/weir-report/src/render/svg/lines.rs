//! Times as lines over one axis. For quantiles it is the axis of HdrHistogram's plotter: x is 1/(1-quantile),
//! logarithmic, so each further nine of the quantile takes the same space and the tail is readable.

use super::canvas::{Anchor, Canvas, Width, fit, polyline};
use super::dots::dot;
use super::scale::{Scale, decades, round_steps, tick_rate, tick_time};
use crate::tree::{Axis, Extent, Line, Lines, Marks};

/// Maximum number of lines with names beside them. With more, the names could not be told apart, and only the legend
/// remains.
const DIRECT_LABELS: usize = 12;
/// Width at the right for these names.
const LABELS: f64 = 214.0;
/// Minimum distance between neighbouring names.
const LABEL_GAP: f64 = 16.0;
/// Draws lines. Returns an empty text if no line has points.
pub(crate) fn lines(id: &str, plot: &Lines, width: Width) -> String {
    let drawn: Vec<&Line> = plot.lines.iter().filter(|line| !line.points.is_empty()).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let mut chart = Chart::open(id, plot, &drawn, width);
    chart.below(plot);
    if let Some(marks) = &plot.marks {
        chart.held_against(marks);
    }
    let (front, back): (Vec<&Line>, Vec<&Line>) = drawn.iter().partition(|line| line.front);
    for line in back.into_iter().chain(front) {
        chart.curve(line);
    }
    if let Some(marks) = &plot.marks {
        chart.dots(marks);
    }
    if chart.labels {
        chart.direct_labels(&drawn);
    }
    chart.canvas.finish()
}

struct Chart {
    canvas: Canvas,
    width: Width,
    plot_x: (f64, f64),
    plot_y: (f64, f64),
    /// True if names are beside the lines.
    labels: bool,
    x: Scale,
    y: Scale,
}

impl Chart {
    /// Opens a chart with its axis of times.
    fn open(id: &str, plot: &Lines, drawn: &[&Line], width: Width) -> Chart {
        let labels = width == Width::Wide && drawn.len() <= DIRECT_LABELS;
        let (height, right) = match (width, labels) {
            (Width::Wide, true) => (400.0, LABELS),
            (Width::Wide, false) => (400.0, 24.0),
            (Width::Narrow, _) => (300.0, 12.0),
        };
        let plot_x = (62.0, width.px() - right);
        // The name of a band stands above it.
        let above = if plot.marks.is_some() { 30.0 } else { 14.0 };
        let plot_y = (height - 48.0, above);
        let names: Vec<&str> = drawn.iter().map(|line| line.name.as_str()).collect();
        let class = format!("{}{}", width.class(), if labels { " labelled" } else { "" });
        let desc = format!("One line for each {}: {}", plot.each, names.join(", "));
        let size = (width.px(), height);
        let mut canvas = Canvas::new(id, &class, size, &plot.title, &desc);
        let (scale_y, ticks) = times(&plot.extent, plot_y);
        for tick in ticks {
            let y = scale_y.at(tick);
            canvas.line("grid", (plot_x.0, y), (plot_x.1, y));
            let text = tick_time(tick);
            canvas.text("tick", (plot_x.0 - 8.0, y + 4.0), Anchor::End, &text);
        }
        let x = match plot.axis {
            Axis::Nines => Scale::log((1.0, plot.extent.right.clamp(10.0, 1e9)), plot_x),
            Axis::Rate => Scale::linear((0.0, top(&rates(plot, width))), plot_x),
        };
        let across = match plot.axis {
            Axis::Nines => format!("nines {}", x.described()),
            Axis::Rate => format!("rate {}", x.described()),
        };
        let (corner, size) = ((plot_x.0, plot_y.1), (plot_x.1 - plot_x.0, plot_y.0 - plot_y.1));
        canvas.plot(corner, size, [&across, &format!("time {}", scale_y.described())]);
        Chart { canvas, width, plot_x, plot_y, labels, x, y: scale_y }
    }

    /// Draws the horizontal axis: ticks with their words, and a caption.
    fn below(&mut self, plot: &Lines) {
        let (ticks, caption): (Vec<(f64, String)>, _) = match plot.axis {
            Axis::Nines => (self.nines(), "share of requests answered at least as fast"),
            Axis::Rate => (
                {
                    let ticks = rates(plot, self.width);
                    ticks.iter().map(|tick| (*tick, tick_rate(*tick, top(&ticks)))).collect()
                },
                match plot.each {
                    "arm" => "requests per second to each arm",
                    _ => "requests per second",
                },
            ),
        };
        let (left, right) = self.plot_x;
        let (bottom, top) = self.plot_y;
        for (tick, words) in ticks {
            let px = self.x.at(tick);
            self.canvas.line("grid", (px, top), (px, bottom + 4.0));
            let anchor = match px {
                px if px > right - 18.0 && self.width == Width::Narrow => Anchor::End,
                _ => Anchor::Middle,
            };
            self.canvas.text("tick", (px, bottom + 20.0), anchor, &words);
        }
        self.canvas.line("axis", (left, bottom), (right, bottom));
        let middle = ((left + right) / 2.0, bottom + 40.0);
        self.canvas.text("hint", middle, Anchor::Middle, caption);
    }

    /// Draws the marks: a band across the plot, a horizontal level, and a position on the axis below.
    fn held_against(&mut self, marks: &Marks) {
        let ((left, right), (bottom, top)) = (self.plot_x, self.plot_y);
        let canvas = &mut self.canvas;
        if let Some(((from, to), name)) = &marks.band {
            let (from, to) = (self.x.at(*from), self.x.at(*to));
            // An interval narrower than a line is still to be seen.
            let width = (to - from).max(2.0);
            canvas.rect("band strong", (from, top), (width, bottom - top));
            let (at, anchor) = beside((from + to) / 2.0, name, (left, right));
            canvas.text("hint", (at, top - 8.0), anchor, name);
        }
        if let Some((ns, name)) = &marks.level {
            let y = self.y.at(*ns);
            canvas.line("level", (left, y), (right, y));
            canvas.text("hint", (left + 8.0, y - 6.0), Anchor::Start, name);
        }
        if let Some((rate, name)) = &marks.at {
            let x = self.x.at(*rate);
            canvas.line("at", (x, top), (x, bottom));
            // Times are short there, so the upper end is free.
            let (at, anchor) =
                if x - left < 60.0 { (x + 6.0, Anchor::Start) } else { (x - 6.0, Anchor::End) };
            canvas.text("hint", (at, top + 12.0), anchor, name);
        }
    }

    fn dots(&mut self, marks: &Marks) {
        for one in &marks.dots {
            let y = one.ns.map_or(self.plot_y.1, |ns| self.y.at(ns.max(1.0)));
            dot(&mut self.canvas, (self.x.at(one.rate), y), one);
        }
    }

    fn nines(&self) -> Vec<(f64, String)> {
        let nines = (1..=9).map(|power| 10_f64.powi(power));
        let gap = match self.width {
            Width::Wide => 64.0,
            Width::Narrow => 54.0,
        };
        self.x
            .pick(nines.chain([2.0, 4.0, 1.0]), gap)
            .into_iter()
            .map(|tick| (tick, percent(tick)))
            .collect()
    }

    fn at(&self, &(x, ns): &(f64, f64)) -> (f64, f64) {
        (self.x.at(x), self.y.at(ns.max(1.0)))
    }

    fn curve(&mut self, line: &Line) {
        let d = polyline(line.points.iter().map(|point| self.at(point)));
        let canvas = &mut self.canvas;
        canvas.open("series", Some(line.series), &line.tooltip);
        // A broad unseen line under the thin one makes it easy to point at.
        canvas.path("aim", &d);
        canvas.path(&format!("ln {}", line.class), &d);
        canvas.close();
    }

    fn direct_labels(&mut self, drawn: &[&Line]) {
        let ends = drawn.iter().filter_map(|line| Some((self.at(line.points.last()?), *line)));
        let mut ends: Vec<((f64, f64), &Line)> = ends.collect();
        ends.sort_by(|(a, _), (b, _)| a.1.total_cmp(&b.1));
        let wanted: Vec<f64> = ends.iter().map(|(end, _)| end.1).collect();
        let placed = spread(&wanted, LABEL_GAP, (self.plot_y.1, self.plot_y.0));
        let (right, canvas) = (self.plot_x.1, &mut self.canvas);
        for ((end, line), label_y) in ends.into_iter().zip(placed) {
            let class = &line.class;
            canvas.open("series", Some(line.series), &line.name);
            let leader = [end, (right + 2.0, end.1), (right + 14.0, label_y)];
            canvas.path(&format!("leader {class}"), &polyline(leader.into_iter()));
            let name = fit(&line.name, LABELS - 20.0);
            let at = (right + 18.0, label_y + 4.0);
            canvas.text(&format!("label f {class}"), at, Anchor::Start, &name);
            canvas.close();
        }
    }
}

/// Returns the position and anchor of a text near `x` that keep it between two edges.
fn beside(x: f64, text: &str, (left, right): (f64, f64)) -> (f64, Anchor) {
    let half = 3.6 * text.chars().count() as f64;
    match x {
        x if x - half < left => (left, Anchor::Start),
        x if x + half > right => (right, Anchor::End),
        x => (x, Anchor::Middle),
    }
}

/// Returns the axis of times and its ticks.
fn times(extent: &Extent, plot_y: (f64, f64)) -> (Scale, Vec<f64>) {
    let Extent { low, high, .. } = *extent;
    if extent.is_log() {
        let scale = Scale::log((low / 1.15, high * 1.15), plot_y);
        return (scale, scale.pick(decades(low, high), 26.0));
    }
    let steps = round_steps(high, 6);
    (Scale::linear((0.0, top(&steps)), plot_y), steps)
}

fn rates(plot: &Lines, width: Width) -> Vec<f64> {
    round_steps(plot.extent.right, if width == Width::Wide { 8 } else { 4 })
}

fn top(steps: &[f64]) -> f64 {
    steps.last().copied().unwrap_or(1.0)
}

/// Formats 1/(1-quantile) as a percentage: 1000 is `99.9 %`.
fn percent(x: f64) -> String {
    let decimals = (x.log10().round() as usize).saturating_sub(2);
    format!("{:.decimals$} %", 100.0 * (1.0 - 1.0 / x))
}

/// Moves ascending positions apart until neighbours have a distance of `gap`. They stay as near to the wanted ones as
/// one pass down and one up allow.
fn spread(wanted: &[f64], gap: f64, (low, high): (f64, f64)) -> Vec<f64> {
    let mut placed = wanted.to_vec();
    let mut least = low;
    for position in &mut placed {
        *position = position.max(least);
        least = *position + gap;
    }
    let mut most = high;
    for position in placed.iter_mut().rev() {
        *position = position.min(most);
        most = *position - gap;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_distance_and_their_order() {
        let placed = spread(&[10.0, 11.0, 12.0, 90.0, 99.0, 100.0], 10.0, (0.0, 100.0));
        for pair in placed.windows(2) {
            assert!(pair[1] - pair[0] >= 10.0 - 1e-9, "{placed:?}");
        }
        assert!(placed[5] <= 100.0 && placed[0] >= 0.0, "{placed:?}");
        assert_eq!(spread(&[5.0, 50.0], 10.0, (0.0, 100.0)), [5.0, 50.0]);
    }

    #[test]
    fn quantiles_are_written_with_their_nines() {
        let cases = [
            (1.0, "0 %"),
            (2.0, "50 %"),
            (4.0, "75 %"),
            (10.0, "90 %"),
            (100.0, "99 %"),
            (1e3, "99.9 %"),
            (1e5, "99.999 %"),
        ];
        for (x, text) in cases {
            assert_eq!(percent(x), text);
        }
    }
}
