//! nginx's configuration, read as nginx reads it: an include is a path or a glob(7) relative to the
//! folder of the first file (`ngx_conf_include`, `ngx_conf_full_name`).

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_configuration::read_regular_below;
use weir_model::study::ProxyKind;
use weir_nginx::language::{Plain, directives, pattern};
use weir_sut::SutError;

use super::processes::USUAL;
use super::source::Source;
use super::{GatherError, trust};
use crate::configuration::{Configuration, Search, Statement};
use crate::facts::{Facts, Proxy, Reading};

/// Maximum depth of includes: a file that includes itself would never end.
const DEEPEST: usize = 16;
/// Limits for the number of files, each counted as often as it is included, and for their bytes: enough for 25,000
/// servers of 2.5 kB each.
pub(super) const MOST_FILES: usize = 50_000;
pub(super) const MOST_BYTES: usize = 64 << 20;

pub(super) fn read(
    source: &mut Source,
    asked: Option<&Path>,
    facts: &mut Facts,
) -> Result<(), GatherError> {
    facts.nginx_version = version(source, facts.proxy.as_mut());
    let mut reader = Reader {
        base: base(source, asked, facts),
        folder: PathBuf::new(),
        files: Vec::new(),
        bytes: 0,
        unread: Vec::new(),
    };
    let running = facts.proxy.as_ref().and_then(|proxy| proxy.file.clone());
    let file = match asked {
        Some(file) => std::path::absolute(file).unwrap_or_else(|_| file.to_owned()),
        None => running.map_or_else(|| USUAL.into(), PathBuf::from),
    };
    reader.folder = file.parent().unwrap_or(Path::new("/")).to_owned();
    let shown = file.display().to_string();
    let statements = match reader.file(&file, 0) {
        Ok(statements) => statements,
        // Nobody named it, so it is no mistake of the user's that it is not there.
        Err(GatherError::Unreadable { file, source: why }) if asked.is_none() => {
            let subject = format!("nginx's configuration {file}");
            source.unread(subject, format!("{why}: name one with --nginx"));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for (what, why) in reader.unread {
        source.unread(what, why);
    }
    let files = reader.files.len();
    source.looked(Reading::Configuration { file: shown.clone(), files });
    facts.configuration = Some(Configuration { file: shown, files: reader.files, statements });
    Ok(())
}

/// Returns the folder to use as `/`: a proxy in a container has files of its own.
fn base(source: &Source, asked: Option<&Path>, facts: &Facts) -> PathBuf {
    if asked.is_some() {
        return PathBuf::from("/");
    }
    match &facts.proxy {
        Some(proxy) if proxy.own_root => PathBuf::from(format!("/proc/{}/root", proxy.master)),
        _ => source.path("/"),
    }
}

/// Returns the version of the running program or, if none runs, of the installed one.
fn version(source: &mut Source, proxy: Option<&mut Proxy>) -> Option<[u32; 3]> {
    if !source.is_real() {
        return None;
    }
    let program = match proxy {
        Some(proxy) => running_program(source, proxy)?,
        None => None,
    };
    let program = match program {
        Some(program) => program,
        None => noted(source, weir_proxies::locate(ProxyKind::Nginx))?,
    };
    if let Some(why) = trust::against_program(&program) {
        let why = format!("{why}: only a program that is root's or yours alone is asked");
        source.unread("nginx's version", why);
        return None;
    }
    let nginx = noted(source, weir_proxies::find(ProxyKind::Nginx, Some(&program)))?;
    source.looked(Reading::Version {
        program: nginx.program().display().to_string(),
        version: nginx.version().to_owned(),
    });
    let digits = nginx.version().rsplit('/').next().unwrap_or_default();
    let mut parts = digits.split(['.', ' ']).map_while(|part| part.parse().ok());
    Some([parts.next()?, parts.next()?, parts.next()?])
}

fn noted<T>(source: &mut Source, found: Result<T, SutError>) -> Option<T> {
    found.map_err(|error| source.unread("nginx's version", error.to_string())).ok()
}

/// Returns the program of a process: `Some(None)` if it cannot be read, `None` if its file is not the one at that path
/// on this host, so that it cannot be run for its version.
fn running_program(source: &mut Source, proxy: &mut Proxy) -> Option<Option<PathBuf>> {
    let link = format!("/proc/{}/exe", proxy.master);
    let Ok(program) = std::fs::read_link(&link) else {
        return Some(None);
    };
    // Of a container's the path leads to another file here, and of one that was replaced to none or a newer.
    let is_here = match (read_inode(&program), read_inode(Path::new(&link))) {
        (Ok(here), Ok(running)) => here == running,
        _ => false,
    };
    if proxy.own_root || !is_here {
        let why =
            format!("{} is not the file that process {} runs", program.display(), proxy.master);
        source.unread("nginx's version", why);
        return None;
    }
    proxy.program = program.to_str().map(str::to_owned);
    Some(Some(program))
}

/// Reads the numbers of a file's device and inode.
fn read_inode(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

struct Reader {
    base: PathBuf,
    folder: PathBuf,
    files: Vec<String>,
    /// Total size of the files read so far, each counted as often as it is included.
    bytes: usize,
    unread: Vec<(String, String)>,
}

impl Reader {
    fn file(&mut self, file: &Path, depth: usize) -> Result<Vec<Statement>, GatherError> {
        let shown: Arc<str> = file.display().to_string().into();
        let budget = MOST_BYTES.saturating_sub(self.bytes) as u64;
        let bytes = read_regular_below(&self.base, file, budget).map_err(|source| {
            let file = shown.to_string();
            GatherError::Unreadable { file, source }
        })?;
        self.bytes += bytes.len();
        self.files.push(shown.to_string());
        let text = String::from_utf8_lossy(&bytes);
        let tree = directives(&text)
            .map_err(|source| GatherError::Syntax { file: shown.to_string(), source })?;
        let lines: Vec<&str> = text.lines().collect();
        self.statements(tree, (&shown, &lines), depth)
    }

    fn statements(
        &mut self,
        tree: Vec<Plain>,
        (file, lines): (&Arc<str>, &[&str]),
        depth: usize,
    ) -> Result<Vec<Statement>, GatherError> {
        let mut statements = Vec::new();
        for directive in tree {
            let line = lines.get(directive.line - 1).copied();
            let search = Search::of(&directive, line.unwrap_or_default());
            if directive.is_include() {
                statements.extend(self.include(&directive, file, depth)?);
                continue;
            }
            let block = match directive.block {
                Some(block) => Some(self.statements(block, (file, lines), depth)?),
                None => None,
            };
            let entries = match &*directive.name {
                "map" => self.statements(directive.entries, (file, lines), depth)?,
                _ => Vec::new(),
            };
            statements.push(Statement {
                file: Arc::clone(file),
                line: directive.line,
                search,
                name: directive.name,
                arguments: directive.arguments,
                block,
                entries,
            });
        }
        Ok(statements)
    }

    fn include(
        &mut self,
        directive: &Plain,
        file: &Arc<str>,
        depth: usize,
    ) -> Result<Vec<Statement>, GatherError> {
        if depth >= DEEPEST {
            return Err(GatherError::Nested {
                file: file.to_string(),
                line: directive.line,
                most: DEEPEST,
            });
        }
        let argument = directive.arguments.first().map_or("", String::as_str);
        let mut statements = Vec::new();
        for included in self.matching(argument, file, directive.line) {
            if self.files.len() == MOST_FILES || self.bytes == MOST_BYTES {
                return Err(GatherError::TooMuch { file: file.to_string(), line: directive.line });
            }
            match self.file(&included, depth + 1) {
                Ok(found) => statements.extend(found),
                Err(GatherError::Unreadable { file: missing, source }) => self
                    .unread
                    .push((missing, format!("{source} (included at {file}:{})", directive.line))),
                Err(error) => return Err(error),
            }
        }
        Ok(statements)
    }

    /// Returns the files that an include names, sorted by name, as paths within the proxy's root folder.
    fn matching(&mut self, argument: &str, file: &str, line: usize) -> Vec<PathBuf> {
        let path = self.folder.join(argument);
        if !pattern::is_pattern(argument) {
            return vec![path];
        }
        match pattern::files(&self.base, &path) {
            Ok(paths) => paths
                .into_iter()
                .map(|path| match path.strip_prefix(&self.base) {
                    Ok(tail) => Path::new("/").join(tail),
                    Err(_) => path,
                })
                .collect(),
            Err(why) => {
                self.unread.push((format!("what {file}:{line} includes"), why));
                Vec::new()
            }
        }
    }
}
