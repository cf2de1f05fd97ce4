//! Modules of httpd: which ones are built in, and where the others are.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::{fs, io};

use weir_model::study::ProxyKind;
use weir_sut::SutError;
use weir_sut::installed::{command, output, words};

/// Name of the link in a prefix that leads to the folder of modules.
const LINK: &str = "modules";

/// Modules that every arm loads beside an MPM, and no others: Debian enables some twenty more, for authentication,
/// listings and the like, that a gateway has no use for. They are in the order in which they need each other.
const LOADED: &str = "unixd, log_config, authz_core, authz_host, mime, dir, filter, deflate, status, info, \
     reqtimeout, socache_shmcb, ssl, proxy, proxy_http";

/// File by which a folder of modules is recognised.
const SIGN: &str = "mod_proxy_http.so";

/// Folders of modules in distributions, relative to the folder above the program's.
const FOLDERS: &str =
    "lib/apache2/modules, lib64/httpd/modules, lib/httpd/modules, libexec/apache2, modules";

/// Modules of an httpd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Modules {
    /// Names of built-in modules, without `mod_`.
    built_in: Vec<String>,
    folder: Option<PathBuf>,
}

impl Modules {
    /// Queries a program for its modules.
    pub(super) fn of(program: &Path) -> Result<Modules, SutError> {
        let list = ask(program, &["-l"])?;
        // Not its own configuration, which may be missing or the service's.
        let build = ask(program, &["-V", "-f", "/dev/null"])?;
        Ok(Modules { built_in: built_in(&list), folder: folder(program, root_of(&build)) })
    }

    /// Returns the directives that load the modules that are not built in, without the MPM.
    pub(super) fn directives(&self) -> impl Iterator<Item = String> {
        LOADED
            .split(", ")
            .filter(|name| !self.built_in.iter().any(|other| other == name))
            .map(|name| format!("LoadModule {name}_module {LINK}/mod_{name}.so"))
    }

    /// Creates the link to the folder of modules in a prefix.
    pub(super) fn link(&self, prefix: &Path) -> Result<(), SutError> {
        let folder = self.folder.as_ref().ok_or_else(|| SutError::Unable {
            kind: ProxyKind::Httpd,
            what: format!(
                "be configured: the folder with its {SIGN} is not where it is known to be"
            ),
        })?;
        let link = prefix.join(LINK);
        match symlink(folder, &link) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made.map_err(SutError::file("create", link)),
        }
    }
}

/// Parses names from the output of `httpd -l`: `  mod_so.c`.
fn built_in(words: &str) -> Vec<String> {
    words
        .lines()
        .filter_map(|line| {
            let name = line.trim().strip_prefix("mod_")?;
            name.strip_suffix(".c").map(str::to_owned)
        })
        .collect()
}

/// Returns the value of `-D HTTPD_ROOT="/etc/apache2"` in the output of `httpd -V`.
fn root_of(build: &str) -> Option<&Path> {
    let (_, rest) = build.split_once("HTTPD_ROOT=\"")?;
    rest.split('"').next().map(Path::new)
}

fn ask(program: &Path, arguments: &[&str]) -> Result<String, SutError> {
    let mut asking = command(program);
    asking.args(arguments);
    Ok(words(&output(asking)?))
}

fn folder(program: &Path, root: Option<&Path>) -> Option<PathBuf> {
    let real = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    let above = real.parent().and_then(Path::parent);
    let system = [Path::new("/usr"), Path::new("/usr/local")];
    let usual = above
        .into_iter()
        .chain(system)
        .flat_map(|above| FOLDERS.split(", ").map(move |folder| above.join(folder)));
    root.map(|root| root.join("modules"))
        .into_iter()
        .chain(usual)
        .find(|folder| folder.join(SIGN).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_is_not_loaded() {
        let words = "Compiled in modules:\n  core.c\n  mod_so.c\n  mod_unixd.c\n  http_core.c\n";
        let modules = Modules { built_in: built_in(words), folder: None };
        assert_eq!(modules.built_in, ["so", "unixd"]);
        let directives: Vec<String> = modules.directives().collect();
        assert!(!directives.iter().any(|text| text.contains("unixd")));
        let last = "LoadModule proxy_http_module modules/mod_proxy_http.so";
        assert_eq!(directives.last().map(String::as_str), Some(last));
        assert!(matches!(modules.link(Path::new("/nonexistent")), Err(SutError::Unable { .. })));
    }

    #[test]
    fn modules_are_found_beside_the_root_or_the_program() {
        let build = " -D HTTPD_ROOT=\"/usr/local/apache2\"\n -D SUEXEC_BIN=\"/x\"";
        assert_eq!(root_of(build), Some(Path::new("/usr/local/apache2")));
        assert_eq!(root_of("nothing"), None);
        let installed = tempfile::tempdir().unwrap();
        let modules = installed.path().join("lib/httpd/modules");
        fs::create_dir_all(&modules).unwrap();
        fs::create_dir_all(installed.path().join("bin")).unwrap();
        let program = installed.path().join("bin/httpd");
        for file in [&program, &modules.join(SIGN)] {
            fs::write(file, "").unwrap();
        }
        let real = fs::canonicalize(&modules).unwrap();
        assert_eq!(folder(&program, None), Some(real));
        let root = installed.path().join("lib/httpd");
        assert_eq!(folder(&program, Some(&root)), Some(modules));
    }
}
