//! Interface of all proxies to the lab: their functions, and their start.
//!
//! A proxy is one module that implements [`Proxy`]. Functions common to all proxies are here and in [`Configuration`]:
//! folders, processes, waiting, ending.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use weir_model::study::{ProxyKind, Settings};
use weir_parameters::{Catalog, Parameter};
use weir_probe::port_is_free;

use crate::installed::{Installed, words as said};
use crate::launch::Launch;
use crate::orphans::{PROCESSES_FILE, PROGRAM_FILE};
use crate::running::{RunningProxy, tail, tail_of};
use crate::{Configuration, Language, Launcher, LoggedRequest, Site, SutError, Task};

/// Maximum time until a proxy accepts connections. nginx tries for 2.5 s to get a port that is taken
/// (`ngx_open_listening_sockets`: five times, half a second apart).
const START_LIMIT: Duration = Duration::from_secs(30);

/// Maximum time for one attempt to connect, and for missing workers to appear once connections are accepted.
const PATIENCE: Duration = Duration::from_secs(1);

/// Interval at which a starting proxy is checked.
const POLL: Duration = Duration::from_millis(2);

/// An installed program that weir can put under test.
///
/// Paths, arguments and answers are those of this machine. Functions that start or query the program must be called
/// from a thread in the arm's network namespace.
pub trait Proxy: Debug + Send + Sync {
    /// Returns the proxy's program on this machine.
    fn installed(&self) -> &Installed;

    /// Returns the kind of the proxy.
    fn kind(&self) -> ProxyKind {
        self.installed().kind
    }

    /// Returns the path of the program.
    fn program(&self) -> &Path {
        &self.installed().program
    }

    /// Returns name and version in the form for records: `nginx/1.22.1`.
    fn version(&self) -> &str {
        &self.installed().version
    }

    /// Writes a configuration, of weir's own or a changed copy of the user's.
    ///
    /// # Errors
    /// The user's configuration cannot be understood, a file cannot be written, or the workers' user cannot reach the
    /// prefix.
    fn configure(&self, task: &Task<'_>) -> Result<Configuration, SutError>;

    /// Returns the arguments that make the program check a configuration and exit.
    fn checking(&self, configuration: &Configuration) -> Vec<OsString>;

    /// Extracts remarks from the program's output on an accepted configuration: warnings that do not keep it from
    /// running.
    fn remarks(&self, said: &str) -> Vec<String>;

    /// Extracts the reason from the program's output on a refused configuration.
    fn refusal(&self, said: &str) -> String {
        said.to_owned()
    }

    /// Returns the arguments that run the program in the foreground with a configuration.
    fn arguments(&self, configuration: &Configuration) -> Vec<OsString>;

    /// Returns true if the proxy would listen at a port beside another program that allows it (SO_REUSEPORT,
    /// socket(7)): the kernel would then silently share the connections out among the two.
    fn shares_ports(&self, configuration: &Configuration) -> bool {
        configuration.shares_port
    }

    /// Removes remains of an earlier instance that would mislead the next, besides those below `run/` in the prefix.
    ///
    /// # Errors
    /// The remains cannot be removed.
    fn before_start(&self, _configuration: &Configuration) -> Result<(), SutError> {
        Ok(())
    }

    /// Returns true if a proxy that accepts connections has all its parts; called until it does. By default a proxy is
    /// ready when it accepts.
    fn is_ready(&self, _started: &Started<'_>) -> bool {
        true
    }

    /// Returns true if a process of a ready proxy will end by itself.
    fn is_passing(&self, _pid: u32) -> bool {
        false
    }

    /// Returns the configuration as the proxy understood it, with the level of every parameter of the catalog that can
    /// be read back. Parameters that only a process shows are left out without one.
    ///
    /// # Errors
    /// The proxy does not answer, or its answer cannot be read.
    fn effective(
        &self,
        configuration: &Configuration,
        proxy: Option<&RunningProxy>,
        catalog: &Catalog,
    ) -> Result<Effective, SutError>;

    /// Returns the proxy's own counters by their own names: requests, connections, refusals. They only ever grow. Empty
    /// for a proxy that reports none.
    ///
    /// # Errors
    /// The proxy does not answer.
    fn counters(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError>;

    /// Returns counters and momentary values for readings under load, by the names in `limits/counters.yaml`. Called
    /// every second, so a proxy that counts such queries must get few.
    ///
    /// # Errors
    /// The proxy does not answer.
    fn sampled(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        self.counters(configuration)
    }

    /// Parses a line of the log for [`Site::request_log`]; `None` for any other line.
    fn logged(&self, _line: &str) -> Option<LoggedRequest> {
        None
    }

    /// Returns the functions for users' configurations; `None` if they are not supported.
    fn language(&self) -> Option<&dyn Language> {
        None
    }

    /// Returns true if a printed line is informative to people.
    fn is_telling(&self, _line: &str) -> bool {
        true
    }

    /// Returns true if the log has the reason of a failed start even if the proxy printed something.
    fn logs_why(&self) -> bool {
        false
    }
}

/// A proxy that was started and accepts connections.
#[derive(Debug)]
pub struct Started<'s> {
    pub configuration: &'s Configuration,
    pub proxy: &'s RunningProxy,
    /// Time for which the proxy has accepted connections.
    since: Duration,
}

impl Started<'_> {
    pub fn has_workers(&self) -> bool {
        self.has_enough(self.proxy.count_workers())
    }

    /// Returns true if all workers are there, or some are and the others have been waited for long enough. One at least
    /// must be there: at a port that is taken another program may accept, while a proxy that starts its workers only
    /// once it listens still tries.
    pub fn has_enough(&self, workers: usize) -> bool {
        workers > 0 && (workers >= self.configuration.workers || self.since > PATIENCE)
    }
}

impl dyn Proxy + '_ {
    /// Writes a configuration into `prefix`, which is created if need be; its parent must exist.
    ///
    /// `settings` are levels as the catalog accepts them; parameters without one keep the program's default. With
    /// [`Site::own`], the result is a copy of the user's configuration in which only `settings` are changed.
    ///
    /// # Errors
    /// A parameter is not in the catalog, a reverse proxy has no origin, the proxy does not serve files, or same as
    /// [`Proxy::configure`].
    pub fn write(
        &self,
        prefix: &Path,
        settings: &Settings,
        site: &Site<'_>,
        catalog: &Catalog,
    ) -> Result<Configuration, SutError> {
        let task = Task { kind: self.kind(), prefix, settings, site, catalog };
        task.check()?;
        self.configure(&task)
    }

    /// Lets the program itself check a configuration and returns its remarks, one per line.
    ///
    /// # Errors
    /// [`SutError::Refused`] with the program's own words.
    pub fn check(&self, configuration: &Configuration) -> Result<Vec<String>, SutError> {
        check(self, configuration)
    }
}

/// Does the same as [`dyn Proxy::check`], for the proxies' modules.
pub fn check<P: Proxy + ?Sized>(
    proxy: &P,
    configuration: &Configuration,
) -> Result<Vec<String>, SutError> {
    let output = answer(proxy, configuration, proxy.checking(configuration))?;
    let remarks = proxy.remarks(&said(&output)).into_iter();
    Ok(remarks.map(|remark| configuration.name_user_files(&remark)).collect())
}

/// Runs a program with arguments that make it check or print a configuration and exit; returns its output.
///
/// # Errors
/// [`SutError::Refused`] with the program's own words.
pub fn answer<P: Proxy + ?Sized>(
    proxy: &P,
    configuration: &Configuration,
    arguments: Vec<OsString>,
) -> Result<Output, SutError> {
    let answer = proxy.installed().ask(configuration, arguments)?;
    if answer.status.success() {
        Ok(answer)
    } else {
        Err(configuration.refused(&proxy.refusal(&said(&answer))))
    }
}

/// Configuration as the proxy understood it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// Text of the configuration as the proxy reports it.
    pub text: String,
    /// Level of every parameter in the catalog: the one in force, or else the program's default. A text that no level
    /// leads to is given as it stands.
    pub levels: BTreeMap<String, String>,
}

impl Effective {
    /// Collects the levels of all rows of a proxy, each from `level`.
    pub fn of(
        text: String,
        rows: (&Catalog, ProxyKind),
        level: impl Fn(&Parameter) -> Option<String>,
    ) -> Effective {
        let (catalog, kind) = rows;
        let levels = catalog
            .parameters(kind)
            .filter_map(|row| Some((row.id.clone(), level(row)?)))
            .collect();
        Effective { text, levels }
    }
}

impl Effective {
    /// Does the same as [`Effective::of`] if loads take several ways through a configuration, each given with true for
    /// TLS. Different levels are joined by "and". `is_of_tls` is true for rows that do not concern listeners in clear.
    pub fn of_routes<W>(
        text: String,
        rows: (&Catalog, ProxyKind),
        routes: &[(bool, W)],
        is_of_tls: impl Fn(&Parameter) -> bool,
        level: impl Fn(&Parameter, &W) -> Option<String>,
    ) -> Effective {
        let any_secure = routes.iter().any(|(is_secure, _)| *is_secure);
        Effective::of(text, rows, |row| {
            let secure_alone = any_secure && is_of_tls(row);
            let relevant = routes.iter().filter(|(is_secure, _)| *is_secure || !secure_alone);
            let mut levels: Vec<String> = Vec::new();
            for level in relevant.filter_map(|(_, route)| level(row, route)) {
                if !levels.contains(&level) {
                    levels.push(level);
                }
            }
            (!levels.is_empty()).then(|| levels.join(" and "))
        })
    }
}

/// Starts a proxy and waits until it accepts connections and all its parts are there. The calling thread must live as
/// long as the proxy: see [`crate::launch`].
///
/// # Errors
/// [`SutError::PortTaken`] or [`SutError::NotStarted`] with the proxy's own words, [`SutError::NotListening`] after
/// thirty seconds. Nothing is left running then.
pub fn start(
    proxy: &dyn Proxy,
    configuration: &Configuration,
    launcher: &Launcher,
    launch: &Launch,
) -> Result<RunningProxy, SutError> {
    if proxy.shares_ports(configuration) {
        must_be_free(configuration)?;
    }
    proxy.before_start(configuration)?;
    note_program(proxy.program(), configuration)?;
    clear_remains(configuration);
    let (output, errors) = outputs(configuration)?;
    let launch = Launch {
        environment: [&configuration.environment[..], &launch.environment].concat(),
        note: Some(configuration.prefix().join(PROCESSES_FILE)),
        ..launch.clone()
    };
    let mut command = launcher.command(&launch, proxy.program());
    command
        .args(proxy.arguments(configuration))
        .args(&configuration.arguments)
        .current_dir(configuration.prefix())
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    let child = command.spawn().map_err(|source| SutError::Spawn {
        program: PathBuf::from(command.get_program()),
        source,
    })?;
    // From here on an early return ends what was started.
    let mut running = RunningProxy::new(child, configuration, proxy.program());
    wait_until_ready(proxy, &mut running, configuration)?;
    let mut passing = running.below();
    passing.retain(|&pid| proxy.is_passing(pid));
    running.note_processes_but(&passing)?;
    Ok(running)
}

/// Refuses an address at which a program listens.
fn must_be_free(configuration: &Configuration) -> Result<(), SutError> {
    for address in configuration.addresses() {
        let is_free = port_is_free(address).unwrap_or(true);
        if !is_free {
            return Err(SutError::PortTaken {
                kind: configuration.kind(),
                address,
                words: "another program listens there (weir looked before the start)".to_owned(),
            });
        }
    }
    Ok(())
}

/// Notes the program that runs below a prefix, for a later sweep if this weir is killed.
fn note_program(program: &Path, configuration: &Configuration) -> Result<(), SutError> {
    let real = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let file = configuration.prefix().join(PROGRAM_FILE);
    let text = format!("{}\n", real.display());
    weir_files::write(&file, text).map_err(SutError::file("write", file))
}

/// Removes sockets and process numbers of an earlier instance that was killed: some proxies refuse to start beside
/// them.
fn clear_remains(configuration: &Configuration) {
    let folder = fs::read_dir(configuration.prefix().join("run"));
    for remains in folder.into_iter().flatten().flatten() {
        // What cannot be removed is the proxy's to complain of.
        let _ = fs::remove_file(remains.path());
    }
}

/// Creates the files for what the program prints: one for both of its outputs, unless it logs to the first.
fn outputs(configuration: &Configuration) -> Result<(File, File), SutError> {
    let errors = create_output(configuration.output())?;
    let output = match &configuration.stdout {
        Some(file) => create_output(configuration.prefix().join(file))?,
        None => errors.try_clone().map_err(SutError::file("create", configuration.output()))?,
    };
    Ok((output, errors))
}

fn create_output(path: PathBuf) -> Result<File, SutError> {
    weir_files::create(&path).map_err(SutError::file("create", path))
}

fn wait_until_ready(
    proxy: &dyn Proxy,
    running: &mut RunningProxy,
    configuration: &Configuration,
) -> Result<(), SutError> {
    let begin = Instant::now();
    let mut accepts_since = None;
    loop {
        if let Some(status) = running.exit_status() {
            return Err(ended_early(proxy, configuration, status));
        }
        let address = configuration.listen();
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Err(error) if is_short_of_descriptors(&error) => {
                return Err(SutError::file("open a socket for", address.to_string())(error));
            }
            Err(_) => {}
            Ok(_) => {
                let started = Started {
                    configuration,
                    proxy: running,
                    since: accepts_since.get_or_insert_with(Instant::now).elapsed(),
                };
                if proxy.is_ready(&started) {
                    return Ok(());
                }
            }
        }
        if begin.elapsed() > START_LIMIT {
            return Err(SutError::NotListening {
                kind: configuration.kind(),
                address: configuration.listen(),
                seconds: START_LIMIT.as_secs(),
                words: words(proxy, configuration),
            });
        }
        std::thread::sleep(POLL);
    }
}

/// Returns true if this process or the whole host may open no more descriptors, which is not the proxy's fault.
fn is_short_of_descriptors(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(errno, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

fn ended_early(proxy: &dyn Proxy, configuration: &Configuration, status: String) -> SutError {
    let kind = configuration.kind();
    let address = configuration.listen();
    let printed = words(proxy, configuration);
    let is_taken = ["(98: ", "(98)", "ddress already in use", "cannot bind socket"];
    if is_taken.iter().any(|taken| printed.contains(taken)) {
        SutError::PortTaken { kind, address, words: printed }
    } else {
        SutError::NotStarted { kind, address, status, words: printed }
    }
}

/// Returns the messages of a proxy that does not run as it should, from its outputs or its log.
fn words(proxy: &dyn Proxy, configuration: &Configuration) -> String {
    let printed = tail_of(&configuration.output(), |line| proxy.is_telling(line));
    let words = match (printed.is_empty(), proxy.logs_why()) {
        (true, _) => tail(&configuration.error_log()),
        (false, true) => format!("{}\n{printed}", tail(&configuration.error_log())),
        (false, false) => printed,
    };
    configuration.name_user_files(words.trim())
}
