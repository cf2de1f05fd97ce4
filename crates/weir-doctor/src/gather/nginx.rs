//! nginx's configuration, read as nginx reads it: an include is a path or a glob(7) relative to the
//! folder of the first file (`ngx_conf_include`, `ngx_conf_full_name`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_configuration::nginx::{Plain, directives, pattern};
use weir_model::study::ProxyKind;

use super::GatherError;
use super::processes::command_line;
use super::source::Source;
use crate::configuration::{Configuration, Statement};
use crate::facts::Facts;
use crate::rules::counted;

/// Where packages have it.
const USUAL: &str = "/etc/nginx/nginx.conf";
/// How deep includes may go; a file that includes itself goes on for ever.
const DEEPEST: usize = 16;

pub(super) fn read(
    source: &mut Source,
    asked: Option<&Path>,
    facts: &mut Facts,
) -> Result<(), GatherError> {
    facts.nginx_version = version(source, facts);
    let mut reader = Reader {
        base: base(source, asked, facts),
        folder: PathBuf::new(),
        files: Vec::new(),
        unread: Vec::new(),
    };
    let file = match asked {
        Some(file) => std::path::absolute(file).unwrap_or_else(|_| file.to_owned()),
        None => running_file(source, facts).unwrap_or_else(|| USUAL.into()),
    };
    reader.folder = file.parent().unwrap_or(Path::new("/")).to_owned();
    let shown = file.display().to_string();
    let statements = match reader.file(&file, 0) {
        Ok(statements) => statements,
        // Nobody named it, so it is no mistake of the user's that it is not there.
        Err(GatherError::Unreadable { file, source: why }) if asked.is_none() => {
            let what = format!("nginx's configuration {file}");
            source.unread(what, format!("{why}: name one with --nginx"));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    for (what, why) in reader.unread {
        source.unread(what, why);
    }
    source.looked(format!(
        "{shown} ({})",
        counted(reader.files.len() as u64, "file")
    ));
    facts.configuration = Some(Configuration {
        file: shown,
        files: reader.files,
        statements,
    });
    Ok(())
}

/// What stands for `/`: a proxy in a container has files of its own.
fn base(source: &Source, asked: Option<&Path>, facts: &Facts) -> PathBuf {
    if asked.is_some() {
        return PathBuf::from("/");
    }
    let Some(proxy) = facts.proxy.as_ref().filter(|_| source.is_real()) else {
        return source.path("/");
    };
    let name = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let (own, proxys) = (name("self"), name(&proxy.master.to_string()));
    match proxys.is_some() && own != proxys {
        true => PathBuf::from(format!("/proc/{}/root", proxy.master)),
        false => source.path("/"),
    }
}

/// The file that the running nginx was started with: `-c`, relative to `-p`.
fn running_file(source: &Source, facts: &Facts) -> Option<PathBuf> {
    let title = command_line(source, facts.proxy.as_ref()?.master);
    let words: Vec<&str> = title.split_ascii_whitespace().collect();
    let option = |name: &str| {
        let at = words.iter().position(|&word| word == name)?;
        words.get(at + 1).map(PathBuf::from)
    };
    let file = option("-c")?;
    Some(match option("-p") {
        Some(prefix) => prefix.join(file),
        None => Path::new("/etc/nginx").join(file),
    })
}

fn version(source: &mut Source, facts: &Facts) -> Option<[u32; 3]> {
    if !source.is_real() {
        return None;
    }
    // The program that runs, not one that was installed since.
    let running = facts
        .proxy
        .as_ref()
        .and_then(|proxy| std::fs::read_link(format!("/proc/{}/exe", proxy.master)).ok());
    match weir_sut::find(ProxyKind::Nginx, running.as_deref()) {
        Ok(nginx) => {
            source.looked(format!(
                "{} -V: {}",
                nginx.program().display(),
                nginx.version()
            ));
            let digits = nginx.version().rsplit('/').next().unwrap_or_default();
            let mut parts = digits.split(['.', ' ']).map_while(|part| part.parse().ok());
            Some([parts.next()?, parts.next()?, parts.next()?])
        }
        Err(error) => {
            source.unread("nginx's version", error.to_string());
            None
        }
    }
}

struct Reader {
    base: PathBuf,
    folder: PathBuf,
    files: Vec<String>,
    unread: Vec<(String, String)>,
}

impl Reader {
    fn file(&mut self, file: &Path, depth: usize) -> Result<Vec<Statement>, GatherError> {
        let shown: Arc<str> = file.display().to_string().into();
        let path = self.on_host(file);
        let bytes = std::fs::read(&path).map_err(|source| GatherError::Unreadable {
            file: shown.to_string(),
            source,
        })?;
        self.files.push(shown.to_string());
        let text = String::from_utf8_lossy(&bytes);
        let tree = directives(&text).map_err(|source| GatherError::Syntax {
            file: shown.to_string(),
            source,
        })?;
        self.statements(tree, &shown, depth)
    }

    fn statements(
        &mut self,
        tree: Vec<Plain>,
        file: &Arc<str>,
        depth: usize,
    ) -> Result<Vec<Statement>, GatherError> {
        let mut statements = Vec::new();
        for directive in tree {
            if directive.is_include() {
                statements.extend(self.include(&directive, file, depth)?);
                continue;
            }
            let block = match directive.block {
                Some(block) => Some(self.statements(block, file, depth)?),
                None => None,
            };
            let entries = match &*directive.name {
                "map" => self.statements(directive.entries, file, depth)?,
                _ => Vec::new(),
            };
            statements.push(Statement {
                file: Arc::clone(file),
                line: directive.line,
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
            match self.file(&included, depth + 1) {
                Ok(found) => statements.extend(found),
                Err(GatherError::Unreadable {
                    file: missing,
                    source,
                }) => self.unread.push((
                    missing,
                    format!("{source} (included at {file}:{})", directive.line),
                )),
                Err(error) => return Err(error),
            }
        }
        Ok(statements)
    }

    /// The files that an include means, in order of name, as paths of the proxy's.
    fn matching(&mut self, argument: &str, file: &str, line: usize) -> Vec<PathBuf> {
        let path = self.folder.join(argument);
        if !pattern::is_pattern(argument) {
            return vec![path];
        }
        let of_proxy = |path: PathBuf| match path.strip_prefix(&self.base) {
            Ok(rest) => Path::new("/").join(rest),
            Err(_) => path,
        };
        match pattern::files(&self.base, &path) {
            Ok(paths) => paths.into_iter().map(of_proxy).collect(),
            Err(why) => {
                let what = format!("what {file}:{line} includes");
                self.unread.push((what, why));
                Vec::new()
            }
        }
    }

    fn on_host(&self, file: &Path) -> PathBuf {
        self.base.join(file.strip_prefix("/").unwrap_or(file))
    }
}
