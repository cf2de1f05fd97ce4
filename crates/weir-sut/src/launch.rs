//! Start of a proxy's processes: `weir launch [OPTIONS] -- PROGRAM ARGUMENTS…`.
//!
//! Between the fork and the exec of a new process one may set its CPUs, its limits and what becomes of it when its
//! parent dies. Rust's way to run code there is `unsafe` (`pre_exec`), because little is allowed between the fork and
//! the exec of a process with threads. weir therefore starts *itself* as a hidden subcommand, a fresh process in which
//! everything is allowed, which sets all this for itself and then becomes the program by exec. Limits, CPUs, group and
//! death signal survive exec (execve(2)), and the process number stays.
//!
//! **The spawning thread must outlive the proxy.** The death signal comes when the *thread* that spawned the process
//! ends, not its whole process (prctl(2), PR_SET_PDEATHSIG). Spawn from the main thread, or from one that lives as long
//! as the run; never from a short-lived helper thread.
//!
//! On SIGTERM, a master process ends its workers and itself. Even `kill -9` of weir therefore leaves no proxy behind.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, Signal};
use weir_model::quantity::CpuSet;
use weir_probe::ProcessId;

use crate::orphans::note;

/// Restrictions of a program, besides its tie to weir's life.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// CPUs that the program may run on; `None` for those that weir may.
    pub cpus: Option<CpuSet>,
    /// Soft limit of open descriptors; `None` for weir's own. weir raises its own for its load engine, so set it if a
    /// proxy is to have the limit of a service (systemd gives 1024).
    pub nofile: Option<u64>,
    /// Program and arguments placed in front of the proxy's command line; empty for none.
    pub prefix: Vec<String>,
    /// Environment variables that are set for the program, and for the launcher in front of it.
    pub environment: Vec<(String, String)>,
    /// File in which the process is noted before it becomes the program, so that from its first moment on a sweep after
    /// a killed weir can find it.
    pub note: Option<PathBuf>,
}

/// Maker of commands that go through `weir launch`.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
    leading: Vec<OsString>,
}

impl Launcher {
    /// Creates a launcher from weir's own executable (`std::env::current_exe`).
    pub fn new(weir: PathBuf) -> Launcher {
        Launcher::through(weir, ["launch"])
    }

    /// Creates a launcher from any executable that passes the arguments behind `leading` to [`launch_main`]. Test
    /// executables are their own launchers this way.
    pub fn through<S: Into<OsString>>(
        program: PathBuf,
        leading: impl IntoIterator<Item = S>,
    ) -> Launcher {
        Launcher { program, leading: leading.into_iter().map(Into::into).collect() }
    }

    /// Returns a command that becomes `program`. The caller adds the program's arguments; the command's process number
    /// will be the program's.
    pub fn command(&self, launch: &Launch, program: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.leading);
        command.args(["--die-with-parent", "TERM"]);
        command.args(["--parent", &std::process::id().to_string()]);
        if let Some(cpus) = &launch.cpus {
            command.args(["--cpus", &cpus.to_string()]);
        }
        if let Some(nofile) = launch.nofile {
            command.args(["--nofile", &nofile.to_string()]);
        }
        if let Some(note) = &launch.note {
            command.arg("--note").arg(note);
        }
        // Not set for this command: what is preloaded is for the proxy, not for weir. And not an argument, which
        // every user of the host can read (proc_pid_cmdline(5)): a value may be a secret.
        for (name, value) in &launch.environment {
            command.args(["--env", name]).env(carrier_of(name), value);
        }
        command.arg("--").args(&launch.prefix).arg(program);
        command
    }

    /// Returns a command that becomes `command`, without its input and outputs, and is killed when weir ends.
    pub fn tied(&self, command: &Command) -> Command {
        let mut tied = Command::new(&self.program);
        tied.args(&self.leading);
        tied.args(["--die-with-parent", "KILL"]);
        tied.args(["--parent", &std::process::id().to_string(), "--"]);
        tied.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
        if let Some(folder) = command.get_current_dir() {
            tied.current_dir(folder);
        }
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => tied.env(name, value),
                None => tied.env_remove(name),
            };
        }
        tied
    }
}

/// Reason why `weir launch` did not become the program.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The subcommand, which is for weir's own use, was called in a way that weir does not use.
    #[error("weir launch is weir's own: {what}")]
    Usage {
        /// Description of the mistake.
        what: String,
    },
    /// weir ended before the program could be tied to it.
    #[error("the weir that asked for this process (process {parent}) has ended")]
    ParentGone {
        /// Process number of that weir.
        parent: u32,
    },
    /// The kernel refused.
    #[error("cannot {doing}: {source}")]
    Refused {
        /// Action that was attempted, as in "cannot {doing}".
        doing: String,
        /// Error from the kernel.
        source: io::Error,
    },
}

/// Runs the hidden subcommand; `arguments` are those behind `launch`. Does not return on success, since this process is
/// then the program.
pub fn launch_main(arguments: impl IntoIterator<Item = OsString>) -> LaunchError {
    let request = match Request::parse(arguments) {
        Ok(request) => request,
        Err(error) => return error,
    };
    if let Err(error) = request.apply() {
        return error;
    }
    let mut command = Command::new(&request.program);
    shielded(&mut command).args(&request.arguments);
    for name in &request.environment {
        let carrier = carrier_of(name);
        command.env(name, std::env::var_os(&carrier).unwrap_or_default());
        command.env_remove(carrier);
    }
    refused(format!("run {}", request.program.to_string_lossy()))(command.exec())
}

/// Returns the name of the variable that carries another variable's value until the program runs.
fn carrier_of(name: &str) -> String {
    format!("WEIR_LAUNCH_{name}")
}

/// Variables that lead a program to somebody else's sockets. nginx takes the descriptors named in `NGINX` for listening
/// sockets to continue with, and other programs those of systemd, to which they report starts and ends through
/// `NOTIFY_SOCKET`. Go, and so Caddy, reaches origin servers through the proxy in `HTTP_PROXY`, in either case of
/// letters.
#[rustfmt::skip]
const LEADING_ELSEWHERE: [&str; 13] = [
    "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "JOURNAL_STREAM", "LISTEN_FDNAMES", "LISTEN_FDS",
    "LISTEN_PID", "NGINX", "NOTIFY_SOCKET", "SSLKEYLOGFILE", "all_proxy", "http_proxy",
    "https_proxy",
];

/// Removes variables from a program's environment that would lead it to sockets and files that are not the run's own.
pub(crate) fn shielded(command: &mut Command) -> &mut Command {
    for name in LEADING_ELSEWHERE {
        command.env_remove(name);
    }
    // Tracing: `OTEL_EXPORTER_OTLP_ENDPOINT` and its relatives.
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"OTEL_") {
            command.env_remove(name);
        }
    }
    command
}

/// Options that [`Launcher::command`] passes on.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    death_signal: Option<Signal>,
    parent: Option<u32>,
    cpus: Option<CpuSet>,
    nofile: Option<u64>,
    note: Option<PathBuf>,
    /// Names of variables whose values arrive under the names of [`carried`].
    environment: Vec<String>,
    program: OsString,
    arguments: Vec<OsString>,
}

impl Request {
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, LaunchError> {
        let mut words = arguments.into_iter();
        let mut request = Request::default();
        loop {
            let Some(option) = words.next() else {
                return Err(usage("`--` and a program are missing"));
            };
            if option == "--" {
                break;
            }
            let value = words.next().unwrap_or_default();
            request.option(&option, &value)?;
        }
        request.program = words.next().ok_or_else(|| usage("the program is missing"))?;
        request.arguments = words.collect();
        Ok(request)
    }

    fn option(&mut self, option: &OsStr, value: &OsStr) -> Result<(), LaunchError> {
        if option == "--note" {
            self.note = Some(value.into());
            return Ok(());
        }
        let (option, value) = (option.to_string_lossy(), value.to_string_lossy());
        let bad = || usage(&format!("`{option} {value}` is not understood"));
        match &*option {
            "--die-with-parent" if value == "TERM" => self.death_signal = Some(Signal::TERM),
            "--die-with-parent" if value == "KILL" => self.death_signal = Some(Signal::KILL),
            "--parent" => self.parent = Some(value.parse().map_err(|_| bad())?),
            "--cpus" => self.cpus = Some(value.parse().map_err(|_| bad())?),
            "--env" if !value.is_empty() => self.environment.push(value.into_owned()),
            "--nofile" => self.nofile = Some(value.parse().map_err(|_| bad())?),
            _ => return Err(bad()),
        }
        Ok(())
    }

    fn apply(&self) -> Result<(), LaunchError> {
        // A group of its own: Ctrl-C in the terminal must reach weir alone, which then stops the
        // proxies in order.
        rustix::process::setpgid(None, None).map_err(refused("leave weir's process group"))?;
        // What a proxy makes is for its own user: its logs tell of requests.
        weir_files::keep_to_oneself();
        if let Some(file) = &self.note {
            ProcessId::own()
                .map_err(io::Error::other)
                .and_then(|process| note(file, &[process]))
                .map_err(refused(format!("write {}", file.display())))?;
        }
        if self.death_signal.is_some() {
            rustix::process::set_parent_process_death_signal(self.death_signal)
                .map_err(refused("ask for a signal when weir ends"))?;
        }
        // Only now: had weir ended before, the signal would never come.
        if let Some(parent) = self.parent {
            let now =
                rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
            if now != Some(parent) {
                return Err(LaunchError::ParentGone { parent });
            }
        }
        if let Some(cpus) = &self.cpus {
            weir_probe::keep_to(None, cpus.cpus())
                .map_err(refused(format!("run on CPUs {cpus}")))?;
        }
        match self.nofile {
            Some(soft) => set_nofile(soft),
            None => Ok(()),
        }
    }
}

fn set_nofile(soft: u64) -> Result<(), LaunchError> {
    let hard = rustix::process::getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: Some(soft),
        // Above the hard limit only the privileged get, by raising both.
        maximum: hard.map(|hard| hard.max(soft)),
    };
    rustix::process::setrlimit(Resource::Nofile, limit)
        .map_err(refused(format!("set the limit of open descriptors to {soft}")))
}

fn usage(what: &str) -> LaunchError {
    LaunchError::Usage { what: what.to_owned() }
}

/// Wraps an error from the kernel.
fn refused<E: Into<io::Error>>(action: impl Into<String>) -> impl FnOnce(E) -> LaunchError {
    let doing = action.into();
    move |source| LaunchError::Refused { doing, source: source.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Request, LaunchError> {
        Request::parse(words.iter().map(OsString::from))
    }

    #[test]
    fn what_the_launcher_writes_is_what_the_subcommand_reads() {
        let launch = Launch {
            cpus: Some("0,2-3".parse().unwrap()),
            nofile: Some(1024),
            prefix: vec!["nice".to_owned(), "-n5".to_owned()],
            environment: vec![("LD_PRELOAD".to_owned(), "/a=b.so".to_owned())],
            note: Some("/run/a folder/processes".into()),
        };
        let launcher = Launcher::new(PathBuf::from("/usr/bin/weir"));
        let mut command = launcher.command(&launch, Path::new("/usr/sbin/nginx"));
        command.args(["-p", "a folder", "--", "--cpus"]);
        let carried = (OsStr::new("WEIR_LAUNCH_LD_PRELOAD"), Some(OsStr::new("/a=b.so")));
        assert_eq!(command.get_envs().collect::<Vec<_>>(), [carried]);
        let mut arguments = command.get_args().map(OsStr::to_owned);
        assert_eq!(arguments.next(), Some(OsString::from("launch")));
        let expected = Request {
            death_signal: Some(Signal::TERM),
            parent: Some(std::process::id()),
            cpus: launch.cpus,
            nofile: launch.nofile,
            environment: vec!["LD_PRELOAD".to_owned()],
            note: launch.note,
            program: OsString::from("nice"),
            arguments: ["-n5", "/usr/sbin/nginx", "-p", "a folder", "--", "--cpus"]
                .map(OsString::from)
                .to_vec(),
        };
        assert_eq!(Request::parse(arguments).unwrap(), expected);
    }

    #[test]
    fn what_the_launcher_would_not_write_is_refused() {
        for bad in [
            &[][..],
            &["--"],
            &["--cpus", "1"],
            &["--cpus", "x", "--", "true"],
            &["--nofile", "-1", "--", "true"],
            &["--die-with-parent", "HUP", "--", "true"],
            &["--colour", "red", "--", "true"],
        ] {
            let error = parse(bad).unwrap_err();
            assert!(matches!(error, LaunchError::Usage { .. }), "{bad:?}: {error}");
        }
    }
}
