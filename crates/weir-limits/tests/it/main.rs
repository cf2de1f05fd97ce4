//! The data of `limits/`, what is derived from samples, and what follows.

mod data;
mod derived;
mod docs;
mod limiters;
mod series;
