//! A place for one test's runs: a study, a run folder, and a folder for temporary files of its own, so
//! that whatever is left behind is known to be this run's.

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

/// A user of no name, who may not make namespaces. Not the one as whom strangers show in a user namespace.
const NOBODY: u32 = 54_321;

/// A study of a proxy under some loads, with more lines.
pub(crate) fn study(proxy: &str, loads: &str, more: &str) -> String {
    format!(
        "weir: 1\nname: tried\nquestion: Is it so?\nproxy: {proxy}\nloads:\n{loads}\n\
         blocks: {{slice: 50ms, at-least: 6, instances: 1}}\n{more}"
    )
}

/// Ends a process of a test's own at once.
pub(crate) fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("not zero");
    kill_process(pid, Signal::KILL).expect("a process of this test's");
}

pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    /// Fails without nginx: to pass would say that something was looked at.
    pub(crate) fn new() -> Place {
        weir_sut::find(ProxyKind::Nginx, None)
            .expect("these tests need nginx: apt-get install nginx-light");
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let place = Place { folder };
        fs::create_dir(place.temporary()).expect("a folder");
        // nginx's workers are another user when weir is root.
        for folder in [place.folder.path(), &place.temporary()] {
            fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("own folder");
        }
        place
    }

    /// A path in here.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.path("temporary")
    }

    /// Where [`Place::run`] has its run.
    pub(crate) fn run_folder(&self) -> PathBuf {
        self.path("a run")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("own folder");
        path
    }

    /// A program with this text, such as a script of the shell.
    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        let text = self.write(&format!("{name}.text"), text);
        self.installed(&text, name)
    }

    /// A copy of weir, which another user may run: the build's folder may be closed to others.
    pub(crate) fn copy_of_weir(&self) -> PathBuf {
        self.installed(Path::new(env!("CARGO_BIN_EXE_weir")), "weir")
    }

    /// Copied by a process of its own: what this one holds open for writing, a child that another test
    /// starts just then holds too, and no kernel runs a program that anybody may write to.
    fn installed(&self, from: &Path, name: &str) -> PathBuf {
        let to = self.path(name);
        let mut install = Command::new("install");
        let status = install.args(["-m", "755"]).arg(from).arg(&to).status();
        assert!(status.is_ok_and(|status| status.success()), "{name}");
        to
    }

    /// The text of a file of the run.
    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.run_folder().join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// weir with these arguments, here.
    pub(crate) fn weir(&self, arguments: &[&str]) -> Command {
        let mut command = weir(arguments);
        command.env("TMPDIR", self.temporary());
        command.current_dir(self.folder.path());
        command
    }

    /// weir with the words of a shell's line, here and to its end.
    pub(crate) fn ends(&self, line: &str) -> Ended {
        let words = shlex::split(line).expect("a line of a shell");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Running::start(&mut self.weir(&words)).end()
    }

    /// `weir run` of a study with this text as a user who is not root: as nobody, where tests are root.
    /// It has no network namespaces.
    pub(crate) fn run_without_root(&self, study: &str) -> Ended {
        let mut command = self.without_root(study);
        command.env("WEIR_USER_NAMESPACE", "0");
        Running::start(&mut command).end()
    }

    /// The same, with the network namespaces that this user may have.
    pub(crate) fn without_root(&self, study: &str) -> Command {
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

    /// Waits until so many trials are recorded.
    pub(crate) fn await_trials(&self, run: &mut Running, count: usize) {
        run.wait_until("some blocks", |_| self.trials() >= count);
    }

    /// Trials that are recorded so far.
    pub(crate) fn trials(&self) -> usize {
        self.records_with(r#""record":"trial""#)
    }

    /// `weir run` of a study with this text.
    pub(crate) fn run(&self, study: &str) -> Running {
        self.write("study.yaml", study);
        Running::start(&mut self.weir(&["run", "study.yaml", "--out", "a run"]))
    }

    /// A whole run of a study with this text that ends well and leaves nothing, and its records.
    #[track_caller]
    pub(crate) fn measured(&self, study: &str) -> (Ended, Run) {
        let ended = self.run(study).end().with_code(0);
        self.assert_clean();
        (ended, self.records())
    }

    /// As [`Place::run`] of a study that is there already, started by a shell that sets limits first.
    pub(crate) fn run_behind(&self, before: &str) -> Ended {
        let mut shell = behind(before, "run study.yaml --out 'a run'");
        let shell = shell.env("TMPDIR", self.temporary());
        Running::start(shell.current_dir(self.folder.path())).end()
    }

    /// What the run has recorded.
    #[track_caller]
    pub(crate) fn records(&self) -> Run {
        Run::read(&self.run_folder()).expect("the run can be read")
    }

    pub(crate) fn resume(&self) -> Ended {
        self.ends("run --resume 'a run'")
    }

    /// Lines of the run's records so far that hold some words.
    pub(crate) fn records_with(&self, words: &str) -> usize {
        let text = fs::read_to_string(self.run_folder().join("records.jsonl")).unwrap_or_default();
        text.lines().filter(|line| line.contains(words)).count()
    }

    /// The proxies' processes that live now, masters with their workers.
    pub(crate) fn proxies(&self) -> Vec<ProcessId> {
        let all = proxies_in(&self.temporary()).into_iter();
        all.filter_map(|pid| ProcessId::of(pid).ok()).collect()
    }

    /// Process numbers of the first processes of the proxies.
    pub(crate) fn masters(&self) -> Vec<u32> {
        masters_in(&self.temporary())
    }

    /// No process and no file is left of what was started here.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        let left = processes_in(&self.temporary()).into_iter();
        let left: Vec<String> = left
            .map(|pid| format!("{pid} {}", command_line(pid).unwrap_or_default()))
            .collect();
        assert_eq!(left, [""; 0], "processes");
        assert_eq!(names_in(&self.temporary()), [""; 0], "files");
    }

    /// All of these processes end without anybody's help.
    pub(crate) fn await_end_of(&self, processes: &[ProcessId]) {
        wait_until("the end of the proxies", || {
            processes.iter().all(|process| !process.is_alive())
        });
    }
}

impl Drop for Place {
    /// A test that failed because proxies live on ends them all the same.
    fn drop(&mut self) {
        for master in self.masters() {
            if let Some(pid) = Pid::from_raw(master.cast_signed()) {
                // It may have ended since.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }
}

/// What an arm's proxy was running with, its last instance.
pub(crate) fn proxy_of<'r>(run: &'r Run, arm: &str) -> Option<&'r ProxyRecord> {
    let mut proxies = run.records.iter().filter_map(|record| match record {
        Record::Proxy(proxy) if proxy.arm == arm => Some(proxy),
        _ => None,
    });
    proxies.next_back()
}

/// Ends of sessions, in order.
pub(crate) fn outcomes(run: &Run) -> Vec<Outcome> {
    let ends = run.records.iter().filter_map(|record| match record {
        Record::End(end) => Some(end.outcome),
        _ => None,
    });
    ends.collect()
}

/// All slices of an arm under a load.
pub(crate) fn slices<'r>(run: &'r Run, load: &str, arm: &str) -> Vec<&'r SliceRecord> {
    let trials = run.trials_of(load, arm).into_iter();
    trials.flat_map(|trial| &trial.slices).collect()
}

/// A figure of an arm under a load, summed over its slices.
pub(crate) fn sum(run: &Run, load: &str, arm: &str, of: fn(&SliceRecord) -> u64) -> u64 {
    slices(run, load, arm).into_iter().map(of).sum()
}

/// The names in a folder, sorted.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Processes that have to do with a folder: their command line names it, or their own folder or a file
/// that they hold open is below it. A proxy that is started in its prefix with relative paths names
/// nothing, and one that changes its folder still writes its logs.
pub(crate) fn processes_in(folder: &Path) -> Vec<u32> {
    let own = std::process::id();
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| pid != own && has_to_do_with(pid, folder))
        .collect()
}

/// Those among them that are proxies, or are about to become one.
pub(crate) fn proxies_in(folder: &Path) -> Vec<u32> {
    let is_proxy = |pid: &u32| {
        let program = fs::read_link(format!("/proc/{pid}/exe"));
        // One that ends has none any more. An agent's is a copy of weir, and has files of the proxies open now and then.
        let is_other = program.is_ok_and(|program| program.file_name() != Some("weir".as_ref()));
        is_other || is_launched(*pid)
    };
    let mut found = processes_in(folder);
    found.retain(is_proxy);
    found
}

/// Those of the proxies that have no parent among them.
pub(crate) fn masters_in(folder: &Path) -> Vec<u32> {
    let all = proxies_in(folder);
    let children = |pid: &u32| children(*pid).unwrap_or_default();
    let below: Vec<u32> = all.iter().flat_map(children).collect();
    let mut masters = all;
    masters.retain(|pid| !below.contains(pid));
    masters
}

/// `weir launch`, which becomes a proxy.
fn is_launched(pid: u32) -> bool {
    command_line(pid).is_ok_and(|line| line.split(' ').nth(1) == Some("launch"))
}

fn has_to_do_with(pid: u32, folder: &Path) -> bool {
    let named = folder.to_str().expect("names are UTF-8");
    let is_below = |link: PathBuf| fs::read_link(link).is_ok_and(|file| file.starts_with(folder));
    let open = fs::read_dir(format!("/proc/{pid}/fd"));
    command_line(pid).is_ok_and(|line| line.contains(named))
        || is_below(format!("/proc/{pid}/cwd").into())
        || open.is_ok_and(|open| open.flatten().any(|file| is_below(file.path())))
}
