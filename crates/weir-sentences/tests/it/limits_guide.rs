//! docs/limits.md contains the table of limiters generated from the rules.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use weir_limits::{Condition, Quantities, Rule, Rules};
use weir_sentences::limiter::describe_bound;

fn condition(one: &Condition) -> String {
    let name = &one.quantity.value;
    match &one.of {
        Some(of) => format!("`{name}` of `{of}` {}", describe_bound(one.bound(), "share")),
        None => {
            let unit = Quantities::builtin().get(name).map_or("", |one| &one.unit);
            format!("`{name}` {}", describe_bound(one.bound(), unit))
        }
    }
}

/// Joins the distinct texts, in the order of the rules.
fn listed(texts: impl IntoIterator<Item = String>, between: &str) -> String {
    let mut unique = BTreeSet::new();
    let texts: Vec<String> = texts.into_iter().filter(|text| unique.insert(text.clone())).collect();
    texts.join(between)
}

fn format_table() -> String {
    let rules = Rules::builtin();
    let mut table = "| limiter | of | shows by | ruled out by | explains | parameter to change |\n|---|---|---|---|---|---|\n".to_owned();
    for limiter in rules.limiters() {
        let rows: Vec<&Rule> =
            rules.all().iter().filter(|rule| rule.limiter.value == limiter).collect();
        let shows = listed(
            rows.iter().map(|rule| listed(rule.symptoms.iter().map(condition), ", ")),
            "; or ",
        );
        let against =
            listed(rows.iter().flat_map(|rule| rule.contradicts.iter().map(condition)), "; ");
        let after =
            rows.iter().flat_map(|rule| rule.explains.iter().map(|name| name.value.clone()));
        let turned = listed(
            rows.iter()
                .flat_map(|rule| rule.turn.values())
                .flat_map(|turns| turns.first())
                .map(|turn| format!("`{}`", turn.parameter)),
            ", ",
        );
        let (role, after) = (rows[0].role.name(), listed(after, ", "));
        writeln!(table, "| {limiter} | {role} | {shows} | {against} | {after} | {turned} |")
            .expect("a string");
    }
    table
}

#[test]
fn the_guide_has_the_table_of_the_rules() {
    let guide = include_str!("../../../../docs/limits.md");
    let table = format_table();
    assert!(guide.contains(&table), "docs/limits.md is to have:\n{table}");
}
