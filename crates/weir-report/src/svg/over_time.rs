//! Small multiples over time: one panel for each arm, all with the same axes, the baseline behind
//! each in grey. Eight noisy lines in one chart would show nothing.

use weir_model::study::{ArmRole, Metric};

use super::scale::{Scale, round_steps, tick_rate, tick_time};
use super::{Anchor, Canvas, polyline, series_class};
use crate::view::number;

/// Size of a panel; the page's grid scales it.
const SIZE: (f64, f64) = (294.0, 108.0);
const PLOT_X: (f64, f64) = (52.0, 288.0);
const PLOT_Y: (f64, f64) = (88.0, 8.0);
/// Points above this quantile times [`HEADROOM`] do not stretch the axis.
const CAP_QUANTILE: f64 = 0.98;
const HEADROOM: f64 = 1.3;

/// What all panels of a group share, and what is drawn in one of them.
pub(crate) struct Panel<'a> {
    /// Seconds and values of every arm, the first one drawn behind all others.
    pub(crate) all: Vec<&'a [(f64, f64)]>,
    /// What the values are: decides the units.
    pub(crate) metric: Metric,
}

impl Panel<'_> {
    /// Highest value that the axis shows, so that one outlier does not flatten everything else.
    fn cap(&self) -> f64 {
        let values = self.all.iter().flat_map(|points| points.iter());
        let mut values: Vec<f64> = values.map(|(_, v)| *v).filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let Some(&max) = values.last() else {
            return 1.0;
        };
        let place = ((values.len() - 1) as f64 * CAP_QUANTILE) as usize;
        max.min(values[place] * HEADROOM)
    }

    fn seconds(&self) -> f64 {
        let points = self.all.iter().flat_map(|points| points.iter());
        points.map(|(s, _)| *s).fold(0.0, f64::max)
    }

    fn value(&self, value: f64) -> String {
        match self.metric {
            Metric::Rate => tick_rate(value),
            _ => tick_time(value),
        }
    }
}

/// Draws the panel of the arm at `index`; empty when it has no points.
pub(crate) fn panel(
    id: &str,
    group: &Panel<'_>,
    index: usize,
    name: &str,
    series: usize,
    role: ArmRole,
) -> String {
    let Some(points) = group.all.get(index).filter(|points| !points.is_empty()) else {
        return String::new();
    };
    let cap = group.cap();
    let steps = round_steps(cap, 3);
    let top = steps.last().copied().unwrap_or(1.0);
    let x = Scale::linear((0.0, group.seconds()), PLOT_X);
    let y = Scale::linear((0.0, top), PLOT_Y);
    let title = match group.metric {
        Metric::Rate => format!("{name}: completed requests per second over time"),
        _ => format!("{name}: median response time over time"),
    };
    let desc = format!("from 0 to {} s", number::rate(group.seconds()));
    let mut canvas = Canvas::new(id, "panel", SIZE, &title, &desc);
    for tick in &steps {
        let at = y.at(*tick);
        canvas.line("grid", (PLOT_X.0, at), (PLOT_X.1, at));
        canvas.text(
            "tick",
            (PLOT_X.0 - 6.0, at + 4.0),
            Anchor::End,
            &group.value(*tick),
        );
    }
    canvas.text("tick", (PLOT_X.0, SIZE.1 - 3.0), Anchor::Start, "0 s");
    let end = format!("{} s", number::count(group.seconds().round() as u64));
    canvas.text("tick", (PLOT_X.1, SIZE.1 - 3.0), Anchor::End, &end);
    let place = |&(s, v): &(f64, f64)| (x.at(s), y.at(v));
    if role != ArmRole::Baseline {
        let ghost = group.all.first().copied().unwrap_or_default();
        canvas.path("ghost", &polyline(ghost.iter().map(place)));
    }
    let class = format!("ln thin s{}", series_hue(series, role));
    canvas.path(&class, &polyline(points.iter().map(place)));
    beyond(&mut canvas, points, top, &x);
    canvas.finish()
}

/// In a panel of its own an arm needs its hue only; dashes would break up a noisy line.
fn series_hue(series: usize, role: ArmRole) -> String {
    let class = series_class(series, role);
    class[1..]
        .chars()
        .take_while(char::is_ascii_digit)
        .collect()
}

/// Points above the axis are not left out silently: each has a mark at the upper edge.
fn beyond(canvas: &mut Canvas, points: &[(f64, f64)], top: f64, x: &Scale) {
    for (s, _) in points.iter().filter(|(_, v)| *v > top * (1.0 + 1e-9)) {
        let at = x.at(*s);
        canvas.line("beyond", (at, PLOT_Y.1 - 5.0), (at, PLOT_Y.1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outlier_does_not_flatten_the_rest() {
        let mut points: Vec<(f64, f64)> = (0..100).map(|i| (f64::from(i), 10.0)).collect();
        points[50].1 = 1e6;
        let group = Panel {
            all: vec![&points],
            metric: Metric::Rate,
        };
        assert!((group.cap() - 13.0).abs() < 1e-9);
        let svg = panel("p", &group, 0, "a", 0, ArmRole::Baseline);
        assert!(svg.contains("class=\"beyond\""), "the outlier is marked");
    }

    #[test]
    fn nothing_measured_draws_nothing() {
        let group = Panel {
            all: vec![&[]],
            metric: Metric::ResponseP50,
        };
        assert_eq!(group.cap(), 1.0);
        assert_eq!(panel("p", &group, 0, "a", 0, ArmRole::Change), "");
        assert_eq!(panel("p", &group, 7, "a", 0, ArmRole::Change), "");
    }
}
