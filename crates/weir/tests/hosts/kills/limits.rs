//! Tests of resource limits and signals in the middle of a run: it ends within seconds, states the reason, and leaves
//! nothing behind. If the kernel kills it for lack of memory, `weir restore` restores what it left.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use weir_testkit::program::Running;

use super::*;

/// A limit or a signal during a run.
#[derive(Debug, Clone, Copy)]
enum Hardship {
    /// A signal by its number (signal(7)), sent to weir alone.
    Signal(i32),
    /// Processes and threads can no longer be started (pids.max of its control group).
    Tasks,
    /// Files can no longer be opened (RLIMIT_NOFILE).
    Files,
    /// Memory can no longer be mapped (RLIMIT_AS).
    Memory,
    /// Files cannot grow beyond some KiB (RLIMIT_FSIZE).
    FileSize,
    /// The file system of this folder of the place is full.
    Full(&'static str),
}

use Hardship::{FileSize, Files, Full, Memory, Signal as Signalled, Tasks};

/// Folders of a run that may each be a file system of their own.
const SMALL: [&str; 3] = ["a run", "temporary", "journal"];

/// Size of each such file system, MiB: more than weir requires at the begin.
const MIB: usize = 64;

/// Signals whose default action ends a process or stops it, except those that report a crash (signal(7)).
const SIGNALS: [i32; 24] =
    [1, 2, 3, 10, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 34, 64];
/// Signals that stop a process: SIGTSTP, SIGTTIN, SIGTTOU.
const STOPPING: [i32; 3] = [20, 21, 22];

/// Longest time of a run after the event: a proxy that cannot start what it needs gets 30 s.
const SECONDS: Duration = Duration::from_secs(45);

/// Hardships of a short test; a long one draws them at random.
const SOME: [Hardship; 6] =
    [Signalled(3), Tasks, Files, Full("a run"), Full("temporary"), FileSize];

#[test]
fn what_a_run_meets_in_the_middle_ends_it_in_order() {
    if !rustix::process::geteuid().is_root() {
        return skipped("control groups and file systems of a run's own need root");
    }
    let used = [setting(chosen_seed()), setting(chosen_seed() + 1)];
    let Some(setting) = setting(chosen_seed() + 2).filter(|name| !used.contains(&Some(name)))
    else {
        return skipped("no third setting of the whole host can be written here");
    };
    if let Err(error) = weir_host::may_have_networks() {
        return skipped(&error.to_string());
    }
    let chaos = Chaos { seed: chosen_seed(), setting, remote: None };
    let mut rng = SplitMix64::new(chosen_seed());
    let plan: Vec<Hardship> = read_number("WEIR_KILLS")
        .map(|count| (0..count).map(|_| Hardship::draw(&mut rng)))
        .map_or_else(|| SOME.to_vec(), Iterator::collect);
    say(&format!("WEIR_KILLS_SEED={}, {setting} is changed", chosen_seed()));
    let mut faults = 0;
    for (number, hardship) in plan.into_iter().enumerate() {
        let network = [Network::Namespaces, Network::Loopback][number % 2];
        let row = chaos.befalls(network, hardship, &mut rng);
        say(&format!("{number:3} {network:?} {hardship:?}: {row}"));
        faults += row.faults().len();
    }
    assert_eq!(faults, 0, "they are above");
}

impl Hardship {
    fn draw(rng: &mut SplitMix64) -> Hardship {
        match draw_index(rng, 8) {
            0..=2 => Signalled(SIGNALS[draw_index(rng, SIGNALS.len())]),
            3 => Tasks,
            4 => Files,
            5 => Memory,
            6 => FileSize,
            _ => Full(SMALL[draw_index(rng, SMALL.len())]),
        }
    }

    /// Returns the commands of a shell before it becomes weir.
    fn prepared(self, group: &Path) -> String {
        match self {
            Tasks => format!("mkdir {0} && echo $$ >{0}/cgroup.procs", group.display()),
            Full(folder) => {
                format!("mkdir -p '{folder}' && mount -t tmpfs -o size={MIB}m weir '{folder}'")
            }
            _ => "true".to_owned(),
        }
    }

    /// Applies the hardship to a running weir.
    fn happen(self, run: &Running, group: &Path, scene: &Scene<'_>) {
        match self {
            Signalled(number) => {
                signal(run.pid(), number);
                if STOPPING.contains(&number) {
                    std::thread::sleep(Duration::from_millis(300));
                    // SIGCONT
                    signal(run.pid(), 18);
                }
            }
            Tasks => drop(std::fs::write(group.join("pids.max"), "1")),
            Files => limit(run, Resource::Nofile, 3),
            Memory => limit(run, Resource::As, 1 << 20),
            FileSize => limit(run, Resource::Fsize, 4096),
            Full(folder) => {
                let root = PathBuf::from(format!("/proc/{}/root", run.pid()));
                let path = scene.sandbox.path(folder).join("filler");
                let path = root.join(path.strip_prefix("/").unwrap_or(&path));
                let _ = std::fs::write(path, vec![0; MIB << 20]);
            }
        }
    }

    /// Returns true if the kernel, or the allocator, may kill weir, so that it cannot print a reason.
    fn may_kill(self) -> bool {
        matches!(self, Memory)
    }
}

/// Lowers the soft limit of a running weir.
fn limit(run: &Running, resource: Resource, most: u64) {
    let pid = Pid::from_raw(run.pid().cast_signed()).expect("not zero");
    let limit = Rlimit { current: Some(most), maximum: getrlimit(resource).maximum };
    // One that has ended meets no limit.
    let _ = prlimit(Some(pid), resource, limit);
}

fn draw_index(rng: &mut SplitMix64, count: usize) -> usize {
    rng.below(count as u64) as usize
}

/// Sends a signal by kill(1), because some numbers have no name.
fn signal(pid: u32, number: i32) {
    let mut kill = std::process::Command::new("kill");
    kill.args([format!("-{number}"), pid.to_string()]).stderr(std::process::Stdio::null());
    let _ = kill.status();
}

impl Chaos {
    fn befalls(&self, network: Network, hardship: Hardship, rng: &mut SplitMix64) -> Row {
        for _ in 0..TRIES {
            if let Some(row) = self.try_hardship(network, hardship, rng) {
                return row;
            }
        }
        Row::missed()
    }

    /// Runs once with the hardship; `None` if the run had ended before.
    fn try_hardship(
        &self,
        network: Network,
        hardship: Hardship,
        rng: &mut SplitMix64,
    ) -> Option<Row> {
        let before = self.snapshot();
        let scene = self.scene(network, Victim::Weir, rng);
        let version_1 = Path::new("/sys/fs/cgroup/pids");
        let tree = if version_1.is_dir() { version_1 } else { Path::new("/sys/fs/cgroup") };
        let group = tree.join(format!("weir-hard-{}-{}", std::process::id(), rng.below(1 << 30)));
        let begun = Instant::now();
        let mut run = scene.run_behind(&hardship.prepared(&group));
        let due = match rng.below(3) {
            0 => Duration::from_millis(400).mul_f64(rng.unit()),
            _ => Duration::from_secs(6).mul_f64(rng.unit()),
        };
        while run.is_alive() && begun.elapsed() < due {
            std::thread::sleep(Duration::from_millis(2));
        }
        let struck = run.is_alive();
        let namespaces = Namespaces::of(&scene.grounds());
        hardship.happen(&run, &group, &scene);
        let hit = Instant::now();
        let ended = end(run);
        if !struck {
            let _ = std::fs::remove_dir(&group);
            return None;
        }
        let took = hit.elapsed();
        let at = due.as_secs_f64();
        let last_words = ended.as_ref().map_or("", |ended| last_sentence(&ended.stderr));
        let mut row = Row::new(format!("at {at:.3} s, ended after {took:.1?} ({last_words})"));
        // A program that is only being loaded handles no signals.
        let has_begun = scene.sandbox.run_folder().is_dir();
        match &ended {
            Ok(ended) => judge_orderly_end(hardship, ended, has_begun, took, &mut row),
            Err(words) => row.fault(words.clone()),
        }
        let traces = at_rest(&before, &scene, &namespaces, REST);
        // Empty now: it goes with the last process that was in it.
        let _ = std::fs::remove_dir(&group);
        let is_killed = row.noticed == "killed";
        if !is_killed && !traces.is_nothing() {
            row.fault(format!("weir ended in order and left{traces}"));
        }
        let records = whole_lines(&scene);
        restore(&before, &scene, &namespaces, &mut row);
        if !matches!(hardship, Full(_)) {
            row.recovered(recover(&scene, &records));
        }
        Some(row)
    }
}

/// Returns weir's last line that gives a reason for its end.
fn last_sentence(stderr: &str) -> &str {
    let mut lines = stderr.lines().rev();
    lines
        .find(|line| {
            ["weir: ", "error: "].iter().any(|word| line.starts_with(word))
                || line.contains("nterrupted")
        })
        .unwrap_or("")
}

/// Checks that weir ended within seconds, with one of its exit codes and a reason.
fn judge_orderly_end(
    hardship: Hardship,
    ended: &Ended,
    has_begun: bool,
    took: Duration,
    row: &mut Row,
) {
    let is_said = !last_sentence(&ended.stderr).is_empty();
    row.noticed = match ended.code {
        Some(0) => "not",
        // 2: before anything was measured.
        Some(1 | 2 | 130) => "yes",
        None if hardship.may_kill() || !has_begun => "killed",
        _ => {
            row.fault(format!("exit code {:?}", ended.code));
            "?"
        }
    };
    let is_bug = ["panicked", "a bug in weir"].iter().any(|words| ended.stderr.contains(words));
    if (row.noticed == "yes" && !is_said) || is_bug {
        row.fault("no clear words".to_owned());
    }
    if took > SECONDS {
        row.fault(format!("it took {took:.1?}"));
    }
    if !row.faults().is_empty() {
        let last: Vec<&str> = ended.stderr.lines().rev().take(40).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        row.fault(format!("its last words:\n{}", last.join("\n")));
    }
}
