//! Sentences about what arms carry for what they cost.

use weir_analysis::findings::{FrontierArm, FrontierFindings};
use weir_sentences::frontier::describe;

use super::Row;

/// Describes arms, each with the one that dominates it.
fn of(named: &[(&str, Option<&str>)]) -> String {
    let arms = named.iter().map(|(arm, dominated_by)| FrontierArm {
        arm: (*arm).to_owned(),
        rate: 1_000.0,
        per_cpu: Some(1_000.0),
        memory: None,
        needs: Vec::new(),
        dominated_by: dominated_by.map(str::to_owned),
    });
    let (load, is_capacity) = ("closed".to_owned(), false);
    describe(&FrontierFindings { load, is_capacity, arms: arms.collect() })
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        ("No arm is dominated", of(&[("stock", None), ("keepalive", None)])),
        ("One is", of(&[("stock", Some("keepalive")), ("keepalive", None)])),
        (
            "Two are",
            of(&[("stock", Some("keepalive")), ("gzip", Some("keepalive")), ("keepalive", None)]),
        ),
    ]
}
