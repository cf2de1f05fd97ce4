//! Copies of a user's configuration.
//!
//! `weir-configuration` reads the configuration, applies an arm's settings and makes a copy fit to run beside others.
//! This module handles the copy: it is written below the prefix and nowhere else, its changes are kept
//! as a diff of the user's own files, and messages of the proxy about the copy are rewritten to refer to these.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with};
use weir_configuration::{
    ConfigurationError, Pem, Source, Surroundings, diff, former_line, record,
};
use weir_model::record::{AskedRecord, ReplacedRecord};
use weir_model::study::{AskSpec, ProxyRole};

use crate::certificate::{CERTIFICATE_FILE, KEY_FILE};
use crate::configuration::{Configuration, Patch};
use crate::route_match::RouteMatch;
use crate::shown::replaced_certificate;
use crate::user::WorkerUser;
use crate::{Language, Site, SutError, Task, UserConfiguration};

/// Returns the address that replaces origin servers if the study has none, so that no copy sends requests to the user's
/// servers or any others: a port of the loopback that this process has bound and at which it never listens.
pub fn nobody() -> Result<SocketAddr, SutError> {
    static BOUND: OnceLock<(OwnedFd, SocketAddr)> = OnceLock::new();
    if let Some((_, address)) = BOUND.get() {
        return Ok(*address);
    }
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let bound = bind_to_nobody(any)
        .map_err(|_: Errno| SutError::NoFreePort { address: any.ip(), tries: 1 })?;
    Ok(BOUND.get_or_init(|| bound).1)
}

fn bind_to_nobody(any: SocketAddr) -> Result<(OwnedFd, SocketAddr), Errno> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &any)?;
    let address = SocketAddr::try_from(getsockname(&socket)?)?;
    Ok((socket, address))
}

/// Maximum number of lines of a change that are shown beside a proxy's message.
const SHOWN_LINES: usize = 40;

/// A copy that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCopy {
    /// Files of the copy with their originals, the main one first.
    files: Vec<CopiedFile>,
    pub(crate) patch: Patch,
}

/// One file of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CopiedFile {
    /// Path of the user's file.
    user: PathBuf,
    /// Text of the user's file with the arm's settings in it.
    changed: String,
    /// Path and text of the copy; the path is below the prefix.
    copy: PathBuf,
    text: String,
}

/// A copy in the making.
pub struct Copying<'a> {
    site: &'a Site<'a>,
    own: UserConfiguration<'a>,
    /// User's files as they are, and with the arm's settings.
    user: Source,
    changed: Source,
    pub configuration: Configuration,
    certificate: Option<[PathBuf; 2]>,
    /// Address of the origin server that replaces the user's servers.
    origin: SocketAddr,
}

impl<'a> Copying<'a> {
    /// Prepares the prefix for a copy of `changed`: `user`'s files with the settings applied.
    pub fn begin(
        task: &Task<'a>,
        own: UserConfiguration<'a>,
        [user, changed]: [Source; 2],
        workers: Option<&WorkerUser>,
    ) -> Result<Copying<'a>, SutError> {
        if task.site.role == &ProxyRole::ReverseProxy {
            task.origin()?;
        }
        let configuration = Configuration::prepare(task, "", workers)?;
        let folder = configuration.prefix().join("conf");
        let files = [CERTIFICATE_FILE, KEY_FILE].map(|name| folder.join(name));
        Ok(Copying {
            site: task.site,
            own,
            user,
            changed,
            configuration,
            certificate: task.site.tls.map(|_| files),
            origin: task.site.origin.map_or_else(nobody, Ok)?,
        })
    }

    /// Returns the user's files with the arm's settings.
    pub fn changed(&self) -> &Source {
        &self.changed
    }

    /// Returns the environment that the copy needs in order to run here.
    pub fn surroundings(&self, workers: Option<&'a WorkerUser>) -> Surroundings<'_> {
        let pem = self.certificate.as_ref().map(|[certificate, key]| Pem { certificate, key });
        Surroundings {
            prefix: self.configuration.prefix(),
            asks: self.own.asks.to_vec(),
            certificate: pem,
            origin: self.origin,
            user: workers.map(|user| (&*user.name, &*user.group)),
        }
    }

    /// Writes the copy. Its main file is called `name`, or else as the user's.
    pub fn finish(
        self,
        language: &dyn Language,
        mut copy: Source,
        name: Option<&str>,
    ) -> Result<Configuration, SutError> {
        let (asked, route_matches) = self.look_up_asks(language)?;
        if let (Some(name), Some(main)) = (name, copy.files.first_mut()) {
            main.path.set_file_name(name);
        }
        let conf = Path::new("conf");
        let folder = self.configuration.prefix().join(conf);
        let write = copy.write_below(&folder);
        write.map_err(SutError::file("write", &folder))?;
        let names = copy.names().into_iter();
        let texts = copy.files.into_iter().map(|file| file.text);
        let files = names.zip(texts).zip(&self.changed.files);
        let files: Vec<CopiedFile> = files
            .map(|((name, text), changed)| CopiedFile {
                user: changed.path.clone(),
                changed: changed.text.clone(),
                copy: conf.join(name),
                text,
            })
            .collect();
        let patch = Patch {
            forward: diff(&self.user, &self.changed),
            revert: diff(&self.changed, &self.user),
        };
        let originals = self.user.files.into_iter().map(|file| (file.path, file.text)).collect();
        let main = files.first().map(|file| file.copy.clone());
        let first = |tls: bool| {
            let mut of_kind = asked.iter().filter(|(_, record)| record.tls == tls);
            of_kind.next().map(|(at, _)| *at)
        };
        Ok(Configuration {
            file: main.unwrap_or_default(),
            listen: first(false).or(first(true)).unwrap_or(self.site.listen),
            tls_listen: first(true),
            own: Some(Arc::new(OwnCopy { files, patch })),
            originals,
            asked,
            route_matches,
            ..self.configuration
        })
    }

    /// Returns the user's parts that answer each ask, with the address to which the copy's requests are sent. If two
    /// asks use one listener, the address is that of the first.
    fn look_up_asks(&self, language: &dyn Language) -> Result<(Places, Vec<RouteMatch>), SutError> {
        let mut addresses: BTreeMap<usize, SocketAddr> = BTreeMap::new();
        let (mut asked, mut route_matches) = (Vec::new(), Vec::new());
        for ask in self.own.asks {
            // The place in the file is the user's; the listener is that of the copy.
            let matches = language.look_up(&self.user, &ask.spec)?;
            let in_copy = language.look_up(&self.changed, &ask.spec)?;
            let replaced = find_replaced(language, [&self.user, &self.changed], &ask.spec)?;
            let matched = record(&self.user, &ask.spec, &matches);
            if let (Some(first), Some(record)) = (in_copy.first(), matched) {
                let record = AskedRecord { replaced, ..record };
                let at = *addresses.entry(first.index).or_insert(ask.at);
                asked.push((at, record));
                let all = in_copy.iter().map(|asked| RouteMatch::of(at, asked));
                for route_match in all {
                    if !route_matches.contains(&route_match) {
                        route_matches.push(route_match);
                    }
                }
            }
        }
        Ok((asked, route_matches))
    }
}

/// Finds the parts that a copy of the changed files replaces, with their places in the unchanged files.
pub(crate) fn find_replaced(
    language: &dyn Language,
    [user, changed]: [&Source; 2],
    ask: &AskSpec,
) -> Result<Vec<ReplacedRecord>, ConfigurationError> {
    let mut records = language.replaced(changed, ask)?;
    records.extend(replaced_certificate(language, changed, ask)?);
    for record in &mut records {
        let original = &mut record.original;
        let mut files = user.files.iter().zip(&changed.files).filter(|(before, after)| {
            before.path == original.file && before.text != after.text && original.line > 0
        });
        if let Some((before, after)) = files.next() {
            original.line = former_line(&before.text, &after.text, original.line);
        }
    }
    Ok(records)
}

/// Answers to asks, each with the address of the copy's listener.
type Places = Vec<(SocketAddr, AskedRecord)>;

impl OwnCopy {
    /// Returns the path of the user's main file.
    pub(crate) fn user_file(&self) -> PathBuf {
        let main = self.files.first();
        main.map_or_else(PathBuf::new, |file| file.user.clone())
    }

    /// Returns the paths of the copy's files, below the prefix.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| &*file.copy)
    }

    /// Returns the paths of the copy's files, below the prefix, with their texts.
    pub(crate) fn texts(&self) -> Vec<(String, String)> {
        self.files.iter().map(|file| (file.copy.display().to_string(), file.text.clone())).collect()
    }

    /// Rewrites a proxy's message about the copy to refer to the user's files: their paths, and their lines once the
    /// arm's settings are in them.
    pub(crate) fn name_user_files(&self, prefix: &Path, words: &str) -> String {
        let spellings = self.spellings(prefix);
        let (mut rewritten, mut at) = (String::new(), 0);
        while let Some(next) = words[at..].chars().next() {
            let spelling = spellings.iter().find(|(path, _)| is_path_at(words, at, path));
            let (instead, length) = match spelling {
                Some((path, file)) => file.name_user_file(path, &words[at..]),
                None => (next.to_string(), next.len_utf8()),
            };
            rewritten += &instead;
            at += length;
        }
        rewritten
    }

    /// Returns the paths by which a message may name a file of the copy, absolute and below the prefix; longer ones
    /// first, since one may be the beginning of another.
    fn spellings(&self, prefix: &Path) -> Vec<(String, &CopiedFile)> {
        let files = self.files.iter().flat_map(|file| {
            let both = [prefix.join(&file.copy), file.copy.clone()];
            both.map(|path| (path.display().to_string(), file))
        });
        let mut spellings: Vec<_> = files.collect();
        spellings.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        spellings
    }

    /// Returns the change that a proxy's message is about, cut to [`SHOWN_LINES`].
    pub(crate) fn shown_change(&self) -> String {
        let forward = &self.patch.forward;
        let mut lines: Vec<&str> = forward.lines().take(SHOWN_LINES).collect();
        if forward.lines().count() > SHOWN_LINES {
            lines.push("…");
        }
        lines.join("\n")
    }
}

impl CopiedFile {
    /// Returns the user's path and line for the copy's path (spelled `path`) and line at the beginning of a message,
    /// and the length of the latter in bytes.
    fn name_user_file(&self, path: &str, words: &str) -> (String, usize) {
        let user = self.user.display();
        let behind = &words[path.len()..];
        let digits = behind.strip_prefix(':').unwrap_or_default();
        let end = digits.find(|c: char| !c.is_ascii_digit());
        let number = &digits[..end.unwrap_or(digits.len())];
        match number.parse() {
            Ok(line) => {
                (format!("{user}:{}", self.users_line(line)), path.len() + 1 + number.len())
            }
            Err(_) => (user.to_string(), path.len()),
        }
    }

    /// Returns the line of the user's file, with the arm's settings in it, that became a line of the copy.
    fn users_line(&self, line: usize) -> usize {
        former_line(&self.changed, &self.text, line)
    }
}

/// Returns true if a path stands at a byte of a message, and is not part of a longer path.
fn is_path_at(words: &str, at: usize, path: &str) -> bool {
    let Some(behind) = words[at..].strip_prefix(path) else {
        return false;
    };
    let mut before = words[..at].chars();
    // A dot before it is of a name too; one behind it may end a sentence.
    let begins = !before.next_back().is_some_and(|c| c == '.' || is_of_name(c));
    begins && !behind.strip_prefix('.').unwrap_or(behind).starts_with(is_of_name)
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '_' | '-')
}

/// Creates an error about a file as a whole.
pub fn about(file: &Path, what: impl Into<String>) -> ConfigurationError {
    ConfigurationError::at(file, "", 0, what)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn file(user: &str, copy: &str, changed: &str, text: &str) -> CopiedFile {
        CopiedFile {
            user: user.into(),
            changed: changed.to_owned(),
            copy: copy.into(),
            text: text.to_owned(),
        }
    }

    fn own(files: Vec<CopiedFile>) -> OwnCopy {
        let patch = Patch { forward: String::new(), revert: String::new() };
        OwnCopy { files, patch }
    }

    #[test]
    fn nobody_listens_where_nobody_is_to_be_asked() {
        let address = nobody().unwrap();
        assert_eq!(nobody().unwrap(), address);
        let refused = TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        let error = TcpListener::bind(address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn words_about_a_copy_are_told_of_the_user_s_file_and_line() {
        let copy = own(vec![
            file("/etc/a.cfg", "conf/a.cfg", "x\ny\nz\n", "x\nadded\ny\nz\n"),
            file("/etc/a.cfg.d/b", "conf/a.cfg.d/b", "x\n", "x\n"),
        ]);
        for (message, expected) in [
            ("[conf/a.cfg:3] : y; [/arm/conf/a.cfg:4]", "[/etc/a.cfg:2] : y; [/etc/a.cfg:3]"),
            ("in conf/a.cfg.d/b:1", "in /etc/a.cfg.d/b:1"),
            ("conf/a.cfg: no line", "/etc/a.cfg: no line"),
            ("conf/a.cfg:99999 and on", "/etc/a.cfg:99999 and on"),
            ("of nothing", "of nothing"),
        ] {
            assert_eq!(copy.name_user_files(Path::new("/arm"), message), expected);
        }
    }

    #[test]
    fn a_path_of_the_user_s_that_looks_like_the_copy_s_is_told_once() {
        let changed = "x\ny\n";
        let text = "added\nx\ny\n";
        let copy = own(vec![file("/opt/conf/a.cfg", "conf/a.cfg", changed, text)]);
        for (words, expected) in [
            ("in /arm/conf/a.cfg:3", "in /opt/conf/a.cfg:2"),
            ("conf/a.cfg:3: ž", "/opt/conf/a.cfg:2: ž"),
            ("look at conf/a.cfg.", "look at /opt/conf/a.cfg."),
            // Others than the copy.
            ("/opt/conf/a.cfg:3", "/opt/conf/a.cfg:3"),
            ("/arm/conf/a.cfg.bak:3", "/arm/conf/a.cfg.bak:3"),
            ("my-conf/a.cfg", "my-conf/a.cfg"),
        ] {
            assert_eq!(copy.name_user_files(Path::new("/arm"), words), expected);
        }
    }
}
