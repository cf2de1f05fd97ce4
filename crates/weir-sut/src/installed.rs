//! Programs that are installed: where they are, and what they say when they are asked something.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use weir_model::study::ProxyKind;
use weir_parameters::Catalog;

use crate::launch::shielded;
use crate::met::Meeting;
use crate::observed::Running;
use crate::processes::POLL;
use crate::{Configuration, Effective, Proxy, SutError};

/// Folders of system programs, where an unprivileged user's PATH does not look, and where weir's
/// set-up puts what no package brings.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/local/bin"];

/// Where programs of a user's own go, below the home folder.
const OWN_FOLDER: &str = ".local/bin";

/// Reads what a proxy runs with where loads meet it, from the text in which it told that.
pub(crate) type Told = fn(String, &Meeting, &Catalog) -> Result<Effective, SutError>;

/// How a kind of proxy is known when it is met.
pub(crate) struct Marks {
    pub(crate) kind: ProxyKind,
    /// What its program is called, by preference.
    pub(crate) names: &'static [&'static str],
    /// The argument upon which it says its version and ends.
    pub(crate) ask: &'static str,
    /// The version in what it says, as records have it; none in the words of another program.
    pub(crate) version_of: fn(&str) -> Option<String>,
    /// What somebody without it can do.
    pub(crate) install: &'static str,
    /// What it runs with, from the text in which it told that elsewhere; `None`: no such text is read.
    pub(crate) told: Option<Told>,
    /// How one is observed that weir did not start.
    pub(crate) running: &'static Running,
    /// What asks and starts the one that was found.
    pub(crate) open: fn(Installed) -> Result<Arc<dyn Proxy>, SutError>,
}

/// A proxy's program on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub(crate) kind: ProxyKind,
    pub(crate) program: PathBuf,
    /// Name and version: `nginx/1.22.1`.
    pub(crate) version: String,
    /// All that it said with its version.
    pub(crate) said: String,
}

impl Installed {
    /// Looks for a proxy's program, where it is said to be or else on PATH and in the folders of system
    /// programs, and asks its version.
    ///
    /// # Errors
    /// [`SutError::NotFound`]; or the program is something else.
    pub(crate) fn find(marks: &Marks, executable: Option<&Path>) -> Result<Installed, SutError> {
        let kind = marks.kind;
        let program = locate(marks, executable)?;
        let mut ask = command(&program);
        ask.arg(marks.ask);
        let said = words(&output(ask)?);
        match (marks.version_of)(&said) {
            Some(version) => Ok(Installed {
                kind,
                program,
                version,
                said,
            }),
            None => Err(SutError::NotTheProgram {
                kind,
                program,
                // Some programs answer with all of their help.
                words: said.lines().next().unwrap_or_default().to_owned(),
            }),
        }
    }

    /// One that is only thought of.
    #[cfg(test)]
    pub(crate) fn test(kind: ProxyKind, version: &str) -> Installed {
        Installed {
            kind,
            program: kind.name().into(),
            version: version.to_owned(),
            said: String::new(),
        }
    }

    /// A command that asks the program something.
    pub(crate) fn command(&self) -> Command {
        command(&self.program)
    }

    /// Runs the program to its end as it is run to serve with a configuration: in its prefix, with its
    /// arguments and variables.
    ///
    /// # Errors
    /// [`SutError::Spawn`].
    pub(crate) fn ask(
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

/// The program behind a name or path: the path that was given, or else the first of its names on PATH
/// or in the folders of system programs.
///
/// # Errors
/// [`SutError::NotFound`].
pub(crate) fn locate(marks: &Marks, executable: Option<&Path>) -> Result<PathBuf, SutError> {
    let not_found = |program: String, searched: &str| SutError::NotFound {
        kind: marks.kind,
        program,
        searched: searched.to_owned(),
        install: marks.install,
    };
    if let Some(path) = executable.filter(|path| path.components().count() > 1) {
        return executable_at(path)
            .ok_or_else(|| not_found(path.display().to_string(), "as an executable file"));
    }
    let given: Vec<&Path> = match executable {
        Some(name) => vec![name],
        None => marks.names.iter().map(Path::new).collect(),
    };
    given
        .iter()
        .find_map(|name| find_on_path(name))
        .ok_or_else(|| not_found(given[0].display().to_string(), "on PATH or in /usr/sbin"))
}

/// A program on PATH or in the folders of system programs.
pub(crate) fn find_on_path(name: &Path) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(OWN_FOLDER));
    std::env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.iter().map(PathBuf::from))
        .chain(home)
        .find_map(|folder| executable_at(&folder.join(name)))
}

/// The absolute path of an executable file: programs are run from other folders than weir's.
pub(crate) fn executable_at(path: &Path) -> Option<PathBuf> {
    let file = fs::metadata(path).ok()?;
    let is_executable = file.is_file() && file.permissions().mode() & 0o111 != 0;
    is_executable.then(|| std::path::absolute(path).ok())?
}

/// A command that asks the program something.
pub(crate) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    shielded(&mut command).stdin(Stdio::null());
    command
}

/// How long a program may take to answer: 10,000 servers are checked in seconds. A configuration may have
/// it wait for a FIFO's other end, or make a million sites of ten lines.
const PATIENCE: Duration = Duration::from_secs(120);

/// Bytes of each of its outputs that are read.
const MOST: u64 = 128 << 20;

/// Runs a command to its end.
///
/// # Errors
/// [`SutError::Spawn`], also for one that has not ended after two minutes.
pub(crate) fn output(command: Command) -> Result<Output, SutError> {
    output_within(command, PATIENCE)
}

fn output_within(mut command: Command, patience: Duration) -> Result<Output, SutError> {
    let program = PathBuf::from(command.get_program());
    let failed = |source| SutError::Spawn {
        program: program.clone(),
        source,
    };
    // A group of its own: what it has started ends with it.
    let command = command.process_group(0);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let group = Pid::from_child(&child);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = (stdout.map(all_of), stderr.map(all_of));
    let until = Instant::now() + patience;
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if Instant::now() < until => thread::sleep(POLL),
            None => {
                // As long as it is not waited for, the group's number stays its own.
                let _ = kill_process_group(group, Signal::KILL);
                let _ = child.wait();
                let words = format!("it has not ended after {} s", patience.as_secs());
                return Err(failed(io::Error::new(io::ErrorKind::TimedOut, words)));
            }
        }
    };
    let bytes = |reader: Option<JoinHandle<Vec<u8>>>| {
        let read = reader.and_then(|reader| reader.join().ok());
        read.unwrap_or_default()
    };
    Ok(Output {
        status,
        stdout: bytes(stdout),
        stderr: bytes(stderr),
    })
}

/// Reads a pipe to its end.
fn all_of(pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came until then is what it said.
        let _ = pipe.take(MOST).read_to_end(&mut bytes);
        bytes
    })
}

/// The first word behind what some line begins with.
pub(crate) fn word_behind<'w>(words: &'w str, begin: &str) -> Option<&'w str> {
    let rest = words.lines().find_map(|line| line.strip_prefix(begin))?;
    rest.split_ascii_whitespace().next()
}

/// All that a program printed, to whichever of its two outputs.
pub(crate) fn words(output: &Output) -> String {
    let texts = [&output.stdout, &output.stderr];
    let texts = texts.map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
    let said: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    said.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_not_waited_for_without_end_nor_is_what_it_started() {
        let mut sleeps = Command::new("sh");
        sleeps.args(["-c", "echo said; sleep 600 & wait"]);
        let error = output_within(sleeps, Duration::from_millis(300)).unwrap_err();
        assert!(error.to_string().contains("has not ended after"), "{error}");
        let mut says = Command::new("sh");
        says.args(["-c", "echo said; echo told >&2; exit 3"]);
        let output = output(says).unwrap();
        assert_eq!(
            (&*output.stdout, &*output.stderr),
            (&b"said\n"[..], &b"told\n"[..])
        );
        assert_eq!(output.status.code(), Some(3));
    }
}
