//! The changed directives of a configuration that weir wrote, in the spelling of the catalog's rows.

use weir_model::study::{Arm, Settings, Study};
use weir_parameters::{Catalog, Directive, Parameter};

/// Returns a line for each directive in which the arm differs from the baseline: `http: gzip on;`. With `revert`,
/// returns the baseline's directives; those left unwritten have their default. If the arm has a proxy of its own, whose
/// configuration does not begin with the baseline's, returns all of its directives.
pub(super) fn lines(study: &Study, catalog: &Catalog, arm: &Arm, revert: bool) -> Vec<String> {
    let kind = study.proxy_of(arm).kind;
    let none = Settings::new();
    let baseline = match (study.arms.first(), &arm.proxy) {
        (Some(baseline), None) => &baseline.settings,
        _ => &none,
    };
    arm.settings
        .iter()
        .filter(|(id, level)| baseline.get(*id) != Some(*level))
        .filter_map(|(id, level)| Some((catalog.get(kind, id)?, level)))
        .filter(|(row, _)| row.scope.is_configuration())
        .flat_map(
            |(row, level)| {
                if revert { of_former(row, baseline.get(&row.id)) } else { of_level(row, level) }
            },
        )
        .collect()
}

fn of_level(row: &Parameter, level: &str) -> Vec<String> {
    let lines: Vec<String> = row.directives(level).iter().map(line).collect();
    if lines.is_empty() {
        vec![format!("{}: {level}, which leaves it unwritten", row.id)]
    } else {
        lines
    }
}

/// Returns the former lines: the baseline's level, or a remark that the directive is unwritten, with the program's
/// default.
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
