//! Configuration written for one arm, for any proxy.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_model::record::AskedRecord;
use weir_model::study::{ProxyKind, ProxyRole, file_target};

use crate::content::write_content;
use crate::own::OwnCopy;
use crate::request_line;
use crate::route_match::RouteMatch;
use crate::user::WorkerUser;
use crate::work_folder::{let_workers_list, make_folder};
use crate::{SutError, Task};

/// Folders of a prefix.
const FOLDERS: [&str; 6] = ["", "conf", "logs", "temp", "files", "run"];

/// A configuration that was written, and its prefix: a folder that holds all that this proxy reads and writes.
///
/// ```text
/// conf/             what weir wrote, or the copy of what the user wrote, and certificate and key of a TLS listener
/// files/            for static files      logs/output   what the program printed
/// temp/             its temporary files   run/          sockets and process numbers
/// ```
///
/// The program is started in the prefix, and paths in the configuration are relative to it if the proxy's language
/// allows that, so the configurations of two arms differ only in their settings and addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    pub kind: ProxyKind,
    pub prefix: PathBuf,
    /// Path of the main file, below the prefix.
    pub file: PathBuf,
    pub listen: SocketAddr,
    pub tls_listen: Option<SocketAddr>,
    /// Path of the proxy's error log, below the prefix; `None` if the proxy only prints its errors.
    pub error_log: Option<PathBuf>,
    /// Path of the file for standard output, below the prefix, for a proxy that logs requests to it; `None` if it goes
    /// to [`Configuration::output`].
    pub stdout: Option<PathBuf>,
    /// Path of the request log that weir has the proxy write, below the prefix; `None` if there is none.
    pub request_log: Option<PathBuf>,
    /// True if the proxy listens with SO_REUSEPORT, so that the kernel does not keep others from its port.
    pub shares_port: bool,
    /// Number of processes besides the main one when the proxy is ready; 0 if it has none.
    pub workers: usize,
    /// Arguments of the command line and variables of the environment that settings lead to.
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// Copy of the user's configuration, if this is one.
    pub own: Option<Arc<OwnCopy>>,
    /// The user's files as they were read; empty if weir wrote the configuration.
    pub originals: Vec<(PathBuf, String)>,
    /// Answer of the user's files to each ask of [`crate::UserConfiguration::asks`], with the address to which the
    /// copy's requests are sent.
    pub asked: Vec<(SocketAddr, AskedRecord)>,
    /// Ways that the asks' requests take through the copy, each once.
    pub route_matches: Vec<RouteMatch>,
}

/// Changes to a user's configuration, as unified diffs of the user's own files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Diff from the user's files to the arm's.
    pub forward: String,
    /// Diff from the arm's files back to the user's.
    pub revert: String,
}

impl Configuration {
    /// Creates the folders of a prefix, and their content that does not depend on the proxy: pages, certificate and
    /// key. `file` is the main file's name, `user` the user that the workers become. The workers may pass through all
    /// folders but that of the configuration, which only the master reads.
    pub fn prepare(
        task: &Task<'_>,
        file: &str,
        user: Option<&WorkerUser>,
    ) -> Result<Configuration, SutError> {
        let Task { prefix, site, .. } = *task;
        for folder in FOLDERS {
            let path = prefix.join(folder);
            if !path.is_dir() {
                make_folder(&path, user.filter(|_| folder != "conf"))?;
            }
        }
        // Absolute, since the proxy is started from elsewhere.
        let prefix = fs::canonicalize(prefix).map_err(SutError::file("read", prefix))?;
        if let ProxyRole::StaticFiles { size } = site.role {
            let files = prefix.join("files");
            write_files(&files, *size, site.sizes, user)?;
            let_workers_list(&files, user)?;
        }
        if let Some(tls) = site.tls {
            tls.certificate.copy_to(&prefix.join("conf"))?;
        }
        Ok(Configuration {
            kind: task.kind,
            prefix,
            file: Path::new("conf").join(file),
            listen: site.listen,
            tls_listen: site.tls.map(|tls| tls.listen),
            error_log: None,
            stdout: None,
            request_log: site.request_log.then(|| request_line::FILE.into()),
            shares_port: false,
            workers: 0,
            arguments: Vec::new(),
            environment: Vec::new(),
            own: None,
            originals: Vec::new(),
            asked: Vec::new(),
            route_matches: Vec::new(),
        })
    }

    /// Returns the kind of the proxy.
    pub fn kind(&self) -> ProxyKind {
        self.kind
    }

    /// Returns the folder that holds all that this proxy reads and writes.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Returns the path of the main configuration file.
    pub fn file(&self) -> PathBuf {
        self.prefix.join(&self.file)
    }

    /// Returns all files of the configuration below the prefix, in the order in which they are read.
    pub fn files(&self) -> Vec<PathBuf> {
        match &self.own {
            Some(own) => own.paths().map(Path::to_owned).collect(),
            None => vec![self.file.clone()],
        }
    }

    /// Returns the address for requests in clear, or the first other one if there is none.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Returns all addresses for requests, each once.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        std::iter::once(self.listen)
            .chain(self.tls_listen)
            .chain(self.asked.iter().map(|(at, _)| *at))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// Returns the answer of the user's configuration to each ask of a copy, with the address to which the copy's
    /// requests are sent, in the order of the asks; empty if weir wrote the configuration.
    pub fn asked(&self) -> &[(SocketAddr, AskedRecord)] {
        &self.asked
    }

    /// Returns the address for requests over TLS, if there is one.
    pub fn tls_listen(&self) -> Option<SocketAddr> {
        self.tls_listen
    }

    /// Returns the path of the proxy's error log, or else of the file with what it prints.
    pub fn error_log(&self) -> PathBuf {
        match &self.error_log {
            Some(log) => self.prefix.join(log),
            None => self.output(),
        }
    }

    /// Returns the path of the file with what the program printed since it was last started.
    pub fn output(&self) -> PathBuf {
        self.prefix.join("logs/output")
    }

    /// Returns the path of the administration socket, for a proxy that has one.
    pub(crate) fn admin_socket(&self) -> PathBuf {
        self.prefix.join(ADMIN_SOCKET)
    }

    /// Returns the changes to a user's configuration; `None` if weir wrote the configuration.
    pub fn patch(&self) -> Option<&Patch> {
        self.own.as_ref().map(|copy| &copy.patch)
    }

    /// Returns the user's files that this is a copy of, as they were read, the main one first; empty if weir wrote the
    /// configuration.
    pub fn originals(&self) -> &[(PathBuf, String)] {
        &self.originals
    }

    /// Returns the configuration's files by name, the main one first, without certificates and keys. Files of a copy
    /// are named by their paths below the prefix.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn texts(&self) -> Result<Vec<(String, String)>, SutError> {
        if let Some(own) = &self.own {
            return Ok(own.texts());
        }
        let file = self.file();
        let text = fs::read_to_string(&file).map_err(SutError::file("read", &file))?;
        let name = self.file.file_name().unwrap_or_default();
        Ok(vec![(name.to_string_lossy().into_owned(), text)])
    }

    /// Rewrites a message of the proxy's: names of copies become those of the user's files.
    pub(crate) fn name_user_files(&self, words: &str) -> String {
        match &self.own {
            Some(own) => own.name_user_files(&self.prefix, words),
            None => words.to_owned(),
        }
    }

    /// Returns the error for a configuration that the proxy refuses, with the proxy's own words.
    pub fn refused(&self, words: &str) -> SutError {
        let copy = self.own.as_ref();
        SutError::Refused {
            kind: self.kind,
            file: copy.map_or_else(|| self.file(), |copy| copy.user_file()),
            words: self.name_user_files(words),
            change: copy.map(|copy| copy.shown_change()),
        }
    }

    pub fn write(&self, text: &str) -> Result<(), SutError> {
        let file = self.file();
        weir_files::write(&file, text).map_err(SutError::file("write", file))
    }
}

/// Path of the administration socket, relative to the prefix: proxies are started there, and a path from the root may
/// be longer than a socket's address (108 bytes, unix(7)).
pub const ADMIN_SOCKET: &str = "run/admin.sock";

/// Writes the page of a proxy that serves files, and files of other sizes beside it, readable by its workers.
fn write_files(
    folder: &Path,
    page: u64,
    sizes: &[u64],
    workers: Option<&WorkerUser>,
) -> Result<(), SutError> {
    let contents = sizes.iter().map(|&size| (file_target(size), size));
    for (target, size) in std::iter::once(("/index.html".to_owned(), page)).chain(contents) {
        let file = folder.join(target.trim_start_matches('/'));
        let written = write_content(&file, size).and_then(|()| match workers {
            Some(user) => user.may_read(&file),
            None => Ok(()),
        });
        written.map_err(SutError::file("write", file))?;
    }
    Ok(())
}
