//! Sentences about what arms carry for what they cost.

use weir_analysis::findings::{FrontierArm, FrontierFindings};
use weir_sentences::frontier::describe;

use super::Row;

/// Describes arms, each with the one that dominates it.
fn of(arms: &[(&str, Option<&str>)]) -> String {
    let arms = arms.iter().map(|(arm, dominated_by)| FrontierArm {
        arm: (*arm).to_owned(),
        rate: 1_000.0,
        per_cpu: Some(1_000.0),
        memory: None,
        needs: Vec::new(),
        dominated_by: dominated_by.map(str::to_owned),
    });
    let arms = arms.collect();
    describe(&FrontierFindings { load: "closed".to_owned(), is_capacity: false, arms })
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
