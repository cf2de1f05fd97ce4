//! nginx: found, configured, checked and started.
//!
//! Every configuration of weir's has a prefix of its own, a folder that holds all that this nginx
//! reads and writes:
//!
//! ```text
//! conf/nginx.conf   what weir wrote       logs/error.log, logs/access.log
//! conf/*.pem        certificate and key, for a listener with TLS
//! files/            for static files      logs/output   what the program printed
//! temp/             its temporary files   nginx.pid     number of the master process
//! ```
//!
//! Paths in the configuration are relative to the prefix (`nginx -p`), so the configurations of
//! two arms differ in their settings and addresses alone.

mod configuration;
mod effective;
mod site;
pub mod syntax;
mod user;

pub use configuration::Configuration;
pub use effective::Effective;
pub use site::{Site, TlsListener};

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use weir_model::study::Settings;
use weir_parameters::Catalog;
use weir_probe::process;

use crate::running::{RunningProxy, tail};
use crate::{Launch, Launcher, SutError};

/// How long nginx may take until it accepts connections. It tries for 2.5 s to get a port that
/// is taken (`ngx_open_listening_sockets`: five times, half a second apart).
const START_LIMIT: Duration = Duration::from_secs(10);

/// How long workers that are missing are waited for once connections are accepted.
const WORKERS_LIMIT: Duration = Duration::from_secs(1);

/// How often a proxy that starts is looked at.
const POLL: Duration = Duration::from_millis(10);

/// Folders of system programs, where an unprivileged user's PATH does not look.
const SYSTEM_FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];

/// An nginx that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nginx {
    program: PathBuf,
    version: String,
    build: String,
}

impl Nginx {
    /// Looks for nginx, where it is said to be or else on PATH and in the folders of system
    /// programs, and asks its version.
    ///
    /// # Errors
    /// [`SutError::NotFound`]; or the program is something else.
    pub fn find(executable: Option<&Path>) -> Result<Nginx, SutError> {
        let program = locate(executable.unwrap_or(Path::new("nginx")))?;
        let output = run(&program, &["-V"])?;
        // nginx prints this to standard error.
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let Some(version) = version_of(&words) else {
            return Err(SutError::NotNginx { program, words });
        };
        Ok(Nginx {
            program,
            version: version.to_owned(),
            build: words,
        })
    }

    /// Path of the program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Version as the program prints it, for example `nginx/1.22.1`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// All that `nginx -V` prints: version, libraries, how it was built.
    pub fn build(&self) -> &str {
        &self.build
    }

    /// Writes a configuration into `prefix`, which is made if need be; its parent must be there.
    ///
    /// `settings` are levels as the catalog accepts them; what they leave out stays the program's
    /// default. See [`Configuration`].
    ///
    /// # Errors
    /// A parameter is not in the catalog, a reverse proxy has no origin, a file cannot be written,
    /// or the workers' user could not reach the prefix.
    pub fn write_configuration(
        &self,
        prefix: &Path,
        settings: &Settings,
        site: &Site<'_>,
        catalog: &Catalog,
    ) -> Result<Configuration, SutError> {
        configuration::write(self, prefix, settings, site, catalog)
    }

    /// Lets nginx check a configuration (`nginx -t`) and gives its remarks, one per line: warnings
    /// that do not keep it from running.
    ///
    /// # Errors
    /// [`SutError::Refused`] with nginx's own words.
    pub fn check(&self, configuration: &Configuration) -> Result<Vec<String>, SutError> {
        let output = self.run_with(configuration, "-t")?;
        let words = String::from_utf8_lossy(&output.stderr);
        let is_remark = |line: &&str| line.contains(": [");
        Ok(words.lines().filter(is_remark).map(str::to_owned).collect())
    }

    /// What nginx understood of a configuration (`nginx -T`), and the level of every parameter of
    /// the catalog in it. `nofile` is the soft descriptor limit of a worker that runs
    /// ([`RunningProxy::nofile`]), for the parameters that show in it alone; without it those are
    /// left out.
    ///
    /// # Errors
    /// nginx refuses the configuration, or what it prints cannot be read.
    pub fn effective(
        &self,
        configuration: &Configuration,
        catalog: &Catalog,
        nofile: Option<u64>,
    ) -> Result<Effective, SutError> {
        let output = self.run_with(configuration, "-T")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        effective::read(text, catalog, nofile)
    }

    /// Starts nginx and waits until it accepts connections and all its workers are there. The
    /// calling thread must live as long as the proxy: see [`crate::launch`].
    ///
    /// # Errors
    /// [`SutError::PortTaken`] or [`SutError::NotStarted`] with nginx's own words,
    /// [`SutError::NotListening`] after ten seconds. Nothing is left running then.
    pub fn start(
        &self,
        configuration: &Configuration,
        launcher: &Launcher,
        launch: &Launch,
    ) -> Result<RunningProxy, SutError> {
        let path = configuration.output();
        let output = File::create(&path).map_err(SutError::file("create", &path))?;
        let errors = output
            .try_clone()
            .map_err(SutError::file("create", &path))?;
        let mut command = launcher.command(launch, &self.program);
        command
            .args(self.arguments(configuration))
            .current_dir(configuration.prefix())
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let child = command.spawn().map_err(|source| SutError::Spawn {
            program: PathBuf::from(command.get_program()),
            source,
        })?;
        // From here on an early return ends what was started.
        let mut proxy = RunningProxy::new(child, configuration.listen(), configuration.error_log());
        wait_until_ready(&mut proxy, configuration)?;
        proxy.note_processes()?;
        Ok(proxy)
    }

    /// Arguments that name a configuration.
    fn arguments(&self, configuration: &Configuration) -> Vec<PathBuf> {
        let mut arguments = vec![
            "-p".into(),
            configuration.prefix().to_owned(),
            "-c".into(),
            configuration.file(),
        ];
        // Until it has read its configuration nginx writes to the log it was built with, often one
        // that is not for everybody to write. Since 1.19.5 that can be changed.
        if self.is_at_least([1, 19, 5]) {
            arguments.extend(["-e".into(), configuration.error_log()]);
        }
        arguments
    }

    fn is_at_least(&self, wanted: [u32; 3]) -> bool {
        let digits = self.version.rsplit('/').next().unwrap_or_default();
        let mut parts = digits
            .split('.')
            .map(|part| part.parse::<u32>().unwrap_or(0));
        std::array::from_fn(|_| parts.next().unwrap_or(0)) >= wanted
    }

    fn run_with(&self, configuration: &Configuration, option: &str) -> Result<Output, SutError> {
        let mut command = command(&self.program);
        command.arg(option).args(self.arguments(configuration));
        let output = output(command)?;
        match output.status.success() {
            true => Ok(output),
            false => Err(SutError::Refused {
                file: configuration.file(),
                words: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }),
        }
    }
}

/// The program behind a name or path.
fn locate(executable: &Path) -> Result<PathBuf, SutError> {
    let not_found = |searched: &str| SutError::NotFound {
        program: executable.display().to_string(),
        searched: searched.to_owned(),
    };
    if executable.components().count() > 1 {
        let is_there = is_executable(executable);
        return is_there
            .then(|| executable.to_owned())
            .ok_or_else(|| not_found("as an executable file"));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_FOLDERS.iter().map(PathBuf::from))
        .map(|folder| folder.join(executable))
        .find(|program| is_executable(program))
        .ok_or_else(|| not_found("on PATH or in /usr/sbin"))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// `nginx/1.22.1` of `nginx version: nginx/1.22.1`, and the like of its relatives.
fn version_of(words: &str) -> Option<&str> {
    let line = words
        .lines()
        .find_map(|line| line.strip_prefix("nginx version: "))?;
    line.split_ascii_whitespace().next()
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    // nginx takes the descriptors named there for listening sockets to go on with.
    command.env_remove("NGINX").stdin(Stdio::null());
    command
}

fn run(program: &Path, arguments: &[&str]) -> Result<Output, SutError> {
    let mut command = command(program);
    command.args(arguments);
    output(command)
}

fn output(mut command: Command) -> Result<Output, SutError> {
    command.output().map_err(|source| SutError::Spawn {
        program: PathBuf::from(command.get_program()),
        source,
    })
}

/// Waits for connections *and* workers: at a port that is taken somebody else may accept, while
/// this nginx, which starts its workers only once it listens, still tries.
fn wait_until_ready(
    proxy: &mut RunningProxy,
    configuration: &Configuration,
) -> Result<(), SutError> {
    let begin = Instant::now();
    let mut accepts_since = None;
    loop {
        if let Some(status) = proxy.exit_status() {
            return Err(ended_early(configuration, status));
        }
        let workers = process::children(proxy.master_pid()).map_or(0, |workers| workers.len());
        if workers > 0 && TcpStream::connect_timeout(&configuration.listen(), WORKERS_LIMIT).is_ok()
        {
            let since = *accepts_since.get_or_insert_with(Instant::now);
            if workers >= configuration.workers() || since.elapsed() > WORKERS_LIMIT {
                return Ok(());
            }
        }
        if begin.elapsed() > START_LIMIT {
            return Err(SutError::NotListening {
                address: configuration.listen(),
                seconds: START_LIMIT.as_secs(),
                words: words(configuration),
            });
        }
        std::thread::sleep(POLL);
    }
}

fn ended_early(configuration: &Configuration, status: String) -> SutError {
    let address = configuration.listen();
    let words = words(configuration);
    match words.contains("(98: ") {
        true => SutError::PortTaken { address, words },
        false => SutError::NotStarted {
            address,
            status,
            words,
        },
    }
}

/// What an nginx that does not run as it should has said: on its standard error, or in its log.
fn words(configuration: &Configuration) -> String {
    let printed = tail(&configuration.output());
    match printed.is_empty() {
        true => tail(&configuration.error_log()),
        false => printed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_nginx_and_its_relatives_are_told_apart_by_number() {
        let words = "nginx version: openresty/1.21.4.1\nbuilt with OpenSSL";
        assert_eq!(version_of(words), Some("openresty/1.21.4.1"));
        assert_eq!(
            version_of("nginx version: nginx/1.18.0 (Ubuntu)"),
            Some("nginx/1.18.0")
        );
        assert_eq!(version_of("Apache/2.4"), None);
        for (version, expected) in [
            ("nginx/1.18.0", false),
            ("nginx/1.19.4", false),
            ("nginx/1.19.5", true),
            ("nginx/1.22.1", true),
            ("nginx/2.0", true),
            ("nginx/unknown", false),
        ] {
            let nginx = Nginx {
                program: PathBuf::new(),
                version: version.to_owned(),
                build: String::new(),
            };
            assert_eq!(nginx.is_at_least([1, 19, 5]), expected, "{version}");
        }
    }
}
