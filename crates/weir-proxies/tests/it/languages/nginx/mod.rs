mod adapted;
mod changed;
mod generated;
mod levels;
mod origins;
mod patched;
mod read;
mod refused;
mod style;
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use tempfile::TempDir;
use weir_configuration::{ConfigurationError, Source, Surroundings, WantedSetting};
use weir_model::study::ProxyKind;
use weir_nginx::language as nginx;
use weir_parameters::{Catalog, Parameter};

use crate::languages::support::with_tls;

/// Returns the folders of `tests/data/nginx`, each with one configuration.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    "beside cache conditions debian endless grpc limits listeners logs lua mail \
     maps minified nested proxy quotes scripts static stream tls websocket wordpress"
        .split(' ')
}

/// Configurations that need modules which Debian's nginx does not load by itself.
pub(crate) const FOREIGN: [&str; 4] = ["lua", "mail", "scripts", "stream"];

/// Returns the configurations that nginx can check.
pub(crate) fn checkable() -> impl Iterator<Item = &'static str> {
    all().filter(|name| !FOREIGN.contains(name))
}

/// A user's configuration in a folder of its own.
pub(crate) struct User {
    pub(crate) folder: TempDir,
}

impl User {
    /// Copies a configuration of `tests/data/nginx`, with `ROOT` replaced by the copy's folder, and every file's text
    /// passed through `rewrite`.
    pub(crate) fn rewritten(name: &str, rewrite: impl Fn(&str) -> String) -> User {
        let user = User { folder: tempfile::tempdir().unwrap() };
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nginx").join(name);
        user.copy(&data, user.folder.path(), &rewrite);
        user.write_certificate();
        user
    }

    pub(crate) fn of(name: &str) -> User {
        User::rewritten(name, str::to_owned)
    }

    /// Creates a configuration of one file.
    pub(crate) fn with(text: &str) -> User {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("nginx.conf"), text).unwrap();
        User { folder }
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn main(&self) -> PathBuf {
        self.folder.path().join("nginx.conf")
    }

    pub(crate) fn read(&self) -> Source {
        nginx::read(&self.main(), None).unwrap()
    }

    fn copy(&self, from: &Path, to: &Path, rewrite: &impl Fn(&str) -> String) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                self.copy(&entry.path(), &target, rewrite);
                continue;
            }
            let text = fs::read_to_string(entry.path()).unwrap();
            let root = self.folder.path().to_str().unwrap();
            fs::write(target, rewrite(&text.replace("ROOT", root))).unwrap();
        }
    }

    fn write_certificate(&self) {
        let (certificate, key) = &*CERTIFICATE;
        self.write("tls/cert.pem", certificate);
        self.write("tls/key.pem", key);
    }
}

/// A certificate and its key, made once because that takes long.
static CERTIFICATE: LazyLock<(String, String)> =
    LazyLock::new(crate::languages::support::certificate);

pub(crate) fn load_catalog() -> Catalog {
    static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);
    CATALOG.clone()
}

pub(crate) fn row<'a>(catalog: &'a Catalog, id: &str) -> &'a Parameter {
    catalog.get(ProxyKind::Nginx, id).unwrap()
}

pub(crate) fn set(source: &Source, settings: &[(&str, &str)]) -> Source {
    change(source, settings).unwrap()
}

pub(crate) fn change(
    source: &Source,
    settings: &[(&str, &str)],
) -> Result<Source, ConfigurationError> {
    let catalog = load_catalog();
    let wanted: Vec<WantedSetting<'_>> = settings
        .iter()
        .map(|&(id, level)| WantedSetting { row: row(&catalog, id), level })
        .collect();
    nginx::change(source, &wanted)
}

/// Returns the output of `nginx -V`.
pub(crate) fn build() -> String {
    let output = Command::new(PROGRAM).arg("-V").output().unwrap();
    String::from_utf8(output.stderr).unwrap()
}

const PROGRAM: &str = "/usr/sbin/nginx";

/// Writes a copy below its prefix; returns the path of its main file.
fn copy(source: &Source, surroundings: &Surroundings<'_>) -> PathBuf {
    let adapted = nginx::adapt(source, surroundings, &build()).unwrap();
    for folder in ["logs", "temp", "run"] {
        fs::create_dir(surroundings.prefix.join(folder)).unwrap();
    }
    adapted.write_below(&surroundings.prefix.join("conf")).unwrap()
}

/// Returns the command that runs nginx with a copy.
fn make_command(prefix: &Path, main: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    let log = prefix.join("logs/error.log");
    command.args(["-p".as_ref(), prefix, "-c".as_ref(), main, "-e".as_ref(), &log]);
    command
}

/// A copy of a configuration that nginx can run.
pub(crate) struct Copy {
    pub(crate) prefix: TempDir,
    pub(crate) main: PathBuf,
}

/// Returns surroundings with those loads, in clear and over TLS, for which the configuration has a listener.
fn make_surroundings<'a>(prefix: &'a Path, source: &Source) -> Surroundings<'a> {
    let mut surroundings = with_tls(prefix);
    surroundings.asks.retain(|ask| nginx::asked(source, &ask.spec, "").is_ok());
    surroundings
}

impl Copy {
    pub(crate) fn of(source: &Source) -> Copy {
        let prefix = tempfile::tempdir().unwrap();
        let main = copy(source, &make_surroundings(prefix.path(), source));
        Copy { prefix, main }
    }

    pub(crate) fn nginx(&self, option: &str) -> Output {
        let mut command = make_command(self.prefix.path(), &self.main);
        command.arg(option).output().unwrap()
    }

    /// Returns the configuration as nginx prints it, after checking that nginx accepts it.
    pub(crate) fn accepted(&self, what: &str) -> String {
        let output = self.nginx("-T");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{what}: {words}");
        String::from_utf8(output.stdout).unwrap()
    }
}
