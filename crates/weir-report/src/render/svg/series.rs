//! A figure over all runs of a study: a dot for each run, a line for the level of each segment, upright lines where it
//! changed or where another machine begins.

use super::canvas::{Anchor, Canvas, Px, Width};
use super::scale::{Scale, tick_rate, tick_time};
use crate::tree::RunSeries;

/// Margins at the left (for values), above the plot, and below it (for dates).
const MARGINS: (f64, f64, f64) = (76.0, 24.0, 30.0);
/// Margin at the right.
const RIGHT: f64 = 14.0;
/// Height of the chart.
const HEIGHT: f64 = 210.0;
/// Room above and below the values, as a share of their range.
const ROOM: f64 = 0.08;
/// Smallest range of the axis, as a share of the largest value: less would show noise as a change.
const LEAST_RANGE: f64 = 0.04;

/// Draws the series. Returns an empty text if there is no value.
pub(crate) fn series(id: &str, plot: &RunSeries, width: Width) -> String {
    let values = plot.dots.iter().map(|(_, value, _)| *value).filter(|value| value.is_finite());
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    if !(low <= high && high > 0.0) {
        return String::new();
    }
    let mut canvas = Canvas::new(id, width.class(), (width.px(), HEIGHT), &plot.title, &plot.said);
    let range = (high - low).max(LEAST_RANGE * high);
    let middle = f64::midpoint(low, high);
    let ends = [-1.0, 1.0].map(|side| middle + side * range * (0.5 + ROOM));
    let (left, top, below) = MARGINS;
    let (right, bottom) = (width.px() - RIGHT, HEIGHT - below);
    let y = Scale::linear((ends[0].max(0.0), ends[1]), (bottom, top));
    let last = plot.runs.saturating_sub(1).max(1) as f64;
    let x = Scale::linear((0.0, last), (left + 8.0, right - 8.0));
    for tick in [low, middle, high] {
        let at = y.at(tick);
        canvas.line("grid", (left, at), (right, at));
        let label = if plot.is_time { tick_time(tick) } else { tick_rate(tick, high) };
        canvas.text("tick", (left - 8.0, at + 4.0), Anchor::End, &label);
    }
    canvas.text("tick", (left, HEIGHT - 8.0), Anchor::Start, &plot.ends[0]);
    canvas.text("tick", (right, HEIGHT - 8.0), Anchor::End, &plot.ends[1]);
    for mark in &plot.marks {
        // Between two runs.
        let at = x.at(mark.before as f64 - 0.5);
        canvas.open("point", None, &mark.tooltip);
        canvas.line(mark.class, (at, top - 8.0), (at, bottom));
        canvas.text("hint", (at, top - 12.0), Anchor::Middle, &mark.label);
        canvas.close();
    }
    for &(first, last, level) in &plot.levels {
        let at = y.at(level);
        let (from, to) = (x.at(first as f64) - 4.0, x.at(last as f64) + 4.0);
        canvas.path("ln s0", &format!("M{} {}L{} {}", Px(from), Px(at), Px(to), Px(at)));
    }
    for (run, value, tooltip) in plot.dots.iter().filter(|(_, value, _)| value.is_finite()) {
        canvas.open("point", None, tooltip);
        let (cx, cy) = (Px(x.at(*run as f64)), Px(y.at(*value)));
        canvas.put(format_args!("<circle class=\"dot\" cx=\"{cx}\" cy=\"{cy}\" r=\"3\"/>"));
        canvas.close();
    }
    canvas.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::RunMark;

    fn plot(values: &[f64]) -> RunSeries {
        RunSeries {
            title: "rate <1>".to_owned(),
            said: "one change".to_owned(),
            is_time: false,
            runs: values.len(),
            dots: values
                .iter()
                .enumerate()
                .map(|(run, &value)| (run, value, "a".to_owned()))
                .collect(),
            levels: vec![(0, 1, 10.0), (2, 3, 12.0)],
            marks: vec![RunMark {
                before: 2,
                class: "level",
                label: "+20 %".to_owned(),
                tooltip: "since c".to_owned(),
            }],
            ends: ["a".to_owned(), "d".to_owned()],
        }
    }

    #[test]
    fn runs_levels_and_changes_are_drawn() {
        let svg = series("h", &plot(&[10.0, 10.0, 12.0, f64::NAN]), Width::Wide);
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        assert_eq!(svg.matches("class=\"ln s0\"").count(), 2);
        assert!(
            svg.contains("class=\"level\"") && svg.contains("since c") && svg.contains("&lt;1")
        );
        assert!(!svg.contains("NaN"));
    }

    #[test]
    fn without_any_value_nothing_is_drawn() {
        for values in [&[][..], &[f64::NAN], &[0.0]] {
            assert_eq!(series("h", &plot(values), Width::Narrow), "");
        }
    }
}
