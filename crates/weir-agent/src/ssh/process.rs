//! The ssh process: started, waited for within bounds, ended.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use super::words::Words;
use super::{GRACE, SshError, SshPlace, error};

/// A host that says nothing is asked after so many seconds, ...
const ALIVE_INTERVAL: u32 = 3;
/// ... and given up after so many questions.
const ALIVE_COUNT: u32 = 3;
/// How long a connection may take to come about, at most.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long ssh may take to clean up behind itself (the processes of a ProxyCommand) when told to end.
const CLEANING: Duration = Duration::from_millis(500);
/// How often an ending process is looked at.
const LOOK: Duration = Duration::from_millis(5);
/// How often it is looked whether somebody asks for an end.
const STOP_LOOK: Duration = Duration::from_millis(100);
/// How long the last words of an ended process may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// What is kept of an output that is not an agent's: enough for the configuration that `ssh -G` prints.
const OUTPUT: usize = 64 << 10;
/// What is kept of what came before a greeting, in bytes.
const NOISE: usize = 256;

/// How long it may take to have an agent: so long, and only until somebody asks for an end.
#[derive(Debug, Clone, Copy)]
pub struct Limit<'a> {
    /// Time for everything together.
    pub at_most: Duration,
    /// Set when somebody asks for an end.
    pub stop: &'a AtomicBool,
}

impl From<Duration> for Limit<'static> {
    /// Nobody asks for an end.
    fn from(at_most: Duration) -> Limit<'static> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        let stop = &NEVER;
        Limit { at_most, stop }
    }
}

/// When a limit has passed.
#[derive(Clone, Copy)]
pub(super) struct Until<'a> {
    at: Instant,
    stop: &'a AtomicBool,
}

impl Until<'_> {
    /// What is left of the time; nothing once somebody has asked for an end.
    fn left(&self) -> Duration {
        if self.stop.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        self.at.saturating_duration_since(Instant::now())
    }
}

/// ssh to one place, with one time limit for all that is done.
pub(super) struct Ssh<'a> {
    place: &'a SshPlace,
    /// What a user would type.
    typed: String,
    at_most: Duration,
    pub(super) until: Until<'a>,
}

/// What a command that has ended has brought.
pub(super) struct Ran {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) words: String,
}

impl<'a> Ssh<'a> {
    pub(super) fn new(place: &'a SshPlace, Limit { at_most, stop }: Limit<'a>) -> Ssh<'a> {
        let program = place.program.to_string_lossy();
        let words = [&*program]
            .into_iter()
            .chain(place.options.iter().map(String::as_str))
            .chain([place.host.as_str()]);
        // Fails for a NUL alone, which no argument can have: then ssh cannot be started either.
        let typed = shlex::try_join(words).unwrap_or_else(|_| place.host.clone());
        Ssh {
            place,
            typed,
            at_most,
            until: Until {
                at: Instant::now() + at_most,
                stop,
            },
        }
    }

    pub(super) fn host(&self) -> &str {
        &self.place.host
    }

    pub(super) fn typed(&self) -> &str {
        &self.typed
    }

    /// What is left of the time.
    pub(super) fn left(&self) -> Duration {
        self.until.left()
    }

    /// Why nothing is left of the time.
    pub(super) fn overdue(&self, words: String) -> SshError {
        let host = self.place.host.clone();
        if self.until.stop.load(Ordering::Relaxed) {
            return SshError::Interrupted(host);
        }
        SshError::Overdue {
            host,
            typed: self.typed.clone(),
            at_most: self.at_most,
            words,
        }
    }

    /// ssh that runs a command on the host.
    pub(super) fn command(&self, command: &str) -> Command {
        self.command_with(&[], command)
    }

    /// The same over a compressed line, for large input. A `Compression` among the user's own options comes
    /// first, so it counts; a connection that the user shares stays as it is.
    pub(super) fn compressed(&self, command: &str) -> Command {
        self.command_with(&["-o", "Compression=yes"], command)
    }

    fn command_with(&self, options: &[&str], command: &str) -> Command {
        let mut ssh = detached(self.place.program.as_os_str());
        self.argue(&mut ssh);
        ssh.args(options);
        ssh.arg("--").arg(&self.place.host).arg(command);
        ssh
    }

    /// ssh that prints its configuration for the host and connects to nothing.
    pub(super) fn configuration(&self) -> Command {
        // Not by way of setsid(1): that ssh cannot be started shall be told as such.
        let mut ssh = Command::new(&self.place.program);
        ssh.process_group(0).arg("-G");
        self.argue(&mut ssh);
        ssh.arg("--").arg(&self.place.host);
        ssh
    }

    /// The first value of an `-o` counts, the last of a flag: so these stand on both sides of the
    /// user's.
    fn argue(&self, ssh: &mut Command) {
        let timeout = CONNECT_TIMEOUT.min(self.at_most).as_secs().max(1);
        let options = [
            // No question is asked: it would be an error at once instead of one nobody answers.
            "BatchMode=yes".to_owned(),
            format!("ConnectTimeout={timeout}"),
            format!("ServerAliveInterval={ALIVE_INTERVAL}"),
            format!("ServerAliveCountMax={ALIVE_COUNT}"),
            "ClearAllForwardings=yes".to_owned(),
            // ssh refuses to run another command when the user's configuration has one.
            "RemoteCommand=none".to_owned(),
        ];
        for option in options {
            ssh.arg("-o").arg(option);
        }
        ssh.args(&self.place.options).args(["-T", "-a", "-x"]);
        // BatchMode is not handed on to the ssh of a ProxyJump.
        ssh.env("SSH_ASKPASS_REQUIRE", "never");
    }

    /// Starts a command on the host.
    pub(super) fn spawn(
        &self,
        command: &str,
    ) -> Result<(ChildStdout, ChildStdin, Session), SshError> {
        let mut ssh = self.command(command);
        let (stdout, stdin, session) = self.start(&mut ssh, Stdio::piped())?;
        let stdin = stdin.ok_or_else(|| self.program(io::ErrorKind::BrokenPipe.into()))?;
        Ok((stdout, stdin, session))
    }

    /// Runs ssh to its end.
    pub(super) fn run(&self, mut ssh: Command, stdin: Stdio) -> Result<Ran, SshError> {
        let (mut stdout, _, mut session) = self.start(&mut ssh, stdin)?;
        let mut patient = Patient::keeping(OUTPUT, &mut stdout, self.until);
        let told = io::copy(&mut patient, &mut io::sink());
        let stdout = patient.seen;
        while !session.waited(STOP_LOOK.min(self.left())) && !self.left().is_zero() {}
        let status = session.end(Duration::ZERO);
        match status {
            Some(status) if told.is_ok() => Ok(Ran {
                status,
                stdout,
                words: session.words(),
            }),
            _ => Err(self.overdue(session.words())),
        }
    }

    fn start(
        &self,
        ssh: &mut Command,
        stdin: Stdio,
    ) -> Result<(ChildStdout, Option<ChildStdin>, Session), SshError> {
        ssh.stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = ssh.spawn().map_err(|source| self.program(source))?;
        let stdin = child.stdin.take();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let mut session = Session {
            child,
            status: None,
            killed: false,
            words: None,
            host: self.place.host.clone(),
            typed: self.typed.clone(),
        };
        let broken = || self.program(io::ErrorKind::BrokenPipe.into());
        let stderr = stderr.ok_or_else(broken)?;
        session.words = Some(Words::gather(stderr).map_err(|source| self.program(source))?);
        Ok((stdout.ok_or_else(broken)?, stdin, session))
    }

    fn program(&self, source: io::Error) -> SshError {
        SshError::Program {
            program: self.place.program.clone(),
            source,
        }
    }
}

/// A command in a session of its own, by setsid(1), which becomes the program.
///
/// A Ctrl-C on the terminal goes to weir's group of processes and must not end ssh before weir has
/// put things back. And who has no terminal cannot ask anything on it: neither ssh nor the ssh that
/// it starts for a ProxyJump.
fn detached(program: &OsStr) -> Command {
    let paths = env::var_os("PATH").unwrap_or_default();
    let setsid = env::split_paths(&paths)
        .map(|folder| folder.join("setsid"))
        .find(|path| path.is_file());
    match setsid {
        Some(setsid) => {
            let mut command = Command::new(setsid);
            command.arg(program);
            command
        }
        None => {
            let mut command = Command::new(program);
            command.process_group(0);
            command
        }
    }
}

/// A running ssh.
///
/// When it is dropped, ssh is given two seconds to end by itself and is killed then; the agent on the
/// host ends because its input does.
#[derive(Debug)]
pub struct Session {
    child: Child,
    status: Option<ExitStatus>,
    /// It did not end by itself, so its status says nothing.
    killed: bool,
    words: Option<Words>,
    host: String,
    typed: String,
}

impl Session {
    /// The process number of ssh on this machine.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The last lines that ssh and the agent have written to standard error, control characters
    /// left out. Once ssh has ended, all it had to say is among them.
    pub fn words(&self) -> String {
        match &self.words {
            Some(words) if self.status.is_none() => words.now(),
            _ => self.last_words(),
        }
    }

    /// The same when the agent's output has ended, or is given up: what was said before may still be on its way.
    pub fn last_words(&self) -> String {
        let words = self.words.as_ref();
        words.map_or_else(String::new, |words| words.all(LAST_WORDS))
    }

    /// Waits for ssh to end, and kills it when that takes longer. The agent's input must be closed
    /// by then, or nothing ends. Its exit status, unless it had to be killed.
    ///
    /// May be called again.
    pub fn end(&mut self, at_most: Duration) -> Option<ExitStatus> {
        if !self.waited(at_most) {
            self.kill();
        }
        self.status.filter(|_| !self.killed)
    }

    /// Why the connection has ended, to be asked when the agent's output has without a word of
    /// farewell. Ends ssh.
    pub fn lost(&mut self) -> SshError {
        let status = self.end(GRACE);
        error::ended(&self.host, &self.typed, status, self.words())
    }

    /// The exit code of an ssh that has ended by itself.
    pub(super) fn exit_code(&self) -> Option<i32> {
        self.status
            .filter(|_| !self.killed)
            .and_then(|status| status.code())
    }

    fn kill(&mut self) {
        self.killed = true;
        // It was not waited for, so the number is still its own.
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(pid, Signal::TERM);
        }
        if !self.waited(CLEANING) {
            let _ = self.child.kill();
            self.status = self.child.wait().ok();
        }
    }

    /// Whether it has ended within this time.
    fn waited(&mut self, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        while self.status.is_none() {
            // An error says that there is nothing to wait for.
            self.status = self.child.try_wait().unwrap_or_default();
            if self.status.is_none() {
                if Instant::now() >= until {
                    return false;
                }
                thread::sleep(LOOK);
            }
        }
        true
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end(GRACE);
    }
}

/// Reads a process's output until a time, and no longer; keeps the beginning of it.
pub(super) struct Patient<'a> {
    from: &'a mut ChildStdout,
    until: Until<'a>,
    keep: usize,
    seen: Vec<u8>,
}

impl<'a> Patient<'a> {
    /// A reader of an agent's greeting.
    pub(super) fn new(from: &'a mut ChildStdout, until: Until<'a>) -> Patient<'a> {
        Patient::keeping(NOISE, from, until)
    }

    fn keeping(keep: usize, from: &'a mut ChildStdout, until: Until<'a>) -> Patient<'a> {
        let seen = Vec::new();
        Patient {
            from,
            until,
            keep,
            seen,
        }
    }

    /// The beginning of the output, to its end if that comes within this time.
    pub(super) fn rest(mut self, at_most: Duration) -> Vec<u8> {
        self.until.at = Instant::now() + at_most;
        // Bounded in time but not in size: who never stops is killed afterwards.
        let _ = io::copy(&mut self, &mut io::sink());
        self.seen
    }

    fn wait(&self) -> io::Result<()> {
        loop {
            let left = self.until.left().min(STOP_LOOK);
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let timeout = Timespec {
                tv_sec: left.as_secs().cast_signed(),
                tv_nsec: left.subsec_nanos().into(),
            };
            let fd = self.from.as_fd();
            match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait()?;
        let length = self.from.read(buffer)?;
        let room = self.keep - self.seen.len();
        self.seen.extend(&buffer[..length.min(room)]);
        Ok(length)
    }
}
