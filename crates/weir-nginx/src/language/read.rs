//! Reads the files of a configuration: the main one and all that it includes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use weir_configuration::{ConfigurationError, Source, SourceFile, place};

use super::syntax::{self, Directive};
use super::{context, pattern, view};

/// Maximum depth of includes: more than anybody needs, few enough for recursion.
const DEPTH_LIMIT: usize = 100;

/// Limits on the number of files of one configuration and on their bytes: several times the needs of 10,000 sites with
/// files of their own.
const FILES_LIMIT: usize = 50_000;
const BYTES_LIMIT: usize = 128 << 20;

/// Reads a configuration: the main file and every file that is included, in any block, each once and by its real path,
/// in nginx's order.
///
/// Relative paths of includes are resolved from `conf_prefix`; without it from the main file's folder, as nginx does,
/// wherever the `include` stands.
///
/// # Errors
/// Returns an error at the `include` if a file is missing (a pattern that matches nothing is no error), is a folder,
/// cannot be read, or includes itself through others. Returns an error at the place if a file is not UTF-8, is not in
/// nginx's language, or has a block or a directive of the catalog where it cannot stand.
pub fn read(main: &Path, conf_prefix: Option<&Path>) -> Result<Source, ConfigurationError> {
    let main = std::path::absolute(main).map_err(|error| unplaced(main, &error))?;
    let folder = conf_prefix.or(main.parent()).unwrap_or(Path::new("/"));
    let base = std::path::absolute(folder).map_err(|error| unplaced(folder, &error))?;
    let mut reader = Reader {
        source: Source { base, ..Source::new(Vec::new()) },
        known: HashMap::new(),
        open: Vec::new(),
        bytes: 0,
    };
    match reader.file(&main) {
        Ok(_) => {}
        Err(Refused::Here(what)) => return Err(ConfigurationError::at(&main, "", 0, what)),
        Err(Refused::Inside(error)) => return Err(error),
    }
    let trees = view::parse(&reader.source)?;
    let nodes = view::expand(&reader.source, &trees)?;
    context::check(&reader.source, &nodes)?;
    Ok(reader.source)
}

struct Reader {
    source: Source,
    /// Indices of the files that were read, by real path.
    known: HashMap<PathBuf, usize>,
    /// Files that are being read, outermost first.
    open: Vec<usize>,
    /// Number of bytes in all files so far.
    bytes: usize,
}

/// Reason why a file is not read.
enum Refused {
    /// Reason without a place; the caller adds the place.
    Here(String),
    /// Error with its own place.
    Inside(ConfigurationError),
}

impl From<ConfigurationError> for Refused {
    fn from(error: ConfigurationError) -> Refused {
        Refused::Inside(error)
    }
}

impl Reader {
    /// Reads a file and those that it includes, unless it is known, and returns its index.
    fn file(&mut self, path: &Path) -> Result<usize, Refused> {
        let real = fs::canonicalize(path).map_err(|error| unreadable(path, &error))?;
        if let Some(&file) = self.known.get(&real) {
            return match self.open.iter().position(|&open| open == file) {
                Some(from) => Err(Refused::Here(self.circle(from))),
                None => Ok(file),
            };
        }
        if self.open.len() == DEPTH_LIMIT {
            let message = "includes are nested more than 100 deep";
            return Err(Refused::Here(message.to_owned()));
        }
        if real.is_dir() {
            let message = format!("{} is a folder, not a file", path.display());
            return Err(Refused::Here(message));
        }
        let bytes = place::bytes(&real).map_err(|error| unreadable(path, &error))?;
        self.bytes += bytes.len();
        if self.source.files.len() == FILES_LIMIT || self.bytes > BYTES_LIMIT {
            let message = format!(
                "the files of a configuration are too many or too long: {FILES_LIMIT} files of \
                 {BYTES_LIMIT} bytes in all may be read"
            );
            return Err(Refused::Here(message));
        }
        let read = place::file(real.clone(), bytes)?;
        let file = self.source.files.len();
        self.known.insert(real, file);
        let tree =
            syntax::parse(&read.text).map_err(|error| place::error(&read, error.at, error.what))?;
        self.source.files.push(read);
        self.open.push(file);
        self.includes(&tree.directives, false)?;
        self.open.pop();
        Ok(file)
    }

    fn includes(
        &mut self,
        directives: &[Directive],
        in_geo: bool,
    ) -> Result<(), ConfigurationError> {
        for directive in directives {
            if view::is_include(directive) {
                self.include(directive, in_geo)?;
            } else if !directive.is("split_clients") {
                // The entries of `split_clients` are taken as they stand.
                self.includes(directive.children(), directive.is("geo"))?;
            }
        }
        Ok(())
    }

    fn include(&mut self, directive: &Directive, in_geo: bool) -> Result<(), ConfigurationError> {
        let argument = &directive.arguments[0];
        if self.source.includes.contains_key(&argument.text) && !self.is_open(&argument.text) {
            return Ok(());
        }
        let path = self.source.base.join(&argument.text);
        let at = argument.span.start;
        // `geo` has an `include` of its own, which takes a pattern for a name.
        let paths = if pattern::is_pattern(&argument.text) && !in_geo {
            let files = pattern::files(Path::new(""), &path);
            files.map_err(|what| self.error(at, what))?
        } else {
            vec![path]
        };
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let file = self.file(&path).map_err(|refused| match refused {
                Refused::Here(what) => self.error(at, what),
                Refused::Inside(error) => error,
            })?;
            files.push(file);
        }
        self.source.includes.insert(argument.text.clone(), files);
        Ok(())
    }

    /// Returns true if an argument stands for a file that is being read.
    fn is_open(&self, argument: &str) -> bool {
        let files = self.source.includes.get(argument);
        files.is_some_and(|files| files.iter().any(|file| self.open.contains(file)))
    }

    /// Returns an error at a byte of the file that is being read.
    fn error(&self, at: usize, what: String) -> ConfigurationError {
        let file = self.open.last().map_or(0, |&file| file);
        let SourceFile { path, text } = &self.source.files[file];
        let error = ConfigurationError::at(path, text, at, what);
        if error.what.starts_with("cannot read") && self.open.len() == 1 {
            let base = self.source.base.display();
            error.hint(format!("relative paths are taken from {base}"))
        } else {
            error
        }
    }

    fn circle(&self, from: usize) -> String {
        let files = self.open[from..].iter().chain([&self.open[from]]);
        let names: Vec<String> =
            files.map(|&file| self.source.files[file].path.display().to_string()).collect();
        format!("files include each other in a cycle: {}", names.join(" → "))
    }
}

fn unplaced(path: &Path, error: &io::Error) -> ConfigurationError {
    ConfigurationError::at(path, "", 0, format!("cannot be read: {error}"))
}

fn unreadable(path: &Path, error: &io::Error) -> Refused {
    Refused::Here(format!("cannot read {}: {error}", path.display()))
}
