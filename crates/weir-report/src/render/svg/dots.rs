//! Single measurements in a chart.

use super::canvas::{Canvas, Px};
use crate::tree::Dot;

/// Draws a measurement as a circle: larger if it was long, hollow if the rate did not hold.
pub(super) fn dot(canvas: &mut Canvas, (x, y): (f64, f64), dot: &Dot) {
    let radius = if dot.is_long { 6.0 } else { 3.0 };
    let class = if dot.is_hollow { "dot open" } else { "dot" };
    canvas.open("point", None, &dot.tooltip);
    canvas.put(format_args!(
        "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{radius}\"/>",
        Px(x),
        Px(y)
    ));
    canvas.close();
}
