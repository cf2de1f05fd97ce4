//! Counts how often a finding is right, by limiter, score, and whether every limiter that is commonly mistaken for it
//! could be judged.

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use weir_limits::{Band, Certainty, Figure, Finding, HostSamples, Reliability, Trial};
use weir_model::sample::Counters;
use weir_model::study::ProxyKind;
use weir_stats::SplitMix64;

use crate::host::Dice;
use crate::one;
use crate::plants::{PLANTS, Plant, UNKNOWN};

/// Share of tables that cannot be read in [`Access::Without`].
const LOST: f64 = 0.15;

/// Data of a trial that can be read. It does not depend on the planted limit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Access {
    /// Everything, except for an occasional counter.
    Whole,
    /// Everything except these tables.
    Without(Vec<String>),
    /// Data that root can read for a server that weir did not start: no settings, no counters of its own, and possibly
    /// nothing about its origin.
    Foreign { has_origin: bool },
}

impl Access {
    pub(crate) fn without(tables: &[&str]) -> Access {
        Access::Without(tables.iter().map(|name| (*name).to_owned()).collect())
    }

    fn random(dice: &mut Dice) -> Access {
        let draw = dice.0.unit();
        if draw < 0.4 {
            return Access::Whole;
        }
        if draw < 0.7 {
            let has_origin = dice.chance(0.5);
            return Access::Foreign { has_origin };
        }
        let lost = Counters::builtin().tables.iter().filter(|_| dice.chance(LOST));
        Access::Without(lost.map(|table| table.name.clone()).collect())
    }

    pub(crate) fn kind(&self, proxy: ProxyKind) -> Option<ProxyKind> {
        (!matches!(self, Access::Foreign { .. })).then_some(proxy)
    }

    /// Removes the data that cannot be read.
    pub(crate) fn hide(&self, hosts: &mut [HostSamples], trial: &mut Trial) {
        for host in hosts {
            host.rows.retain(|row| !self.hides(&row.table, row.keys.first()));
        }
        if matches!(self, Access::Foreign { .. }) {
            trial.settings.clear();
            for figure in [Figure::Workers, Figure::OriginTimeS] {
                trial.figures.remove(&figure);
            }
        }
    }

    fn hides(&self, table: &str, role: Option<&String>) -> bool {
        match self {
            Access::Whole => false,
            Access::Without(tables) => tables.iter().any(|name| name == table),
            Access::Foreign { has_origin } => {
                table == "proxy" || (!has_origin && role.is_some_and(|role| role == "origin"))
            }
        }
    }
}

/// The first finding, and the limit that was planted.
struct Named {
    planted: &'static str,
    first: Finding,
}

impl Named {
    fn is_right(&self) -> bool {
        self.first.limiter == self.planted
    }
}

/// Plants each limit in turn, unknown ones included, and returns the first finding of each trial that has one.
fn first_findings(trials: usize, seed: u64) -> Vec<Named> {
    let mut dice = Dice(SplitMix64::new(seed));
    let plants: Vec<&Plant> = PLANTS.iter().chain(UNKNOWN).collect();
    let judged = (0..trials).filter_map(|place| {
        let plant = plants[place % plants.len()];
        let access = Access::random(&mut dice);
        let first = one(plant, &access, &mut dice).findings.into_iter().next()?;
        let planted = plant.limiter;
        Some(Named { planted, first })
    });
    judged.collect()
}

/// Returns, for each limiter, the planted ones for which it was wrongly named first.
fn list_confusions(findings: &[Named]) -> BTreeMap<String, Vec<&'static str>> {
    let mut counts: BTreeMap<(String, &'static str), u32> = BTreeMap::new();
    for named in findings.iter().filter(|named| !named.is_right()) {
        let key = (named.first.limiter.clone(), named.planted);
        *counts.entry(key).or_default() += 1;
    }
    let mut planted_for: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    for (limiter, planted) in counts.into_keys() {
        planted_for.entry(limiter).or_default().push(planted);
    }
    planted_for
}

/// Groups scores into bands with a rising share of right findings: neighbours that would violate this are merged (pool
/// adjacent violators; Ayer and others, Ann. Math. Statist. 26, 1955).
fn bands(findings: &[Named], taken_for: &BTreeMap<String, Vec<&'static str>>) -> Vec<Band> {
    let mut scores: BTreeMap<(String, bool, i64), (u32, u32)> = BTreeMap::new();
    for named in findings {
        let first = &named.first;
        let hundredths = (100.0 * first.score).floor() as i64;
        let key = (
            first.limiter.clone(),
            !first.unjudged.iter().any(|name| {
                let confused = taken_for.get(&first.limiter);
                confused.is_some_and(|limiters| limiters.contains(&name.as_str()))
            }),
            hundredths,
        );
        let (number, right) = scores.entry(key).or_default();
        *number += 1;
        *right += u32::from(named.is_right());
    }
    let mut bands: Vec<Band> = Vec::new();
    for ((limiter, all_judged, hundredths), (named, right)) in scores {
        bands.push(Band { limiter, all_judged, from: hundredths as f64 / 100.0, named, right });
        while let [.., lower, higher] = &bands[..] {
            let is_one_kind =
                lower.limiter == higher.limiter && lower.all_judged == higher.all_judged;
            if !is_one_kind || share(lower) < share(higher) {
                break;
            }
            let (named, right) = (higher.named, higher.right);
            bands.pop();
            if let Some(lower) = bands.last_mut() {
                lower.named += named;
                lower.right += right;
            }
        }
    }
    bands
}

fn share(band: &Band) -> f64 {
    f64::from(band.right) / f64::from(band.named)
}

/// Writes limits/reliability.yaml.
pub(crate) fn fit(trials: usize, seed: u64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "# How often the first finding named the planted limit, on simulated hosts: `planted fit {trials} {seed}` wrote this\n\
         # (crates/weir-limits/examples/planted; docs/limits.md says what was simulated). A band is the first findings of one\n\
         # limiter with scores from `from` to the next band, by whether all limiters could be judged that `taken_for` says were\n\
         # planted where it was named. Its word is by the lower one-sided 95 % bound of right / named: strong, likely, else weak.\n\
         strong: 0.95\nlikely: 0.7\ntaken_for:"
    )?;
    let findings = first_findings(trials, seed);
    let taken_for = list_confusions(&findings);
    for (limiter, planted) in &taken_for {
        writeln!(out, "  {limiter}: [{}]", planted.join(", "))?;
    }
    writeln!(out, "bands:")?;
    for band in bands(&findings, &taken_for) {
        writeln!(
            out,
            "  - {{limiter: {}, all_judged: {}, from: {:.2}, named: {}, right: {}}}",
            band.limiter, band.all_judged, band.from, band.named, band.right
        )?;
    }
    Ok(())
}

/// Counts the first findings by certainty, and how many of them are right.
fn by_word(findings: &[Named]) -> BTreeMap<Certainty, (u32, u32)> {
    let mut words: BTreeMap<Certainty, (u32, u32)> = BTreeMap::new();
    for named in findings {
        let (number, right) = words.entry(named.first.certainty).or_default();
        *number += 1;
        *right += u32::from(named.is_right());
    }
    words
}

/// Prints how often findings of each certainty are right.
pub(crate) fn check(trials: usize, seed: u64) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let findings = first_findings(trials, seed);
    writeln!(out, "| word | first findings | right | share |\n|---|---|---|---|")?;
    for (word, (named, right)) in by_word(&findings).iter().rev() {
        let share = 100.0 * f64::from(*right) / f64::from(*named);
        writeln!(out, "| {} | {named} | {right} | {share:.1} % |", word.name())?;
    }
    let silent = trials - findings.len();
    writeln!(out, "\n{silent} of {trials} trials name nothing")?;
    writeln!(
        out,
        "\n| named | where all could be judged that are taken for it | where not |\n|---|---|---|"
    )?;
    for (limiter, [all, not_all]) in words_of_limiters() {
        writeln!(out, "| {limiter} | {all} | {not_all} |")?;
    }
    Ok(())
}

/// Returns the certainties of each limiter according to the file, highest scores first: `strong (1,200 of 1,210)`.
fn words_of_limiters() -> BTreeMap<&'static str, [String; 2]> {
    let reliability = Reliability::builtin();
    let mut words: BTreeMap<&str, [String; 2]> = BTreeMap::new();
    for band in reliability.bands().iter().rev() {
        let word = reliability.word(band).name();
        let cell = &mut words.entry(&band.limiter).or_default()[usize::from(!band.all_judged)];
        let between = if cell.is_empty() { "" } else { "; " };
        *cell += &format!("{between}{word} ({} of {})", band.right, band.named);
    }
    words
}

#[test]
fn words_are_as_right_as_they_say_on_a_seed_that_they_were_not_fitted_on() {
    let words = by_word(&first_findings(620, 91));
    let shares = [Certainty::Strong, Certainty::Likely, Certainty::Weak].map(|word| {
        let (named, right) = words[&word];
        assert!(named >= 10, "{word:?}: {named}");
        f64::from(right) / f64::from(named)
    });
    let [strong, likely, weak] = shares;
    assert!(strong >= 0.95, "{words:?}");
    assert!(likely >= 0.7, "{words:?}");
    assert!(weak < 0.5, "{words:?}");
}
