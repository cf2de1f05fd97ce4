//! Installed programs: finding them, and running them for their version or other output.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use weir_model::study::ProxyKind;
use weir_parameters::Catalog;

use crate::ending;
use crate::launch::{Launcher, shielded};
use crate::observed::Running;
use crate::processes::POLL;
use crate::route_match::RequestRoute;
use crate::{Configuration, Effective, Proxy, SutError};

/// Folders of system programs, which an unprivileged user's PATH lacks, and in which weir's set-up puts programs that
/// have no package.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/local/bin"];

/// Folder of a user's own programs, below the home folder.
const OWN_FOLDER: &str = ".local/bin";

/// Reads a proxy's configuration on the way that loads take, from the text of the proxy's own report.
pub(crate) type ReportReader = fn(String, &RequestRoute, &Catalog) -> Result<Effective, SutError>;

/// Properties by which a kind of proxy is recognised, and functions for it.
pub struct ProxyProgram {
    pub kind: ProxyKind,
    /// Names of the program, in order of preference.
    pub names: &'static [&'static str],
    /// Argument that makes the program print its version and exit.
    pub version_argument: &'static str,
    /// Parser of the version from the program's output, in the form for records; None for output of another program.
    pub version_of: fn(&str) -> Option<String>,
    /// Advice to users who do not have the program.
    pub install: &'static str,
    /// Reader of the configuration from a text that a proxy elsewhere reported; `None` if such texts are not supported.
    pub read_report: Option<ReportReader>,
    /// Functions to observe a proxy of this kind that weir did not start.
    pub running: &'static Running,
    /// Constructor of the proxy from its installed program.
    pub open: fn(Installed) -> Result<Arc<dyn Proxy>, SutError>,
}

/// A proxy's program on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub kind: ProxyKind,
    pub program: PathBuf,
    /// Name and version: `nginx/1.22.1`.
    pub version: String,
    /// Full output of the command that printed the version.
    pub version_output: String,
}

impl Installed {
    /// Finds a proxy's program, at the given path or else on PATH and in the folders of system programs, and reads its
    /// version.
    ///
    /// # Errors
    /// [`SutError::NotFound`]; or the program is something else.
    pub fn find(known: &ProxyProgram, executable: Option<&Path>) -> Result<Installed, SutError> {
        let kind = known.kind;
        let program = locate(known, executable)?;
        let mut ask = command(&program);
        ask.arg(known.version_argument);
        let printed = words(&output_within(ask, PATIENCE_WITH_VERSION, MOST_OF_VERSION)?);
        match (known.version_of)(&printed) {
            Some(version) => Ok(Installed { kind, program, version, version_output: printed }),
            None => Err(SutError::NotTheProgram {
                kind,
                program,
                // Some programs answer with all of their help.
                words: printed.lines().next().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Returns a command that runs the program for its output.
    pub fn command(&self) -> Command {
        command(&self.program)
    }

    /// Runs the program to its end in the environment in which it serves a configuration: in its prefix, with its
    /// arguments and variables.
    ///
    /// # Errors
    /// [`SutError::Spawn`].
    pub fn ask(
        &self,
        configuration: &Configuration,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Output, SutError> {
        let mut command = self.command();
        command
            .args(arguments)
            .args(&configuration.arguments)
            .envs(configuration.environment.iter().cloned())
            .current_dir(configuration.prefix());
        output(command)
    }
}

/// Returns the program of a name or path: the path that was given, or else the first of its names on PATH or in the
/// folders of system programs.
///
/// # Errors
/// [`SutError::NotFound`].
pub fn locate(known: &ProxyProgram, executable: Option<&Path>) -> Result<PathBuf, SutError> {
    let not_found = |program: String, searched: &str| SutError::NotFound {
        kind: known.kind,
        program,
        searched: searched.to_owned(),
        install: known.install,
    };
    if let Some(path) = executable.filter(|path| path.components().count() > 1) {
        return executable_at(path)
            .ok_or_else(|| not_found(path.display().to_string(), "as an executable file"));
    }
    let names: Vec<&Path> = match executable {
        Some(name) => vec![name],
        None => known.names.iter().map(Path::new).collect(),
    };
    names
        .iter()
        .find_map(|name| find_on_path(name))
        .ok_or_else(|| not_found(names[0].display().to_string(), "on PATH or in /usr/sbin"))
}

/// Finds a program on PATH, in the folders of system programs or in the user's own.
pub(crate) fn find_on_path(name: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(OWN_FOLDER));
    std::env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.iter().map(PathBuf::from))
        .chain(home)
        .find_map(|folder| executable_at(&folder.join(name)))
}

/// Returns the absolute path of an executable file, since programs are run from other folders than weir's.
pub(crate) fn executable_at(path: &Path) -> Option<PathBuf> {
    let file = fs::metadata(path).ok()?;
    let is_executable = file.is_file() && file.permissions().mode() & 0o111 != 0;
    is_executable.then(|| std::path::absolute(path).ok())?
}

/// Returns a command that runs a program for its output.
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    shielded(&mut command).stdin(Stdio::null());
    command
}

/// Maximum time for a program to answer: 10,000 servers are checked in seconds. A configuration may make the program
/// wait for a FIFO's other end, or have a million sites of ten lines.
const PATIENCE: Duration = Duration::from_secs(120);

/// Maximum time for a program to print its version.
const PATIENCE_WITH_VERSION: Duration = Duration::from_secs(20);

/// Maximum time for a program to answer once the user wants weir to end.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(2);

/// Launcher of programs that end with weir.
static LAUNCHER: OnceLock<Launcher> = OnceLock::new();

/// Ends programs that do not answer once this flag is set, and with weir if it is killed. The first call counts.
pub fn end_programs_at(stop: &Arc<AtomicBool>, launcher: Launcher) {
    ending::watch(stop);
    let _ = LAUNCHER.set(launcher);
}

/// Maximum number of bytes read from each output of a program.
const MOST: u64 = 128 << 20;

/// Maximum number of bytes read from each output of a program that prints its version.
const MOST_OF_VERSION: u64 = 1 << 20;

/// Longest time from a program's end to the end of its output.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Runs a command to its end.
///
/// # Errors
/// [`SutError::Spawn`], also for a command that has not ended after two minutes.
pub fn output(command: Command) -> Result<Output, SutError> {
    output_within(command, PATIENCE, MOST)
}

fn output_within(mut command: Command, patience: Duration, most: u64) -> Result<Output, SutError> {
    let program = PathBuf::from(command.get_program());
    let failed = |source| SutError::Spawn { program: program.clone(), source };
    if let Some(launcher) = LAUNCHER.get() {
        command = launcher.tied(&command);
    }
    // A group of its own: what it has started ends with it.
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let group = Pid::from_child(&child);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) =
        (stdout.map(|pipe| read_all(pipe, most)), stderr.map(|pipe| read_all(pipe, most)));
    let begun = Instant::now();
    let status = loop {
        let patience =
            if ending::is_stopped() { patience.min(PATIENCE_AT_THE_END) } else { patience };
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if begun.elapsed() < patience => thread::sleep(POLL),
            None => {
                // As long as it is not waited for, the group's number stays its own.
                let _ = kill_process_group(group, Signal::KILL);
                let _ = child.wait();
                let words = format!("it has not ended after {} s", begun.elapsed().as_secs());
                return Err(failed(io::Error::new(io::ErrorKind::TimedOut, words)));
            }
        }
    };
    let last = Instant::now() + LAST_WORDS;
    Ok(Output { status, stdout: bytes_of(stdout, last), stderr: bytes_of(stderr, last) })
}

/// Output of a program, as far as it was read.
struct Reading {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

/// Returns what was read until the end of a pipe or until `last`: a process that the program left behind may hold the
/// pipe for ever.
fn bytes_of(reading: Option<Reading>, last: Instant) -> Vec<u8> {
    let Some(reading) = reading else { return Vec::new() };
    while !reading.thread.is_finished() && Instant::now() < last {
        thread::sleep(POLL);
    }
    let mut bytes = reading.bytes.lock().unwrap_or_else(PoisonError::into_inner);
    std::mem::take(&mut bytes)
}

/// Reads a pipe to its end or up to `most` bytes, on a thread of its own. Whoever writes more finds it closed.
fn read_all(pipe: impl Read + Send + 'static, most: u64) -> Reading {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let read = Arc::clone(&bytes);
    let thread = thread::spawn(move || {
        let (mut pipe, mut piece) = (pipe.take(most), [0; 4096]);
        // What came until then is what it said.
        loop {
            match pipe.read(&mut piece) {
                Ok(count @ 1..) => {
                    let mut bytes = read.lock().unwrap_or_else(PoisonError::into_inner);
                    bytes.extend_from_slice(&piece[..count]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    });
    Reading { bytes, thread }
}

/// Returns the first word behind `begin`, on the first line that begins with it.
pub fn word_behind<'w>(words: &'w str, begin: &str) -> Option<&'w str> {
    words.lines().find_map(|line| line.strip_prefix(begin))?.split_ascii_whitespace().next()
}

/// Returns everything that a program printed, to either of its two outputs.
pub fn words(output: &Output) -> String {
    let texts: Vec<String> = [&output.stdout, &output.stderr]
        .map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned())
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_not_waited_for_without_end_nor_is_what_it_started() {
        let mut sleeps = Command::new("sh");
        sleeps.args(["-c", "echo said; sleep 600 & wait"]);
        let error = output_within(sleeps, Duration::from_millis(300), MOST).unwrap_err();
        assert!(error.to_string().contains("has not ended after"), "{error}");
        let mut says = Command::new("sh");
        says.args(["-c", "echo said; echo told >&2; exit 3"]);
        let ended = output(says).unwrap();
        assert_eq!((&*ended.stdout, &*ended.stderr), (&b"said\n"[..], &b"told\n"[..]));
        assert_eq!(ended.status.code(), Some(3));
        // SIGPIPE ends it.
        let mut floods = Command::new("yes");
        floods.arg("said");
        let ended = output_within(floods, Duration::from_secs(60), 10_000).unwrap();
        assert_eq!((ended.stdout.len(), ended.status.success()), (10_000, false));
        // Not of its group, so that it outlives it.
        let mut leaves = Command::new("sh");
        leaves.args(["-c", "setsid sleep 60 & echo said"]);
        let begun = Instant::now();
        assert_eq!(output(leaves).unwrap().stdout, b"said\n");
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
