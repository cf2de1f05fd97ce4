//! What every proxy can be asked, and how it is started: the one interface that the lab sees.
//!
//! A proxy is one module that implements [`Proxy`]. What it shares with all others is here and in
//! [`Configuration`]: folders, processes, waiting, ending.

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

/// How long a proxy may take until it accepts connections. nginx tries for 2.5 s to get a port that is
/// taken (`ngx_open_listening_sockets`: five times, half a second apart).
const START_LIMIT: Duration = Duration::from_secs(30);

/// How long one attempt to connect may take, and how long workers that are missing are waited for
/// once connections are accepted.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often a proxy that starts is looked at.
const POLL: Duration = Duration::from_millis(2);

/// A program that is installed and that weir knows how to put under test.
///
/// Paths, arguments and answers are those of this machine. Whatever starts or asks it is called from
/// a thread in the arm's network namespace.
pub trait Proxy: Debug + Send + Sync {
    /// Its program on this machine.
    fn installed(&self) -> &Installed;

    /// Which.
    fn kind(&self) -> ProxyKind {
        self.installed().kind
    }

    /// Path of the program.
    fn program(&self) -> &Path {
        &self.installed().program
    }

    /// Name and version as records have them: `nginx/1.22.1`.
    fn version(&self) -> &str {
        &self.installed().version
    }

    /// Writes a configuration, of weir's own or a changed copy of the user's.
    ///
    /// # Errors
    /// The user's configuration cannot be understood, a file cannot be written, or the workers' user
    /// could not reach the prefix.
    fn configure(&self, task: &Task<'_>) -> Result<Configuration, SutError>;

    /// The arguments upon which it checks a configuration and ends.
    fn checking(&self, configuration: &Configuration) -> Vec<OsString>;

    /// Remarks in what it says of a configuration that it accepts: warnings that do not keep it from
    /// running.
    fn remarks(&self, said: &str) -> Vec<String>;

    /// Why it refuses a configuration, in what it says of it.
    fn refusal(&self, said: &str) -> String {
        said.to_owned()
    }

    /// The arguments that run it in the foreground with a configuration.
    fn arguments(&self, configuration: &Configuration) -> Vec<OsString>;

    /// Whether it would listen at a port beside another program that allows it (SO_REUSEPORT, socket(7)):
    /// the kernel would then share the connections out among the two, and nobody be told.
    fn shares_ports(&self, configuration: &Configuration) -> bool {
        configuration.shares_port
    }

    /// Clears away what an earlier instance left that would mislead the next, besides what is below
    /// `run/` in the prefix.
    ///
    /// # Errors
    /// It cannot be removed.
    fn before_start(&self, _configuration: &Configuration) -> Result<(), SutError> {
        Ok(())
    }

    /// Whether a proxy that accepts connections has all its parts; asked again until it has. Without a word
    /// of its own a proxy is ready when it accepts.
    fn is_ready(&self, _started: &Started<'_>) -> bool {
        true
    }

    /// Whether a process of a proxy that is ready will end by itself.
    fn is_passing(&self, _pid: u32) -> bool {
        false
    }

    /// What the proxy understood of its configuration, and the level of every parameter of the catalog
    /// that can be read back. What shows in a process alone is left out without one.
    ///
    /// # Errors
    /// It cannot be asked, or what it answers cannot be read.
    fn effective(
        &self,
        configuration: &Configuration,
        proxy: Option<&RunningProxy>,
        catalog: &Catalog,
    ) -> Result<Effective, SutError>;

    /// Its own counters, by the names that it gives them: requests, connections, refusals. They only
    /// ever grow. Empty for a proxy that tells nothing.
    ///
    /// # Errors
    /// It cannot be asked.
    fn counters(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError>;

    /// What it tells of itself while it has load, by the names of `limits/counters.yaml`: counters and values of the
    /// moment. Asked every second, so of a proxy that counts what it is asked it asks for little.
    ///
    /// # Errors
    /// It cannot be asked.
    fn sampled(&self, configuration: &Configuration) -> Result<BTreeMap<String, u64>, SutError> {
        self.counters(configuration)
    }

    /// What a line of the log says that [`Site::request_log`] makes it write; `None`: it is none of these.
    fn logged(&self, _line: &str) -> Option<LoggedRequest> {
        None
    }

    /// What it does with configurations that users wrote; `None`: nothing yet.
    fn language(&self) -> Option<&dyn Language> {
        None
    }

    /// Whether a line that it printed tells a person something.
    fn is_telling(&self, _line: &str) -> bool {
        true
    }

    /// Whether its log says why it did not start even where it printed something.
    fn logs_why(&self) -> bool {
        false
    }
}

/// A proxy that was started and accepts connections.
#[derive(Debug)]
pub struct Started<'s> {
    pub(crate) configuration: &'s Configuration,
    pub(crate) proxy: &'s RunningProxy,
    /// How long it has accepted.
    since: Duration,
}

impl Started<'_> {
    pub(crate) fn has_workers(&self) -> bool {
        self.has_enough(self.proxy.count_workers())
    }

    /// Whether all workers are there, or have been waited for long enough. At a port that is taken somebody
    /// else may accept, while a proxy that starts its workers only once it listens still tries; so one at
    /// least must be there.
    pub(crate) fn has_enough(&self, workers: usize) -> bool {
        workers > 0 && (workers >= self.configuration.workers || self.since > PATIENCE)
    }
}

impl dyn Proxy + '_ {
    /// Writes a configuration into `prefix`, which is made if need be; its parent must be there.
    ///
    /// `settings` are levels as the catalog accepts them; what they leave out stays the program's
    /// default. With [`Site::own`] it is a copy of the user's configuration in which only `settings`
    /// are changed.
    ///
    /// # Errors
    /// A parameter is not in the catalog, a reverse proxy has no origin, the proxy does not serve
    /// files, or as for [`Proxy::configure`].
    pub fn write(
        &self,
        prefix: &Path,
        settings: &Settings,
        site: &Site<'_>,
        catalog: &Catalog,
    ) -> Result<Configuration, SutError> {
        let task = Task {
            kind: self.kind(),
            prefix,
            settings,
            site,
            catalog,
        };
        task.check()?;
        self.configure(&task)
    }

    /// Lets the program itself check a configuration and gives its remarks, one per line.
    ///
    /// # Errors
    /// [`SutError::Refused`] with the program's own words.
    pub fn check(&self, configuration: &Configuration) -> Result<Vec<String>, SutError> {
        check(self, configuration)
    }
}

/// As [`dyn Proxy::check`], for the proxies' modules.
pub(crate) fn check<P: Proxy + ?Sized>(
    proxy: &P,
    configuration: &Configuration,
) -> Result<Vec<String>, SutError> {
    let answer = answer(proxy, configuration, proxy.checking(configuration))?;
    let remarks = proxy.remarks(&said(&answer)).into_iter();
    Ok(remarks.map(|remark| configuration.told(&remark)).collect())
}

/// What a program answers when it is run with arguments that make it look at a configuration and end.
///
/// # Errors
/// [`SutError::Refused`] with the program's own words.
pub(crate) fn answer<P: Proxy + ?Sized>(
    proxy: &P,
    configuration: &Configuration,
    arguments: Vec<OsString>,
) -> Result<Output, SutError> {
    let answer = proxy.installed().ask(configuration, arguments)?;
    match answer.status.success() {
        true => Ok(answer),
        false => Err(configuration.refused(&proxy.refusal(&said(&answer)))),
    }
}

/// A configuration as the proxy understood it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// What the proxy prints of it.
    pub text: String,
    /// Level of every parameter in the catalog: what is in force, or else the program's default.
    /// A text that no level leads to is given as it stands.
    pub levels: BTreeMap<String, String>,
}

impl Effective {
    /// The levels of all rows of a proxy, as they are found one by one.
    pub(crate) fn of(
        text: String,
        rows: (&Catalog, ProxyKind),
        level: impl Fn(&Parameter) -> Option<String>,
    ) -> Effective {
        let rows = rows.0.parameters(rows.1);
        let levels = rows.filter_map(|row| Some((row.id.clone(), level(row)?)));
        Effective {
            text,
            levels: levels.collect(),
        }
    }
}

impl Effective {
    /// The same where loads meet a configuration in several ways, each with whether it is over TLS: levels that
    /// differ stand side by side. `is_of_tls` says of which rows the listeners in clear know nothing.
    pub(crate) fn of_ways<W>(
        text: String,
        rows: (&Catalog, ProxyKind),
        ways: &[(bool, W)],
        is_of_tls: impl Fn(&Parameter) -> bool,
        level: impl Fn(&Parameter, &W) -> Option<String>,
    ) -> Effective {
        let any_secure = ways.iter().any(|(is_secure, _)| *is_secure);
        Effective::of(text, rows, |row| {
            let secure_alone = any_secure && is_of_tls(row);
            let ways = ways
                .iter()
                .filter(|(is_secure, _)| *is_secure || !secure_alone);
            let mut levels: Vec<String> = Vec::new();
            for level in ways.filter_map(|(_, way)| level(row, way)) {
                if !levels.contains(&level) {
                    levels.push(level);
                }
            }
            (!levels.is_empty()).then(|| levels.join(" and "))
        })
    }
}

/// Starts a proxy and waits until it accepts connections and all its parts are there. The calling
/// thread must live as long as the proxy: see [`crate::launch`].
///
/// # Errors
/// [`SutError::PortTaken`] or [`SutError::NotStarted`] with the proxy's own words,
/// [`SutError::NotListening`] after ten seconds. Nothing is left running then.
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

/// Refuses an address at which somebody listens.
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

/// Leaves word of which program runs below a prefix, for whoever sweeps after a weir that was killed.
fn note_program(program: &Path, configuration: &Configuration) -> Result<(), SutError> {
    let real = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let file = configuration.prefix().join(PROGRAM_FILE);
    let text = format!("{}\n", real.display());
    weir_files::write(&file, text).map_err(SutError::file("write", file))
}

/// An earlier instance that was killed leaves its sockets and process numbers behind, and some proxies
/// refuse to start beside them.
fn clear_remains(configuration: &Configuration) {
    let folder = fs::read_dir(configuration.prefix().join("run"));
    for remains in folder.into_iter().flatten().flatten() {
        // What cannot be removed is the proxy's to complain of.
        let _ = fs::remove_file(remains.path());
    }
}

/// Files for what the program prints: one for both of its outputs, unless it logs to the first.
fn outputs(configuration: &Configuration) -> Result<(File, File), SutError> {
    let create = |path: PathBuf| weir_files::create(&path).map_err(SutError::file("create", path));
    let errors = create(configuration.output())?;
    let output = match &configuration.stdout {
        Some(file) => create(configuration.prefix().join(file))?,
        None => errors
            .try_clone()
            .map_err(SutError::file("create", configuration.output()))?,
    };
    Ok((output, errors))
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
                return Err(SutError::file("open a socket for", address.to_string())(
                    error,
                ));
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

/// Returns true if this process or the whole host may open no more descriptors: no proxy's fault.
fn is_short_of_descriptors(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(
        errno,
        Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE)
    )
}

fn ended_early(proxy: &dyn Proxy, configuration: &Configuration, status: String) -> SutError {
    let kind = configuration.kind();
    let address = configuration.listen();
    let words = words(proxy, configuration);
    let is_taken = [
        "(98: ",
        "(98)",
        "ddress already in use",
        "cannot bind socket",
    ];
    match is_taken.iter().any(|taken| words.contains(taken)) {
        true => SutError::PortTaken {
            kind,
            address,
            words,
        },
        false => SutError::NotStarted {
            kind,
            address,
            status,
            words,
        },
    }
}

/// What a proxy that does not run as it should has said: on its outputs, or in its log.
fn words(proxy: &dyn Proxy, configuration: &Configuration) -> String {
    let printed = tail_of(&configuration.output(), |line| proxy.is_telling(line));
    let words = match (printed.is_empty(), proxy.logs_why()) {
        (true, _) => tail(&configuration.error_log()),
        (false, true) => format!("{}\n{printed}", tail(&configuration.error_log())),
        (false, false) => printed,
    };
    configuration.told(words.trim())
}
