//! Network namespaces without root: if this user may have a user namespace, weir moves into one before anything else.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::process::geteuid;
use weir_host::journal::Journal;
use weir_host::{enter_user_namespace, may_have_networks};
use weir_record::read_header;

use crate::commands::report::RUNS;
use crate::failure::Failure;

/// Hidden subcommand that tests if a user namespace helps.
const TRY: &str = "try-user-namespace";
/// Variable whose value 0 prevents user namespaces: some sites log or forbid them.
const VARIABLE: &str = "WEIR_USER_NAMESPACE";

/// Gives this process network namespaces if it has none and its user may have them. Must be called before there is a
/// second thread.
pub(super) fn begin() {
    let is_unwanted = std::env::var_os(VARIABLE).is_some_and(|value| value == "0");
    if geteuid().is_root() || is_unwanted || may_have_networks().is_ok() {
        return;
    }
    // In another process first: there is no way back out of a namespace that turns out to be of no use.
    let mut attempt = Command::new("/proc/self/exe");
    attempt.arg(TRY).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if attempt.status().is_ok_and(|status| status.success()) {
        weir_files::note_what_is_root_s(paths());
        // What worked there works here; if not, the run says that it has no namespaces, and why.
        let _ = enter_user_namespace();
    }
}

/// Folders that weir will want to know the owners of: those of its own, whatever the command line may name, and
/// programs of a run that it may go on with.
fn paths() -> impl Iterator<Item = PathBuf> {
    let standard = ["HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"]
        .into_iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from)
        .chain([".".into(), RUNS.into(), std::env::temp_dir(), Journal::default_folder()]);
    let words = std::env::args_os().skip(1).map(|word| {
        let text = word.to_string_lossy();
        PathBuf::from(text.rsplit('=').next().unwrap_or_default())
    });
    let words: Vec<PathBuf> = words.collect();
    let mut programs = Vec::new();
    for header in words.iter().filter_map(|word| read_header(word).ok()) {
        programs.extend(header.study.programs().map(Path::to_owned));
    }
    standard.chain(words).chain(programs).chain(weir_kube::configuration_files())
}

/// Enters a user namespace, and fails if that brings no network namespaces.
pub(super) fn attempt() -> Result<ExitCode, Failure> {
    enter_user_namespace().map_err(Failure::failed)?;
    may_have_networks().map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}
