//! How the processes of a proxy are started: `weir launch [OPTIONS] -- PROGRAM ARGUMENTS…`.
//!
//! Between the fork and the exec of a new process one may set its CPUs, its limits and what becomes
//! of it when its parent dies. Rust's way to run code there is `unsafe` (`pre_exec`), because
//! little is allowed between the fork and the exec of a process with threads. weir therefore starts
//! *itself* as a hidden subcommand, a fresh process where everything is allowed, which sets all
//! this for itself and then becomes the program by exec. Limits, CPUs, group and death signal
//! survive exec (execve(2)), and the process number stays.
//!
//! **Whoever spawns must outlive the proxy.** The death signal comes when the *thread* that spawned
//! the process ends, not its whole process (prctl(2), PR_SET_PDEATHSIG). Spawn from the main
//! thread, or from one that lives as long as the run; never from a short-lived helper thread.
//!
//! A master process on SIGTERM ends its workers and itself. So even `kill -9` of weir leaves
//! no proxy behind.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Resource, Rlimit, Signal};
use weir_model::quantity::CpuSet;
use weir_probe::ProcessId;

use crate::orphans::note;

/// What a program is bound to, besides to weir's life.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// CPUs it may run on; `None`: those that weir may.
    pub cpus: Option<CpuSet>,
    /// Soft limit of open descriptors; `None`: weir's own. weir raises its own for its load engine,
    /// so a proxy that shall meet what a service meets wants a figure here (systemd gives 1024).
    pub nofile: Option<u64>,
    /// Program and arguments that the proxy's command line is put behind; empty: none.
    pub prefix: Vec<String>,
    /// Variables of the environment that are set for it, and for what it is started through.
    pub environment: Vec<(String, String)>,
    /// File in which its process is noted before it becomes the program: from its first moment on, it can
    /// be found by whoever sweeps after a weir that was killed.
    pub note: Option<PathBuf>,
}

/// Makes commands that go through `weir launch`.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
    leading: Vec<OsString>,
}

impl Launcher {
    /// A launcher from weir's own executable (`std::env::current_exe`).
    pub fn new(weir: PathBuf) -> Launcher {
        Launcher::through(weir, ["launch"])
    }

    /// A launcher from any executable that hands what follows `leading` to [`launch_main`]. Test
    /// executables are their own launchers by this.
    pub fn through<S: Into<OsString>>(
        program: PathBuf,
        leading: impl IntoIterator<Item = S>,
    ) -> Launcher {
        let leading = leading.into_iter().map(Into::into).collect();
        Launcher { program, leading }
    }

    /// A command that becomes `program`. Its arguments are to be added by the caller; its process
    /// number will be the program's.
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
            command.args(["--env", name]).env(carried(name), value);
        }
        command.arg("--").args(&launch.prefix).arg(program);
        command
    }
}

/// Why `weir launch` did not become the program.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// It is not for people, and was called in a way that weir does not.
    #[error("weir launch is weir's own: {what}")]
    Usage {
        /// What is wrong.
        what: String,
    },
    /// weir ended before the program could be tied to it.
    #[error("the weir that asked for this process (process {parent}) has ended")]
    ParentGone {
        /// Its process number.
        parent: u32,
    },
    /// The kernel refused.
    #[error("cannot {doing}: {source}")]
    Refused {
        /// What was tried.
        doing: String,
        /// The kernel's words.
        source: io::Error,
    },
}

/// The whole of the hidden subcommand: `arguments` is what follows `launch`. Does not return when
/// all goes well, since this process then is the program.
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
        let carried = carried(name);
        command.env(name, std::env::var_os(&carried).unwrap_or_default());
        command.env_remove(carried);
    }
    refused(format!("run {}", request.program.to_string_lossy()))(command.exec())
}

/// The variable that carries the value of another one up to the program.
fn carried(name: &str) -> String {
    format!("WEIR_LAUNCH_{name}")
}

/// Variables by which a program is led to sockets of somebody's: nginx takes the descriptors that `NGINX`
/// names for listening sockets to go on with, others those of systemd, which is told of starts and ends by
/// `NOTIFY_SOCKET`; Go, and so Caddy, asks origin servers through the proxy of `HTTP_PROXY`, however it is
/// written.
#[rustfmt::skip]
const LEADING_ELSEWHERE: [&str; 13] = [
    "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "JOURNAL_STREAM", "LISTEN_FDNAMES", "LISTEN_FDS",
    "LISTEN_PID", "NGINX", "NOTIFY_SOCKET", "SSLKEYLOGFILE", "all_proxy", "http_proxy",
    "https_proxy",
];

/// Leaves out of a program's environment what would lead it to sockets and files that are not the run's own.
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

/// What [`Launcher::command`] asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    death_signal: Option<Signal>,
    parent: Option<u32>,
    cpus: Option<CpuSet>,
    nofile: Option<u64>,
    note: Option<PathBuf>,
    /// Names of variables ([`carried`]).
    environment: Vec<String>,
    program: OsString,
    arguments: Vec<OsString>,
}

impl Request {
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, LaunchError> {
        let mut arguments = arguments.into_iter();
        let mut request = Request::default();
        loop {
            let Some(option) = arguments.next() else {
                return Err(usage("`--` and a program are missing"));
            };
            if option == "--" {
                break;
            }
            let value = arguments.next().unwrap_or_default();
            request.option(&option, &value)?;
        }
        request.program = arguments
            .next()
            .ok_or_else(|| usage("the program is missing"))?;
        request.arguments = arguments.collect();
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
            let own = ProcessId::own().map_err(io::Error::other);
            let noted = own.and_then(|own| note(file, &[own]));
            noted.map_err(refused(format!("write {}", file.display())))?;
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
    rustix::process::setrlimit(Resource::Nofile, limit).map_err(refused(format!(
        "set the limit of open descriptors to {soft}"
    )))
}

fn usage(what: &str) -> LaunchError {
    LaunchError::Usage {
        what: what.to_owned(),
    }
}

/// Wraps the kernel's words.
fn refused<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> LaunchError {
    let doing = doing.into();
    move |source| LaunchError::Refused {
        doing,
        source: source.into(),
    }
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
        let carried = (
            OsStr::new("WEIR_LAUNCH_LD_PRELOAD"),
            Some(OsStr::new("/a=b.so")),
        );
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
            assert!(
                matches!(error, LaunchError::Usage { .. }),
                "{bad:?}: {error}"
            );
        }
    }
}
