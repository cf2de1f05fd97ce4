//! The configuration of kubectl: it names programs that are started and servers that credentials go to, so it is read only
//! where nobody else could have written it or a file that it names.

use std::env;
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use kube::config::Kubeconfig;
use weir_files::only_ours_file_named;

use crate::error::KubeError;

/// The files of the user's configuration, KUBECONFIG or `~/.kube/config`, as far as they can be read, and all files that they
/// name. Nothing of them is believed yet.
pub fn configuration_files() -> Vec<PathBuf> {
    let own = own_files();
    let regular = own.iter().filter(|path| path.is_file());
    let read = regular.filter_map(|path| Kubeconfig::read_from(path).ok());
    let named = read.flat_map(named_files).collect();
    [own.clone(), named].concat()
}

/// Reads these files, or the user's own.
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

/// Refuses a context whose keys, tokens or programs others could have written.
pub(crate) fn check_named_files(
    configuration: &Kubeconfig,
    context: &str,
) -> Result<(), KubeError> {
    let mut contexts = configuration.contexts.iter();
    let chosen = contexts.find(|one| one.name == context);
    let chosen = chosen
        .and_then(|one| one.context.clone())
        .unwrap_or_default();
    let mut meant = configuration.clone();
    meant.clusters.retain(|one| one.name == chosen.cluster);
    meant
        .auth_infos
        .retain(|one| Some(&one.name) == chosen.user.as_ref());
    let named = named_files(meant);
    // One that is missing is told by whoever reads it.
    let mut there = named.iter().filter(|path| path.symlink_metadata().is_ok());
    there.try_for_each(|path| must_be_ours(path))
}

fn must_be_ours(file: &Path) -> Result<(), KubeError> {
    only_ours_file_named(file).map_err(|why| {
        KubeError::NoConfiguration(format!("{why}: let nobody else write it (chmod go-w)"))
    })
}

fn own_files() -> Vec<PathBuf> {
    let named = env::var_os("KUBECONFIG").unwrap_or_default();
    let named: Vec<PathBuf> = env::split_paths(&named)
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    if !named.is_empty() {
        return named;
    }
    let home = env::home_dir().map(|home| home.join(".kube/config"));
    home.into_iter().collect()
}

/// Whether it is a pipe that whoever started weir has opened, as `<(…)` of a shell is.
fn is_handed_over(file: &Path) -> bool {
    file.starts_with("/dev/fd") && fs::metadata(file).is_ok_and(|found| found.file_type().is_fifo())
}

/// Files that clusters and users name. A program that is looked for along PATH is not among them.
fn named_files(configuration: Kubeconfig) -> Vec<PathBuf> {
    let clusters = configuration.clusters.into_iter();
    let clusters = clusters.filter_map(|one| one.cluster);
    let mut files: Vec<_> = clusters.map(|one| one.certificate_authority).collect();
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

    /// Its user's program says by a file that it has run; nobody listens at the server's address.
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
