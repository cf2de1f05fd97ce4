//! Tests of the journal's public API on the real kernel, in a network namespace of the test's own.

use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weir_host::Network;
use weir_host::journal::{self, Journal, JournalError, Key, Outcome};

use crate::support::inside;

const FOLDER: &str = "WEIR_TEST_JOURNAL_FOLDER";
const BACKLOG: &str = "net.core.somaxconn";
const PORTS: &str = "net.ipv4.ip_local_port_range";
/// Setting that is empty in a new namespace: its original value has no bytes at all.
const RESERVED: &str = "net.ipv4.ip_local_reserved_ports";

fn key(name: &str) -> Key {
    Key::Sysctl(name.to_owned())
}

fn file(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

fn values() -> [String; 3] {
    [BACKLOG, PORTS, RESERVED].map(|name| fs::read_to_string(file(name)).expect("a sysctl"))
}

/// Process that changes and restores settings again and again until it is killed.
#[test]
fn child() {
    let Some(folder) = env::var_os(FOLDER) else {
        return;
    };
    let mut journal = Journal::open(Path::new(&folder), "a test").unwrap();
    let levels = ["20000 30000", "30000 40000"].map(str::to_owned);
    loop {
        journal.change(&key(BACKLOG), "511").unwrap();
        journal.change(&key(RESERVED), "35000-35010").unwrap();
        journal.announce(&key(PORTS), &levels).unwrap();
        for _ in 0..100 {
            for level in &levels {
                journal.give(&key(PORTS), level).unwrap();
            }
        }
        journal.restore();
    }
}

/// Starts [`child`] in the calling thread's namespace, and waits until it has changed something.
fn start(folder: &Path, before: &[String; 3]) -> Child {
    let mut child = Command::new(env::current_exe().expect("own program"))
        .args(["journal::child", "--exact", "--test-threads=1"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("own program starts");
    let begun = Instant::now();
    while values() == *before {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain");
        assert!(matches!(child.try_wait(), Ok(None)), "it ended");
        thread::yield_now();
    }
    child
}

#[test]
fn a_weir_killed_at_any_moment_leaves_nothing() {
    inside(|| {
        let before = values();
        let folder = tempfile::tempdir().unwrap();
        for kill in 0..30 {
            let mut child = start(folder.path(), &before);
            thread::sleep(Duration::from_micros(kill * 331));
            // A refusal takes its time: it might be the lock of one that is just ending.
            if kill % 10 == 0 {
                let refused = Journal::open(folder.path(), "another").unwrap_err();
                let pid = child.id().to_string();
                assert!(refused.to_string().contains(&pid), "{pid}: {refused}");
            }
            child.kill().unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(9));
            let pending = journal::pending(folder.path()).unwrap();
            assert!(!pending.held);
            if !pending.settings.is_empty() {
                let refused = Journal::open(folder.path(), "the next").unwrap_err();
                assert!(matches!(refused, JournalError::Left { .. }), "{refused}");
            }
            assert_eq!(journal::restore(folder.path()).unwrap(), pending.settings);
            assert_eq!(values(), before, "kill {kill}");
        }
    });
}

#[test]
fn what_the_kernel_refuses_is_told_in_its_words() {
    inside(|| {
        let before = values();
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), "a test").unwrap();
        let refused = journal.change(&key(BACKLOG), "-1").unwrap_err().to_string();
        let words = format!("cannot give the value `-1` to {BACKLOG}: Invalid argument");
        assert!(refused.starts_with(&words), "{refused}");
        // The kernel keeps sets of ports as ranges.
        let refused = journal.change(&key(RESERVED), "35001,35002").unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("{RESERVED} was set to `35001,35002` and became `35001-35002`")
        );
        let nowhere = key("net.core.of_no_kernel");
        let absent = journal.change(&nowhere, "1").unwrap_err();
        assert!(matches!(absent, JournalError::Absent { .. }), "{absent}");
        assert_eq!(values(), before);
    });
}

/// Settings of two namespaces are separate, though they have the same name.
#[test]
fn each_namespace_has_a_setting_of_its_own() {
    inside(|| {
        let before = values();
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), "a test").unwrap();
        journal.change(&key(BACKLOG), "511").unwrap();
        Network::create()
            .unwrap()
            .within(|| {
                fs::write(file(BACKLOG), "99").unwrap();
                journal.change(&key(BACKLOG), "77").unwrap();
                let mut restored = journal.restore();
                restored.retain(|setting| setting.outcome == Outcome::PutBack);
                let put_back: Vec<_> =
                    restored.iter().map(|setting| (&setting.key, &*setting.before)).collect();
                assert_eq!(put_back, [(&key(BACKLOG), "99")]);
                assert_eq!(fs::read_to_string(file(BACKLOG)).unwrap(), "99\n");
            })
            .unwrap();
        assert_ne!(values(), before, "it is not the inner thread's to put back");
        fs::write(file(BACKLOG), before[0].as_bytes()).unwrap();
    });
}
