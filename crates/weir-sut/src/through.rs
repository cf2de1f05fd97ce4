//! Launcher of a proxy's process: a prefix, an environment, libraries to preload. Missing parts are found before
//! anything is started, and the preloaded libraries are verified afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use weir_model::study::LauncherSpec;

use crate::installed::{executable_at, find_on_path};
use crate::launch::Launch;
use crate::{RunningProxy, SutError};

/// Variable with libraries to load before all others (ld.so(8)).
const PRELOAD: &str = "LD_PRELOAD";

/// Returns a description of the first part of a launcher that is missing on this host; `None` if nothing is missing.
pub fn launcher_missing(spec: &LauncherSpec) -> Option<String> {
    if let Some(program) = spec.prefix.first().filter(|program| find_program(program).is_none()) {
        return Some(format!("`{program}` is not installed on the proxies' host"));
    }
    let mut libraries = spec.preload.iter().map(AsRef::as_ref);
    let missing = libraries.find(|library: &&Path| fs::File::open(library).is_err())?;
    Some(format!("the library {} cannot be read on the proxies' host", missing.display()))
}

/// Returns the absolute path of a launcher's program.
fn find_program(program: &str) -> Option<PathBuf> {
    let path = Path::new(program);
    match path.components().count() {
        1 => find_on_path(path),
        _ => executable_at(path),
    }
}

impl Launch {
    /// Adds a launcher's prefix, environment and libraries.
    #[must_use]
    pub fn through(mut self, spec: &LauncherSpec) -> Launch {
        self.prefix.clone_from(&spec.prefix);
        // It is run from the proxy's folder, and looked for on PATH alone there.
        if let Some(program) = self.prefix.first_mut()
            && let Some(path) = find_program(program)
            && let Ok(path) = path.into_os_string().into_string()
        {
            *program = path;
        }
        let env = spec.env.iter();
        self.environment.extend(env.map(|(name, value)| (name.clone(), value.clone())));
        if let Some(libraries) = preload(spec) {
            self.environment.push((PRELOAD.to_owned(), libraries));
        }
        self
    }
}

/// Returns the libraries to preload, behind those that the study's environment names.
fn preload(spec: &LauncherSpec) -> Option<String> {
    let paths = spec.preload.iter().map(|path| path.display().to_string());
    let libraries: Vec<String> = spec.env.get(PRELOAD).cloned().into_iter().chain(paths).collect();
    (!spec.preload.is_empty()).then(|| libraries.join(":"))
}

impl RunningProxy {
    /// Verifies that the proxy was started through a launcher, as far as that is visible: every library is mapped into
    /// its process. A program that is linked statically, or that has privileges of its own, silently ignores
    /// LD_PRELOAD. Variables cannot be verified: nginx writes its title over them.
    ///
    /// # Errors
    /// [`SutError::Launcher`] with the missing library.
    pub fn was_started_through(&self, name: &str, spec: &LauncherSpec) -> Result<(), SutError> {
        let pid = self.master_pid();
        let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        for library in &spec.preload {
            let real =
                fs::canonicalize(library).unwrap_or_else(|_| library.clone()).display().to_string();
            if !maps.lines().any(|line| line.ends_with(&real)) {
                let words = format!(
                    "{} was not loaded into process {pid}: a program that is linked statically \
                     ignores {PRELOAD}",
                    library.display()
                );
                return Err(SutError::Launcher { name: name.to_owned(), what: words });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the command line in front of the proxy's, for a launcher with a prefix.
    fn prefix(words: &[&str]) -> Vec<String> {
        let prefix = words.iter().map(|&word| word.to_owned()).collect();
        let spec = LauncherSpec { prefix, ..LauncherSpec::default() };
        Launch::default().through(&spec).prefix
    }

    #[test]
    fn a_launcher_is_the_program_that_was_found_wherever_it_is_run() {
        let path = find_on_path(Path::new("sh")).unwrap();
        assert!(path.is_absolute());
        let sh = path.display().to_string();
        assert_eq!(prefix(&["sh", "-c", "sh"]), [&*sh, "-c", "sh"]);
        // Below the folder that the tests are run in, as a path of the study's is below weir's.
        let here = std::env::current_dir().unwrap();
        let up = "../".repeat(here.components().count() - 1);
        let below = format!("{up}{}", sh.trim_start_matches('/'));
        let resolved = prefix(&[&below]);
        assert!(Path::new(&resolved[0]).is_absolute(), "{resolved:?}");
        assert!(resolved[0].ends_with(&sh), "{resolved:?}");
        assert_eq!(prefix(&["/nonexistent/nice"]), ["/nonexistent/nice"]);
        assert!(prefix(&[]).is_empty());
    }
}
