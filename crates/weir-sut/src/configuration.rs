//! A configuration that was written for one arm, whatever the proxy.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_model::record::AskedRecord;
use weir_model::study::{ProxyKind, ProxyRole, file_target};

use crate::content::write_content;
use crate::logged;
use crate::met::Met;
use crate::own::OwnCopy;
use crate::user::WorkerUser;
use crate::work_folder::make_folder;
use crate::{SutError, Task};

/// Folders of a prefix.
const FOLDERS: [&str; 6] = ["", "conf", "logs", "temp", "files", "run"];

/// A configuration that was written, and the prefix it lives in: a folder that holds all that this
/// proxy reads and writes.
///
/// ```text
/// conf/             what weir wrote, or the copy of what the user wrote, and certificate and key for a listener with TLS
/// files/            for static files      logs/output   what the program printed
/// temp/             its temporary files   run/          sockets and process numbers
/// ```
///
/// The program is started in the prefix, and paths in the configuration are relative to it where the
/// proxy's language allows that, so the configurations of two arms differ in their settings and
/// addresses alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    pub(crate) kind: ProxyKind,
    pub(crate) prefix: PathBuf,
    /// Main file, below the prefix.
    pub(crate) file: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) tls_listen: Option<SocketAddr>,
    /// Log that the proxy writes its troubles to, below the prefix; `None`: what it prints.
    pub(crate) error_log: Option<PathBuf>,
    /// Where its standard output goes, below the prefix, for a proxy that logs requests to it; `None`:
    /// to what it prints.
    pub(crate) stdout: Option<PathBuf>,
    /// The log that weir has it write for itself, below the prefix; `None`: none.
    pub(crate) request_log: Option<PathBuf>,
    /// Whether it listens with SO_REUSEPORT, so that the kernel does not keep others from its port.
    pub(crate) shares_port: bool,
    /// Processes besides the main one that there will be when it is ready; 0 where it has none.
    pub(crate) workers: usize,
    /// Arguments and variables of the environment that settings lead to.
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    /// What it is a copy of, when it is one of the user's.
    pub(crate) own: Option<Arc<OwnCopy>>,
    /// The user's files as they were read; empty: weir wrote it.
    pub(crate) originals: Vec<(PathBuf, String)>,
    /// What each ask of [`crate::Own::asks`] meets in them, and where it is asked for.
    pub(crate) asked: Vec<(SocketAddr, AskedRecord)>,
    /// The ways of the asks' requests in the copy, each once.
    pub(crate) met: Vec<Met>,
}

/// What was changed in a configuration of the user's, as unified diffs of the user's own files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// From the user's files to the arm's.
    pub forward: String,
    /// And back.
    pub revert: String,
}

impl Configuration {
    /// Makes the folders of a prefix, and what belongs there whatever the proxy: content, certificate
    /// and key. `file` is the main file's name, `user` who the workers become: they may pass through all
    /// folders but that of the configuration, which the master alone reads.
    pub(crate) fn prepare(
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
            write_files(&prefix.join("files"), *size, site.sizes, user)?;
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
            request_log: site.request_log.then(|| logged::FILE.into()),
            shares_port: false,
            workers: 0,
            arguments: Vec::new(),
            environment: Vec::new(),
            own: None,
            originals: Vec::new(),
            asked: Vec::new(),
            met: Vec::new(),
        })
    }

    /// Whose it is.
    pub fn kind(&self) -> ProxyKind {
        self.kind
    }

    /// The folder that holds all that this proxy reads and writes.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The main configuration file.
    pub fn file(&self) -> PathBuf {
        self.prefix.join(&self.file)
    }

    /// All its files below the prefix, in the order in which they are read.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        match &self.own {
            Some(own) => own.paths().map(Path::to_owned).collect(),
            None => vec![self.file.clone()],
        }
    }

    /// Address where it is asked in clear, or where else it is asked first.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// All addresses where it is asked, each once.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let asked = self.asked.iter().map(|(at, _)| *at);
        let all = std::iter::once(self.listen)
            .chain(self.tls_listen)
            .chain(asked);
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// What each ask of a copy meets in the user's configuration, and where the copy is asked for it, in the
    /// order of the asks; empty: weir wrote it.
    pub fn asked(&self) -> &[(SocketAddr, AskedRecord)] {
        &self.asked
    }

    /// Address where it is asked over TLS, if it is.
    pub fn tls_listen(&self) -> Option<SocketAddr> {
        self.tls_listen
    }

    /// Where the proxy tells its troubles: its log, or what it prints.
    pub fn error_log(&self) -> PathBuf {
        match &self.error_log {
            Some(log) => self.prefix.join(log),
            None => self.output(),
        }
    }

    /// What the program printed since it was last started.
    pub fn output(&self) -> PathBuf {
        self.prefix.join("logs/output")
    }

    /// Its socket for administration, for a proxy that has one.
    pub(crate) fn admin_socket(&self) -> PathBuf {
        self.prefix.join(ADMIN_SOCKET)
    }

    /// What was changed in a configuration of the user's; `None`: weir wrote it.
    pub fn patch(&self) -> Option<&Patch> {
        self.own.as_ref().map(|own| &own.patch)
    }

    /// The user's files that it is a copy of, as they were read, the main one first; empty: weir wrote it.
    pub fn originals(&self) -> &[(PathBuf, String)] {
        &self.originals
    }

    /// The configuration's files by name, the main one first, without certificates and keys. Those of a
    /// copy have their paths below the prefix for names.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn texts(&self) -> Result<Vec<(String, String)>, SutError> {
        if let Some(own) = &self.own {
            return Ok(own.texts());
        }
        let file = self.file();
        let text = fs::read_to_string(&file).map_err(SutError::file("read", &file))?;
        let name = self.file.file_name().unwrap_or_default();
        Ok(vec![(name.to_string_lossy().into_owned(), text)])
    }

    /// Words of the proxy's, about the user's files where they are about copies of these.
    pub(crate) fn told(&self, words: &str) -> String {
        match &self.own {
            Some(own) => own.told(&self.prefix, words),
            None => words.to_owned(),
        }
    }

    /// That the proxy refuses it, in its own words.
    pub(crate) fn refused(&self, words: &str) -> SutError {
        let own = self.own.as_ref();
        SutError::Refused {
            kind: self.kind,
            file: own.map_or_else(|| self.file(), |own| own.user_file()),
            words: self.told(words),
            change: own.map(|own| own.shown_change()),
        }
    }

    pub(crate) fn write(&self, text: &str) -> Result<(), SutError> {
        let file = self.file();
        weir_files::write(&file, text).map_err(SutError::file("write", file))
    }
}

/// The socket for administration, relative to the prefix: proxies are started there, and a path to it
/// from the root may be longer than a socket's address (108 bytes, unix(7)).
pub(crate) const ADMIN_SOCKET: &str = "run/admin.sock";

/// The page of a proxy that serves files, and files of other sizes beside it, for its workers to read.
fn write_files(
    folder: &Path,
    page: u64,
    sizes: &[u64],
    workers: Option<&WorkerUser>,
) -> Result<(), SutError> {
    let others = sizes.iter().map(|&size| (file_target(size), size));
    for (target, size) in std::iter::once(("/index.html".to_owned(), page)).chain(others) {
        let file = folder.join(target.trim_start_matches('/'));
        let written = write_content(&file, size).and_then(|()| match workers {
            Some(user) => user.may_read(&file),
            None => Ok(()),
        });
        written.map_err(SutError::file("write", file))?;
    }
    Ok(())
}
