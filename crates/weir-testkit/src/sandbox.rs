//! A sandbox for one test's runs: a study, a run folder, and a separate folder for temporary files, so that all
//! remaining files and processes are known to be of this run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;
use weir_model::record::{Outcome, ProxyRecord, Record, SliceRecord};
use weir_model::study::ProxyKind;
use weir_probe::ProcessId;
use weir_probe::process::{children, command_line};
use weir_record::Run;

use crate::program::{Ended, Running, behind, wait_until, weir};

/// Id of a user without a name, who may not make namespaces. It differs from the id that foreign users have in a user
/// namespace.
const NOBODY: u32 = 54_321;

/// Returns a study of a proxy under some loads, with more lines.
pub fn study(proxy: &str, loads: &str, more: &str) -> String {
    format!(
        "weir: 1\nname: tried\nquestion: Is it so?\nproxy: {proxy}\nloads:\n{loads}\n\
         blocks: {{slice: 50ms, at-least: 6, instances: 1}}\n{more}"
    )
}

/// Kills a process of a test.
pub fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("not zero");
    kill_process(pid, Signal::KILL).expect("a process of this test's");
}

pub struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    /// Creates a sandbox. Fails without nginx, since the tests would otherwise pass without testing anything.
    pub fn new() -> Sandbox {
        weir_proxies::find(ProxyKind::Nginx, None)
            .expect("these tests need nginx: apt-get install nginx-light");
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let sandbox = Sandbox { folder };
        fs::create_dir(sandbox.temporary()).expect("a folder");
        // nginx's workers are another user when weir is root.
        for folder in [sandbox.folder.path(), &sandbox.temporary()] {
            fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("own folder");
        }
        sandbox
    }

    /// Returns a path in this sandbox.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn temporary(&self) -> PathBuf {
        self.path("temporary")
    }

    /// Returns the run folder of [`Sandbox::run`].
    pub fn run_folder(&self) -> PathBuf {
        self.path("a run")
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("own folder");
        path
    }

    /// Writes an executable program with this text, such as a shell script.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let text = self.write(&format!("{name}.text"), text);
        self.install(&text, name)
    }

    /// Returns a copy of weir that other users may run: the build's folder may be closed to others.
    pub fn copy_of_weir(&self) -> PathBuf {
        self.install(&crate::program::weir_program(), "weir")
    }

    /// Copies a program by a separate process. A file that this process holds open for writing is also held by any
    /// child that another test starts just then, and the kernel runs no program that is open for writing.
    fn install(&self, from: &Path, name: &str) -> PathBuf {
        let to = self.path(name);
        let mut install = Command::new("install");
        let status = install.args(["-m", "755"]).arg(from).arg(&to).status();
        assert!(status.is_ok_and(|status| status.success()), "{name}");
        to
    }

    /// Returns the text of a file of the run.
    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        let path = self.run_folder().join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns a command that runs weir here with these arguments.
    pub fn weir(&self, arguments: &[&str]) -> Command {
        let mut command = weir(arguments);
        command.env("TMPDIR", self.temporary());
        command.current_dir(self.folder.path());
        command
    }

    /// Runs weir here with the words of a shell line, to its end.
    pub fn call(&self, line: &str) -> Ended {
        let words = shlex::split(line).expect("a line of a shell");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Running::start(&mut self.weir(&words)).end()
    }

    /// Runs `weir run` of a study with this text as a user who is not root: as nobody, if tests run as root. It has no
    /// network namespaces.
    pub fn run_without_root(&self, study: &str) -> Ended {
        let mut command = self.without_root(study);
        command.env("WEIR_USER_NAMESPACE", "0");
        Running::start(&mut command).end()
    }

    /// Returns a command for the same run, with the network namespaces that this user may have.
    pub fn without_root(&self, study: &str) -> Command {
        let study = self.write("study.yaml", study);
        let mut command = Command::new(self.copy_of_weir());
        command.arg("run").arg(study).arg("--out");
        command.arg(self.run_folder());
        command.env("TMPDIR", self.temporary());
        if geteuid().is_root() {
            for folder in [self.path(""), self.temporary()] {
                fs::set_permissions(folder, Permissions::from_mode(0o1777)).expect("own folder");
            }
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Waits until `count` trials are recorded.
    pub fn await_trials(&self, run: &mut Running, count: usize) {
        run.wait_until("some blocks", |_| self.trials() >= count);
    }

    /// Returns the number of trials recorded so far.
    pub fn trials(&self) -> usize {
        self.records_with(r#""record":"trial""#)
    }

    /// Starts `weir run` of a study with this text.
    pub fn run(&self, study: &str) -> Running {
        self.write("study.yaml", study);
        Running::start(&mut self.weir(&["run", "study.yaml", "--out", "a run"]))
    }

    /// Runs a study with this text to its end, which must succeed and leave nothing, and returns its records.
    #[track_caller]
    pub fn measure(&self, study: &str) -> (Ended, Run) {
        let ended = self.run(study).end().with_code(0);
        self.assert_clean();
        (ended, self.records())
    }

    /// Like [`Sandbox::run`], to the end, of an existing study; a shell sets limits first.
    pub fn run_behind(&self, before: &str) -> Ended {
        let mut shell = behind(before, "run study.yaml --out 'a run'");
        shell.env("TMPDIR", self.temporary()).current_dir(self.folder.path());
        Running::start(&mut shell).end()
    }

    /// Reads the run's records.
    #[track_caller]
    pub fn records(&self) -> Run {
        Run::read(&self.run_folder()).expect("the run can be read")
    }

    pub fn resume(&self) -> Ended {
        self.call("run --resume 'a run'")
    }

    /// Returns the number of lines in the run's records that contain some words.
    pub fn records_with(&self, words: &str) -> usize {
        let text = fs::read_to_string(self.run_folder().join("records.jsonl")).unwrap_or_default();
        text.lines().filter(|line| line.contains(words)).count()
    }

    /// Returns the proxies' running processes, masters with their workers.
    pub fn proxies(&self) -> Vec<ProcessId> {
        proxies_in(&self.temporary())
            .into_iter()
            .filter_map(|pid| ProcessId::of(pid).ok())
            .collect()
    }

    /// Returns the ids of the proxies' first processes.
    pub fn masters(&self) -> Vec<u32> {
        masters_in(&self.temporary())
    }

    /// Checks that no process and no file is left of what was started here.
    #[track_caller]
    pub fn assert_clean(&self) {
        let processes: Vec<String> = processes_in(&self.temporary())
            .into_iter()
            .map(|pid| format!("{pid} {}", command_line(pid).unwrap_or_default()))
            .collect();
        assert_eq!(processes, [""; 0], "processes");
        assert_eq!(names_in(&self.temporary()), [""; 0], "files");
    }

    /// Waits until all of these processes have ended by themselves.
    pub fn await_end_of(&self, processes: &[ProcessId]) {
        wait_until("the end of the proxies", || {
            processes.iter().all(|process| !process.is_alive())
        });
    }
}

impl Drop for Sandbox {
    /// Ends proxies that are still running after a failed test.
    fn drop(&mut self) {
        for master in self.masters() {
            if let Some(pid) = Pid::from_raw(master.cast_signed()) {
                // It may have ended since.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }
}

/// Returns the record of the last instance of an arm's proxy.
pub fn proxy_of<'r>(run: &'r Run, arm: &str) -> Option<&'r ProxyRecord> {
    let mut proxies = run.records.iter().filter_map(|record| match record {
        Record::Proxy(proxy) if proxy.arm == arm => Some(proxy),
        _ => None,
    });
    proxies.next_back()
}

/// Returns the outcomes of the run's sessions, in order.
pub fn outcomes(run: &Run) -> Vec<Outcome> {
    run.records
        .iter()
        .filter_map(|record| match record {
            Record::End(end) => Some(end.outcome),
            _ => None,
        })
        .collect()
}

/// Returns all slices of an arm under a load.
pub fn slices<'r>(run: &'r Run, load: &str, arm: &str) -> Vec<&'r SliceRecord> {
    run.trials_of(load, arm).into_iter().flat_map(|trial| &trial.slices).collect()
}

/// Returns a figure of an arm under a load, summed over its slices.
pub fn sum(run: &Run, load: &str, arm: &str, figure: fn(&SliceRecord) -> u64) -> u64 {
    slices(run, load, arm).into_iter().map(figure).sum()
}

/// Returns the names in a folder, sorted.
pub fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Returns processes that use a folder: their command line names it, or their working folder or an open file is below
/// it. All are checked because a proxy that is started in its prefix with relative paths names no folder, and one that
/// changes its folder still writes its logs.
pub(crate) fn processes_in(folder: &Path) -> Vec<u32> {
    let this_process = std::process::id();
    fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| pid != this_process && has_to_do_with(pid, folder))
        .collect()
}

/// Returns the processes among them that are proxies, or are about to become one.
pub fn proxies_in(folder: &Path) -> Vec<u32> {
    processes_in(folder).into_iter().filter(|pid| is_proxy(*pid)).collect()
}

fn is_proxy(pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe"));
    // One that ends has none any more. An agent's is a copy of weir, and has files of the proxies open now and then.
    let is_other = program.is_ok_and(|program| program.file_name() != Some("weir".as_ref()));
    is_other || is_launched(pid)
}

/// Returns the proxies that have no parent among them.
pub fn masters_in(folder: &Path) -> Vec<u32> {
    let all = proxies_in(folder);
    let below: Vec<u32> = all.iter().flat_map(|pid| children(*pid).unwrap_or_default()).collect();
    let mut masters = all;
    masters.retain(|pid| !below.contains(pid));
    masters
}

/// Returns true for `weir launch`, which becomes a proxy.
fn is_launched(pid: u32) -> bool {
    command_line(pid).is_ok_and(|line| line.split(' ').nth(1) == Some("launch"))
}

fn has_to_do_with(pid: u32, folder: &Path) -> bool {
    let named = folder.to_str().expect("names are UTF-8");
    let open = fs::read_dir(format!("/proc/{pid}/fd"));
    command_line(pid).is_ok_and(|line| line.contains(named))
        || leads_below(Path::new(&format!("/proc/{pid}/cwd")), folder)
        || open.is_ok_and(|open| open.flatten().any(|file| leads_below(&file.path(), folder)))
}

pub fn leads_below(link: &Path, folder: &Path) -> bool {
    fs::read_link(link).is_ok_and(|file| file.starts_with(folder))
}
