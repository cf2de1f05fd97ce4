//! Real processes killed by SIGKILL at every step, on the real kernel, in a network namespace of
//! their own.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::{Signal, getpid, kill_process};

use super::super::settings::Kernel;
use super::*;
use crate::Network;

const ROLE: &str = "WEIR_TEST_JOURNAL_ROLE";
const STEPS: &str = "WEIR_TEST_JOURNAL_STEPS";
const FOLDER: &str = "WEIR_TEST_JOURNAL_FOLDER";

/// The kernel's settings, with a SIGKILL to this process after so many accesses.
struct Fatal(AtomicUsize);

impl Fatal {
    fn step(&self) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 0 {
            kill_process(getpid(), Signal::KILL).unwrap();
            thread::park();
        }
    }
}

impl Settings for Fatal {
    fn read(&self, key: &Key) -> Result<String, SettingError> {
        self.step();
        Kernel.read(key)
    }

    fn write(&self, key: &Key, value: &str) -> Result<(), SettingError> {
        self.step();
        Kernel.write(key, value)
    }

    fn has_row(&self, key: &Key) -> bool {
        Kernel.has_row(key)
    }
}

fn keys() -> [Key; 3] {
    let names = ["core.somaxconn", "ipv4.ip_local_port_range", "ipv4.ip_local_reserved_ports"];
    names.map(|name| Key::Sysctl(format!("net.{name}")))
}

fn values() -> Vec<String> {
    keys().iter().map(|key| Kernel.read(key).unwrap()).collect()
}

/// Process that is killed; does nothing as an ordinary test, if [`run`] did not start it.
#[test]
fn child() {
    let Ok(role) = env::var(ROLE) else {
        return;
    };
    let folder = PathBuf::from(env::var(FOLDER).unwrap());
    let fatal = Fatal(AtomicUsize::new(env::var(STEPS).unwrap().parse().unwrap()));
    if role == "restore" {
        restore_with(&folder, &fatal).unwrap();
        return;
    }
    let [backlog, ports, reserved] = keys();
    let mut journal = Journal::open_with(&folder, "a test", Box::new(fatal)).unwrap();
    journal.change(&backlog, "511").unwrap();
    journal.announce(&ports, &texts(&["20000 30000", "30000 40000"])).unwrap();
    journal.give(&ports, "20000 30000").unwrap();
    journal.give(&ports, "30000 40000").unwrap();
    journal.change(&reserved, "35000-35010").unwrap();
    journal.change(&backlog, "1023").unwrap();
    if role == "session" {
        journal.restore();
    } else {
        kill_process(getpid(), Signal::KILL).unwrap();
    }
}

/// Runs [`child`] in the calling thread's namespace.
fn run(role: &str, folder: &Path, steps: usize) -> ExitStatus {
    let child = "journal::tests::killed::child";
    Command::new(env::current_exe().unwrap())
        .args([child, "--exact", "--test-threads=1"])
        .env(ROLE, role)
        .env(STEPS, steps.to_string())
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .status()
        .unwrap()
}

/// Returns true if the process was killed; panics if it failed otherwise.
fn was_killed(status: ExitStatus) -> bool {
    let killed = status.signal() == Some(Signal::KILL.as_raw());
    assert!(killed || status.success(), "{status}");
    killed
}

fn in_a_namespace(work: impl FnOnce() + Send) {
    match Network::create() {
        Ok(network) => network.within(work).unwrap(),
        Err(error) => eprintln!("skipped: no network namespace may be made here: {error}"),
    }
}

#[test]
fn a_session_killed_at_any_step_is_undone() {
    in_a_namespace(|| {
        let before = values();
        let mut kills = 0;
        let folder = tempfile::tempdir().unwrap();
        while was_killed(run("session", folder.path(), kills)) {
            restore(folder.path()).unwrap();
            assert_eq!(values(), before, "killed at step {kills}");
            assert_eq!(pending(folder.path()).unwrap().settings, []);
            kills += 1;
        }
        assert_eq!(values(), before);
        // Three values before, five changes of three steps each, three restored.
        assert!(kills >= 3 + 5 * 3 + 3 * 3, "{kills}");
    });
}

#[test]
fn a_restore_killed_at_any_step_is_done_again() {
    in_a_namespace(|| {
        let before = values();
        let folder = tempfile::tempdir().unwrap();
        let mut kills = 0;
        loop {
            assert!(was_killed(run("abandon", folder.path(), usize::MAX)));
            let changed = values();
            assert!(changed.iter().zip(&before).all(|(now, was)| now != was));
            let killed = was_killed(run("restore", folder.path(), kills));
            let open_settings = pending(folder.path()).unwrap().settings;
            assert_eq!(open_settings.is_empty(), !killed, "{open_settings:?}");
            restore(folder.path()).unwrap();
            assert_eq!(values(), before, "killed at step {kills}");
            if !killed {
                break;
            }
            kills += 1;
        }
        assert!(kills >= 3 * 3, "{kills}");
    });
}
