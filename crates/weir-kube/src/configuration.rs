//! The configuration of kubectl. It names programs that are started and servers that get credentials, so it is read
//! only if nobody else could have written it or a file that it names.

use std::env;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use kube::config::Kubeconfig;
use weir_files::only_ours_file_named;

use crate::error::KubeError;

/// Maximum length of a configuration in bytes, with what it names.
const LONGEST: u64 = 16 << 20;

/// Returns the files of the user's configuration, KUBECONFIG or `~/.kube/config`, and all files that those name, as far
/// as they can be read. None of them has been checked.
pub fn configuration_files() -> Vec<PathBuf> {
    let files = own_files();
    let named = files
        .iter()
        .filter(|path| path.is_file())
        .filter_map(|path| Kubeconfig::read_from(path).ok())
        .flat_map(named_files)
        .collect();
    [files.clone(), named].concat()
}

/// Reads this file, or the user's own files.
pub(crate) fn read(file: Option<&Path>) -> Result<Kubeconfig, KubeError> {
    let files = file.map_or_else(own_files, |file| vec![file.to_owned()]);
    let unreadable =
        |error: kube::config::KubeconfigError| KubeError::NoConfiguration(error.to_string());
    files.iter().try_fold(Kubeconfig::default(), |all, file| {
        // One that is missing is told by whoever reads it.
        if file.symlink_metadata().is_ok() && !is_handed_over(file) {
            must_be_ours(file)?;
        }
        let next = Kubeconfig::read_from(file).map_err(unreadable)?;
        all.merge(next).map_err(unreadable)
    })
}

/// Fails if others could have written the keys, tokens or programs of a context.
pub(crate) fn check_named_files(
    configuration: &Kubeconfig,
    context: &str,
) -> Result<(), KubeError> {
    let mut contexts = configuration.contexts.iter();
    let chosen = contexts
        .find(|one| one.name == context)
        .and_then(|one| one.context.clone())
        .unwrap_or_default();
    let mut meant = configuration.clone();
    meant.clusters.retain(|one| one.name == chosen.cluster);
    meant.auth_infos.retain(|one| Some(&one.name) == chosen.user.as_ref());
    let named = named_files(meant);
    // One that is missing is told by whoever reads it.
    let mut there = named.iter().filter(|path| path.symlink_metadata().is_ok());
    there.try_for_each(|path| must_be_ours(path))
}

fn must_be_ours(file: &Path) -> Result<(), KubeError> {
    only_ours_file_named(file).map_err(|why| {
        KubeError::NoConfiguration(format!("{why}: let nobody else write it (chmod go-w)"))
    })?;
    if fs::metadata(file).is_ok_and(|found| found.len() > LONGEST) {
        let words = format!("{} is longer than {LONGEST} bytes", file.display());
        return Err(KubeError::NoConfiguration(words));
    }
    Ok(())
}

fn own_files() -> Vec<PathBuf> {
    let named = env::var_os("KUBECONFIG").unwrap_or_default();
    let named: Vec<PathBuf> =
        env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect();
    if !named.is_empty() {
        return named;
    }
    env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect()
}

/// Returns true if the file is a pipe opened by the process that started weir, such as a shell's `<(…)`.
fn is_handed_over(file: &Path) -> bool {
    file.starts_with("/dev/fd") && fs::metadata(file).is_ok_and(|found| found.file_type().is_fifo())
}

/// Returns the files that clusters and users name, except programs that are searched for in PATH.
fn named_files(configuration: Kubeconfig) -> Vec<PathBuf> {
    let mut files: Vec<_> = configuration
        .clusters
        .into_iter()
        .filter_map(|one| one.cluster)
        .map(|one| one.certificate_authority)
        .collect();
    let users = configuration.auth_infos.into_iter();
    for user in users.filter_map(|one| one.auth_info) {
        let provider = user.auth_provider;
        let provided = provider.and_then(|mut it| it.config.remove("cmd-path"));
        let programs = [user.exec.and_then(|exec| exec.command), provided];
        files.extend([user.client_certificate, user.client_key, user.token_file]);
        files.extend(programs.map(|program| program.filter(|it| it.contains('/'))));
    }
    files.into_iter().flatten().map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::cluster::Cluster;

    /// The user's program creates a file when it runs; nothing listens at the server's address.
    #[test]
    fn a_configuration_that_others_could_have_written_starts_nothing() {
        let outer = tempfile::tempdir().unwrap();
        let at = |name: &str| outer.path().join(name);
        let set = |name, mode| fs::set_permissions(at(name), Permissions::from_mode(mode)).unwrap();
        fs::create_dir(at("own")).unwrap();
        let program = format!("#!/bin/sh\necho >> {}\necho '{{}}'\n", at("ran").display());
        fs::write(at("own/login"), program).unwrap();
        let text = format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n\
             clusters: [{{name: a, cluster: {{server: \"http://127.0.0.1:1\", certificate-authority: {}}}}}]\n\
             users: [{{name: a, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, \
             interactiveMode: Never, command: {}}}}}}}]\n",
            at("ca").display(),
            at("own/login").display()
        );
        fs::write(at("own/config"), text).unwrap();
        fs::write(at("ca"), "").unwrap();
        symlink("own/config", at("link")).unwrap();
        #[rustfmt::skip]
        let rows: [(&str, &str, u32, bool); 9] = [
            ("own/config", "own/config", 0o600, true), ("link", "own/config", 0o600, true),
            ("own/config", "own/config", 0o666, false), ("link", "own/config", 0o620, false),
            ("own/config", "own", 0o777, false), ("link", "own", 0o777, false),
            ("own/config", "own/login", 0o777, false), ("own/config", "ca", 0o666, false), ("link", "", 0o777, false),
        ];
        for (file, opened, mode, is_used) in rows {
            for name in ["", "own", "own/config", "ca", "own/login"] {
                set(name, 0o700);
            }
            set(opened, mode);
            let target = "kubernetes".parse().unwrap();
            let error = Cluster::connect(Some(&at(file)), &target, true).unwrap_err();
            let row = format!("{file}: {opened} {mode:o}: {error}");
            assert_eq!(row.contains("(chmod go-w)"), !is_used, "{row}");
            assert_eq!(fs::remove_file(at("ran")).is_ok(), is_used, "{row}");
        }
        let missing = read(Some(&at("none"))).unwrap_err().to_string();
        assert!(!missing.contains("chmod"), "{missing}");
        // A pod's projected volume: links in a folder like /tmp.
        set("", 0o1777);
        only_ours_file_named(&at("link")).unwrap();
    }
}
