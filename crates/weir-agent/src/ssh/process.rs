//! The ssh process: start, bounded waits, and end.

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

/// Silence of the host after which ssh sends a keep-alive message, seconds (`ServerAliveInterval`).
const ALIVE_INTERVAL: u32 = 3;
/// Number of unanswered keep-alive messages after which ssh gives up (`ServerAliveCountMax`).
const ALIVE_COUNT: u32 = 3;
/// Time limit for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for ssh to clean up (the processes of a ProxyCommand) after it was told to end.
const CLEANING: Duration = Duration::from_millis(500);
/// Interval at which an ending process is polled.
const LOOK: Duration = Duration::from_millis(5);
/// Interval at which it is looked whether somebody asks for an end.
const STOP_LOOK: Duration = Duration::from_millis(100);
/// Time limit for reading the last output of an ended process.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Maximum number of bytes kept of an output that is not an agent's: enough for the configuration that `ssh -G` prints.
const OUTPUT: usize = 64 << 10;
/// Maximum number of bytes kept of output that came before a greeting.
const NOISE: usize = 256;

/// Limit on the time to have an agent: so long, and only until somebody asks for an end.
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
    /// Returns what is left of the time; nothing once somebody has asked for an end.
    fn left(&self) -> Duration {
        if self.stop.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        self.at.saturating_duration_since(Instant::now())
    }
}

/// Runner of ssh for one place, with one time limit for everything together.
pub(super) struct Ssh<'a> {
    place: &'a SshPlace,
    /// Command that a user would type.
    typed: String,
    at_most: Duration,
    pub(super) until: Until<'a>,
}

/// Result of a command that has ended.
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
        Ssh { place, typed, at_most, until: Until { at: Instant::now() + at_most, stop } }
    }

    pub(super) fn host(&self) -> &str {
        &self.place.host
    }

    pub(super) fn typed(&self) -> &str {
        &self.typed
    }

    /// Returns the remaining time.
    pub(super) fn left(&self) -> Duration {
        self.until.left()
    }

    /// Why nothing is left of the time.
    pub(super) fn overdue(&self, words: String) -> SshError {
        let host = self.place.host.clone();
        if self.until.stop.load(Ordering::Relaxed) {
            return SshError::Interrupted(host);
        }
        SshError::Overdue { host, typed: self.typed.clone(), at_most: self.at_most, words }
    }

    /// Builds an ssh command that runs `command` on the host.
    pub(super) fn command(&self, command: &str) -> Command {
        self.command_with(&[], command)
    }

    /// Builds the same command with compression, for large input. A `Compression` among the user's options comes first
    /// and therefore counts; a shared connection stays as it is.
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

    /// Builds an ssh command that prints the configuration for the host and connects to nothing.
    pub(super) fn configuration(&self) -> Command {
        // Not by way of setsid(1): that ssh cannot be started shall be told as such.
        let mut ssh = Command::new(&self.place.program);
        ssh.process_group(0).arg("-G");
        self.argue(&mut ssh);
        ssh.arg("--").arg(&self.place.host);
        ssh
    }

    /// Adds weir's options on both sides of the user's: for an `-o` option the first value counts, for a flag the last.
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

    /// Starts a command on the host; returns its output, its input and the session.
    pub(super) fn spawn(
        &self,
        command: &str,
    ) -> Result<(ChildStdout, ChildStdin, Session), SshError> {
        let mut ssh = self.command(command);
        let (stdout, stdin, session) = self.start(&mut ssh, Stdio::piped())?;
        Ok((stdout, stdin.ok_or_else(|| self.broken_pipe())?, session))
    }

    /// Runs ssh until it ends.
    pub(super) fn run(&self, mut ssh: Command, stdin: Stdio) -> Result<Ran, SshError> {
        let (mut stdout, _, mut session) = self.start(&mut ssh, stdin)?;
        let mut patient = Patient::keeping(OUTPUT, &mut stdout, self.until);
        let copied = io::copy(&mut patient, &mut io::sink());
        let stdout = patient.seen;
        while !session.waited(STOP_LOOK.min(self.left())) && !self.left().is_zero() {}
        let status = session.end(Duration::ZERO);
        match status {
            Some(status) if copied.is_ok() => Ok(Ran { status, stdout, words: session.words() }),
            _ => Err(self.overdue(session.words())),
        }
    }

    fn start(
        &self,
        ssh: &mut Command,
        stdin: Stdio,
    ) -> Result<(ChildStdout, Option<ChildStdin>, Session), SshError> {
        ssh.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
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
        let stderr_pipe = stderr.ok_or_else(|| self.broken_pipe())?;
        session.words = Some(Words::gather(stderr_pipe).map_err(|source| self.program(source))?);
        Ok((stdout.ok_or_else(|| self.broken_pipe())?, stdin, session))
    }

    fn broken_pipe(&self) -> SshError {
        self.program(io::ErrorKind::BrokenPipe.into())
    }

    fn program(&self, source: io::Error) -> SshError {
        SshError::Program { program: self.place.program.clone(), source }
    }
}

/// Builds a command that runs in a session of its own, by way of setsid(1), which becomes the program.
///
/// Ctrl-C on the terminal goes to weir's process group, and must not end ssh before weir has put things back. Without a
/// terminal, neither ssh nor the ssh that it starts for a ProxyJump can prompt.
fn detached(program: &OsStr) -> Command {
    let paths = env::var_os("PATH").unwrap_or_default();
    let setsid =
        env::split_paths(&paths).map(|folder| folder.join("setsid")).find(|path| path.is_file());
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

/// A running ssh process.
///
/// On drop, ssh has two seconds to end by itself and is then killed. The agent on the host ends because its input does.
#[derive(Debug)]
pub struct Session {
    child: Child,
    status: Option<ExitStatus>,
    /// True if ssh was killed, so that its status says nothing.
    killed: bool,
    words: Option<Words>,
    host: String,
    typed: String,
}

impl Session {
    /// Returns the process number of ssh on this machine.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the last lines that ssh and the agent wrote to standard error, without control characters. Complete once
    /// ssh has ended.
    pub fn words(&self) -> String {
        match &self.words {
            Some(words) if self.status.is_none() => words.now(),
            _ => self.last_words(),
        }
    }

    /// Returns the last lines like [`Session::words`], but waits for output that may still be on its way. For an agent
    /// whose output has ended, or that is given up.
    pub fn last_words(&self) -> String {
        let words = self.words.as_ref();
        words.map_or_else(String::new, |words| words.all(LAST_WORDS))
    }

    /// Waits for ssh to end, and kills it after the time limit. The agent's input must be closed before, or nothing
    /// ends. Returns the exit status; `None` if ssh had to be killed.
    ///
    /// May be called again.
    pub fn end(&mut self, at_most: Duration) -> Option<ExitStatus> {
        if !self.waited(at_most) {
            self.kill();
        }
        self.status.filter(|_| !self.killed)
    }

    /// Ends ssh and returns the reason why the connection was lost. To be called when the agent's output has ended
    /// unexpectedly.
    pub fn lost(&mut self) -> SshError {
        let status = self.end(GRACE);
        error::ended(&self.host, &self.typed, status, self.words())
    }

    /// Returns the exit code of ssh, if ssh ended by itself.
    pub(super) fn exit_code(&self) -> Option<i32> {
        self.status.filter(|_| !self.killed).and_then(|status| status.code())
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

    /// Waits for ssh to end. Returns false if it still runs after this time.
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

/// Reader of a process's output with a deadline. It keeps the beginning of the output.
pub(super) struct Patient<'a> {
    from: &'a mut ChildStdout,
    until: Until<'a>,
    keep: usize,
    seen: Vec<u8>,
}

impl<'a> Patient<'a> {
    /// Creates a reader of an agent's greeting.
    pub(super) fn new(from: &'a mut ChildStdout, until: Until<'a>) -> Patient<'a> {
        Patient::keeping(NOISE, from, until)
    }

    fn keeping(keep: usize, from: &'a mut ChildStdout, until: Until<'a>) -> Patient<'a> {
        Patient { from, until, keep, seen: Vec::new() }
    }

    /// Reads the rest of the output, at most for this time, and returns the beginning of the output.
    pub(super) fn rest(mut self, at_most: Duration) -> Vec<u8> {
        self.until.at = Instant::now() + at_most;
        // Bounded in time but not in size: who never stops is killed afterwards.
        let _ = io::copy(&mut self, &mut io::sink());
        self.seen
    }

    fn wait(&self) -> io::Result<()> {
        loop {
            let remaining = self.until.left().min(STOP_LOOK);
            if remaining.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let timeout = Timespec {
                tv_sec: remaining.as_secs().cast_signed(),
                tv_nsec: remaining.subsec_nanos().into(),
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
