//! Tests with `kill -9` of weir, its agents, the connections to them, and the proxies, at any moment of a run: `weir
//! restore` removes everything that is left, and no record is lost.
//!
//! By default, a few kills are made; `WEIR_KILLS=200` makes many (`make kills`). Moments and victims are drawn from a
//! seed, which is printed and can be given again (`WEIR_KILLS_SEED`).
//!
//! Only traces of this run count: other tests, and other people, use the machine meanwhile. The one exception are
//! settings of the whole host, which must not be changed by others; each seed changes one of them, and several seeds
//! may run at once.

mod limits;
mod panics;
mod records;
mod scene;
mod table;
mod traces;

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use records::{end, recover, whole_lines};
use scene::Victim::{self, *};
use scene::{Network, Remote, Scene, When};
use table::{Row, Table};
use traces::{Ground, Namespaces, Snapshot, Traces};
use weir_stats::SplitMix64;
use weir_testkit::program::{Ended, read_number, say};
use weir_testkit::ssh::skipped;

/// Settings of the whole host that may be increased by one for a while. The first three are about the work of one
/// receiving interrupt and of its queue; the last one is far from any use.
const SETTINGS: [&str; 4] = [
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.netdev_budget",
    "fs.file-max",
];

/// Time for processes to end by themselves.
const REST: Duration = Duration::from_secs(20);
/// Time for processes to end if they have to be signalled.
const SHORT_REST: Duration = Duration::from_secs(3);
/// Number of runs that may end before their victim exists.
const TRIES: usize = 6;

/// Victims by the kind of network.
type Victims = [(Network, &'static [Victim]); 3];

/// Every victim of every network kind.
#[rustfmt::skip]
const ALL: Victims = [
    (Network::Namespaces, &[Weir, Master, Worker, WeirAndMaster]),
    (Network::Loopback, &[Weir, Master, Worker, WeirAndMaster]),
    (Network::Ssh,
     &[Weir, Agent, SshClient, SshSession, Master, Worker, WeirAndMaster, WeirThenAgent]),
];

/// Kills for CI, which has little time: every victim, and every network.
const FEW: Victims = [
    (Network::Namespaces, &[Weir, WeirAndMaster, Master]),
    (Network::Loopback, &[WeirAndMaster, Worker]),
    (Network::Ssh, &[Agent, SshClient, SshSession, WeirThenAgent]),
];

#[test]
fn nothing_is_left_behind_and_nothing_is_lost() {
    if !rustix::process::geteuid().is_root() {
        return skipped("settings of the whole host need root");
    }
    let seed = chosen_seed();
    let Some(setting) = setting(seed) else {
        return skipped("no setting of the whole host can be written here");
    };
    if let Err(error) = weir_host::may_have_networks() {
        return skipped(&error.to_string());
    }
    let chaos = Chaos { seed, setting, remote: Remote::start(None) };
    say(&format!("WEIR_KILLS_SEED={seed}, {setting} is changed"));
    let plan = chaos.plan(read_number("WEIR_KILLS"));
    let lengths = chaos.lengths(&plan);
    let mut table = Table::default();
    for (kill, &(network, victim)) in plan.iter().enumerate() {
        let row = chaos.kill(kill, network, victim, lengths[network as usize]);
        say(&format!("{kill:3} {network:?} {victim:?}: {row}"));
        table.add(network, victim, row);
    }
    say(&table.to_string());
    assert!(table.faults().is_empty(), "{}", table.faults().join("\n"));
}

struct Chaos {
    seed: u64,
    setting: &'static str,
    remote: Option<Remote>,
}

impl Chaos {
    /// Returns victims with their networks, in random order.
    fn plan(&self, kills: Option<u64>) -> Vec<(Network, Victim)> {
        let pairs: Vec<_> = (if kills.is_some() { ALL } else { FEW })
            .into_iter()
            .filter(|(network, _)| *network != Network::Ssh || self.remote.is_some())
            .flat_map(|(network, victims)| victims.iter().map(move |victim| (network, *victim)))
            .collect();
        let count = kills.map_or(pairs.len(), |kills| kills as usize);
        let mut plan: Vec<_> = pairs.iter().cycle().take(count).copied().collect();
        SplitMix64::new(self.seed).shuffle(&mut plan);
        plan
    }

    fn scene(&self, network: Network, victim: Victim, rng: &mut SplitMix64) -> Scene<'_> {
        let now = read(self.setting).expect("it was read before");
        let setting = (self.setting, now + 1);
        Scene::new(network, self.remote.as_ref(), setting, victim, rng)
    }

    fn snapshot(&self) -> Snapshot {
        let of_others = SETTINGS.iter().filter(|name| **name != self.setting);
        Snapshot::take(&of_others.map(|name| path_of(name)).collect::<Vec<_>>())
    }

    /// Measures the length of an undisturbed run by network kind, and checks that it leaves nothing.
    fn lengths(&self, plan: &[(Network, Victim)]) -> [Duration; 3] {
        let mut lengths = [Duration::ZERO; 3];
        let networks: BTreeSet<Network> = plan.iter().map(|(network, _)| *network).collect();
        for network in networks {
            let before = self.snapshot();
            // The first seed whose study has no pilot.
            let mut rng = SplitMix64::new(self.seed);
            let scene = loop {
                let scene = self.scene(network, Victim::Weir, &mut rng);
                if !scene.has_pilot {
                    break scene;
                }
            };
            let begun = Instant::now();
            scene.run().end().with_code(0);
            lengths[network as usize] = begun.elapsed();
            let traces = at_rest(&before, &scene, &Namespaces::default(), REST);
            assert!(traces.is_nothing(), "an undisturbed run leaves:{traces}");
        }
        lengths
    }

    fn kill(&self, kill: usize, network: Network, victim: Victim, length: Duration) -> Row {
        let mut rng = SplitMix64::new(self.seed ^ ((kill as u64 + 1) << 40));
        for _ in 0..TRIES {
            if let Some(row) = self.attempt(network, victim, length, &mut rng) {
                return row;
            }
        }
        Row::missed()
    }

    /// Runs once with a kill; `None` if the run had ended before.
    fn attempt(
        &self,
        network: Network,
        victim: Victim,
        length: Duration,
        rng: &mut SplitMix64,
    ) -> Option<Row> {
        let before = self.snapshot();
        let scene = self.scene(network, victim, rng);
        let grounds = scene.grounds();
        let when = moment(length + scene.pilots(), rng);
        let mut namespaces = Namespaces::default();
        let mut run = scene.run();
        let struck = scene.strike(&mut run, victim, when, rng, &mut || {
            namespaces = Namespaces::of(&grounds);
        })?;
        let mut row = Row::new(struck);
        match end(run) {
            Ok(ended) => judge_end(victim, &ended, &mut row),
            Err(words) => row.fault(words),
        }
        let patience = match victim {
            Victim::WeirAndMaster => SHORT_REST,
            _ => REST,
        };
        let traces = at_rest(&before, &scene, &namespaces, patience);
        judge_left(network, victim, &traces, &mut row);
        let records = whole_lines(&scene);
        restore(&before, &scene, &namespaces, &mut row);
        row.recovered(recover(&scene, &records));
        let after = at_rest(&before, &scene, &namespaces, REST);
        if !after.is_nothing() {
            row.fault(format!("after the resumed run there is{after}"));
        }
        Some(row)
    }
}

/// Draws a moment: one time in three soon after the victim's start, else any.
fn moment(length: Duration, rng: &mut SplitMix64) -> When {
    match rng.below(3) {
        0 => When::AfterBirth(Duration::from_millis(40).mul_f64(rng.unit())),
        _ => When::After(length.mul_f64(rng.unit())),
    }
}

/// Checks the end of a weir that was not killed itself: it reports the kill, or was already finished.
fn judge_end(victim: Victim, ended: &Ended, row: &mut Row) {
    if victim.takes_weir() {
        if ended.code.is_some() {
            row.fault(format!("weir was to be killed: {ended:?}"));
        }
        return;
    }
    match ended.code {
        Some(0) => row.noticed = "not",
        Some(1) if !ended.is_clear() => row.fault(format!("no clear words: {ended:?}")),
        Some(1) if victim.is_proxy() && !ended.stderr.contains("arm `") => {
            row.fault(format!("no arm is named: {}", ended.stderr));
        }
        Some(1) => row.noticed = "yes",
        _ => row.fault(format!("exit code {:?}: {}", ended.code, ended.stderr)),
    }
}

/// Checks for traces that must not exist even before `weir restore`.
fn judge_left(network: Network, victim: Victim, traces: &Traces, row: &mut Row) {
    row.left_before = !traces.is_nothing();
    let weir_lives = !victim.takes_weir();
    let agent_lives = network == Network::Ssh && !victim.takes_agent();
    // An agent that lives puts back and ends all that is its own.
    if agent_lives && !(traces.settings.is_empty() && traces.is_at_rest()) {
        row.fault(format!("the agent left{traces}"));
    }
    if weir_lives && network != Network::Ssh && !traces.is_nothing() {
        row.fault(format!("weir lived and left{traces}"));
    }
    row.left = traces.to_string();
}

/// Runs `weir restore`, and checks that nothing is left.
fn restore(before: &Snapshot, scene: &Scene<'_>, namespaces: &Namespaces, row: &mut Row) {
    for ended in scene.restore() {
        if ended.code != Some(0) {
            row.fault(format!("weir restore: {ended:?}"));
        }
    }
    let traces = at_rest(before, scene, namespaces, REST);
    row.left_after = !traces.is_nothing();
    if row.left_after {
        row.fault(format!("after weir restore there is{traces}"));
    }
}

/// Returns the remaining traces once no process is left, or after `at_most`.
fn at_rest(
    before: &Snapshot,
    scene: &Scene<'_>,
    namespaces: &Namespaces,
    at_most: Duration,
) -> Traces {
    let grounds: Vec<Ground> = scene.grounds();
    let begun = Instant::now();
    loop {
        let traces = Traces::look(before, &grounds, namespaces);
        let is_rest = traces.is_at_rest() && scene.sessions().is_empty();
        if is_rest || begun.elapsed() > at_most {
            // What was there a moment before the last process ended may have been put back by it.
            return Traces::look(before, &grounds, namespaces);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns a setting of the whole host that can be changed here.
fn setting(seed: u64) -> Option<&'static str> {
    let from = (seed % SETTINGS.len() as u64) as usize;
    let mut settings = SETTINGS.iter().cycle().skip(from).take(SETTINGS.len()).copied();
    settings.find(|name| {
        let is_writable = OpenOptions::new().write(true).open(path_of(name)).is_ok();
        // Some kernels have no limit of files at all.
        is_writable && read(name).is_some_and(|now| now < i64::MAX as u64)
    })
}

fn path_of(setting: &str) -> PathBuf {
    Path::new("/proc/sys").join(setting.replace('.', "/"))
}

fn read(setting: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path_of(setting)).ok()?;
    text.trim().parse().ok()
}

/// Returns the seed, which all tests here share, so that each has a setting of its own.
fn chosen_seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| read_number("WEIR_KILLS_SEED").unwrap_or_else(of_the_clock))
}

fn of_the_clock() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
