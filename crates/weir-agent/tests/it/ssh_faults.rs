//! Agents that cannot start over ssh. Each case must be an error that names the reason, and never a hang.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir_agent::ssh::{CopyProblem, Limit, Problem, SshError, SshPlace, connect};
use weir_testkit::ssh::{Host, PATIENCE, agent, program, skipped};

/// Connects, and returns the problem that ssh had; any other outcome fails the test.
#[track_caller]
fn problem(host: &Host, weir: &Path) -> Problem {
    let error = host.connect(weir).expect_err("there must be no agent");
    assert!(error.hint().is_some(), "{error}");
    match error {
        SshError::Connection { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

/// Connects, and returns the problem that the copy had; any other outcome fails the test.
#[track_caller]
fn copy_problem(host: &Host, weir: &Path) -> CopyProblem {
    let error = host.connect(weir).expect_err("there must be no agent");
    assert!(error.hint().is_some(), "{error}");
    match error {
        SshError::Copy { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

#[test]
fn an_account_that_wants_a_password_is_an_error() {
    let lines = "PubkeyAuthentication no\nPasswordAuthentication yes";
    let Some(host) = Host::start_with(lines, "") else {
        return;
    };
    let weir = agent(host.folder.path(), "one");
    assert_eq!(problem(&host, &weir), Problem::Denied);
}

/// ssh does not pass `BatchMode` on to the ssh that it starts for a jump host. That one cannot prompt because it has no
/// terminal. The test therefore runs on a terminal, which script(1) creates.
#[test]
fn a_jump_host_cannot_ask_either() {
    const INSIDE: &str = "WEIR_TEST_ON_A_TERMINAL";
    if std::env::var_os(INSIDE).is_none() {
        let executable = std::env::current_exe().expect("a test knows its executable");
        let name = "ssh_faults::a_jump_host_cannot_ask_either";
        let inside = Command::new("script")
            .args(["-qec", &format!("{} --exact {name}", executable.display()), "/dev/null"])
            .env(INSIDE, "1")
            .stdin(Stdio::null())
            .output();
        match inside {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            }
            Err(error) => skipped(&format!("no script(1) here: {error}")),
        }
        return;
    }
    let Some(host) = Host::start() else { return };
    let weir = agent(host.folder.path(), "one");
    let mut destination = host.place();
    // ssh takes a host that is its own jump host for a loop, and goes by the name.
    let jump = format!("localhost:{}", host.port);
    destination.options.extend(["-J".to_owned(), jump]);
    let error = connect(&destination, &weir, "test", PATIENCE).expect_err("nobody knows its key");
    assert!(matches!(error, SshError::Connection { problem: Problem::UnknownKey, .. }), "{error}");
}

#[test]
fn a_key_with_a_passphrase_is_an_error() {
    let Some(host) = Host::start() else { return };
    let key = host.folder.path().join("key");
    let locked = Command::new("ssh-keygen")
        .args(["-q", "-p", "-P", "", "-N", "a passphrase", "-f"])
        .arg(key)
        .output();
    assert!(locked.is_ok_and(|output| output.status.success()));
    let weir = agent(host.folder.path(), "one");
    assert_eq!(problem(&host, &weir), Problem::Denied);
}

#[test]
fn unknown_and_changed_host_keys_are_errors() {
    let Some(host) = Host::start() else { return };
    let weir = agent(host.folder.path(), "one");
    let destination = host.place();
    host.know_nothing();
    assert_eq!(find_problem(&destination, &weir), Problem::UnknownKey);
    host.know("other_key");
    assert_eq!(find_problem(&destination, &weir), Problem::ChangedKey);
    let known_hosts = fs::read_to_string(host.folder.path().join("known_hosts")).unwrap();
    let other_key = fs::read_to_string(host.folder.path().join("other_key.pub")).unwrap();
    assert!(known_hosts.ends_with(&other_key), "ssh must not have learned anything");
}

fn find_problem(destination: &SshPlace, weir: &Path) -> Problem {
    match connect(destination, weir, "test", PATIENCE) {
        Err(SshError::Connection { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_port_where_nobody_listens_is_an_error() {
    let mut destination = SshPlace::new("127.0.0.1");
    // Nobody listens on what a test has bound and does not listen on.
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    rustix::net::bind(&socket, &std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = rustix::net::getsockname(&socket).unwrap();
    let port = std::net::SocketAddr::try_from(address).unwrap().port();
    destination.options = ["-F", "none", "-p", &port.to_string()].map(str::to_owned).to_vec();
    let Some(error) = without_a_host(&destination, PATIENCE) else {
        return;
    };
    assert!(matches!(error, SshError::Connection { problem: Problem::Refused, .. }), "{error}");
}

#[test]
fn a_host_that_says_nothing_is_given_up_in_time() {
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let mut destination = SshPlace::new("127.0.0.1");
    destination.options = ["-F", "none", "-p", &port].map(str::to_owned).to_vec();
    let Some(error) = without_a_host(&destination, Duration::from_secs(3)) else {
        return;
    };
    assert!(
        matches!(
            error,
            SshError::Overdue { .. } | SshError::Connection { problem: Problem::TimedOut, .. }
        ),
        "{error}"
    );
}

#[test]
fn names_and_options_that_ssh_does_not_know_are_errors() {
    let mut destination = SshPlace::new("no-such-host.invalid");
    destination.options = ["-F", "none"].map(str::to_owned).to_vec();
    let Some(error) = without_a_host(&destination, PATIENCE) else {
        return;
    };
    assert!(matches!(error, SshError::Connection { problem: Problem::Unresolved, .. }), "{error}");
    destination.options = ["-o", "NoSuchOption=1"].map(str::to_owned).to_vec();
    let error = without_a_host(&destination, PATIENCE).expect("ssh is there");
    assert!(matches!(error, SshError::Configuration { .. }) && error.is_input(), "{error}");
    assert!(error.to_string().contains("nosuchoption"), "{error}");
    destination.program = "/nowhere/ssh".into();
    let error = without_a_host(&destination, PATIENCE).expect("it is another program");
    assert!(matches!(error, SshError::Program { .. }), "{error}");
}

#[test]
fn an_ssh_that_somebody_kills_is_no_fault_of_the_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut destination = SshPlace::new("no-such-host.invalid");
    destination.program = program(folder.path(), "ssh", "#!/bin/sh\nkill -KILL $$\n");
    let error = without_a_host(&destination, PATIENCE).expect("it is there");
    assert!(matches!(error, SshError::Ended { .. }) && !error.is_input(), "{error}");
    assert!(error.to_string().contains("signal: 9"), "{error}");
}

#[test]
fn a_wish_to_end_is_heard_while_there_is_no_agent_yet() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut destination = SshPlace::new("192.0.2.1");
    for script in [
        // ssh -G never ends; a greeting never comes, as noise on standard error does, or byte by byte.
        "exec sleep 60",
        "[ $1 = -G ] && exit 0\nexec sleep 60",
        "[ $1 = -G ] && exit 0\nwhile :; do echo noise >&2; done",
        "[ $1 = -G ] && exit 0\nprintf '\\0\\0\\1\\0'; while :; do printf x; sleep 0.1; done",
    ] {
        destination.program = program(folder.path(), "ssh", &format!("#!/bin/sh\n{script}\n"));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(500));
                stop.store(true, Ordering::Relaxed);
            });
            let (at_most, stop, begun) = (PATIENCE, &stop, Instant::now());
            let limit = Limit { at_most, stop };
            let error =
                connect(&destination, Path::new("/bin/true"), "test", limit).expect_err("no agent");
            assert!(matches!(error, SshError::Interrupted(_)), "{script}: {error}");
            assert!(begun.elapsed() < Duration::from_secs(10), "{script}");
        });
    }
}

/// Returns the reason why there is no agent. Returns `None`, and prints that the test is skipped, if there is no ssh.
fn without_a_host(place: &SshPlace, at_most: Duration) -> Option<SshError> {
    let weir = Path::new("/bin/true");
    let error = connect(place, weir, "test", at_most).expect_err("no agent");
    if matches!(error, SshError::Program { .. }) && place.program == Path::new("ssh") {
        skipped(&error.to_string());
        return None;
    }
    Some(error)
}

#[test]
fn a_shell_that_talks_before_the_agent_is_quoted() {
    let Some(host) = Host::start() else { return };
    let weir = agent(host.folder.path(), "one");
    // bash reads ~/.bashrc for a command of sshd's, other shells do not: see that it is so here.
    let rc = "echo Welcome to the test\n";
    fs::write(host.home().join(".bashrc"), rc).unwrap();
    let error = match host.connect(&weir) {
        Ok(_) => {
            skipped("the login shell here reads no .bashrc");
            return;
        }
        Err(error) => error,
    };
    assert!(
        matches!(&error, SshError::Noise { first, .. } if first.starts_with("Welcome to the test")),
        "{error}"
    );
    assert!(error.hint().is_some_and(|hint| hint.contains(".bashrc")), "{error}");
}

#[test]
fn a_shell_that_talks_is_quoted_whatever_the_shell() {
    let lines = "ForceCommand echo Nobody logs in here; exit 1";
    let Some(host) = Host::start_with(lines, "") else {
        return;
    };
    let weir = agent(host.folder.path(), "one");
    let error = host.connect(&weir).expect_err("there is no agent");
    assert!(
        matches!(&error, SshError::Noise { first, .. } if first == "Nobody logs in here"),
        "{error}"
    );
}

#[test]
fn a_host_that_lets_in_and_says_nothing_is_given_up_in_time() {
    let Some(host) = Host::start_with("ForceCommand cat > /dev/null", "") else {
        return;
    };
    let weir = agent(host.folder.path(), "one");
    let result = connect(&host.place(), &weir, "test", Duration::from_secs(3));
    assert!(matches!(result, Err(SshError::Overdue { .. })), "{result:?}");
}

#[test]
fn a_home_that_cannot_be_written_is_an_error() {
    let Some(host) = Host::start() else { return };
    // A file where a folder must be stops root too.
    fs::write(host.home().join(".cache"), "").unwrap();
    let weir = agent(host.folder.path(), "one");
    assert_eq!(copy_problem(&host, &weir), CopyProblem::Unwritable);
}

#[test]
fn a_read_only_home_is_an_error() {
    let Some(host) = Host::start_with("", "mount -t tmpfs -o ro tmpfs home") else {
        return;
    };
    let weir = agent(host.folder.path(), "one");
    assert_eq!(copy_problem(&host, &weir), CopyProblem::Unwritable);
}

#[test]
fn a_full_disk_is_an_error_and_nothing_of_the_copy_stays() {
    let Some(host) = Host::start_with("", "mount -t tmpfs -o size=64k tmpfs home") else {
        return;
    };
    let weir = agent(host.folder.path(), "one");
    let mut text = fs::read_to_string(&weir).unwrap();
    text.push_str(&"# more than there is room for\n".repeat(10_000));
    fs::write(&weir, text).unwrap();
    assert_eq!(copy_problem(&host, &weir), CopyProblem::Full);
    // A smaller one has room: the half of the larger is not left there.
    let small = agent(host.folder.path(), "two");
    host.connect(&small).expect("there is room for it");
}

#[test]
fn a_home_without_leave_to_execute_is_an_error() {
    let Some(host) = Host::start_with("", "mount -t tmpfs -o noexec tmpfs home") else {
        return;
    };
    let weir = agent(host.folder.path(), "one");
    assert_eq!(copy_problem(&host, &weir), CopyProblem::Unusable);
}

#[test]
fn another_kind_of_machine_is_an_error() {
    let lines = "ForceCommand PATH=$HOME/bin:$PATH; export PATH; eval \"$SSH_ORIGINAL_COMMAND\"";
    let Some(host) = Host::start_with(lines, "") else {
        return;
    };
    // The host's uname(1) would name our own kind: another goes before it.
    let folder = host.home().join("bin");
    fs::create_dir(&folder).unwrap();
    let text = "#!/bin/sh\n[ \"$1\" = -s ] && echo Plan9 || echo vax\n";
    program(&folder, "uname", text);
    let weir = agent(host.folder.path(), "one");
    let error = host.connect(&weir).expect_err("it is another kind of machine");
    assert!(matches!(&error, SshError::Machine { theirs, .. } if theirs == "Plan9 vax"), "{error}");
    assert!(!host.copies().exists(), "nothing is copied");
}
