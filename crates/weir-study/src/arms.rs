//! Arms: the four ways to write them, and what must hold whichever way was taken.
//!
//! Two arms are the same when their settings are, with the program's defaults filled in. A level
//! that the baseline has already makes no arm in `one-at-a-time` and `factorial`, where it is a
//! natural thing to list, and is an error where somebody gave the arm a name.
//!
//! Levels may be left to the machine (`1..cpus`): then there are as many arms as it has room for.

use std::ops::Range;

use weir_model::study::{Arm, ArmRole, ProxySpec, Settings};
use weir_parameters::{Catalog, Severity};

use crate::check::{Checker, Fields, fitting};
use crate::factors::{self, Factor, combination, growing};
use crate::machine::CheckContext;
use crate::proxy::{self, Places};
use crate::tree::{Entry, Value};

/// Arms at most. A block passes over all of them, so intervals widen with their number.
const MAX_ARMS: usize = 64;
/// Ways to write arms; a study uses one.
const DESIGNS: [&str; 4] = ["arms", "one-at-a-time", "cumulative", "factorial"];
/// Name of the A/A arm.
const SAME: &str = "same-as-baseline";
const BASELINE: &str = "baseline";

/// An arm, and where it stands.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) arm: Arm,
    /// All its settings with the program's defaults filled in.
    complete: Settings,
    /// Where to point when the arm is meant.
    pub(crate) span: Range<usize>,
    /// Where its own settings stand.
    places: Places,
}

/// All arms, and what depends on the machine.
#[derive(Debug, Default)]
pub(crate) struct Arms {
    /// The baseline first. Empty when there is no proxy to make arms of.
    pub(crate) drafts: Vec<Draft>,
    /// Parameters whose levels the study leaves to the machine.
    growing: Vec<String>,
    /// What this machine has no room for, one sentence each.
    pub(crate) left_out: Vec<String>,
}

impl Arms {
    /// Whether a larger machine would have an arm of this name.
    pub(crate) fn would_be(&self, name: &str) -> bool {
        name.split_once('=').is_some_and(|(id, level)| {
            self.growing.iter().any(|growing| growing == id)
                && level.parse::<u64>().is_ok_and(|level| level > 0)
        })
    }
}

/// What every arm is made from.
struct Maker<'a> {
    proxy: &'a ProxySpec,
    catalog: &'a Catalog,
    context: &'a CheckContext,
    drafts: Vec<Draft>,
}

/// Reads all arms.
pub(crate) fn read(
    fields: &Fields<'_>,
    proxy: Option<&proxy::Draft>,
    catalog: &Catalog,
    context: &CheckContext,
    check: &mut Checker,
) -> Arms {
    let a_a = fields
        .get("a/a")
        .and_then(|node| check.flag(node))
        .unwrap_or(true);
    let baseline = fields.get("baseline").and_then(|node| check.arm_name(node));
    let design = design(fields, a_a, check);
    let Some(proxy) = proxy else {
        return Arms::default();
    };
    let mut maker = Maker {
        proxy: &proxy.spec,
        catalog,
        context,
        drafts: Vec::new(),
    };
    let baseline = baseline.unwrap_or_else(|| BASELINE.to_owned());
    maker.add_baseline(baseline, ArmRole::Baseline, proxy);
    if a_a {
        maker.add_baseline(SAME.to_owned(), ArmRole::SameAsBaseline, proxy);
    }
    let growing = match design {
        Some(entry) if entry.key == "one-at-a-time" => one_at_a_time(&mut maker, entry, check),
        Some(entry) if entry.key == "factorial" => factorial(&mut maker, entry, check),
        Some(entry) => {
            listed(&mut maker, entry, entry.key == "cumulative", check);
            Vec::new()
        }
        None => Vec::new(),
    };
    let drafts = maker.drafts;
    if drafts.len() > MAX_ARMS
        && let Some(entry) = design
    {
        let message = format!("{} arms are more than {MAX_ARMS}", drafts.len());
        check.error(entry.span.clone(), message);
    }
    check_conflicts(&drafts, proxy, catalog, context, check);
    let left_out = alone(&drafts, &growing).into_iter().collect();
    Arms {
        drafts,
        growing,
        left_out,
    }
}

/// What is said of a study whose levels all are the baseline's on this machine.
fn alone(drafts: &[Draft], growing: &[String]) -> Option<String> {
    let is_change = |draft: &Draft| draft.arm.role == ArmRole::Change;
    (!growing.is_empty() && !drafts.iter().any(is_change)).then(|| {
        format!(
            "this machine has no level of `{}` but the baseline's: nothing is compared with it",
            growing.join("`, `")
        )
    })
}

/// The one design that the study uses.
fn design<'n>(fields: &Fields<'n>, a_a: bool, check: &mut Checker) -> Option<&'n Entry> {
    let mut found = DESIGNS.iter().filter_map(|key| fields.entry(key));
    let first = found.next();
    for second in found {
        check
            .error(second.span.clone(), "a study has one way to write its arms")
            .hint(format!("one of {}", DESIGNS.join(", ")));
    }
    // A limit that holds or does not hold needs nothing to be compared with.
    if first.is_none() && !a_a && !has_limit(fields) {
        check
            .error(
                fields.span(),
                "nothing is compared: there are no arms besides the baseline",
            )
            .hint(format!(
                "add one of {}, or leave `a/a: false` out",
                DESIGNS.join(", ")
            ));
    }
    first
}

/// Whether the objective has an absolute limit.
fn has_limit(fields: &Fields<'_>) -> bool {
    let objective = fields.get("objective").map(|node| &node.value);
    matches!(objective, Some(Value::Mapping(entries)) if entries.iter().any(|e| e.key == "within"))
}

impl Maker<'_> {
    fn factors<'n>(&self, entry: &'n Entry, check: &mut Checker) -> Vec<Factor<'n>> {
        let reader = factors::Reader {
            kind: self.proxy.kind,
            catalog: self.catalog,
            context: self.context,
        };
        reader.read(entry, check)
    }

    fn add_baseline(&mut self, name: String, role: ArmRole, proxy: &proxy::Draft) {
        let settings = self.proxy.settings.clone();
        self.drafts.push(Draft {
            complete: self.catalog.complete(self.proxy.kind, &settings),
            arm: Arm {
                name,
                role,
                changes: Settings::new(),
                against: 0,
                settings,
            },
            span: proxy.span.clone(),
            places: proxy.places.clone(),
        });
    }

    /// An arm that puts `own` over the settings of `against`.
    fn draft(&self, name: String, own: Settings, against: usize) -> Draft {
        let before = &self.drafts[against];
        let mut settings = before.arm.settings.clone();
        settings.extend(own.clone());
        let changes = own
            .into_iter()
            .filter(|(id, level)| before.complete.get(id) != Some(level))
            .collect();
        Draft {
            complete: self.catalog.complete(self.proxy.kind, &settings),
            arm: Arm {
                name,
                role: ArmRole::Change,
                changes,
                against,
                settings,
            },
            span: 0..0,
            places: Places::new(),
        }
    }

    /// Adds an arm unless another has its name or its settings, which is reported.
    fn add(&mut self, draft: Draft, check: &mut Checker) {
        if self
            .drafts
            .iter()
            .any(|other| other.arm.name == draft.arm.name)
        {
            let message = format!("a second arm is named `{}`", draft.arm.name);
            let error = check.error(draft.span.clone(), message);
            if draft.arm.name == SAME {
                error.hint("weir adds this arm itself unless the study says `a/a: false`");
            }
        } else if let Some(same) = self
            .drafts
            .iter()
            .find(|other| other.complete == draft.complete)
        {
            let (message, hint) = match same.arm.role {
                ArmRole::Change => (
                    format!(
                        "arm `{}` has the same settings as arm `{}`",
                        draft.arm.name, same.arm.name
                    ),
                    "leave one of them out",
                ),
                _ => (
                    format!("arm `{}` has the settings of the baseline", draft.arm.name),
                    "`a/a: true`, which is the default, measures the baseline twice",
                ),
            };
            check.error(draft.span.clone(), message).hint(hint);
        }
        self.drafts.push(draft);
    }
}

/// `arms` and `cumulative`: a list of names and settings.
fn listed(maker: &mut Maker<'_>, entry: &Entry, cumulative: bool, check: &mut Checker) {
    let wanted = "a list of arms such as `{name: no-gzip, settings: {gzip: off}}`";
    for node in check.list(&entry.value, wanted).unwrap_or_default() {
        let Some(fields) = Fields::known(node, "an arm", &["name", "settings"], check) else {
            continue;
        };
        let name = fields.required("name", check);
        let span = name.map_or(fields.span(), |node| node.span.clone());
        let name = name.and_then(|node| check.arm_name(node));
        let errors_before = check.count();
        let settings = fields.required("settings", check);
        let (own, places) = settings
            .map(|node| {
                let kind = maker.proxy.kind;
                proxy::read_settings(node, kind, maker.catalog, maker.context, check)
            })
            .unwrap_or_default();
        // Steps build on the one before; the first on the baseline, not on the A/A arm.
        let against = match (cumulative, maker.drafts.last()) {
            (true, Some(last)) if last.arm.role == ArmRole::Change => maker.drafts.len() - 1,
            _ => 0,
        };
        let sound = name.is_some() && check.count() == errors_before;
        let mut draft = maker.draft(name.unwrap_or_default(), own, against);
        draft.span = span;
        draft.places = places;
        match sound {
            true => maker.add(draft, check),
            // What is left of a broken arm (an empty name, for one that was refused) says nothing
            // about duplicates, but steps build on it and published figures may name it.
            false => maker.drafts.push(draft),
        }
    }
}

/// `keepalive_requests=100`, fit for a file.
fn setting_name(id: &str, level: &str) -> String {
    let fit = |c: char| c.is_ascii_alphanumeric() || "-_=.,+".contains(c);
    fitting(&format!("{id}={level}"), fit)
}

/// One arm per level that the baseline does not have. Gives the parameters that are left to the
/// machine.
fn one_at_a_time(maker: &mut Maker<'_>, entry: &Entry, check: &mut Checker) -> Vec<String> {
    let factors = maker.factors(entry, check);
    for factor in &factors {
        let id = &factor.entry.key;
        let arms_before = maker.drafts.len();
        for (level, span) in &factor.levels {
            if maker.drafts[0].complete.get(id) == Some(level) {
                continue;
            }
            let own = Settings::from([(id.clone(), level.clone())]);
            let mut draft = maker.draft(setting_name(id, level), own, 0);
            draft.span = span.clone();
            draft.places = Places::from([(id.clone(), span.clone())]);
            maker.add(draft, check);
        }
        let none = maker.drafts.len() == arms_before && !factor.levels.is_empty();
        if none && !factor.growing {
            check
                .error(
                    factor.entry.span.clone(),
                    format!("`{id}` has the baseline's level only"),
                )
                .hint("add a level that differs");
        }
    }
    growing(&factors)
}

/// Every combination of levels but the baseline's own. Gives the parameters that are left to the
/// machine.
fn factorial(maker: &mut Maker<'_>, entry: &Entry, check: &mut Checker) -> Vec<String> {
    let factors = maker.factors(entry, check);
    let growing = growing(&factors);
    let cells = factors.iter().fold(1_usize, |cells, factor| {
        cells.saturating_mul(factor.levels.len())
    });
    if cells > MAX_ARMS {
        check
            .error(
                entry.span.clone(),
                format!("{cells} combinations are more than {MAX_ARMS} arms"),
            )
            .hint("take levels or factors away, or use `one-at-a-time`");
        return growing;
    }
    let arms_before = maker.drafts.len();
    for cell in 0..cells {
        let own = combination(&factors, cell);
        let mut draft = maker.draft(String::new(), own, 0);
        if draft.complete == maker.drafts[0].complete {
            continue;
        }
        let names = draft
            .arm
            .changes
            .iter()
            .map(|(id, level)| setting_name(id, level));
        draft.arm.name = names.collect::<Vec<_>>().join("+");
        draft.span = entry.span.clone();
        maker.add(draft, check);
    }
    let none = maker.drafts.len() == arms_before && cells > 0 && !factors.is_empty();
    if none && growing.is_empty() {
        check
            .error(
                entry.span.clone(),
                "every factor has the baseline's level only",
            )
            .hint("add a level that differs");
    }
    growing
}

/// Settings that cannot go together, each said once where it first appears.
fn check_conflicts(
    drafts: &[Draft],
    proxy: &proxy::Draft,
    catalog: &Catalog,
    context: &CheckContext,
    check: &mut Checker,
) {
    let mut said = Vec::new();
    for draft in drafts {
        let conflicts = catalog.conflicts(
            proxy.spec.kind,
            &draft.arm.settings,
            &proxy.spec.role,
            context.descriptor_limit,
        );
        for conflict in conflicts {
            if conflict.severity != Severity::Error || said.contains(&conflict) {
                continue;
            }
            let place = conflict.ids.iter().find_map(|id| draft.places.get(id));
            let span = place.unwrap_or(&draft.span).clone();
            check
                .error(span, conflict.message.clone())
                .hint(conflict.hint.clone());
            said.push(conflict);
        }
    }
}
