//! Tests with `kill -9` of weir, of its processes in a cluster and of the controller, and loss of the connection to the
//! API server, at any moment of a run that changes objects and a setting of a node: `weir restore --on` removes
//! everything of weir's, and all other objects and the node are as before.
//!
//! By default, a few kills are made; `WEIR_KUBE_KILLS=50` makes many (`make kube-kills`). Moments and victims are drawn
//! from a seed, which is printed and can be given again (`WEIR_KILLS_SEED`). `WEIR_KUBE_KILLS_FROM=25` leaves the first
//! 25 out, so that one plan can be carried out in pieces.

mod forwarder;
mod table;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use forwarder::{Forwarder, LinkState};
use rustix::process::Signal;
use table::{Row, Table};
use weir_probe::process::command_line;
use weir_stats::SplitMix64;
use weir_testkit::cluster::Test;
use weir_testkit::foreign::{self, Foreign};
use weir_testkit::program::{Ended, Running, read_number, say};
use weir_testkit::sandbox::{self, Sandbox};
use weir_testkit::stand_in;

use crate::controlled_sysctls;
use crate::kubernetes::{PODS, left};

/// Process, object or connection that is killed or cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Weir,
    /// weir, up to a second after it was told to stop, while it restores.
    WeirAtItsEnd,
    /// weir, and then the first `weir restore`.
    WeirAndRestore,
    /// The agent's process in a generator's pod.
    Agent,
    /// The generator's pod, which is deleted.
    Pod,
    /// The controller's process, whose pod also runs the proxy.
    Controller,
    /// Connections to the API server, which are closed, including new ones.
    Connection,
    /// The API server's answers, which no longer arrive.
    Silence,
    /// weir, by a panic of its own.
    Bug,
}

use Victim::{
    Agent, Bug, Connection, Controller, Pod, Silence, Weir, WeirAndRestore, WeirAtItsEnd,
};

const ALL: [Victim; 9] =
    [Weir, WeirAtItsEnd, WeirAndRestore, Agent, Pod, Controller, Connection, Silence, Bug];
/// Victims for CI, which has little time.
const FEW: [Victim; 3] = [Weir, Agent, Connection];

/// Latest moment of a kill after the start of weir: the arms have taken turns once by then.
const LATEST: Duration = Duration::from_secs(18);
/// Time that weir continues after the controller was killed, before it is told to stop.
const GOES_ON: Duration = Duration::from_secs(6);
/// Longest time for weir to end, far above the sum of its timeouts.
const PATIENCE: Duration = Duration::from_secs(150);
/// Longest time for the cluster to come to rest.
const REST: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);

const ARMS: &str = "- {name: few, settings: {keepalive_requests: 7}}\n\
                    - {name: queue, settings: {net.core.somaxconn: 32768}}\n";
/// Arguments of kubectl that print the names of generators' pods.
const GENERATORS: &str = "get pods --selector app.kubernetes.io/managed-by=weir,app.kubernetes.io/component=generator \
                          --output jsonpath={.items[*].metadata.name}";
const RESTORE: &str = "restore --on kubernetes:weir-test";

pub(crate) fn kills_leave_nothing_behind(test: &Test) {
    let seed = read_number("WEIR_KILLS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let plan: Vec<Victim> = match read_number("WEIR_KUBE_KILLS") {
        Some(kills) => ALL.into_iter().cycle().take(kills as usize).collect(),
        None => FEW.into(),
    };
    say(&format!("WEIR_KILLS_SEED={seed}, {} kills", plan.len()));
    stand_in::start_on_node(test);
    let kinds = foreign::kinds(test);
    let chaos = Chaos {
        test,
        before: Foreign::look(test, &kinds),
        of_node: controlled_sysctls::of_node(test),
        kinds,
        forwarder: Forwarder::start(test),
    };
    let mut table = Table::default();
    let from = read_number("WEIR_KUBE_KILLS_FROM").unwrap_or(0) as usize;
    for (kill, victim) in plan.into_iter().enumerate().skip(from) {
        let mut rng = SplitMix64::new(seed ^ ((kill as u64 + 1) << 40));
        let row = chaos.kill(victim, &mut rng);
        say(&format!("{kill:3} {victim:?}: {row}"));
        table.add(victim, row);
    }
    say(&table.to_string());
    drop(chaos);
    stand_in::stop(test);
    assert!(table.faults().is_empty(), "{}", table.faults().join("\n"));
}

struct Chaos<'t> {
    test: &'t Test,
    /// Every object before the run.
    before: Foreign,
    /// The setting of the node before the run.
    of_node: String,
    kinds: String,
    forwarder: Forwarder,
}

impl Chaos<'_> {
    fn kill(&self, victim: Victim, rng: &mut SplitMix64) -> Row {
        let sandbox = Sandbox::new();
        let text = fs::read_to_string(self.test.configuration()).expect("the cluster's");
        let server =
            format!("server: https://{}\n    tls-server-name: kubernetes", forwarder::LISTENS);
        sandbox.write("kubeconfig", &text.replace("server: https://10.77.0.1:6443", &server));
        let study = controlled_sysctls::set_by("node", &stand_in::study("18s", ARMS));
        sandbox.write("study.yaml", &study);
        let begun = Instant::now();
        let line = format!("run study.yaml --out tried --node-sysctls {PODS}");
        let moment = LATEST.mul_f64(rng.unit());
        let mut run = match victim {
            // The second arm has its settings by then, and a block is recorded.
            Bug => Running::start(self.command(&sandbox, &line).env("WEIR_FAULT", "block:2")),
            _ => self.start(&sandbox, &line),
        };
        while begun.elapsed() < moment && run.is_alive() {
            std::thread::sleep(LOOK / 20);
        }
        let mut row = self.strike(victim, &mut run, rng);
        row.at(begun.elapsed());
        match await_end(run, &victim) {
            Ok(ended) => judge_end(victim, &ended, &mut row),
            Err(words) => row.fault(words),
        }
        self.forwarder.set(LinkState::Open);
        self.judge_left(victim, &sandbox, &mut row);
        if victim == WeirAndRestore {
            let restore = self.start(&sandbox, RESTORE);
            std::thread::sleep(Duration::from_secs_f64(1.5 * rng.unit()));
            drop(restore);
        }
        self.restore(&sandbox, &mut row);
        if victim == Controller {
            // The kubelet starts it again, each time later.
            self.test.kubectl("delete pod --selector app=proxy --grace-period 0 --force", "");
        }
        if let Some(words) = self.at_rest() {
            row.fault(words);
        }
        row
    }

    /// Starts weir in the cluster's network, with the API server behind the forwarder.
    fn start(&self, sandbox: &Sandbox, line: &str) -> Running {
        Running::start(&mut self.command(sandbox, line))
    }

    fn command(&self, sandbox: &Sandbox, line: &str) -> Command {
        let mut command: Command = self.test.command("env");
        command
            .arg(format!("KUBECONFIG={}", sandbox.path("kubeconfig").display()))
            .arg(env!("CARGO_BIN_EXE_weir"))
            .args(line.split_whitespace())
            .env("TMPDIR", sandbox.temporary())
            .env("XDG_CONFIG_HOME", "/nonexistent")
            .env("WEIR_JOURNAL", sandbox.path("journal"))
            .current_dir(sandbox.path(""));
        command
    }

    fn strike(&self, victim: Victim, run: &mut Running, rng: &mut SplitMix64) -> Row {
        let mut row = Row::default();
        match victim {
            Weir | WeirAndRestore if run.is_alive() => sandbox::kill(run.pid()),
            WeirAtItsEnd if run.is_alive() => {
                run.signal(Signal::INT);
                std::thread::sleep(Duration::from_secs_f64(rng.unit()));
                if run.is_alive() {
                    sandbox::kill(run.pid());
                }
            }
            Agent => self.strike_process(run, "app.kubernetes.io/managed-by=weir", "/weir agent"),
            Controller => self.strike_process(run, "app=proxy", "/bin/bash /controller"),
            Pod => {
                let pod_name = until(|| {
                    let pods = self.test.kubectl(GENERATORS, "");
                    let pod = pods.split_whitespace().next();
                    pod.map(str::to_owned).or_else(|| (!run.is_alive()).then(String::new))
                });
                if let Some(pod) = pod_name.filter(|pod| !pod.is_empty()) {
                    self.test.kubectl(&format!("delete pod {pod} --grace-period 0 --force"), "");
                }
            }
            Bug => {}
            Connection => self.forwarder.set(LinkState::Cut),
            Silence => self.forwarder.set(LinkState::Silent),
            Weir | WeirAndRestore | WeirAtItsEnd => row.fault("weir had ended before".to_owned()),
        }
        if victim == Controller {
            let since = Instant::now();
            while since.elapsed() < GOES_ON && run.is_alive() {
                std::thread::sleep(LOOK);
            }
            if run.is_alive() {
                run.signal(Signal::INT);
            }
        }
        row
    }

    /// Kills a process in the pods with a label, as soon as there is one.
    fn strike_process(&self, run: &mut Running, label: &str, line: &str) {
        let target = until(|| {
            let uids = "get pods --output jsonpath={.items[*].metadata.uid} --selector";
            let uids = self.test.kubectl(&format!("{uids} {label}"), "");
            let uids: Vec<&str> = uids.split_whitespace().collect();
            let process = processes(line).into_iter().find(|pid| {
                let group = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
                uids.iter().any(|uid| group.contains(uid))
            });
            process.or_else(|| (!run.is_alive()).then_some(0))
        });
        if let Some(pid) = target.filter(|pid| *pid > 0) {
            sandbox::kill(pid);
        }
    }

    /// Checks the traces before `weir restore`: there must be none if weir could restore everything itself.
    fn judge_left(&self, victim: Victim, sandbox: &Sandbox, row: &mut Row) {
        let is_of_the_cluster = matches!(victim, Agent | Pod | Controller);
        if is_of_the_cluster {
            until(|| left(self.test).trim().is_empty().then_some(()));
        }
        let shown = self.start(sandbox, &format!("{RESTORE} --dry-run")).end();
        row.left = shown.code != Some(0) || !shown.stdout.contains("Nothing to remove");
        if is_of_the_cluster && row.left {
            row.fault(format!("weir lived and has left: {}{}", shown.stdout, shown.stderr));
        }
        row.add_objects(&shown.stdout);
    }

    /// Runs `weir restore`, and checks that nothing is left and the journal is empty.
    fn restore(&self, sandbox: &Sandbox, row: &mut Row) {
        let begun = Instant::now();
        let restored = self.start(sandbox, RESTORE).end();
        row.add_restore(begun.elapsed());
        if restored.code != Some(0) {
            row.fault(format!("weir restore: {restored:?}"));
        }
        let again = self.start(sandbox, RESTORE).end();
        if !again.stdout.contains("Nothing to remove") {
            row.fault(format!("weir restore, once more: {again:?}"));
        }
        let of_weir = left(self.test);
        if !of_weir.trim().is_empty() {
            row.fault(format!("after weir restore there is {of_weir}"));
        }
    }

    /// Waits until the controller's one pod serves and every object is as before; returns a description if this does
    /// not happen.
    fn at_rest(&self) -> Option<String> {
        let rollout = "rollout status deployment/proxy --timeout=90s";
        self.test.kubectl(rollout, "");
        let mut wrong = None;
        // A roll-out is done while the pod that it replaced still ends.
        until(|| {
            wrong = self.not_at_rest();
            wrong.is_none().then_some(())
        });
        wrong
    }

    fn not_at_rest(&self) -> Option<String> {
        let changed = self.before.changed(&Foreign::look(self.test, &self.kinds));
        if !changed.is_empty() {
            return Some(format!("other than before: {}", changed.join("\n")));
        }
        let of_node = controlled_sysctls::of_node(self.test);
        if of_node != self.of_node {
            return Some(format!(
                "{} of the node is {of_node} and was {}",
                controlled_sysctls::SYSCTL,
                self.of_node
            ));
        }
        let pods = "get pods --selector app=proxy --output name";
        match self.test.kubectl(pods, "").lines().count() {
            1 => None,
            pods => Some(format!("the proxy has {pods} pods")),
        }
    }
}

/// Returns the processes with this command line.
fn processes(line: &str) -> Vec<u32> {
    fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| command_line(*pid).is_ok_and(|own_line| own_line == line))
        .collect()
}

/// Repeats `look` until it returns a value; `None` after [`REST`].
fn until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    while begun.elapsed() < REST {
        if let Some(value) = look() {
            return Some(value);
        }
        std::thread::sleep(LOOK);
    }
    None
}

/// Waits for the end of weir, for a limited time.
fn await_end(mut run: Running, victim: &Victim) -> Result<Ended, String> {
    let begun = Instant::now();
    while run.is_alive() {
        if begun.elapsed() > PATIENCE {
            return Err(format!("weir hangs after {victim:?}:\n{}", run.stderr()));
        }
        std::thread::sleep(LOOK / 10);
    }
    Ok(run.end())
}

/// Checks that a weir that was not killed itself reports the kill.
fn judge_end(victim: Victim, ended: &Ended, row: &mut Row) {
    row.add_end(ended);
    let expected: &[Option<i32>] = match victim {
        Weir | WeirAndRestore => &[None],
        Bug => &[Some(101)],
        // It may have been done before the second strike.
        WeirAtItsEnd => &[None, Some(130)],
        Agent | Pod | Connection | Silence => &[Some(1)],
        // The proxy is back soon; what failed meanwhile may spoil a trial.
        Controller => &[Some(130), Some(1), Some(0)],
    };
    if !expected.contains(&ended.code) {
        row.fault(format!("exit code {:?}: {}", ended.code, ended.stderr));
    }
    if ended.code == Some(1) && !ended.is_clear() {
        row.fault(format!("no clear words: {}", ended.stderr));
    }
    let is_named = match victim {
        Agent | Pod => {
            ended.stderr.contains("pod weir-")
                || ended.stderr.contains("pod `weir-")
                || ended.stderr.contains("Job `weir-")
        }
        Connection | Silence => {
            ended.stderr.contains("context `weir-test`") || ended.stderr.contains("is gone")
        }
        // The objects at once; the pods by the user, or by themselves.
        Bug => {
            ended.stderr.contains(": put back: ")
                && ended.stderr.contains("hint: weir restore --on kubernetes:weir-test/")
        }
        _ => true,
    };
    if !is_named {
        row.fault(format!("what happened is not said: {}", ended.stderr));
    }
}
