//! Measures how often a planted limit is named first: the table of docs/limits.md.
//!
//! ```text
//! planted [TRIALS [SEED]]
//! planted fit [TRIALS [SEED]]      limits/reliability.yaml
//! planted check [TRIALS [SEED]]    how often strong, likely and weak findings are right
//! ```
//!
//! Random hosts with one planted limit each produce rows of samples at a low load and at the edge, by queueing theory
//! and arithmetic that do not know the rules (`host`, `plants`, `samples`); the rules judge them. `reliability` counts
//! how often a finding is right if everything can be read, if some tables cannot, and for a server that weir did not
//! start.

mod host;
mod outside;
mod plants;
mod reliability;
mod samples;

use std::collections::BTreeMap;
use std::io::{self, Write as _};

use host::{Dice, Flow, Host};
use outside::build_trial;
use plants::{PLANTS, Plant};
use reliability::Access;
use samples::{SECONDS, Samples, spoil};
use weir_limits::{Evidence, HostSamples, Judgement, Quantities, Rules, Trial, Window, judge};
use weir_model::sample::Counters;
use weir_stats::SplitMix64;

/// Counts of the findings for one planted limiter.
#[derive(Default)]
struct Row {
    trials: u32,
    right: u32,
    /// Trials in which it was among the findings, but not the first.
    later: u32,
    instead: BTreeMap<String, u32>,
}

struct Played {
    hosts: Vec<HostSamples>,
    trial: Trial,
}

fn play(host: &Host, rate: f64, (needs, access): (&[&str], &Access), dice: &mut Dice) -> Played {
    let flow: Flow = host.carry(rate, dice);
    let mut hosts = Samples::of(host, &flow, dice);
    if *access == Access::Whole && dice.chance(0.3) {
        spoil(&mut hosts, needs, dice);
    }
    let mut trial = build_trial(host, &flow, dice);
    access.hide(&mut hosts, &mut trial);
    Played { hosts, trial }
}

fn window(played: &Played) -> Window<'_> {
    let (hosts, trial) = (&played.hosts, &played.trial);
    Window { hosts, from_ns: 0, until_ns: SECONDS * 1_000_000_000, arm: "", trial }
}

fn one(plant: &Plant, access: &Access, dice: &mut Dice) -> Judgement {
    let proxy = dice.one_of(plant.proxies);
    let mut host = Host::random(proxy, dice);
    let share = (plant.apply)(&mut host, dice);
    let capacity = host.capacity();
    let seen_by = (plant.needs, access);
    let low = play(&host, capacity * dice.between(0.1, 0.3), seen_by, dice);
    let edge = play(&host, capacity * share, seen_by, dice);
    let low = window(&low);
    let evidence =
        Evidence::of(Quantities::builtin(), Counters::builtin(), &window(&edge), Some(&low));
    judge(&evidence, Rules::builtin(), access.kind(proxy))
}

/// Plants each limit in turn. If `is_blind`, the tables that would reveal the limit are missing.
fn planted(trials: usize, seed: u64, is_blind: bool) -> BTreeMap<&'static str, Row> {
    let mut dice = Dice(SplitMix64::new(seed));
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for place in 0..trials {
        let plant = &PLANTS[place % PLANTS.len()];
        let access = if is_blind { Access::without(plant.needs) } else { Access::Whole };
        let judgement = one(plant, &access, &mut dice);
        let row = rows.entry(plant.limiter).or_default();
        row.trials += 1;
        let named = judgement.findings.first().map_or("nothing", |one| &one.limiter);
        if named == plant.limiter {
            row.right += 1;
            continue;
        }
        row.later += u32::from(judgement.findings.iter().any(|one| one.limiter == plant.limiter));
        *row.instead.entry(named.to_owned()).or_default() += 1;
    }
    rows
}

fn share(rows: &BTreeMap<&str, Row>) -> f64 {
    let right: u32 = rows.values().map(|row| row.right).sum();
    let trials: u32 = rows.values().map(|row| row.trials).sum();
    f64::from(right) / f64::from(trials)
}

/// Returns the share of trials without a finding.
fn silent(rows: &BTreeMap<&str, Row>) -> f64 {
    let nothing = rows.values().filter_map(|row| row.instead.get("nothing"));
    f64::from(nothing.sum::<u32>()) / f64::from(rows.values().map(|row| row.trials).sum::<u32>())
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let command = arguments.next_if(|text| text.parse::<u64>().is_err());
    let mut numbers = arguments.filter_map(|text| text.parse::<u64>().ok());
    let (trials, seed) = (numbers.next().unwrap_or(500), numbers.next().unwrap_or(1));
    let trials = usize::try_from(trials).unwrap_or(500);
    match command.as_deref() {
        Some("fit") => return reliability::fit(trials, seed),
        Some("check") => return reliability::check(trials, seed),
        _ => {}
    }
    let rows = planted(trials, seed, false);
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| planted | trials | named first | named later | named instead |\n|---|---|---|---|---|"
    )?;
    for (limiter, row) in &rows {
        let instead: Vec<String> =
            row.instead.iter().map(|(name, count)| format!("{name} {count}")).collect();
        writeln!(
            out,
            "| {limiter} | {} | {} | {} | {} |",
            row.trials,
            row.right,
            row.later,
            instead.join(", ")
        )?;
    }
    writeln!(out, "\n{:.1} % of {trials} named first", 100.0 * share(&rows))?;
    let blind = planted(trials, seed, true);
    let (silent, wrong) = (silent(&blind), 1.0 - share(&blind) - silent(&blind));
    let percent = [silent, wrong].map(|share| format!("{:.1} %", 100.0 * share));
    writeln!(
        out,
        "without the tables that show it: {} named nothing, {} another:",
        percent[0], percent[1]
    )?;
    for (limiter, row) in blind {
        let misnamed: Vec<String> = row
            .instead
            .iter()
            .filter(|(name, _)| *name != "nothing")
            .map(|(name, count)| format!("{name} {count}"))
            .collect();
        if !misnamed.is_empty() {
            writeln!(out, "{limiter}: {}", misnamed.join(", "))?;
        }
    }
    Ok(())
}

#[test]
fn planted_limits_are_named_first() {
    let rows = planted(260, 7, false);
    let right = share(&rows);
    assert!(right >= 0.95, "{right}");
    let never: Vec<_> =
        rows.iter().filter(|(_, row)| row.right == 0).map(|(name, _)| name).collect();
    assert!(never.is_empty(), "{never:?}");
    let blind = planted(130, 7, true);
    let wrong = 1.0 - share(&blind) - silent(&blind);
    assert!(wrong < 0.25, "{wrong}");
}
