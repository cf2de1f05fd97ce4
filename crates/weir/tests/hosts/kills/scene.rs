//! A run that is to be killed, and its processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;
use weir_probe::process::{children, command_line};
use weir_stats::SplitMix64;
use weir_testkit::program::{Ended, Running};
use weir_testkit::sandbox::{self, Sandbox, masters_in, proxies_in};
use weir_testkit::ssh::{self, Host};

use super::traces::Ground;

/// Address for ssh: the harness's own sshd on the loopback interface.
const ADDRESS: &str = "127.0.0.1";

/// Time between searches for a victim.
const LOOK: Duration = Duration::from_millis(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Network {
    Namespaces,
    Loopback,
    Ssh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Victim {
    Weir,
    Master,
    Worker,
    WeirAndMaster,
    Agent,
    SshClient,
    SshSession,
    /// The agent, up to 300 ms after weir, while it restores settings.
    WeirThenAgent,
}

impl Victim {
    /// Returns true if weir itself survives the kill.
    pub(crate) fn is_proxy(self) -> bool {
        matches!(self, Victim::Master | Victim::Worker)
    }

    pub(crate) fn takes_weir(self) -> bool {
        use Victim::{Weir, WeirAndMaster, WeirThenAgent};
        matches!(self, Weir | WeirAndMaster | WeirThenAgent)
    }

    pub(crate) fn takes_agent(self) -> bool {
        matches!(self, Victim::Agent | Victim::WeirThenAgent)
    }
}

/// A host that ssh reaches, with folders of its own.
pub(crate) struct Remote {
    host: Host,
    ground: Ground,
    _folder: TempDir,
}

impl Remote {
    /// Starts sshd. Returns `None`, and prints the reason, if it cannot be started. `fault` is the place at which
    /// agents panic.
    pub(crate) fn start(fault: Option<&str>) -> Option<Remote> {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let ground = Ground {
            folder: folder.path().to_owned(),
            temporary: folder.path().join("temporary"),
            journal: folder.path().join("journal"),
        };
        fs::create_dir(&ground.temporary).expect("own folder");
        for folder in [&ground.folder, &ground.temporary] {
            open_to_all(folder);
        }
        let line = format!(
            "SetEnv HOME={folder}/home XDG_CACHE_HOME={folder}/home/.cache \
             TMPDIR={temporary} WEIR_JOURNAL={journal} WEIR_FAULT={fault}",
            fault = fault.unwrap_or("none"),
            folder = ground.folder.display(),
            temporary = ground.temporary.display(),
            journal = ground.journal.display(),
        );
        let host = Host::start_with(&line, "")?;
        Some(Remote { host, ground, _folder: folder })
    }
}

/// Makes a folder readable by all: nginx's workers are another user when weir is root.
fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("own folder");
}

/// One run, with its folders and its options.
pub(crate) struct Scene<'a> {
    pub(crate) sandbox: Sandbox,
    remote: Option<&'a Remote>,
    /// Options after `weir run` and `weir run --resume`.
    options: Vec<String>,
    study: String,
    /// True if a pilot takes some seconds first.
    pub(crate) has_pilot: bool,
    /// Place at which `weir run` panics.
    pub(crate) fault: Option<&'static str>,
}

impl<'a> Scene<'a> {
    /// Prepares a run. `setting` is one of the whole host, with the value for an arm; the study starts the processes
    /// that `victim` needs.
    pub(crate) fn new(
        network: Network,
        remote: Option<&'a Remote>,
        setting: (&str, u64),
        victim: Victim,
        rng: &mut SplitMix64,
    ) -> Scene<'a> {
        let used_remote = remote.filter(|_| network == Network::Ssh);
        let together = rng.below(2) == 0;
        let mut options = vec!["--allow-host-settings".to_owned()];
        if let Some(remote) = used_remote {
            options.extend(placed(remote, together));
        }
        let alone = network == Network::Loopback || (used_remote.is_some() && !together);
        let has_pilot = rng.below(16) == 0;
        Scene {
            sandbox: Sandbox::new(),
            remote: used_remote,
            options,
            study: study(alone, has_pilot, setting, victim, rng),
            has_pilot,
            fault: None,
        }
    }

    /// Returns the approximate length of the pilot.
    pub(crate) fn pilots(&self) -> Duration {
        Duration::from_secs(if self.has_pilot { 8 } else { 0 })
    }

    pub(crate) fn grounds(&self) -> Vec<Ground> {
        let this_host = Ground {
            folder: self.sandbox.path(""),
            temporary: self.sandbox.temporary(),
            journal: self.sandbox.path("journal"),
        };
        let theirs = self.remote.map(|remote| remote.ground.clone());
        std::iter::once(this_host).chain(theirs).collect()
    }

    fn command(&self, arguments: &[&str], options: &[String]) -> Command {
        let mut command = self.sandbox.weir(arguments);
        command.env("WEIR_JOURNAL", self.sandbox.path("journal"));
        command.args(options);
        command
    }

    fn weir(&self, arguments: &[&str], options: &[String]) -> Running {
        Running::start(&mut self.command(arguments, options))
    }

    pub(crate) fn run(&self) -> Running {
        self.sandbox.write("study.yaml", &self.study);
        let arguments = ["run", "study.yaml", "--out", "a run"];
        let mut command = self.command(&arguments, &self.options);
        if let Some(fault) = self.fault {
            command.env("WEIR_FAULT", fault);
        }
        Running::start(&mut command)
    }

    /// Starts the run in a mount namespace of its own, by a shell that first runs `before`.
    pub(crate) fn run_behind(&self, before: &str) -> Running {
        self.sandbox.write("study.yaml", &self.study);
        let arguments = ["run", "study.yaml", "--out", "a run"];
        let weir = self.command(&arguments, &self.options);
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c"]);
        command.arg(format!("{before} && exec \"$0\" \"$@\""));
        command.arg(weir.get_program()).args(weir.get_args());
        for (name, value) in weir.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.current_dir(self.sandbox.path(""));
        Running::start(&mut command)
    }

    pub(crate) fn resume(&self) -> Running {
        self.weir(&["run", "--resume", "a run"], &self.options)
    }

    pub(crate) fn report(&self) -> Ended {
        self.weir(&["report", "a run"], &[]).end()
    }

    /// Runs `weir restore` on this host and on the host of ssh.
    pub(crate) fn restore(&self) -> Vec<Ended> {
        let this_host = self.weir(&["restore"], &[]).end();
        let theirs = self.remote.map(|remote| {
            let mut options = ssh_words(remote);
            options.push(format!("--host={ADDRESS}"));
            self.weir(&["restore"], &options).end()
        });
        std::iter::once(this_host).chain(theirs).collect()
    }

    /// Returns the processes of sshd for open connections.
    pub(crate) fn sessions(&self) -> Vec<u32> {
        self.remote.map(|remote| remote.host.processes()).unwrap_or_default()
    }

    /// Returns the parent of the proxies' folders.
    fn proxies_in(&self) -> PathBuf {
        self.remote
            .map(|remote| remote.ground.temporary.clone())
            .unwrap_or_else(|| self.sandbox.temporary())
    }

    fn masters(&self) -> Vec<u32> {
        masters_in(&self.proxies_in())
    }

    /// Returns the proxies' processes except their first ones.
    fn workers(&self) -> Vec<u32> {
        let here = self.proxies_in();
        let masters = masters_in(&here);
        let mut workers = proxies_in(&here);
        workers.retain(|pid| !masters.contains(pid));
        workers
    }

    fn agents(&self) -> Vec<u32> {
        self.sessions()
            .into_iter()
            .filter(|pid| command_line(*pid).is_ok_and(|line| line.ends_with("/weir agent")))
            .collect()
    }

    fn candidates(&self, victim: Victim, weir: u32) -> Vec<u32> {
        match victim {
            Victim::Weir | Victim::WeirThenAgent => vec![weir],
            Victim::Master | Victim::WeirAndMaster => self.masters(),
            Victim::Worker => self.workers(),
            Victim::Agent => self.agents(),
            Victim::SshClient => {
                let clients = children(weir).unwrap_or_default().into_iter();
                clients.filter(|pid| is_started_as(*pid, "ssh ")).collect()
            }
            Victim::SshSession => {
                let sessions = self.sessions().into_iter();
                sessions.filter(|pid| is_started_as(*pid, "sshd")).collect()
            }
        }
    }

    /// Kills the victim at its time; returns its description, or `None` if it did not exist.
    pub(crate) fn strike(
        &self,
        run: &mut Running,
        victim: Victim,
        when: When,
        rng: &mut SplitMix64,
        before: &mut dyn FnMut(),
    ) -> Option<String> {
        let begun = Instant::now();
        let mut due = match when {
            When::After(delay) => Some(delay),
            When::AfterBirth(_) => None,
        };
        while run.is_alive() {
            let is_due = due.is_some_and(|due| begun.elapsed() >= due);
            let candidates = match (is_due, due) {
                (false, Some(_)) => Vec::new(),
                // weir is born before anything else; its first proxy is what is waited for.
                (_, None) if victim.takes_weir() => self.masters(),
                _ => self.candidates(victim, run.pid()),
            };
            match when {
                When::AfterBirth(delay) if due.is_none() && !candidates.is_empty() => {
                    due = Some(begun.elapsed() + delay);
                }
                _ if is_due && !candidates.is_empty() => {
                    let pid = candidates[rng.below(candidates.len() as u64) as usize];
                    let line = command_line(pid).unwrap_or_default();
                    // One that has ended by itself meanwhile is nobody's victim.
                    if !line.is_empty() {
                        before();
                        let at = begun.elapsed().as_secs_f64();
                        self.kill(run, victim, pid, rng);
                        let line: String = line.chars().take(60).collect();
                        return Some(format!("process {pid} ({line}) at {at:.3} s"));
                    }
                }
                _ => std::thread::sleep(LOOK),
            }
        }
        None
    }

    fn kill(&self, run: &Running, victim: Victim, pid: u32, rng: &mut SplitMix64) {
        match victim {
            Victim::WeirAndMaster => {
                let mut both = [run.pid(), pid];
                rng.shuffle(&mut both);
                both.into_iter().for_each(kill);
            }
            Victim::WeirThenAgent => {
                kill(pid);
                std::thread::sleep(Duration::from_millis(rng.below(300)));
                self.agents().into_iter().for_each(kill);
            }
            _ => kill(pid),
        }
    }
}

impl Drop for Scene<'_> {
    /// Kills remaining processes, so that a run that failed a test does not disturb the next.
    fn drop(&mut self) {
        for pid in super::traces::processes_of(&self.grounds()) {
            ssh::signal(pid, Signal::KILL);
        }
    }
}

/// Moment of a kill.
#[derive(Debug, Clone, Copy)]
pub(crate) enum When {
    /// This long after the begin of the run, or as soon as the victim exists.
    After(Duration),
    /// This long after the victim's start.
    AfterBirth(Duration),
}

fn kill(pid: u32) {
    ssh::signal(pid, Signal::KILL);
}

fn placed(remote: &Remote, together: bool) -> Vec<String> {
    let roles: &[&str] = if together { &["all"] } else { &["proxy", "origin"] };
    roles.iter().map(|role| format!("--place={role}={ADDRESS}")).chain(ssh_words(remote)).collect()
}

fn ssh_words(remote: &Remote) -> Vec<String> {
    let words = remote.host.place().options;
    words.into_iter().map(|word| format!("--ssh-option={word}")).collect()
}

/// A proxy under test: its name, its settings, settings for an arm of its own, and true if it has workers.
type Kind = (&'static str, &'static str, &'static str, bool);

const HTTPD: &str = "threads_per_child: 16, max_request_workers: 32";

#[rustfmt::skip]
const KINDS: [Kind; 5] = [
    ("nginx", "worker_processes: 2", "keepalive_requests: 50", true),
    ("haproxy", "nbthread: 1", "http_reuse: always", true),
    ("envoy", "concurrency: 1", "generate_request_id: off", false),
    ("caddy", "gomaxprocs: 1", "keepalive_timeout: 10m", false),
    ("httpd", HTTPD, "keepalive_requests: 50", true),
];

/// Draws two proxies that have the victim's process; they may be the same.
fn kinds(victim: Victim, rng: &mut SplitMix64) -> [Kind; 2] {
    let kinds: Vec<&Kind> =
        KINDS.iter().filter(|(.., has_workers)| *has_workers || victim != Victim::Worker).collect();
    std::array::from_fn(|_| *kinds[rng.below(kinds.len() as u64) as usize])
}

fn is_started_as(pid: u32, name: &str) -> bool {
    command_line(pid).is_ok_and(|line| line.starts_with(name))
}

/// Returns a study: six blocks of three arms over three instances, with two arms of one proxy, and one of another that
/// may be the same.
fn study(
    alone: bool,
    has_pilot: bool,
    setting: (&str, u64),
    victim: Victim,
    rng: &mut SplitMix64,
) -> String {
    let [(first, settings, change, _), (second, ..)] = kinds(victim, rng);
    let (network, change) =
        if alone { ("loopback", change) } else { ("namespaces", "net.core.somaxconn: 64") };
    let (name, value) = setting;
    let tls = rng.below(4) == 0;
    let (slice, duration) = if has_pilot { ("auto", "4s") } else { ("50ms", "2s") };
    let instances = 2 + rng.below(2);
    let proxy = format!("{{kind: {first}, settings: {{{settings}}}}}");
    let load = format!(
        "- {{name: closed, closed: true, connections: 4, duration: {duration}, tls: {tls}}}"
    );
    let more = format!(
        "a/a: false\nnetwork: {{kind: {network}}}\narms:\n\
         - {{name: of-its-own, settings: {{{change}}}}}\n\
         - {{name: of-the-host, proxy: {second}, settings: {{{name}: {value}}}}}\n"
    );
    let text = sandbox::study(&proxy, &load, &more).replace("50ms", slice);
    text.replace("instances: 1", &format!("instances: {instances}"))
}
