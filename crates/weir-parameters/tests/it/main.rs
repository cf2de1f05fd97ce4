//! Tests of the built-in catalog, against itself and against the real nginx.

mod controllers;
mod inert;
mod kernel;
mod levels;
mod nginx;
mod rows;
mod rules;
mod users;
