//! Percentile plot on the axis of HdrHistogram's plotter: x is 1/(1-quantile), logarithmic, so each
//! further nine of the quantile takes the same room and the tail can be read.

use super::Width;
use super::lines::{Frame, Line, draw, with_points, y_axis};
use super::scale::Scale;

/// What a plot is about, besides its lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About<'a> {
    /// What a line stands for: `arm`.
    pub(crate) each: &'a str,
    /// Lines of other plots that this one is to be compared with: the axes cover them too.
    pub(crate) beside: &'a [Line<'a>],
}

/// Draws lines; empty when there is none with points.
pub(crate) fn percentile(id: &str, lines: &[Line<'_>], about: About<'_>, width: Width) -> String {
    let drawn: Vec<&Line<'_>> = with_points(lines).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let frame = Frame::of(width, drawn.len());
    let title = "Response time by percentile";
    let mut canvas = frame.open(id, title, about.each, &drawn, width);
    let covered: Vec<&Line<'_>> = with_points(lines)
        .chain(with_points(about.beside))
        .collect();
    let x = Scale::log((1.0, reach(&covered)), frame.plot_x);
    let y = y_axis(&mut canvas, &covered, frame.plot_x, frame.plot_y);
    let nines = (1..=9).map(|power| 10_f64.powi(power));
    let gap = match width {
        Width::Wide => 64.0,
        Width::Narrow => 54.0,
    };
    let ticks = x.pick(nines.chain([2.0, 4.0, 1.0]), gap).into_iter();
    let ticks = ticks.map(|tick| (tick, percent(tick)));
    let caption = "share of requests answered at least as fast";
    frame.x_axis(&mut canvas, &x, ticks, caption, width);
    draw(&mut canvas, &drawn, &x, &y, frame);
    canvas.finish()
}

/// How far to the right the longest curve goes, at least to quantile 0.9.
fn reach(drawn: &[&Line<'_>]) -> f64 {
    let points = drawn.iter().flat_map(|line| line.points);
    points.map(|(x, _)| *x).fold(10.0, f64::max).min(1e9)
}

/// 1/(1-quantile) as a percentage: 1000 is `99.9 %`.
fn percent(x: f64) -> String {
    let decimals = (x.log10().round() as usize).saturating_sub(2);
    format!("{:.decimals$} %", 100.0 * (1.0 - 1.0 / x))
}

#[cfg(test)]
mod tests {
    use super::*;

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
