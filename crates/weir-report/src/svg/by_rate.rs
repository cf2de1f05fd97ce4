//! Response times against the rate: a line for each arm, a point for each load.

use super::Width;
use super::lines::{Frame, Line, draw, with_points, y_axis};
use super::scale::{Scale, round_steps, tick_rate};

/// Draws lines of (requests per second, nanoseconds); empty when there is none with points.
pub(crate) fn by_rate(id: &str, quantile: &str, lines: &[Line<'_>], width: Width) -> String {
    let drawn: Vec<&Line<'_>> = with_points(lines).collect();
    if drawn.is_empty() {
        return String::new();
    }
    let frame = Frame::of(width, drawn.len());
    let title = format!("{quantile} of the response time by rate");
    let mut canvas = frame.open(id, &title, "arm", &drawn, width);
    let rates = drawn.iter().flat_map(|line| line.points);
    let highest = rates.map(|(rate, _)| *rate).fold(0.0, f64::max);
    let ticks = round_steps(highest, if width == Width::Wide { 8 } else { 4 });
    let top = ticks.last().copied().unwrap_or(1.0);
    let x = Scale::linear((0.0, top), frame.plot_x);
    let y = y_axis(&mut canvas, &drawn, frame.plot_x, frame.plot_y);
    let ticks = ticks.into_iter().map(|tick| (tick, tick_rate(tick)));
    frame.x_axis(
        &mut canvas,
        &x,
        ticks,
        "requests per second to each arm",
        width,
    );
    draw(&mut canvas, &drawn, &x, &y, frame);
    canvas.finish()
}
