//! Counters, settings and error log of an httpd that weir did not start.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use weir_configuration::read_regular;
use weir_sut::observed::{Offers, Peer, Process, Running, StatusEndpoint};

use super::counters::sampled_of;

/// Largest file that is read, in bytes, and maximum number of files.
const MOST: u64 = 1 << 20;
const MOST_FILES: usize = 1000;

pub(super) const RUNNING: Running = Running {
    find,
    needs_files: true,
    most: 1 << 20,
    sampled: |ask| ask("").map(|text| sampled_of(&text)),
};

fn find(process: &Process, address: SocketAddr) -> Result<Offers, String> {
    let printed = process.printed(&["-V"])?;
    let root = (process.values(&["-d"]).last())
        .map(|path| process.path(path))
        .or_else(|| find_definition(&printed, "HTTPD_ROOT").map(PathBuf::from))
        .unwrap_or_else(|| PathBuf::from("/etc/apache2"));
    let main = (process.values(&["-f"]).last())
        .map(|path| root.join(path))
        .or_else(|| Some(root.join(find_definition(&printed, "SERVER_CONFIG_FILE")?)))
        .unwrap_or_else(|| root.join("apache2.conf"));
    let mut read = Includes { root: &root, files: BTreeSet::new(), lines: Vec::new() };
    read.add(&main)?;
    let lines = read.lines;
    let log = last_value(&lines, "ErrorLog")
        .filter(|log| !log.starts_with(['|', '$']) && !log.contains("syslog"));
    let settings = last_value(&lines, "MaxRequestWorkers")
        .map(|level| ("max_request_workers".to_owned(), level));
    let none = "its configuration has no location with the handler `server-status`";
    Ok(Offers {
        error_log: log.map(|log| root.join(log)),
        logs_warnings: last_value(&lines, "LogLevel").map(|level| !level.starts_with("error")),
        settings: settings.into_iter().collect(),
        idle: Vec::new(),
        endpoint: server_status(&lines)
            .map(|path| {
                let target = format!("{path}?auto");
                StatusEndpoint::Http(Peer::Tcp(address), "localhost".to_owned(), target)
            })
            .ok_or_else(|| none.to_owned()),
    })
}

fn last_value(lines: &[String], name: &str) -> Option<String> {
    lines.iter().rev().find_map(|line| {
        let (directive, value) = line.split_once(char::is_whitespace)?;
        directive.eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"').to_owned())
    })
}

/// Returns a path that a program was built with, from its output of `-V`: ` -D HTTPD_ROOT="/etc/apache2"`.
fn find_definition(printed: &str, name: &str) -> Option<String> {
    printed.lines().find_map(|line| {
        let value = line.trim().strip_prefix("-D ")?.strip_prefix(name)?;
        let quoted = value.strip_prefix("=\"")?.strip_suffix('"')?;
        Some(quoted.to_owned())
    })
}

/// Returns the path of the location whose handler is mod_status.
fn server_status(lines: &[String]) -> Option<String> {
    let mut path = None;
    for line in lines {
        let lower = line.to_ascii_lowercase();
        if lower.starts_with("<location ") {
            let location = line[10..].trim_end_matches('>').trim().trim_matches('"');
            path = location.starts_with('/').then(|| location.to_owned());
        } else if lower.starts_with("</location") {
            path = None;
        } else if lower.starts_with("sethandler ") && lower.contains("server-status") {
            return path;
        }
    }
    None
}

/// Lines of httpd's configuration without comments, with those of all files that it includes.
struct Includes<'a> {
    root: &'a Path,
    /// Files that were read. None is read twice: one may include itself where httpd does not look.
    files: BTreeSet<PathBuf>,
    lines: Vec<String>,
}

impl Includes<'_> {
    fn add(&mut self, file: &Path) -> Result<(), String> {
        let real_path = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        if self.files.len() == MOST_FILES || !self.files.insert(real_path) {
            return Ok(());
        }
        let text =
            read_regular(file, MOST).map_err(|error| format!("{}: {error}", file.display()))?;
        for line in String::from_utf8_lossy(&text).lines().map(str::trim) {
            let word = line.split_whitespace().next().unwrap_or_default();
            let is_include = ["include", "includeoptional"].contains(&&*word.to_ascii_lowercase());
            if !is_include {
                if !line.is_empty() && !line.starts_with('#') {
                    self.lines.push(line.to_owned());
                }
                continue;
            }
            let pattern = line[word.len()..].trim().trim_matches('"');
            for inner in included(&self.root.join(pattern)) {
                if inner.is_file() {
                    // What cannot be read of many files is missing, and the rest is not.
                    let _ = self.add(&inner);
                }
            }
        }
        Ok(())
    }
}

/// Returns the files that a pattern stands for; only its last part may have asterisks. For a folder, returns its files.
fn included(pattern: &Path) -> Vec<PathBuf> {
    let name = file_name(pattern);
    if !name.contains('*') && !pattern.is_dir() {
        return vec![pattern.to_owned()];
    }
    let (folder, pattern_name) = if pattern.is_dir() {
        (pattern, "*".to_owned())
    } else {
        (pattern.parent().unwrap_or(Path::new("/")), name)
    };
    let (before, behind) = pattern_name.split_once('*').unwrap_or((&pattern_name, ""));
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = file_name(path);
            name.len() >= before.len() + behind.len()
                && name.starts_with(before)
                && name.ends_with(behind)
        })
        .collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn httpd_is_asked_where_its_status_is() {
        let text = "<Location \"/server-status\">\nSetHandler server-status\n</Location>";
        let path = server_status(&split_lines(text));
        assert_eq!(path.as_deref(), Some("/server-status"));
        let text = "<Location /a>\n</Location>\nSetHandler server-status";
        assert_eq!(server_status(&split_lines(text)), None);
    }

    #[test]
    fn a_file_that_includes_itself_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let text =
            "Listen 80\n".to_owned() + &"IncludeOptional *.conf\nInclude b.conf\n".repeat(30);
        for name in ["a.conf", "b.conf", "c.conf"] {
            fs::write(root.join(name), &text).unwrap();
        }
        let mut read = Includes { root, files: BTreeSet::new(), lines: Vec::new() };
        read.add(&root.join("a.conf")).unwrap();
        assert_eq!(read.lines, ["Listen 80"; 3]);
    }

    fn split_lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }
}
