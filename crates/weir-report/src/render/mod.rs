//! Renderers of a report's tree.

mod html;
mod markdown;
mod page;
mod pairs;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use html::html;
pub(crate) use markdown::markdown;
pub(crate) use terminal::{screen, terminal};
