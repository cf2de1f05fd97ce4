//! The journal as its callers meet it, on the real kernel, in a network namespace of the test's own.

use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use weir_host::journal::{self, Journal, JournalError, Key, Outcome};

const FOLDER: &str = "WEIR_TEST_JOURNAL_FOLDER";
const BACKLOG: &str = "net.core.somaxconn";
const PORTS: &str = "net.ipv4.ip_local_port_range";
/// Empty in a new namespace: what it was before is no bytes at all.
const RESERVED: &str = "net.ipv4.ip_local_reserved_ports";

// Who runs the tests is told what was not tried.
#[allow(clippy::print_stderr)]
fn in_a_namespace(work: impl FnOnce() + Send) {
    let result = thread::scope(|scope| {
        let thread = scope.spawn(|| match unshare(CloneFlags::CLONE_NEWNET) {
            Ok(()) => work(),
            Err(error) => eprintln!("skipped: no network namespace may be made here: {error}"),
        });
        thread.join()
    });
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

fn key(name: &str) -> Key {
    Key::Sysctl(name.to_owned())
}

fn file(name: &str) -> PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

fn values() -> [String; 3] {
    [BACKLOG, PORTS, RESERVED].map(|name| fs::read_to_string(file(name)).expect("a sysctl"))
}

/// All that a weir does, again and again, until it is killed.
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
        .args(["child", "--exact", "--test-threads=1"])
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
    in_a_namespace(|| {
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
            let left = journal::pending(folder.path()).unwrap();
            assert!(!left.held);
            if !left.settings.is_empty() {
                let refused = Journal::open(folder.path(), "the next").unwrap_err();
                assert!(matches!(refused, JournalError::Left { .. }), "{refused}");
            }
            assert_eq!(journal::restore(folder.path()).unwrap(), left.settings);
            assert_eq!(values(), before, "kill {kill}");
        }
    });
}

#[test]
fn an_orderly_end_puts_the_very_values_back() {
    in_a_namespace(|| {
        let before = values();
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), "a test").unwrap();
        for (name, value) in [
            (BACKLOG, "511"),
            (PORTS, "20000 30000"),
            (RESERVED, "35000-35010"),
        ] {
            journal.change(&key(name), value).unwrap();
        }
        assert!(
            values()
                .iter()
                .zip(&before)
                .all(|(now, before)| now != before)
        );
        let restored = journal.restore();
        assert!(
            restored.iter().all(|one| one.outcome == Outcome::PutBack),
            "{restored:?}"
        );
        assert_eq!(values(), before);
    });
}

#[test]
fn what_the_kernel_refuses_is_told_in_its_words() {
    in_a_namespace(|| {
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
        let absent = journal
            .change(&key("net.core.of_no_kernel"), "1")
            .unwrap_err();
        assert!(matches!(absent, JournalError::Absent { .. }), "{absent}");
        assert_eq!(values(), before);
    });
}

/// Settings of two namespaces are two settings, though they have one name.
#[test]
fn each_namespace_has_a_setting_of_its_own() {
    in_a_namespace(|| {
        let before = values();
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), "a test").unwrap();
        journal.change(&key(BACKLOG), "511").unwrap();
        thread::scope(|scope| {
            let inner = scope.spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).unwrap();
                fs::write(file(BACKLOG), "99").unwrap();
                journal.change(&key(BACKLOG), "77").unwrap();
                let put_back = |name: &str, before: &str| (name.to_owned(), before.to_owned());
                let restored = journal.restore();
                let of_here: Vec<_> = restored
                    .iter()
                    .filter(|one| one.outcome == Outcome::PutBack)
                    .map(|one| put_back(&one.key.to_string(), &one.before))
                    .collect();
                assert_eq!(of_here, [put_back(BACKLOG, "99")]);
                assert_eq!(fs::read_to_string(file(BACKLOG)).unwrap(), "99\n");
            });
            inner.join().unwrap();
        });
        assert_ne!(values(), before, "it is not the inner thread's to put back");
        fs::write(file(BACKLOG), before[0].as_bytes()).unwrap();
    });
}
