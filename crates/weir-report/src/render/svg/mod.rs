//! Charts as inline SVG, themed by the classes of the page's style sheet.
//!
//! A chart has a title and a description for users who cannot see it, and `<title>` tooltips on its marks. Text has the
//! same size on every screen, because each chart is drawn in a wide and a narrow version, and the style sheet shows one
//! of them. Coordinates are always finite: whatever the input, this module writes no `NaN`.

mod bars;
mod canvas;
mod closing;
mod dots;
mod forest;
mod lines;
mod multiples;
mod panels;
mod scale;
mod series;

pub(super) use bars::{bar_parts, bars};
pub(super) use canvas::{Escaped, Width};
pub(super) use closing::closing;
pub(super) use forest::forest;
pub(super) use lines::lines;
pub(super) use multiples::multiples;
pub(super) use panels::panels;
pub(super) use series::series;
