//! The catalog that comes with weir, against itself and against the real nginx.

mod controllers;
mod inert;
mod kernel;
mod levels;
mod nginx;
mod rows;
mod rules;
mod users;
