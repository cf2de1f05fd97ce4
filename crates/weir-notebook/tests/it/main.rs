//! Tests of run folders as a notebook, with made-up runs.
#![allow(missing_docs, clippy::unwrap_used)]

mod archives;
mod lists;
mod made;
mod removals;
mod tables;
