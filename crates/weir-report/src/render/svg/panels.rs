//! Small multiples over time: one panel per arm, all with the same axes, the baseline behind each in grey. Eight noisy
//! lines in one chart would be unreadable.

use super::canvas::{Anchor, Canvas, Escaped, polyline};
use super::scale::{Scale, round_steps, tick_rate, tick_time, to_pixels};
use crate::number;
use crate::tree::{Panel, Panels};

/// Size of a panel before the page's grid scales it.
const SIZE: (f64, f64) = (294.0, 108.0);
const PLOT_X: (f64, f64) = (52.0, 288.0);
const PLOT_Y: (f64, f64) = (88.0, 8.0);
/// Quantile which, times [`HEADROOM`], bounds the axis. Points above do not stretch it.
const CAP_QUANTILE: f64 = 0.98;
const HEADROOM: f64 = 1.3;

/// Draws all panels that have points, each below its name. Returns an empty text if there is none.
pub(crate) fn panels(id: &str, group: &Panels) -> String {
    let axes = Axes::of(group);
    let ghost = group.panels.first().filter(|panel| panel.is_baseline);
    let drawn = group.panels.iter().enumerate();
    let drawn: String = drawn
        .filter(|(_, panel)| panel.points.iter().any(|(_, value)| value.is_finite()))
        .map(|(place, panel)| {
            let title = format!("{}: {} over time", panel.name, group.what);
            let desc = format!("from 0 to {} s", number::rate(axes.seconds));
            let canvas = Canvas::new(&format!("{id}-{place}"), "panel", SIZE, &title, &desc);
            let name = Escaped(&panel.name);
            let drawn_ghost = ghost.filter(|_| !panel.is_baseline);
            format!("<div><p>{name}</p>{}</div>", axes.draw(canvas, panel, drawn_ghost))
        })
        .collect();
    if drawn.is_empty() { drawn } else { format!("<div class=\"panels\">{drawn}</div>") }
}

/// The axes that all panels of a group share.
struct Axes {
    seconds: f64,
    steps: Vec<f64>,
    times: bool,
}

impl Axes {
    fn of(group: &Panels) -> Axes {
        let points = group.panels.iter().flat_map(|panel| &panel.points);
        Axes {
            seconds: points.clone().map(|(s, _)| *s).fold(0.0, f64::max),
            steps: round_steps(cap(points.map(|(_, value)| *value).collect()), 3),
            times: group.times,
        }
    }

    fn draw(&self, mut canvas: Canvas, panel: &Panel, ghost: Option<&Panel>) -> String {
        let top = self.steps.last().copied().unwrap_or(1.0);
        let x = Scale::linear((0.0, self.seconds), PLOT_X);
        let y = Scale::linear((0.0, top), PLOT_Y);
        for tick in &self.steps {
            let at = y.at(*tick);
            canvas.line("grid", (PLOT_X.0, at), (PLOT_X.1, at));
            let text = if self.times { tick_time(*tick) } else { tick_rate(*tick, top) };
            canvas.text("tick", (PLOT_X.0 - 6.0, at + 4.0), Anchor::End, &text);
        }
        canvas.text("tick", (PLOT_X.0, SIZE.1 - 3.0), Anchor::Start, "0 s");
        let end = format!("{} s", number::count(self.seconds.round() as u64));
        canvas.text("tick", (PLOT_X.1, SIZE.1 - 3.0), Anchor::End, &end);
        if let Some(ghost) = ghost {
            canvas.path(
                "ghost",
                &polyline(ghost.points.iter().map(|point| to_pixels(point, &x, &y))),
            );
        }
        // In a panel of its own an arm needs its hue only; dashes would break up a noisy line.
        let class = format!("ln thin s{}", panel.hue);
        canvas.path(&class, &polyline(panel.points.iter().map(|point| to_pixels(point, &x, &y))));
        beyond(&mut canvas, &panel.points, top, &x);
        canvas.finish()
    }
}

/// Returns the highest value that the axis shows, so that one outlier does not flatten everything else.
fn cap(mut values: Vec<f64>) -> f64 {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let Some(&max) = values.last() else {
        return 1.0;
    };
    let index = ((values.len() - 1) as f64 * CAP_QUANTILE) as usize;
    max.min(values[index] * HEADROOM)
}

/// Draws a mark at the upper edge for each point above the axis.
fn beyond(canvas: &mut Canvas, points: &[(f64, f64)], top: f64, x: &Scale) {
    let limit = top * (1.0 + 1e-9);
    for (s, _) in points.iter().filter(|(_, value)| value.is_finite() && *value > limit) {
        let at = x.at(*s);
        canvas.line("beyond", (at, PLOT_Y.1 - 5.0), (at, PLOT_Y.1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(points: Vec<(f64, f64)>) -> Panels {
        Panels {
            what: "completed requests per second",
            times: false,
            panels: vec![Panel { name: "a".to_owned(), hue: 0, is_baseline: true, points }],
        }
    }

    #[test]
    fn one_outlier_does_not_flatten_the_rest() {
        let mut points: Vec<(f64, f64)> = (0..100).map(|i| (f64::from(i), 10.0)).collect();
        points[50].1 = 1e6;
        let values = points.iter().map(|(_, value)| *value).collect();
        assert!((cap(values) - 13.0).abs() < 1e-9);
        let svg = panels("p", &group(points));
        assert!(svg.contains("class=\"beyond\""), "the outlier is marked");
    }

    #[test]
    fn a_block_without_a_value_leaves_a_gap() {
        let parts = [10.0, f64::NAN].map(|value| {
            let svg = panels("p", &group(vec![(0.0, 10.0), (1.0, value), (2.0, 10.0)]));
            svg.rsplit_once(" d=\"").map(|(_, d)| d.matches('M').count())
        });
        assert_eq!(parts, [Some(1), Some(2)]);
    }

    #[test]
    fn nothing_measured_draws_nothing() {
        assert_eq!(cap(Vec::new()), 1.0);
        assert_eq!(panels("p", &group(Vec::new())), "");
        assert_eq!(panels("p", &group(vec![(1.0, f64::NAN)])), "");
    }
}
