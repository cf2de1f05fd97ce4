//! Tests that processes left by a killed weir, or by a killed part of a proxy, are ended by the proxy's own tie to its
//! weir, or by the next sweep.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_model::study::ProxyKind;
use weir_probe::ProcessId;
use weir_sut::WorkFolder;

use crate::programs::life::one_of_each;
use crate::programs::nginx::{files, nginx};
use crate::programs::setup::run;
use crate::programs::support::{Origin, free_address, kill, processes, shared_folder, until};

/// A worker that replaced a dead one loses its master; its number was never noted.
#[test]
fn a_worker_that_nobody_has_noted_is_ended_too() {
    let arm = files(&[("worker_processes", "1")]).start();
    let (master, first) = (arm.proxy.master_pid(), arm.proxy.worker_pids()[0]);
    kill(first);
    let mut second = Orphans(Vec::new());
    until("another worker", || {
        let workers = weir_probe::process::children(master).unwrap();
        second.0 = workers
            .into_iter()
            .filter(|&pid| pid != first)
            .filter_map(|pid| ProcessId::of(pid).ok())
            .collect();
        second.some_alive()
    });
    let ended = ProcessId::of(master).unwrap();
    kill(master);
    until("the master's end", || !ended.is_alive());
    assert!(second.some_alive(), "workers outlive their master");
    arm.proxy.stop();
    assert!(!second.some_alive());
}

/// Variable with the task of [`is_a_weir_that_will_be_killed`].
const ROLE: &str = "WEIR_TEST_DOOMED";
/// Variable with the proxy's program, if it is not the installed one.
const PROGRAM: &str = "WEIR_TEST_PROGRAM";
/// Number of a user that no service runs as.
const NOBODY: u32 = 65_534;

/// Acts as a weir for other tests: starts a proxy in the folder named by the environment, prints the numbers of its
/// processes, and waits to be killed. The proxy then ends with it, unless it was started `bare`, without the launcher.
/// With `sweep`, acts as a later weir that only sweeps.
#[test]
fn is_a_weir_that_will_be_killed() {
    let Some(variable) = std::env::var_os(ROLE) else {
        return;
    };
    let role = variable.into_string().unwrap();
    let mut parts = role.splitn(3, ':');
    let (how, kind, parent) = (parts.next().unwrap(), parts.next(), parts.next().unwrap());
    if how == "sweep" {
        let swept = WorkFolder::sweep_in(Path::new(parent));
        swept.iter().for_each(|folder| println!("\nswept {}", folder.display()));
        return;
    }
    let subject = one_of_each().find(|subject| Some(subject.kind.name()) == kind).unwrap();
    let folder = WorkFolder::create_in(Path::new(parent)).unwrap();
    let configuration = subject.write(&folder, free_address(), &Origin::start());
    if how == "bare" {
        // As weir leaves word of what it starts.
        let program = std::fs::canonicalize(nginx().program()).unwrap();
        let text = format!("{}\n", program.display());
        std::fs::write(configuration.prefix().join("program"), text).unwrap();
        let mut master = Command::new(nginx().program())
            .args([
                "-p".as_ref(),
                configuration.prefix().as_os_str(),
                "-c".as_ref(),
                configuration.file().as_os_str(),
            ])
            .current_dir(configuration.prefix())
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(configuration.output()).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("nginx has workers and a pid file", || {
            let pid = std::fs::read_to_string(configuration.prefix().join("run/nginx.pid"))
                .unwrap_or_default();
            !pid.is_empty() && !weir_probe::process::children(master.id()).unwrap().is_empty()
        });
        println!("\nprocess {}", master.id());
        master.wait().unwrap();
    } else {
        let program = match std::env::var_os(PROGRAM) {
            Some(path) => weir_proxies::find(subject.kind, Some(Path::new(&path))).unwrap(),
            None => subject.program(),
        };
        let proxy = run(&*program, &configuration).unwrap();
        for process in processes(&proxy) {
            println!("\nprocess {}", process.pid);
        }
        println!("\nready");
        std::thread::sleep(std::time::Duration::from_secs(600));
    }
}

/// Processes of a proxy whose weir was killed; dropping this ends them if a test fails.
struct Orphans(Vec<ProcessId>);

impl Orphans {
    fn some_alive(&self) -> bool {
        self.0.iter().any(|process| process.is_alive())
    }
}

impl Drop for Orphans {
    fn drop(&mut self) {
        for process in self.0.iter().filter(|process| process.is_alive()) {
            kill(process.pid);
        }
    }
}

/// Returns the command of a weir with a [`ROLE`], started through `through` if that names a program.
fn weir(through: &[&str], how: &str, kind: ProxyKind, parent: &Path) -> Command {
    let executable = std::env::current_exe().expect("a test knows its executable");
    let mut command = match through {
        [] => Command::new(executable),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(executable);
            command
        }
    };
    command
        .args(["--exact", "programs::killed::is_a_weir_that_will_be_killed", "--nocapture"])
        .env(ROLE, format!("{how}:{}:{}", kind.name(), parent.display()))
        .stdout(Stdio::piped());
    command
}

/// Starts a weir, waits for its proxy, and kills the weir; returns the proxy's processes and the folder that was left.
fn kill_a_weir(how: &str, kind: ProxyKind, parent: &Path) -> (Orphans, PathBuf) {
    kill_once_it_serves(weir(&[], how, kind, parent), how == "bare", parent)
}

/// Does the same as [`kill_a_weir`] for a weir that is not started yet; `is_bare` is true if it prints one process
/// only.
fn kill_once_it_serves(mut weir: Command, is_bare: bool, parent: &Path) -> (Orphans, PathBuf) {
    let mut child = weir.spawn().expect("this executable can be started");
    let mut all = Vec::new();
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    for line in lines.map_while(Result::ok) {
        if let Some(pid) = line.strip_prefix("process ") {
            all.push(ProcessId::of(pid.parse().expect("a number")).expect("it runs"));
        }
        if line == "ready" || (is_bare && !all.is_empty()) {
            break;
        }
    }
    child.kill().expect("it runs");
    child.wait().expect("it was started here");
    assert!(!all.is_empty(), "the proxy was started");
    let mut entries = std::fs::read_dir(parent).expect("the folder is there");
    let entry = entries.next().expect("it leaves its folder behind").expect("it can be read");
    (Orphans(all), entry.path())
}

#[test]
fn a_killed_weir_takes_its_proxy_along_and_its_folder_is_swept() {
    for subject in one_of_each() {
        let work = WorkFolder::create().unwrap();
        let parent = shared_folder(&work);
        let (orphans, folder) = kill_a_weir("launched", subject.kind, &parent);
        assert_eq!(orphans.0.len(), subject.workers + 1, "{:?}", subject.kind);
        until("the proxy ends after its weir", || !orphans.some_alive());
        assert_eq!(WorkFolder::sweep_in(&parent), [folder]);
    }
}

#[test]
fn a_proxy_that_outlived_its_weir_is_ended_by_the_next_sweep() {
    let work = WorkFolder::create().unwrap();
    // TMPDIR may well be a link.
    let parent = work.prefix("link");
    std::os::unix::fs::symlink(shared_folder(&work), &parent).unwrap();
    let (orphans, folder) = kill_a_weir("bare", ProxyKind::Nginx, &parent);
    assert!(orphans.some_alive(), "nothing ties it to its weir");
    assert_eq!(WorkFolder::sweep_in(&parent), [folder]);
    until("the sweep ended it", || !orphans.some_alive());
}

#[test]
fn workers_that_outlived_their_master_too_are_ended_by_the_next_sweep() {
    let work = WorkFolder::create().unwrap();
    let parent = shared_folder(&work);
    let (masters, folder) = kill_a_weir("bare", ProxyKind::Nginx, &parent);
    let master = masters.0[0].pid;
    let workers = Orphans(
        weir_probe::process::children(master)
            .unwrap()
            .into_iter()
            .map(|pid| ProcessId::of(pid).unwrap())
            .collect(),
    );
    kill(master);
    until("the master's end", || !masters.some_alive());
    assert!(workers.some_alive(), "workers outlive their master");
    // Somebody who only looks at the log is nobody's orphan.
    let log = std::fs::File::open(folder.join("arm/logs/error.log")).unwrap();
    let mut reader = Command::new("sleep").arg("600").stdin(log).spawn().unwrap();
    assert_eq!(WorkFolder::sweep_in(&parent), [folder]);
    assert!(!workers.some_alive());
    assert!(matches!(reader.try_wait(), Ok(None)));
    reader.kill().unwrap();
    reader.wait().unwrap();
}

/// Makes an nginx with capabilities of its own, a common way to listen at port 80 without root. The kernel hides its
/// program and open files from other processes of its user, and does not tell its master that weir has ended. `None` if
/// none can be made here.
fn nginx_with_capabilities(folder: &Path) -> Option<PathBuf> {
    let executable = std::env::current_exe().expect("a test knows its executable");
    let program = folder.join("nginx");
    std::fs::copy(nginx().program(), &program).expect("the folder is the test's");
    let mut setcap = Command::new("setcap");
    setcap.arg("cap_net_bind_service=ep").arg(&program);
    let has_capabilities = setcap.output().is_ok_and(|output| output.status.success());
    let can_be_done =
        has_capabilities && runs_as_nobody(&executable, "--list") && runs_as_nobody(&program, "-v");
    can_be_done.then_some(program)
}

fn runs_as_nobody(program: &Path, argument: &str) -> bool {
    let mut command = Command::new("setpriv");
    command.args(AS_NOBODY).arg("--").arg(program).arg(argument);
    command.output().is_ok_and(|output| output.status.success())
}

const AS_NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

#[test]
fn a_proxy_that_does_not_show_what_it_is_is_found_again_by_number_and_start_time() {
    let work = WorkFolder::create().unwrap();
    let Some(program) = nginx_with_capabilities(work.path()) else {
        println!(
            "left out: a program with capabilities cannot be made or run as another user here"
        );
        return;
    };
    for is_master_killed in [false, true] {
        let parent = work.prefix(if is_master_killed { "with" } else { "without" });
        std::fs::create_dir(&parent).unwrap();
        std::os::unix::fs::chown(&parent, Some(NOBODY), Some(NOBODY)).unwrap();
        let through: Vec<&str> = ["setpriv"].into_iter().chain(AS_NOBODY).collect();
        let mut doomed = weir(&through, "launched", ProxyKind::Nginx, &parent);
        doomed.env(PROGRAM, &program);
        let (orphans, folder) = kill_once_it_serves(doomed, false, &parent);
        assert_eq!(orphans.0.len(), 3);
        if is_master_killed {
            kill(orphans.0[2].pid);
        }
        let hidden = orphans.0[0].pid;
        let shown = Command::new("setpriv")
            .args(AS_NOBODY)
            .args(["--", "readlink", &format!("/proc/{hidden}/exe")])
            .output()
            .unwrap();
        assert!(!shown.status.success(), "it hides what it runs");
        assert!(orphans.some_alive(), "nothing ties it to its weir");
        let swept = String::from_utf8_lossy(
            &weir(&through, "sweep", ProxyKind::Nginx, &parent).output().unwrap().stdout,
        )
        .into_owned();
        assert!(swept.contains(&format!("swept {}", folder.display())), "{swept}");
        until("the sweep ended it", || !orphans.some_alive());
    }
}
