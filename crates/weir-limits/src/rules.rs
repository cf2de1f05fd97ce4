//! The rules: `limits/rules.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;
use weir_model::study::ProxyKind;

use crate::error::{DataError, read};
use crate::evidence::Evidence;
use crate::misfit::{self, Misfit};
use crate::quantities::{Derivation, Quantities};
use crate::window::Role;

/// Key of `turn` for the proxies that have no list of their own.
const EVERY: &str = "every";

/// Direction in which to change a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TurnDirection {
    /// Increase, or update to a newer version.
    Up,
    /// Decrease.
    Down,
    /// Set to this level.
    To(String),
    /// Either direction, depending on the case.
    Either,
}

/// A parameter to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "String")]
pub struct Turn {
    /// Id of the parameter in the catalog.
    pub parameter: String,
    /// Direction of the change.
    pub way: TurnDirection,
}

impl From<String> for Turn {
    /// Parses `worker_connections up`, `access_log off`, `http_reuse =always`.
    fn from(text: String) -> Turn {
        let (parameter, level) = text.split_once(' ').unwrap_or((&text, ""));
        let direction = match level {
            "up" => TurnDirection::Up,
            "down" => TurnDirection::Down,
            "" => TurnDirection::Either,
            level => TurnDirection::To(level.strip_prefix('=').unwrap_or(level).to_owned()),
        };
        Turn { parameter: parameter.to_owned(), way: direction }
    }
}

/// A bound of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The value has to exceed this one.
    Above(f64),
    /// The value has to stay below this one.
    Below(f64),
    /// Minimum ratio of the value to that at a low load.
    Grows(f64),
}

/// A condition on a quantity.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Name of the quantity.
    pub quantity: Spanned<String>,
    /// Quantity to divide by, if the condition is about a share.
    #[serde(default)]
    pub of: Option<String>,
    /// Bound that the value has to exceed.
    #[serde(default)]
    above: Option<f64>,
    /// Bound that the value has to stay below.
    #[serde(default)]
    below: Option<f64>,
    /// Minimum ratio to the value at a low load.
    #[serde(default)]
    grows: Option<f64>,
    /// Weight added to the score of the limiter if the condition holds.
    #[serde(default)]
    pub weight: f64,
    /// Weight subtracted from the score if the condition is known not to hold.
    #[serde(default)]
    pub against: f64,
}

impl Condition {
    /// Returns the bound of the value; of a share of another quantity, that of the share.
    pub fn bound(&self) -> Bound {
        match (self.above, self.below, self.grows) {
            (Some(above), _, _) => Bound::Above(above),
            (_, Some(below), _) => Bound::Below(below),
            (_, _, grows) => Bound::Grows(grows.unwrap_or(1.0)),
        }
    }

    /// Returns the names of the quantities that it uses.
    pub(crate) fn quantities(&self) -> impl Iterator<Item = &String> {
        [&self.quantity.value].into_iter().chain(&self.of)
    }

    /// Returns the quantities it uses that are unknown.
    pub(crate) fn missing(&self, evidence: &Evidence) -> Vec<String> {
        self.quantities()
            .filter(|name| {
                let fact = evidence.quantities.get(*name);
                let is_needed_low = matches!(self.bound(), Bound::Grows(_));
                fact.is_none_or(|fact| is_needed_low && fact.at_low_load.is_none())
            })
            .cloned()
            .collect()
    }

    /// Returns the quantities it uses that cover only some of the proxy's pods.
    pub(crate) fn partly(&self, evidence: &Evidence) -> Vec<String> {
        self.quantities()
            .filter(|name| {
                let fact = evidence.quantities.get(*name);
                fact.is_some_and(|fact| fact.read_of.is_some())
            })
            .cloned()
            .collect()
    }

    /// Returns true if the condition holds; `None` if unknown. The result for partly read quantities is about the pods
    /// that were read.
    pub(crate) fn holds(&self, evidence: &Evidence) -> Option<bool> {
        let fact = evidence.quantities.get(&self.quantity.value)?;
        let total = match &self.of {
            Some(of) => Some(evidence.quantities.get(of)?),
            None => None,
        };
        // A share of nothing is nothing that could be known.
        let value = divide(fact.value, total.map(|of| of.value))?;
        Some(match self.bound() {
            Bound::Above(above) => value > above,
            Bound::Below(below) => value < below,
            Bound::Grows(factor) => {
                let low = match total {
                    Some(of) => Some(of.at_low_load?),
                    None => None,
                };
                let low = divide(fact.at_low_load?, low)?;
                value > 0.0 && value >= factor * low
            }
        })
    }
}

/// A set of conditions that indicates a limiter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Name of the limiter: stable from version to version.
    pub limiter: Spanned<String>,
    /// Role whose resource it is.
    pub role: Role,
    /// Proxies that can have this limiter; empty for all.
    #[serde(default)]
    pub proxies: Vec<ProxyKind>,
    /// Initial score, without any evidence.
    pub prior: f64,
    /// Conditions that all have to hold.
    pub symptoms: Vec<Condition>,
    /// True if the limiter always shows in this way: if these symptoms are refuted, it does not matter that other rules
    /// of the limiter cannot be judged.
    #[serde(default)]
    pub settles: bool,
    /// Conditions that raise or lower the score.
    #[serde(default)]
    pub supports: Vec<Condition>,
    /// Conditions each of which rules the limiter out.
    #[serde(default)]
    pub contradicts: Vec<Condition>,
    /// Limiters that are consequences of this one, if they are shown as well.
    #[serde(default)]
    pub explains: Vec<Spanned<String>>,
    /// Limiters that are named before this one, if they are shown as well.
    #[serde(default)]
    pub yields_to: Vec<Spanned<String>>,
    /// Conditions each of which cancels `yields_to`.
    #[serde(default)]
    pub stands_when: Vec<Condition>,
    /// Parameters to change by proxy, the most important first; `every` is for proxies without a list.
    #[serde(default)]
    pub turn: BTreeMap<String, Vec<Turn>>,
    /// Description of the limiter, with names of quantities in braces.
    pub says: String,
    /// Advice on how to remove the limit.
    #[serde(rename = "do")]
    pub advice: String,
    /// Reference that documents the mechanism.
    pub source: String,
    /// Identifiers of `weir doctor` findings that predict it.
    #[serde(default)]
    pub doctor: Vec<String>,
}

impl Rule {
    /// Returns the parameters to change for a proxy (`None`: unknown).
    pub fn turns(&self, proxy: Option<ProxyKind>) -> &[Turn] {
        let turns = proxy.and_then(|proxy| self.turn.get(proxy.name()));
        turns.or_else(|| self.turn.get(EVERY)).map_or(&[], Vec::as_slice)
    }

    /// Returns true if this proxy can have the limiter (`None`: unknown proxy, always true).
    pub(crate) fn is_of(&self, proxy: Option<ProxyKind>) -> bool {
        self.proxies.is_empty() || proxy.is_none_or(|proxy| self.proxies.contains(&proxy))
    }

    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.symptoms.iter().chain(&self.supports).chain(&self.contradicts).chain(&self.stands_when)
    }

    /// Returns true if the other rule's limiter is named before this one when both are shown.
    pub(crate) fn comes_after(&self, other: &Rule) -> bool {
        let limiter = &self.limiter.value;
        let goes_first = &other.limiter.value;
        other.explains.iter().any(|name| name.value == *limiter)
            || self.yields_to.iter().any(|name| name.value == *goes_first)
    }

    fn others(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.explains.iter().chain(&self.yields_to)
    }
}

/// All rules, in the order of the file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Factor for all weights, because conditions depend on each other.
    pub(crate) shrink: f64,
    /// Minimum score of a finding.
    pub(crate) shown_from: f64,
    /// Limiters that are proven by taking CPU time from their role.
    #[serde(default)]
    take_away: Vec<Spanned<String>>,
    /// Limiters that delay answers but hardly reduce their number.
    #[serde(default)]
    late: Vec<Spanned<String>>,
    /// Hints that do not fit every arm.
    #[serde(default)]
    misfits: Vec<Misfit>,
    rules: Vec<Rule>,
    /// Quantities that can be exhausted, with the value at which they are, in the order of their file.
    #[serde(skip)]
    pub(crate) full: Vec<(String, f64)>,
}

impl Rules {
    /// Returns the rules that are built into weir.
    pub fn builtin() -> &'static Rules {
        static BUILTIN: OnceLock<Rules> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            let text = include_str!("../../../limits/rules.yaml");
            Rules::parse("limits/rules.yaml", text, Quantities::builtin())
                .expect("embedded data, which the tests of this crate read")
        })
    }

    /// Parses a file and checks it against the quantities.
    ///
    /// # Errors
    /// Fails if the text is not a file of rules; if a rule refers to a quantity or a limiter that does not exist, has a
    /// description with a quantity that is no symptom, lacks symptoms, or has a condition without exactly one bound; or
    /// if rules explain each other in a circle.
    pub fn parse(file: &str, text: &str, quantities: &Quantities) -> Result<Rules, DataError> {
        let mut all: Rules = read(file, text)?;
        let names: BTreeSet<&str> =
            all.rules.iter().map(|rule| rule.limiter.value.as_str()).collect();
        let unknown = all
            .rules
            .iter()
            .flat_map(Rule::others)
            .chain(&all.take_away)
            .chain(&all.late)
            .chain(all.misfits.iter().flat_map(|misfit| &misfit.of))
            .find(|other| !names.contains(other.value.as_str()));
        if let Some(other) = unknown {
            let message = format!("there is no limiter `{}`", other.value);
            return Err(DataError::at(file, other, message));
        }
        for misfit in &all.misfits {
            check_misfit(misfit, quantities)
                .map_err(|(place, what)| DataError::at(file, place, what))?;
        }
        for rule in &all.rules {
            for condition in rule.conditions() {
                check(condition, quantities)
                    .map_err(|what| DataError::at(file, &condition.quantity, what))?;
            }
            check_rule(rule, quantities)
                .map_err(|what| DataError::at(file, &rule.limiter, what))?;
        }
        if let Some(rule) = all.rules.iter().find(|rule| all.is_before_itself(&rule.limiter.value))
        {
            let message = format!(
                "`{}` is explained by, or yields to, itself in a circle",
                rule.limiter.value
            );
            return Err(DataError::at(file, &rule.limiter, message));
        }
        let full = quantities.all().iter();
        all.full = full
            .filter_map(|quantity| Some((quantity.name.value.clone(), quantity.full?)))
            .collect();
        Ok(all)
    }

    /// Returns all rules.
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns true if changing a parameter can help an arm in which it has this level (`None`: unknown), as far as the
    /// evidence shows.
    pub fn hint_fits(
        &self,
        limiter: &str,
        turn: (&str, &TurnDirection, Option<&str>),
        evidence: &Evidence,
    ) -> bool {
        misfit::fits(&self.misfits, limiter, turn, evidence)
    }

    /// Returns the rules of a limiter that apply to a proxy (`None`: unknown).
    pub(crate) fn rows<'a>(
        &'a self,
        limiter: &'a str,
        proxy: Option<ProxyKind>,
    ) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(move |rule| rule.limiter.value == limiter && rule.is_of(proxy))
    }

    /// Returns true if a limiter is proven by taking CPU time from its role.
    pub fn takes_away(&self, limiter: &str) -> bool {
        self.take_away.iter().any(|one| one.value == limiter)
    }

    /// Returns true if a limiter delays some answers but hardly reduces their number.
    pub fn is_late(&self, limiter: &str) -> bool {
        self.late.iter().any(|one| one.value == limiter)
    }

    /// Returns the names of the limiters, without duplicates, in the order of the file.
    pub fn limiters(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for rule in &self.rules {
            if !names.contains(&rule.limiter.value.as_str()) {
                names.push(&rule.limiter.value);
            }
        }
        names
    }

    /// Returns true if a limiter would have to be named before itself.
    fn is_before_itself(&self, limiter: &str) -> bool {
        let mut reached = BTreeSet::new();
        let mut open = vec![limiter];
        while let Some(limiter_name) = open.pop() {
            for rule in &self.rules {
                let name = rule.limiter.value.as_str();
                let mut explained =
                    rule.explains.iter().filter(|other| other.value == limiter_name);
                if explained.next().is_some() && reached.insert(name) {
                    open.push(name);
                }
                if name == limiter_name {
                    for other in &rule.yields_to {
                        if reached.insert(other.value.as_str()) {
                            open.push(&other.value);
                        }
                    }
                }
            }
        }
        reached.contains(limiter)
    }
}

fn check_misfit<'m>(
    misfit: &'m Misfit,
    quantities: &Quantities,
) -> Result<(), (&'m Spanned<String>, String)> {
    if let Some(condition) = &misfit.when {
        check(condition, quantities).map_err(|what| (&condition.quantity, what))?;
    }
    let unknown = misfit.measures().find(|name| quantities.get(&name.value).is_none());
    match unknown {
        Some(name) => Err((name, format!("there is no quantity `{}`", name.value))),
        None => Ok(()),
    }
}

fn check(condition: &Condition, quantities: &Quantities) -> Result<(), String> {
    if let Some(name) = condition.quantities().find(|name| quantities.get(name).is_none()) {
        return Err(format!("there is no quantity `{name}`"));
    }
    let bounds = [condition.above, condition.below, condition.grows];
    match bounds.iter().flatten().count() {
        1 => Ok(()),
        _ => Err("a condition has one of `above`, `below` and `grows`".to_owned()),
    }
}

fn check_rule(rule: &Rule, quantities: &Quantities) -> Result<(), String> {
    if rule.symptoms.is_empty() {
        return Err("a rule has symptoms".to_owned());
    }
    // Where a ratio is known, so is what it is made of.
    let mut open: Vec<&String> = rule.symptoms.iter().flat_map(Condition::quantities).collect();
    let mut symptoms = BTreeSet::new();
    while let Some(name) = open.pop() {
        symptoms.insert(name.as_str());
        if let Some(Derivation::Ratio { of, by }) = quantities.get(name).map(|one| &one.from) {
            open.extend([of, by]);
        }
    }
    if let Some(slot) = slots(&rule.says).find(|slot| !symptoms.contains(slot)) {
        return Err(format!("it says `{slot}`, which is no symptom, so it may be unknown"));
    }
    let mut names = rule.turn.keys();
    match names.find(|name| {
        *name != EVERY && ProxyKind::ALL.iter().all(|kind| kind.name() != name.as_str())
    }) {
        Some(name) => Err(format!("`{name}` is no proxy")),
        None => Ok(()),
    }
}

/// Returns the names in braces of a sentence.
fn slots(sentence: &str) -> impl Iterator<Item = &str> {
    sentence.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name))
}

/// Returns the value, or its share of a total; a share of nothing is nothing that could be known.
fn divide(value: f64, total: Option<f64>) -> Option<f64> {
    match total {
        Some(0.0) => None,
        Some(total) => Some(value / total),
        None => Some(value),
    }
}
