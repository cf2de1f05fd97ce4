//! What a proxy's process is started through: a prefix, an environment, libraries to preload. What is
//! missing is found before anything is started, and what was asked for is proved afterwards.

use std::fs;
use std::path::Path;

use weir_model::study::LauncherSpec;

use crate::installed::{find_on_path, is_executable};
use crate::launch::Launch;
use crate::{RunningProxy, SutError};

/// The variable that names libraries to load before all others (ld.so(8)).
const PRELOAD: &str = "LD_PRELOAD";

/// What is not there of a launcher on this host, in words; `None`: all is.
pub fn launcher_missing(spec: &LauncherSpec) -> Option<String> {
    if let Some(program) = spec.prefix.first() {
        let path = Path::new(program);
        let is_there = match path.components().count() {
            1 => find_on_path(path).is_some(),
            _ => is_executable(path),
        };
        if !is_there {
            return Some(format!("`{program}` is not installed on the proxies' host"));
        }
    }
    let is_missing = |library: &&Path| fs::File::open(library).is_err();
    let mut libraries = spec.preload.iter().map(AsRef::as_ref);
    let missing = libraries.find(is_missing)?;
    Some(format!(
        "the library {} cannot be read on the proxies' host",
        missing.display()
    ))
}

impl Launch {
    /// The same, through a launcher.
    #[must_use]
    pub fn through(mut self, spec: &LauncherSpec) -> Launch {
        self.prefix.clone_from(&spec.prefix);
        let env = spec.env.iter();
        self.environment
            .extend(env.map(|(name, value)| (name.clone(), value.clone())));
        if let Some(libraries) = preload(spec) {
            self.environment.push((PRELOAD.to_owned(), libraries));
        }
        self
    }
}

/// The libraries to preload, with those before them that the study's environment names.
fn preload(spec: &LauncherSpec) -> Option<String> {
    let paths = spec.preload.iter().map(|path| path.display().to_string());
    let named = spec.env.get(PRELOAD).cloned();
    let libraries: Vec<String> = named.into_iter().chain(paths).collect();
    (!spec.preload.is_empty()).then(|| libraries.join(":"))
}

impl RunningProxy {
    /// Proves that the proxy was started through a launcher as far as that shows: every library is mapped
    /// into it. A program that is linked statically, or that has privileges of its own, ignores
    /// LD_PRELOAD without a word. Variables do not show: nginx writes its title over them.
    ///
    /// # Errors
    /// [`SutError::Launcher`] with what is missing.
    pub fn was_started_through(&self, name: &str, spec: &LauncherSpec) -> Result<(), SutError> {
        let pid = self.master_pid();
        let refuse = |what: String| {
            Err(SutError::Launcher {
                name: name.to_owned(),
                what,
            })
        };
        let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        for library in &spec.preload {
            let real = fs::canonicalize(library).unwrap_or_else(|_| library.clone());
            let real = real.display().to_string();
            if !maps.lines().any(|line| line.ends_with(&real)) {
                return refuse(format!(
                    "{} was not loaded into process {pid}: a program that is linked statically \
                     ignores {PRELOAD}",
                    library.display()
                ));
            }
        }
        Ok(())
    }
}
