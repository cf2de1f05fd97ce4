//! Arms: the four ways to write them, and the checks that apply to all four.
//!
//! Two arms are the same if their settings are the same after the program's defaults are filled in. Copies of a user's
//! configuration are an exception, because its contents are not known here. A level that the baseline has already makes
//! no arm in `one-at-a-time` and `factorial`, where it is natural to list it, and is an error in an arm that was named
//! explicitly.
//!
//! Levels may be left to the machine (`1..cpus`): then there are as many arms as the machine has room for.

mod cpus;
mod designs;
mod placed;

use std::ops::Range;

use weir_model::study::{Arm, ArmRole, CpuRoles, ProxyKind, ProxySpec, Settings};
use weir_parameters::{Catalog, Severity};

use self::designs::{factorial, listed, one_at_a_time, read_strata};
use crate::check::{Checker, Fields};
use crate::factors::Factor;
use crate::machine::CheckContext;
use crate::proxy::{self, Levels, Places};
use crate::tree::{Entry, Value};

/// Maximum number of arms. A block passes over all of them, so intervals widen with their number.
const MAX_ARMS: usize = 64;
/// Ways to write arms. A study uses one.
const DESIGNS: [&str; 4] = ["arms", "one-at-a-time", "cumulative", "factorial"];
/// Name of the A/A arm.
const SAME: &str = "same-as-baseline";
const BASELINE: &str = "baseline";

/// An arm, and its position in the text.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) arm: Arm,
    /// All settings of the arm, with the known values of those that are not set.
    complete: Settings,
    /// Position to report errors of the arm at.
    pub(crate) span: Range<usize>,
    /// Positions of the arm's own settings.
    places: Places,
}

/// All arms, and their dependence on the machine.
#[derive(Debug, Default)]
pub(crate) struct Arms {
    /// Arms, baseline first. Empty if there is no valid proxy.
    pub(crate) drafts: Vec<Draft>,
    /// Parameters whose levels the study leaves to the machine.
    growing: Vec<String>,
    /// Remarks on arms that this machine has no room for, one sentence each.
    pub(crate) left_out: Vec<String>,
}

impl Draft {
    /// Returns the arm's proxy, its own or the study's.
    pub(crate) fn proxy<'a>(&'a self, of_study: &'a ProxySpec) -> &'a ProxySpec {
        self.arm.proxy.as_deref().unwrap_or(of_study)
    }

    /// Returns the position of a setting, or of the arm if the setting is not the arm's own.
    pub(crate) fn place_of(&self, id: &str) -> Range<usize> {
        self.places.get(id).unwrap_or(&self.span).clone()
    }

    /// Returns true if both arms are the same system under test.
    fn is_same(&self, other: &Draft, of_study: &ProxySpec) -> bool {
        let (proxy, other_proxy) = (self.proxy(of_study), other.proxy(of_study));
        self.complete == other.complete
            && proxy.kind == other_proxy.kind
            && proxy.executable == other_proxy.executable
            && proxy.configuration == other_proxy.configuration
            && proxy.external == other_proxy.external
    }
}

impl Arms {
    /// Returns true if a larger machine would have an arm with this name.
    pub(crate) fn would_be(&self, name: &str) -> bool {
        name.split_once('=').is_some_and(|(id, level)| {
            self.growing.iter().any(|growing| growing == id)
                && level.parse::<u64>().is_ok_and(|level| level > 0)
        })
    }
}

/// State that every arm is made from.
struct Maker<'a> {
    proxy: &'a ProxySpec,
    catalog: &'a Catalog,
    context: &'a CheckContext,
    /// Maximum number of a proxy's CPUs, if known.
    proxy_cpus: Option<u64>,
    drafts: Vec<Draft>,
}

/// Reads all arms.
pub(crate) fn read(
    fields: &Fields<'_>,
    proxy: Option<&proxy::Draft>,
    cpus: Option<&CpuRoles>,
    catalog: &Catalog,
    context: &CheckContext,
    check: &mut Checker,
) -> Arms {
    let a_a = fields
        .get("a/a")
        .and_then(|node| check.flag(node))
        // Searches side by side are at another rate at every time: two of the same would tell nothing about a third. Of
        // those that come one after the other, they tell what changed in between.
        .unwrap_or_else(|| !asks_for(fields, "capacity") || takes_turns(fields, proxy));
    let baseline = fields
        .get("baseline")
        .and_then(|node| check.arm_name(node))
        .unwrap_or_else(|| BASELINE.to_owned());
    let design = find_design(fields, a_a, check);
    if let Some(entry) = fields.entry("stratify")
        && design.is_none_or(|design| design.key != "factorial")
    {
        let message = "`stratify` is for a `factorial` study";
        check.error(entry.span.clone(), message);
    }
    let Some(proxy) = proxy else {
        return Arms::default();
    };
    let proxy_cpus = cpus.map(|roles| roles.proxy.cpus().len() as u64).or(context.proxy_cpus());
    let mut maker = Maker { proxy: &proxy.spec, catalog, context, proxy_cpus, drafts: Vec::new() };
    maker.add_baseline(baseline, ArmRole::Baseline, proxy);
    if a_a {
        maker.add_baseline(SAME.to_owned(), ArmRole::SameAsBaseline, proxy);
    }
    let growing = match design {
        Some(entry) if entry.key == "one-at-a-time" => one_at_a_time(&mut maker, entry, check),
        Some(entry) if entry.key == "factorial" => {
            let strata = read_strata(fields, entry, check);
            factorial(&mut maker, entry, &strata, check)
        }
        Some(entry) => {
            listed(&mut maker, entry, entry.key == "cumulative", check);
            Vec::new()
        }
        None => Vec::new(),
    };
    let mut drafts = maker.drafts;
    cpus::give_workers(&mut drafts, (&proxy.spec, proxy.span.clone()), catalog, check);
    if drafts.len() > MAX_ARMS
        && let Some(entry) = design
    {
        let message = format!("{} arms are too many: at most {MAX_ARMS} are allowed", drafts.len());
        check.error(entry.span.clone(), message);
    }
    check_conflicts(&drafts, proxy, catalog, context, check);
    let left_out = alone(&drafts, &growing).into_iter().collect();
    let arms = Arms { drafts, growing, left_out };
    placed::check_arms(&arms, proxy, catalog, check);
    arms
}

/// Returns a remark on a study whose levels are all the baseline's on this machine.
fn alone(drafts: &[Draft], growing: &[String]) -> Option<String> {
    (!growing.is_empty() && !drafts.iter().any(|draft| draft.arm.role == ArmRole::Change)).then(|| {
        format!(
            "on this machine `{}` has only the baseline's level, so there is nothing to compare",
            growing.join("`, `")
        )
    })
}

/// Returns the one design that the study uses.
fn find_design<'n>(fields: &Fields<'n>, a_a: bool, check: &mut Checker) -> Option<&'n Entry> {
    let mut designs = DESIGNS.iter().filter_map(|key| fields.entry(key));
    let first = designs.next();
    for second in designs {
        check
            .error(second.span.clone(), "a study can write its arms in one way only")
            .hint(format!("keep one of {}", DESIGNS.join(", ")));
    }
    // A limit that holds or does not hold needs nothing to be compared with.
    let has_limit = asks_for(fields, "within") || asks_for(fields, "capacity");
    if first.is_none() && !a_a && !has_limit {
        check
            .error(fields.span(), "there is nothing to compare: the baseline is the only arm")
            .hint(format!("add one of {}, or leave `a/a: false` out", DESIGNS.join(", ")));
    }
    first
}

/// Returns true if arms use the proxy of one controller in turn.
fn takes_turns(fields: &Fields<'_>, proxy: Option<&proxy::Draft>) -> bool {
    let controller = proxy.and_then(|proxy| proxy.spec.controller.as_ref());
    let is_one = controller.is_some_and(|controller| controller.beside.is_empty());
    is_one && DESIGNS.iter().any(|key| fields.entry(key).is_some())
}

/// Returns true if the objective has this key.
fn asks_for(fields: &Fields<'_>, key: &str) -> bool {
    let objective = fields.get("objective").map(|node| &node.value);
    matches!(objective, Some(Value::Mapping(entries)) if entries.iter().any(|e| e.key == key))
}

impl Maker<'_> {
    fn levels(&self, kind: ProxyKind) -> Levels<'_> {
        let (catalog, context) = (self.catalog, self.context);
        Levels { kind, catalog, context, proxy_cpus: self.proxy_cpus }
    }

    fn factors<'n>(&self, entry: &'n Entry, check: &mut Checker) -> Vec<Factor<'n>> {
        let kind = self.proxy.kind;
        let factors = self.levels(kind).factors(entry, check);
        for entry in factors.iter().map(|factor| factor.entry) {
            proxy::refuse_external(kind, &entry.key, entry.span.clone(), check);
        }
        factors
    }

    /// Completes the `settings` of an arm with the known values of those that are not set.
    fn complete(&self, proxy: &ProxySpec, settings: &Settings) -> Settings {
        match (&proxy.configuration, &proxy.controller) {
            // Nobody has asked the controller yet, and it may say anything.
            (_, Some(_)) => settings.clone(),
            // Nobody has read the user's file yet, and it may say something else.
            (Some(_), _) => self.catalog.complete_start(settings),
            (None, None) => self.catalog.complete_arm(proxy.kind, settings),
        }
    }

    fn add_baseline(&mut self, name: String, role: ArmRole, proxy: &proxy::Draft) {
        let settings = self.proxy.settings.clone();
        self.drafts.push(Draft {
            complete: self.complete(self.proxy, &settings),
            arm: Arm {
                name,
                role,
                changes: Settings::new(),
                against: 0,
                settings,
                proxy: None,
                cpus: None,
                taken: None,
            },
            span: proxy.span.clone(),
            places: proxy.places.clone(),
        });
    }

    /// Creates an arm with the settings of arm `against`, overridden by `own`.
    fn draft(&self, name: String, own: Settings, against: usize) -> Draft {
        let before = &self.drafts[against];
        let mut settings = before.arm.settings.clone();
        settings.extend(own.clone());
        let changes =
            own.into_iter().filter(|(id, level)| before.complete.get(id) != Some(level)).collect();
        Draft {
            complete: self.complete(self.proxy, &settings),
            arm: Arm {
                name,
                role: ArmRole::Change,
                changes,
                against,
                settings,
                proxy: None,
                cpus: None,
                taken: None,
            },
            span: 0..0,
            places: Places::new(),
        }
    }

    /// Makes an arm be compared with the arm of its stratum that has the baseline's levels otherwise. Returns false if
    /// there is none.
    fn compare_within(&self, draft: &mut Draft, strata: &[String]) -> bool {
        let mut wanted = self.drafts[0].complete.clone();
        for id in strata {
            match draft.complete.get(id) {
                Some(level) => wanted.insert(id.clone(), level.clone()),
                None => wanted.remove(id),
            };
        }
        if draft.complete == wanted {
            return true;
        }
        let mut drafts = self.drafts.iter();
        let Some(against) = drafts.position(|other| other.complete == wanted) else {
            return false;
        };
        draft.arm.against = against;
        let before = &self.drafts[against].complete;
        let changes = &mut draft.arm.changes;
        changes.retain(|id, level| before.get(id) != Some(&*level));
        true
    }

    /// Creates an arm with its own proxy, whose settings `own` overrides.
    fn draft_of(&self, name: String, proxy: ProxySpec, own: Settings) -> Draft {
        let mut settings = proxy.settings.clone();
        settings.extend(own.clone());
        Draft {
            complete: self.complete(&proxy, &settings),
            arm: Arm {
                name,
                role: ArmRole::Change,
                changes: own,
                against: 0,
                settings,
                proxy: Some(Box::new(proxy)),
                cpus: None,
                taken: None,
            },
            span: 0..0,
            places: Places::new(),
        }
    }

    /// Adds an arm. If another has the same name or the same settings, an error is reported.
    fn add(&mut self, draft: Draft, check: &mut Checker) {
        let name = &draft.arm.name;
        let mut names = self.drafts.iter().map(|other| &other.arm.name);
        if let Some(other) = names.find(|other| other.eq_ignore_ascii_case(name)) {
            let message = if other == name {
                format!("a second arm is named `{name}`")
            } else {
                // A name is a folder's too, and not every file system tells them apart.

                format!("`{name}` and `{other}` differ in upper and lower case only")
            };
            let error = check.error(draft.span.clone(), message);
            if name == SAME {
                error.hint(
                    "weir adds an arm of this name itself, unless the study says `a/a: false`",
                );
            }
        } else if let Some(same) =
            self.drafts.iter().find(|other| other.is_same(&draft, self.proxy))
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
                    format!("arm `{}` has the same settings as the baseline", draft.arm.name),
                    "`a/a: true`, which is the default, measures the baseline twice",
                ),
            };
            check.error(draft.span.clone(), message).hint(hint);
        }
        self.drafts.push(draft);
    }
}

/// Reports settings that exclude each other, each conflict once where it first occurs.
fn check_conflicts(
    drafts: &[Draft],
    proxy: &proxy::Draft,
    catalog: &Catalog,
    context: &CheckContext,
    check: &mut Checker,
) {
    let mut reported = Vec::new();
    for draft in drafts {
        let of_arm = draft.proxy(&proxy.spec);
        let conflicts = catalog.conflicts(
            of_arm.kind,
            &draft.arm.settings,
            &of_arm.role,
            context.unsaid(of_arm),
        );
        for conflict in conflicts {
            if conflict.severity != Severity::Error || reported.contains(&conflict) {
                continue;
            }
            let setting_span = conflict.ids.iter().find_map(|id| draft.places.get(id));
            let span = setting_span.unwrap_or(&draft.span).clone();
            check.error(span, conflict.message.clone()).hint(conflict.hint.clone());
            reported.push(conflict);
        }
    }
}
