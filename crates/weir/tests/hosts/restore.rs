//! Tests of `weir restore`, with real settings of a network namespace of the test's own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_host::journal::Journal;
use weir_testkit::program::{Ended, HasAll, Running, wait_until, weir};
use weir_testkit::ssh::skipped;

const BACKLOG: &str = "net.core.somaxconn";
const PORTS: &str = "net.ipv4.ip_local_port_range";
/// A setting that a study has a row for, but this kernel lacks.
const ABSENT: &str = "net.core.of_no_kernel";

/// A network namespace that a sleeping process holds, and a folder for the journal.
struct Host {
    holder: Running,
    namespace: String,
    folder: TempDir,
}

impl Host {
    /// Makes the namespace; returns `None`, and prints the reason, if that is not allowed.
    fn new() -> Option<Host> {
        let namespace_here = fs::read_link("/proc/self/ns/net").expect("/proc");
        let mut command = Command::new("unshare");
        command.args(["--net", "sleep", "600"]);
        let mut holder = Running::start(&mut command);
        let link = format!("/proc/{}/ns/net", holder.pid());
        wait_until("the namespace, or that there is none", || {
            !holder.is_alive() || fs::read_link(&link).is_ok_and(|theirs| theirs != namespace_here)
        });
        if !holder.is_alive() {
            skipped(&holder.end().stderr);
            return None;
        }
        let namespace = fs::read_link(&link).expect("its namespace");
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("temporary")).expect("own folder");
        Some(Host { holder, namespace: namespace.to_string_lossy().into_owned(), folder })
    }

    fn inside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        let link = format!("--net=/proc/{}/ns/net", self.holder.pid());
        command.args([&link, program]);
        command
    }

    fn get(&self, name: &str) -> String {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let text = Running::start(self.inside("cat").arg(path)).end();
        text.with_code(0).stdout.trim().replace('\t', " ")
    }

    fn set(&self, name: &str, value: &str) {
        let line = format!("echo '{value}' > /proc/sys/{}", name.replace('.', "/"));
        Running::start(self.inside("sh").args(["-c", &line])).end().with_code(0);
    }

    /// Writes a journal as a killed weir leaves it: settings with their values before and during the run.
    fn leave(&self, boot: Option<&str>, settings: &[(&str, &str, &str)]) {
        let this_boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("/proc");
        let since = "2026-01-02T03:04:05Z";
        let head = json!({"journal": "weir-journal/1", "boot": boot.unwrap_or(this_boot.trim()), "pid": 1, "since": since,
                          "purpose": "weir run", "settings": [ABSENT]});
        let mut text = format!("{head}\n");
        for (name, before, applied) in settings {
            let key = json!({"sysctl": name});
            let ahead = json!({"key": key, "namespace": self.namespace, "before": before,
                               "given": [applied]});
            text += &format!("{}\n", json!({"ahead": ahead}));
        }
        fs::write(self.folder.path().join("journal.jsonl"), text).expect("own folder");
    }

    fn with_places(&self, mut command: Command, arguments: &[&str]) -> Ended {
        command
            .arg("restore")
            .args(arguments)
            .env("WEIR_JOURNAL", self.folder.path())
            .env("TMPDIR", self.folder.path().join("temporary"));
        Running::start(&mut command).end()
    }

    fn restore(&self, arguments: &[&str]) -> Ended {
        self.with_places(self.inside(env!("CARGO_BIN_EXE_weir")), arguments)
    }

    fn restore_from_outside(&self) -> Ended {
        self.with_places(weir([""; 0]), &[])
    }
}

#[test]
fn what_a_killed_weir_has_left_is_shown_and_undone() {
    let Some(host) = Host::new() else { return };
    let nothing = "Nothing to restore: no weir has left a setting changed or a folder behind.\n";
    assert_eq!(host.restore(&[]).with_code(0).stdout, nothing);
    let (backlog, ports) = (host.get(BACKLOG), host.get(PORTS));
    host.set(BACKLOG, "77");
    host.set(PORTS, "20000 30000");
    host.leave(None, &[(BACKLOG, &backlog, "77"), (PORTS, &ports, "20000 30000")]);
    let folder = host.folder.path().join("temporary/weir-1-0123456789abcdef");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(".pid"), "1\n0\nan earlier boot\npid:[1]\n").unwrap();

    let shown = host.restore(&["--dry-run"]).with_code(0).stdout;
    let expected = format!(
        "{PORTS}: would be put back to {ports} (weir gave it 20000 30000)\n\
         {BACKLOG}: would be put back to {backlog} (weir gave it 77)\n\
         {}: would be removed\n",
        folder.display()
    );
    assert_eq!(shown, expected);
    assert_eq!(host.get(BACKLOG), "77");
    assert!(folder.exists());

    let done = host.restore(&[]).with_code(0).stdout;
    assert_eq!(done, expected.replace("would be ", ""));
    assert_eq!((host.get(BACKLOG), host.get(PORTS)), (backlog, ports));
    assert!(!folder.exists());
    assert_eq!(host.restore(&[]).with_code(0).stdout, nothing);
}

#[test]
fn a_setting_that_somebody_else_has_changed_is_left_alone_and_told_of_once() {
    let Some(host) = Host::new() else { return };
    host.set(PORTS, "40000 50000");
    host.leave(None, &[(PORTS, "32768 60999", "20000 30000")]);
    let stdout = host.restore(&[]).with_code(1).stdout;
    let expected = format!(
        "{PORTS}: left alone, since somebody else has changed it after weir\n  \
         before weir    32768 60999\n  \
         given by weir  20000 30000\n  \
         now            40000 50000\n  \
         to put it back: sysctl -w {PORTS}='32768 60999'\n"
    );
    assert_eq!(stdout, expected);
    assert_eq!(host.get(PORTS), "40000 50000");
    host.restore(&[]).with_code(0);
}

#[test]
fn programs_read_json() {
    let Some(host) = Host::new() else { return };
    host.set(PORTS, "40000 50000");
    let settings = [(ABSENT, "1", "2"), (PORTS, "32768 60999", "20000 30000")];
    host.leave(None, &settings);
    let report: Value = host.restore(&["--format", "json"]).with_code(1).document();
    let expected = json!({
        "format": "weir-restore/1",
        "dry_run": false,
        "settings": [
            {
                "key": {"sysctl": PORTS},
                "before": "32768 60999",
                "given": ["20000 30000"],
                "outcome": "differs",
                "found": "40000 50000",
            },
            {"key": {"sysctl": ABSENT}, "before": "1", "given": ["2"], "outcome": "gone"},
        ],
        "removed": [],
    });
    assert_eq!(report, expected);
}

#[test]
fn a_setting_of_another_namespace_or_boot_is_not_taken_for_this_ones() {
    let Some(host) = Host::new() else { return };
    let before = host.get(BACKLOG);
    host.set(BACKLOG, "77");
    host.leave(None, &[(BACKLOG, &before, "77")]);
    let stdout = host.restore_from_outside().with_code(1).stdout;
    stdout.has(&format!("changed in another network namespace, {}", host.namespace));
    assert_eq!(host.get(BACKLOG), "77");
    host.restore(&[]).with_code(0);
    assert_eq!(host.get(BACKLOG), before);

    host.set(BACKLOG, "77");
    let other_boot = "00000000-0000-0000-0000-000000000000";
    host.leave(Some(other_boot), &[(BACKLOG, &before, "77")]);
    host.restore(&[]).with_code(0).stdout.has("was undone by a reboot");
    assert_eq!(host.get(BACKLOG), "77");
}

#[test]
fn a_weir_that_lives_is_not_disturbed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::open(folder.path(), "a test").unwrap();
    let holder = format!("process {}, since ", std::process::id());
    for arguments in [&["restore"][..], &["restore", "--dry-run"]] {
        let mut command = weir(arguments);
        command.env("WEIR_JOURNAL", folder.path());
        let words = [&holder, ", for a test", "\nhint: wait until it has ended"];
        Running::start(&mut command).end().refused_in_a_line(&words);
    }
    drop(journal);
}

#[test]
fn a_journal_that_others_could_have_written_changes_nothing() {
    let Some(host) = Host::new() else { return };
    let before = host.get(BACKLOG);
    host.set(BACKLOG, "77");
    host.leave(None, &[(BACKLOG, &before, "77")]);
    fs::set_permissions(host.folder.path(), Permissions::from_mode(0o777)).unwrap();
    for arguments in [&[][..], &["--dry-run"]] {
        let words = ["can be written by others (its mode is 0777)", "\nhint: nothing was changed"];
        host.restore(arguments).refused_in_a_line(&words);
    }
    fs::set_permissions(host.folder.path(), Permissions::from_mode(0o700)).unwrap();
    let named = ("kernel.core_pattern", "|/tmp/x", "core");
    host.leave(None, &[(BACKLOG, &before, "77"), named]);
    let words = [":3: kernel.core_pattern is not a setting of weir's catalog or of the study"];
    host.restore(&[]).refused_in_a_line(&words);
    assert_eq!(host.get(BACKLOG), "77");
    host.leave(None, &[(BACKLOG, &before, "77")]);
    host.restore(&[]).with_code(0);
    assert_eq!(host.get(BACKLOG), before);
}

#[test]
fn a_damaged_journal_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journal.jsonl");
    fs::write(&file, "{\"journal\":\"weir-journal/1\"}\n").unwrap();
    let mut command = weir(["restore"]);
    command.env("WEIR_JOURNAL", folder.path()).stdout(Stdio::piped());
    let message = format!("{}:1: the journal is damaged: ", file.display());
    let words = [&message, "missing field `boot`", "\nhint: set the settings"];
    Running::start(&mut command).end().refused_in_a_line(&words);
}
