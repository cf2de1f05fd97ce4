//! The data of `limits/`, the quantities derived from samples, and the judgements.

mod data;
mod derived;
mod limiters;
mod series;
