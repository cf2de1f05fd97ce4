//! The four ways to write arms.

use weir_model::study::{ArmRole, Settings};

use super::{Draft, MAX_ARMS, Maker};
use crate::check::{Checker, Fields, fitting, nearest, short};
use crate::factors::{Factor, combination, find_growing};
use crate::proxy::{self, Places};
use crate::tree::{Entry, Value};

/// Reads `arms` or `cumulative`: a list of names and settings.
pub(super) fn listed(maker: &mut Maker<'_>, entry: &Entry, cumulative: bool, check: &mut Checker) {
    let wanted = "a list of arms such as `{name: no-gzip, settings: {gzip: off}}`";
    for node in check.list(&entry.value, wanted).unwrap_or_default() {
        let keys = ["name", "proxy", "settings"];
        let Some(fields) = Fields::known(node, "an arm", &keys, check) else {
            continue;
        };
        let name_node = fields.required("name", check);
        let span = name_node.map_or(fields.span(), |node| node.span.clone());
        let name = name_node.and_then(|node| check.arm_name(node));
        let errors_before = check.count();
        let proxy = own_proxy(maker, &fields, cumulative, check);
        let settings = match proxy {
            Some(_) => fields.get("settings"),
            None if fields.get("proxy").is_some() => None,
            None => fields.required("settings", check),
        };
        let kind = proxy.as_ref().map_or(maker.proxy.kind, |draft| draft.spec.kind);
        let (levels, places) =
            settings.map(|node| maker.levels(kind).settings(node, check)).unwrap_or_default();
        for (id, place) in &places {
            proxy::refuse_external(kind, id, place.clone(), check);
        }
        // Steps build on the one before; the first on the baseline, not on the A/A arm.
        let against = match (cumulative, maker.drafts.last()) {
            (true, Some(last)) if last.arm.role == ArmRole::Change => maker.drafts.len() - 1,
            _ => 0,
        };
        let sound = name.is_some() && check.count() == errors_before;
        let arm_name = name.unwrap_or_default();
        let mut draft = match proxy {
            Some(proxy) => maker.draft_of(arm_name, proxy.spec, levels),
            None => maker.draft(arm_name, levels, against),
        };
        draft.span = span;
        draft.places = places;
        if sound {
            maker.add(draft, check);
        } else {
            // What is left of a broken arm (an empty name, for one that was refused) says nothing
            // about duplicates, but steps build on it and published figures may name it.

            maker.drafts.push(draft);
        }
    }
}

/// Reads the proxy of an arm that has its own.
fn own_proxy(
    maker: &Maker<'_>,
    fields: &Fields<'_>,
    cumulative: bool,
    check: &mut Checker,
) -> Option<proxy::Draft> {
    let entry = fields.entry("proxy")?;
    if cumulative {
        check
            .error(
                entry.span.clone(),
                "a cumulative step keeps the changes of the steps before it, so it cannot use another proxy",
            )
            .hint("use `arms`");
        return None;
    }
    let (role, catalog) = (&maker.proxy.role, maker.catalog);
    proxy::read_for_arm(&entry.value, role, catalog, maker.context, check)
}

/// Formats a setting as a name that is valid for a file: `keepalive_requests=100`.
fn setting_name(id: &str, level: &str) -> String {
    fitting(&format!("{id}={level}"), |c| c.is_ascii_alphanumeric() || "-_=.,+".contains(c))
}

/// Adds one arm for each level that differs from the baseline's. Returns the parameters whose levels are left to the
/// machine.
pub(super) fn one_at_a_time(
    maker: &mut Maker<'_>,
    entry: &Entry,
    check: &mut Checker,
) -> Vec<String> {
    let factors = maker.factors(entry, check);
    for factor in &factors {
        let id = &factor.entry.key;
        let arms_before = maker.drafts.len();
        for (level, span) in &factor.levels {
            if maker.drafts[0].complete.get(id) == Some(level) {
                continue;
            }
            let settings = Settings::from([(id.clone(), level.clone())]);
            let mut draft = maker.draft(setting_name(id, level), settings, 0);
            draft.span = span.clone();
            draft.places = Places::from([(id.clone(), span.clone())]);
            maker.add(draft, check);
        }
        let none = maker.drafts.len() == arms_before && !factor.levels.is_empty();
        if none && !factor.growing {
            check
                .error(factor.entry.span.clone(), format!("`{id}` has only the baseline's level"))
                .hint("add another level");
        }
    }
    find_growing(&factors)
}

/// Reads the parameters that form strata: arms are compared with each other only at equal levels of these.
pub(super) fn read_strata(
    fields: &Fields<'_>,
    factors: &Entry,
    check: &mut Checker,
) -> Vec<String> {
    let Some(node) = fields.get("stratify") else {
        return Vec::new();
    };
    let nodes = match &node.value {
        Value::List(_) => check.list(node, "a factor").unwrap_or_default(),
        _ => std::slice::from_ref(node),
    };
    let Value::Mapping(factors) = &factors.value.value else {
        return Vec::new();
    };
    let names: Vec<&str> = factors.iter().map(|entry| &*entry.key).collect();
    let mut strata = Vec::new();
    for node in nodes {
        let Some(id) = check.text(node) else { continue };
        if names.contains(&&*id) {
            strata.push(id);
            continue;
        }
        let message = format!("`{}` is not a factor of this study", short(&id));
        check.error(node.span.clone(), message).nearest(nearest(&id, &names));
    }
    strata
}

/// Adds an arm for every combination of levels except the baseline's. Returns the parameters whose levels are left to
/// the machine.
///
/// Within `strata` each arm is compared with the one that has the same levels of these parameters and the baseline's
/// levels of all others.
pub(super) fn factorial(
    maker: &mut Maker<'_>,
    entry: &Entry,
    strata: &[String],
    check: &mut Checker,
) -> Vec<String> {
    let errors_before = check.count();
    let factors = maker.factors(entry, check);
    let is_sound = check.count() == errors_before;
    let growing = find_growing(&factors);
    let cells =
        factors.iter().fold(1_usize, |cells, factor| cells.saturating_mul(factor.levels.len()));
    if cells > MAX_ARMS {
        check
            .error(
                entry.span.clone(),
                format!("{cells} combinations are too many: at most {MAX_ARMS} arms are allowed"),
            )
            .hint("remove levels or factors, or use `one-at-a-time`");
        return growing;
    }
    let arms_before = maker.drafts.len();
    let mut all: Vec<Settings> = (0..cells).map(|cell| combination(&factors, cell)).collect();
    let of_baseline = maker.drafts[0].complete.clone();
    // What others are compared with comes before them.
    all.sort_by_key(|settings| {
        settings
            .iter()
            .any(|(id, level)| !strata.contains(id) && of_baseline.get(id) != Some(level))
    });
    let mut alone: Vec<Settings> = Vec::new();
    for settings in all {
        let mut draft = maker.draft(String::new(), settings, 0);
        if draft.complete == maker.drafts[0].complete {
            continue;
        }
        let names = draft.arm.changes.iter().map(|(id, level)| setting_name(id, level));
        draft.arm.name = names.collect::<Vec<_>>().join("+");
        draft.span = entry.span.clone();
        // A level that was refused may be the one that is missing.
        if !maker.compare_within(&mut draft, strata) && is_sound {
            let mut stratum = draft.arm.settings.clone();
            stratum.retain(|id, _| strata.contains(id));
            if !alone.contains(&stratum) {
                report_alone(&stratum, &factors, &maker.drafts[0], entry, check);
                alone.push(stratum);
            }
        }
        maker.add(draft, check);
    }
    let none = maker.drafts.len() == arms_before && cells > 0 && !factors.is_empty();
    if none && growing.is_empty() {
        check
            .error(entry.span.clone(), "every factor has only the baseline's level")
            .hint("add another level");
    }
    growing
}

/// Reports a stratum that lacks the arm which the others would be compared with.
fn report_alone(
    stratum: &Settings,
    factors: &[Factor<'_>],
    baseline: &Draft,
    entry: &Entry,
    check: &mut Checker,
) {
    let levels =
        stratum.iter().map(|(id, level)| format!("{id}={level}")).collect::<Vec<_>>().join(" and ");
    let message = format!("no arm has {levels} and the baseline's levels otherwise");
    let missing: Vec<&Factor<'_>> = factors
        .iter()
        .filter(|factor| {
            let level = baseline.complete.get(&factor.entry.key);
            let mut listed = factor.levels.iter();
            !stratum.contains_key(&factor.entry.key)
                && !listed.any(|(listed, _)| Some(listed) == level)
        })
        .collect();
    let is_open = missing.iter().any(|factor| !baseline.complete.contains_key(&factor.entry.key));
    let names = missing.iter().map(|factor| &*factor.entry.key).collect::<Vec<_>>().join("`, `");
    let hint = if is_open {
        format!("say in the proxy's `settings` what `{names}` is, and list that level too")
    } else {
        format!("list the baseline's level of `{names}` too")
    };
    check.error(entry.span.clone(), message).hint(hint);
}
