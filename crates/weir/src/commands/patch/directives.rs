//! The changed directives of a configuration that weir wrote, in the spelling of the catalog's rows.

use weir_model::study::{Arm, Settings, Study};
use weir_parameters::{Catalog, Directive, Parameter};

/// A line for each directive in which the arm differs from the baseline: `http: gzip on;`. With
/// `revert` the baseline's own; what that leaves out is at its default. All of its directives where the
/// arm has a proxy of its own, whose configuration does not begin with the baseline's.
pub(super) fn lines(study: &Study, catalog: &Catalog, arm: &Arm, revert: bool) -> Vec<String> {
    let kind = study.proxy_of(arm).kind;
    let none = Settings::new();
    let baseline = match (study.arms.first(), &arm.proxy) {
        (Some(baseline), None) => &baseline.settings,
        _ => &none,
    };
    let changed = arm.settings.iter();
    let changed = changed.filter(|(id, level)| baseline.get(*id) != Some(*level));
    changed
        .filter_map(|(id, level)| Some((catalog.get(kind, id)?, level)))
        .filter(|(row, _)| row.scope.is_configuration())
        .flat_map(|(row, level)| match revert {
            false => of_level(row, level),
            true => of_former(row, baseline.get(&row.id)),
        })
        .collect()
}

fn of_level(row: &Parameter, level: &str) -> Vec<String> {
    let lines: Vec<String> = row.directives(level).iter().map(line).collect();
    match lines.is_empty() {
        true => vec![format!("{}: {level}, which leaves it unwritten", row.id)],
        false => lines,
    }
}

/// What was there before: the baseline's level, or nothing, which is the program's default.
fn of_former(row: &Parameter, level: Option<&String>) -> Vec<String> {
    match level {
        Some(level) => of_level(row, level),
        None => match &row.default.newest().level {
            Some(level) => vec![format!("{}: unwritten, which is {level}", row.id)],
            None => vec![format!("{}: unwritten", row.id)],
        },
    }
}

fn line(directive: &Directive) -> String {
    let (context, text) = (directive.context.name(), &directive.text);
    match &directive.at {
        Some(at) => format!("{context} {at}: {text}"),
        None => format!("{context}: {text}"),
    }
}
