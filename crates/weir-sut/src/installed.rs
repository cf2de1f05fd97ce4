//! Programs that are installed: where they are, and what they say when they are asked something.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use weir_model::study::ProxyKind;

use crate::launch::shielded;
use crate::{Configuration, Proxy, SutError};

/// Folders of system programs, where an unprivileged user's PATH does not look, and where weir's
/// set-up puts what no package brings.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/local/sbin", "/sbin", "/usr/local/bin"];

/// Where programs of a user's own go, below the home folder.
const OWN_FOLDER: &str = ".local/bin";

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

/// Runs a command to its end.
///
/// # Errors
/// [`SutError::Spawn`].
pub(crate) fn output(mut command: Command) -> Result<Output, SutError> {
    command.output().map_err(|source| SutError::Spawn {
        program: PathBuf::from(command.get_program()),
        source,
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
