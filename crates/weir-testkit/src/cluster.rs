//! A test cluster, managed by `scripts/kube`.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A test and its name.
pub type Named = (&'static str, fn(&Test));

/// Maximum number of failed tests that are run again; more failures are no accident.
const MOST_AGAIN: usize = 3;

/// Panic payload that ends a test if this machine lacks something; contains the reason.
struct Missing(String);

/// Runs the tests of a tier in one cluster, one after the other, after `prepare`. The tests that ran and the slowest
/// ones are reported on standard error, since the output of passing tests is hidden. A few failed tests, which may be
/// due to other work on this machine, are run once more at the end, and are named. If `KUBE_TESTS` is set, only tests
/// are run whose names contain it, or one of its comma-separated words.
pub fn tier(name: &str, nodes: Option<&Nodes<'_>>, prepare: fn(&Test), tests: &[Named]) {
    let test = match Test::up(&format!("kube-{name}"), nodes) {
        Ok(test) => test,
        Err(why) => return print_line(name, &format!("did not run: {why}")),
    };
    prepare(&test);
    let only = std::env::var("KUBE_TESTS").unwrap_or_default();
    let (mut times, mut failed) = (Vec::new(), Vec::new());
    let wanted = tests.iter().filter(|(name, _)| only.split(',').any(|word| name.contains(word)));
    for (test_name, run) in wanted {
        let began = Instant::now();
        let ended = catch_unwind(AssertUnwindSafe(|| run(&test))).err();
        match ended.as_ref().map(|payload| payload.downcast_ref()) {
            Some(Some(Missing(what))) => {
                print_line(name, &format!("{test_name} did not run: {what}"));
            }
            ended => {
                times.push((began.elapsed().as_secs(), *test_name));
                failed.extend(ended.map(|_| (*test_name, *run)));
            }
        }
    }
    if failed.len() <= MOST_AGAIN {
        failed.retain(|(test_name, run)| {
            print_line(name, &format!("{test_name} failed, and runs once more"));
            catch_unwind(AssertUnwindSafe(|| run(&test))).is_err()
        });
    }
    times.sort_unstable_by(|one, other| other.cmp(one));
    let longest: Vec<String> =
        times.iter().take(3).map(|(seconds, name)| format!("{name} {seconds} s")).collect();
    print_line(name, &format!("ran {} tests ({})", times.len(), longest.join(", ")));
    let failed: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
    assert!(failed.is_empty(), "failed: {failed:?}");
}

fn trimmed_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn print_line(tier: &str, message: &str) {
    let line = format!("kubernetes: {tier} tier: {message}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// The nodes of a cluster.
pub struct Nodes<'a> {
    /// Archive of the nodes' image.
    pub archive: &'a Path,
    /// Name of the image.
    pub image: &'a str,
    pub count: u32,
    /// CPU manager policy of the kubelets: `none` or `static`.
    pub cpus: &'a str,
}

/// Handle to a running test cluster.
pub struct Test {
    folder: PathBuf,
}

fn script() -> Command {
    Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/kube"))
}

impl Test {
    /// Starts etcd, API server, controller manager and scheduler, and nodes if requested. An error is the reason why
    /// this machine cannot run them.
    pub fn up(name: &str, nodes: Option<&Nodes<'_>>) -> Result<Test, String> {
        let folder = crate::files_folder().join(name);
        let mut command = script();
        command.arg("up").arg(&folder);
        if let Some(nodes) = nodes {
            command.arg(nodes.archive).arg(nodes.image);
            command.env("NODES", nodes.count.to_string());
            command.env("NODE_CPUS", nodes.cpus);
        }
        let output = command.output().map_err(|error| error.to_string())?;
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        match output.status.code() {
            Some(0) => Ok(Test { folder }),
            Some(3) => Err(words),
            _ => panic!("the cluster cannot be started: {words}"),
        }
    }

    /// Starts one of the controllers of `scripts/kube`, unless it runs already, and returns its address. If this
    /// machine cannot run it, the test ends as not run.
    pub fn controller(&self, name: &str) -> String {
        let output = script().arg("serve").arg(&self.folder).arg(name).output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        match output.status.code() {
            Some(0) => String::from_utf8(output.stdout).unwrap().trim().to_owned(),
            Some(3) => resume_unwind(Box::new(Missing(words))),
            _ => panic!("{name} cannot be started: {words}"),
        }
    }

    /// Returns a program that `scripts/kube` has built. If it has not, the test ends as not run.
    pub fn program(&self, name: &str) -> PathBuf {
        let output = script().args(["program", name]).output().unwrap();
        match output.status.code() {
            Some(0) => trimmed_text(&output.stdout).into(),
            _ => resume_unwind(Box::new(Missing(trimmed_text(&output.stderr)))),
        }
    }

    /// Builds a command that runs among the files and processes of a controller.
    pub fn within(&self, controller: &str, program: &str) -> Command {
        let mut command = script();
        command.arg("enter").arg(&self.folder).args([controller, program]);
        command
    }

    /// Builds a command in the network of a node; nodes are numbered from 1.
    pub fn at(&self, node: u32, program: &str) -> Command {
        let mut command = script();
        command.arg("at").arg(&self.folder);
        command.arg(node.to_string()).arg(program);
        command
    }

    /// Ends everything on a node and cuts its network (`lose`), or undoes that (`regain`).
    pub fn node(&self, action: &str, node: u32) {
        let mut command = script();
        command.arg(action).arg(&self.folder).arg(node.to_string());
        let output = command.output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{action} {node}: {words}");
    }

    /// Builds a command in the cluster's network, with its configuration.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = script();
        command.arg("run").arg(&self.folder).arg(program);
        command
    }

    /// Kubeconfig with the contexts `weir-test` and `weir-guest`.
    pub fn configuration(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// First process of the cluster's namespaces.
    fn first(&self) -> u32 {
        let outer = fs::read_to_string(self.folder.join("pid")).unwrap();
        children(outer.trim().parse().unwrap())[0]
    }

    /// Moves the calling thread, and everything that it starts, into the cluster's network.
    pub fn enter(&self) {
        let network = File::open(format!("/proc/{}/ns/net", self.first())).unwrap();
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
    }

    /// Process number of one of the cluster's programs.
    pub fn process(&self, name: &str) -> u32 {
        children(self.first())
            .into_iter()
            .find(|pid| {
                let command =
                    fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                command.split('\0').next().is_some_and(|program| program.ends_with(name))
            })
            .unwrap()
    }

    /// Runs kubectl as the administrator, with `input` on its standard input, and returns its output.
    pub fn kubectl(&self, words: &str, input: &str) -> String {
        let mut command = self.command("kubectl");
        command.args(words.split_whitespace());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {words}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

impl Drop for Test {
    fn drop(&mut self) {
        let _ = script().arg("down").arg(&self.folder).status();
    }
}
