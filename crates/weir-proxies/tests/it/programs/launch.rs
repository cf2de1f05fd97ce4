//! Tests of the launcher, through this test executable.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use weir_sut::{Launch, launch_main};

use crate::programs::support::{launcher, until};

/// Acts as `weir launch` for other tests. The launcher starts this executable with this test alone and its own
/// arguments behind `--`.
#[test]
fn becomes_the_program() {
    let mut arguments = std::env::args_os().skip_while(|argument| argument != "--");
    if arguments.next().is_some() {
        let error = launch_main(arguments);
        eprintln!("{error}");
        std::process::exit(127);
    }
}

/// Runs a shell script through the launcher; returns the printed lines, without those of the test harness.
fn shell(launch: &Launch, script: &str) -> Vec<String> {
    let mut command = launcher().command(launch, Path::new("sh"));
    let output = command
        .args(["-c", &format!("echo begin; {script}")])
        .output()
        .expect("the launcher can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .skip_while(|line| *line != "begin")
        .skip(1)
        .map(str::to_owned)
        .collect()
}

#[test]
fn cpus_limit_and_group_hold_for_the_program() {
    let allowed = weir_probe::allowed_cpus().unwrap();
    let last = allowed.cpus().last().unwrap().to_string();
    let launch =
        Launch { cpus: Some(last.parse().unwrap()), nofile: Some(123), ..Launch::default() };
    let script = "sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status; ulimit -S -n; echo $$; cut -d' ' -f5 /proc/$$/stat";
    let lines = shell(&launch, script);
    assert_eq!(lines[0], last, "CPUs");
    assert_eq!(lines[1], "123", "soft limit of descriptors");
    assert_eq!(lines[2], lines[3], "the process leads a group of its own");
}

#[test]
fn no_variable_leads_the_program_elsewhere() {
    let mut command = launcher().command(&Launch::default(), Path::new("env"));
    for name in
        ["HTTP_PROXY", "https_proxy", "NOTIFY_SOCKET", "NGINX", "OTEL_EXPORTER_OTLP_ENDPOINT"]
    {
        command.env(name, "elsewhere");
    }
    let output = command.env("OF_THE_USERS_OWN", "here").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("OF_THE_USERS_OWN=here"), "{text}");
    assert!(!text.contains("elsewhere"), "{text}");
}

#[test]
fn without_wishes_cpus_and_limit_stay() {
    let lines = shell(
        &Launch::default(),
        "sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status; ulimit -S -n",
    );
    assert_eq!(lines[0], weir_probe::allowed_cpus().unwrap().to_string());
    assert_eq!(lines[1], weir_probe::host::own_nofile().0.to_string());
}

#[test]
fn the_process_number_stays_and_arguments_pass_unchanged() {
    let mut command = launcher().command(&Launch::default(), Path::new("sleep"));
    let mut child = command.args(["60", "0"]).stdout(Stdio::null()).spawn().unwrap();
    until("the launcher becomes sleep", || {
        weir_probe::process::command_line(child.id()).is_ok_and(|line| line == "sleep 60 0")
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Runs the launcher with raw arguments; returns its exit code and error output.
fn launch_raw(arguments: &[&str]) -> (Option<i32>, String) {
    let launch = launcher().command(&Launch::default(), Path::new("x"));
    let leading = launch.get_args().map(OsString::from).take(4);
    let executable = std::env::current_exe().expect("a test knows its executable");
    let mut command = std::process::Command::new(executable);
    let output =
        command.args(leading).args(arguments).output().expect("the launcher can be started");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), words)
}

#[test]
fn what_cannot_be_had_is_said() {
    #[rustfmt::skip]
    let rows = [
        (&["--parent", "1", "--", "true"][..], "process 1) has ended"),
        (&["--", "/nonexistent/program"], "cannot run /nonexistent/program: No such file"),
        (&["--cpus", "1023", "--", "true"], "cannot run on CPUs 1023: Invalid argument"),
        (&["--cpus", "many", "--", "true"], "`--cpus many` is not understood"),
    ];
    for (arguments, message) in rows {
        let (code, words) = launch_raw(arguments);
        assert_eq!(code, Some(127));
        assert!(words.contains(message), "{words}");
    }
}
