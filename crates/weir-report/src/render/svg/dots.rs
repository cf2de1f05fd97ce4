//! Single measurements in a chart.

use super::canvas::{Canvas, Px};
use crate::tree::Dot;

/// Draws a measurement: a circle, larger where it lasted long, hollow where it did not hold.
pub(super) fn dot(canvas: &mut Canvas, (x, y): (f64, f64), dot: &Dot) {
    let radius = if dot.is_long { 6.0 } else { 3.0 };
    let class = match dot.is_hollow {
        true => "dot open",
        false => "dot",
    };
    canvas.open("point", None, &dot.tooltip);
    canvas.put(format_args!(
        "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{radius}\"/>",
        Px(x),
        Px(y)
    ));
    canvas.close();
}
