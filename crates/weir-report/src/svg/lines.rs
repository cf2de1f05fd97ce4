//! Lines over two axes, times upwards: what all charts of response times have in common.

use super::scale::{Scale, decades, round_steps, tick_time};
use super::{Anchor, Canvas, Width, fit, polyline};

/// With more lines than this, names beside the lines cannot be told apart; the legend remains.
const DIRECT_LABELS: usize = 12;
/// Room for them at the right.
const LABELS: f64 = 214.0;
/// Between neighbouring labels.
const LABEL_GAP: f64 = 16.0;
/// Response times that differ by more than this factor are drawn on a logarithmic axis.
const LINEAR_UP_TO: f64 = 12.0;

/// One line of the plot.
#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    /// What it is called, beside it and in the legend.
    pub(crate) name: &'a str,
    /// Its figures in words.
    pub(crate) tooltip: String,
    /// Colour and dash, as names of styles.
    pub(crate) class: String,
    /// Its place among the series.
    pub(crate) series: usize,
    /// Whether it is drawn over the others: what everything is compared with.
    pub(crate) front: bool,
    /// (1/(1-quantile), nanoseconds), finite, ascending.
    pub(crate) points: &'a [(f64, f64)],
}

/// Where a chart's parts go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) height: f64,
    pub(super) plot_x: (f64, f64),
    pub(super) plot_y: (f64, f64),
    /// Whether names stand beside the lines.
    pub(super) labels: bool,
}

impl Frame {
    pub(super) fn of(width: Width, lines: usize) -> Frame {
        let labels = width == Width::Wide && lines <= DIRECT_LABELS;
        let (height, right) = match (width, labels) {
            (Width::Wide, true) => (400.0, LABELS),
            (Width::Wide, false) => (400.0, 24.0),
            (Width::Narrow, _) => (300.0, 12.0),
        };
        Frame {
            height,
            plot_x: (62.0, width.px() - right),
            plot_y: (height - 48.0, 14.0),
            labels,
        }
    }

    /// Opens a chart of lines, each of which stands for one `each`.
    pub(super) fn open(
        self,
        id: &str,
        title: &str,
        each: &str,
        drawn: &[&Line<'_>],
        width: Width,
    ) -> Canvas {
        let names: Vec<&str> = drawn.iter().map(|line| line.name).collect();
        let labelled = if self.labels { " labelled" } else { "" };
        Canvas::new(
            id,
            &format!("{}{labelled}", width.class()),
            (width.px(), self.height),
            title,
            &format!("One line for each {each}: {}", names.join(", ")),
        )
    }

    /// The axis below: ticks with their words, and what they are of.
    pub(super) fn x_axis(
        self,
        canvas: &mut Canvas,
        x: &Scale,
        ticks: impl Iterator<Item = (f64, String)>,
        caption: &str,
        width: Width,
    ) {
        let (left, right) = self.plot_x;
        let (bottom, top) = self.plot_y;
        for (tick, words) in ticks {
            let px = x.at(tick);
            canvas.line("grid", (px, top), (px, bottom + 4.0));
            let anchor = match px {
                px if px > right - 18.0 && width == Width::Narrow => Anchor::End,
                _ => Anchor::Middle,
            };
            canvas.text("tick", (px, bottom + 20.0), anchor, &words);
        }
        canvas.line("axis", (left, bottom), (right, bottom));
        let below = ((left + right) / 2.0, bottom + 40.0);
        canvas.text("hint", below, Anchor::Middle, caption);
    }
}

/// Draws lines, those that others are compared with over these, and their names beside them.
pub(super) fn draw(canvas: &mut Canvas, drawn: &[&Line<'_>], x: &Scale, y: &Scale, frame: Frame) {
    let (front, back): (Vec<_>, Vec<_>) = drawn.iter().partition(|line| line.front);
    for line in back.into_iter().chain(front) {
        curve(canvas, line, x, y);
    }
    if frame.labels {
        direct_labels(canvas, drawn, x, y, frame.plot_x.1, frame.plot_y);
    }
}

pub(super) fn with_points<'a, 'b>(lines: &'b [Line<'a>]) -> impl Iterator<Item = &'b Line<'a>> {
    lines.iter().filter(|line| !line.points.is_empty())
}

fn extent(drawn: &[&Line<'_>]) -> (f64, f64) {
    let points = drawn.iter().flat_map(|line| line.points);
    points
        .map(|(_, ns)| ns.max(1.0))
        .fold((f64::INFINITY, 1.0), |(low, high), ns| {
            (low.min(ns), high.max(ns))
        })
}

/// Whether the response times are drawn on a logarithmic axis.
pub(crate) fn uses_log_axis(lines: &[Line<'_>]) -> bool {
    let (low, high) = extent(&with_points(lines).collect::<Vec<_>>());
    high / low > LINEAR_UP_TO
}

pub(super) fn y_axis(
    canvas: &mut Canvas,
    drawn: &[&Line<'_>],
    plot_x: (f64, f64),
    plot_y: (f64, f64),
) -> Scale {
    let (low, high) = extent(drawn);
    let (scale, ticks) = if high / low > LINEAR_UP_TO {
        let scale = Scale::log((low / 1.15, high * 1.15), plot_y);
        (scale, scale.pick(decades(low, high), 26.0))
    } else {
        let steps = round_steps(high, 6);
        let top = steps.last().copied().unwrap_or(1.0);
        (Scale::linear((0.0, top), plot_y), steps)
    };
    for tick in ticks {
        let y = scale.at(tick);
        canvas.line("grid", (plot_x.0, y), (plot_x.1, y));
        let text = tick_time(tick);
        canvas.text("tick", (plot_x.0 - 8.0, y + 4.0), Anchor::End, &text);
    }
    scale
}

fn curve(canvas: &mut Canvas, line: &Line<'_>, x: &Scale, y: &Scale) {
    canvas.open("series", Some(line.series), &line.tooltip);
    let points = line.points.iter();
    let d = polyline(points.map(|&(at, ns)| (x.at(at), y.at(ns.max(1.0)))));
    // A broad unseen line under the thin one makes it easy to point at.
    canvas.path("aim", &d);
    canvas.path(&format!("ln {}", line.class), &d);
    canvas.close();
}

fn direct_labels(
    canvas: &mut Canvas,
    drawn: &[&Line<'_>],
    x: &Scale,
    y: &Scale,
    right: f64,
    plot_y: (f64, f64),
) {
    let mut ends: Vec<(f64, f64, &Line<'_>)> = drawn
        .iter()
        .filter_map(|line| {
            let &(at, ns) = line.points.last()?;
            Some((x.at(at), y.at(ns.max(1.0)), *line))
        })
        .collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let wanted: Vec<f64> = ends.iter().map(|end| end.1).collect();
    let placed = spread(&wanted, LABEL_GAP, (plot_y.1, plot_y.0));
    for ((end_x, end_y, line), label_y) in ends.into_iter().zip(placed) {
        let class = &line.class;
        canvas.open("series", Some(line.series), line.name);
        let leader = [
            (end_x, end_y),
            (right + 2.0, end_y),
            (right + 14.0, label_y),
        ];
        canvas.path(&format!("leader {class}"), &polyline(leader.into_iter()));
        let name = fit(line.name, LABELS - 20.0);
        let at = (right + 18.0, label_y + 4.0);
        canvas.text(&format!("label f {class}"), at, Anchor::Start, &name);
        canvas.close();
    }
}

/// Moves ascending positions apart so that neighbours are `gap` from each other, as near to where
/// they want to be as one pass down and one up allow.
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
}
