//! Charts as inline SVG, themed by the classes of the page's style sheet.
//!
//! A chart has a title and a description for those who cannot see it, and `<title>` tooltips on
//! its marks. Text keeps its size on every screen, because each chart is drawn for the width it is
//! shown at: wide and narrow versions are made, and the style sheet shows one of them.
//! Coordinates are always finite: whatever comes in, no `NaN` leaves this module.

mod bars;
mod canvas;
mod closing;
mod dots;
mod forest;
mod lines;
mod multiples;
mod panels;
mod scale;

pub(super) use bars::{bar_parts, bars};
pub(super) use canvas::{Escaped, Width};
pub(super) use closing::closing;
pub(super) use forest::forest;
pub(super) use lines::lines;
pub(super) use multiples::multiples;
pub(super) use panels::panels;
