//! What a process that runs was started with.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weir_model::study::ProxyKind;

/// A process of a proxy.
#[derive(Debug)]
pub(crate) struct Process {
    pid: u32,
    /// All that listen where it does.
    pub(crate) all: Vec<u32>,
    pub(crate) kind: ProxyKind,
    /// Its arguments; of nginx, which writes its title over them, the title's words behind `master process`.
    pub(crate) arguments: Vec<String>,
}

impl Process {
    /// The first of some processes that is a proxy which is known here: nginx's master before its workers.
    pub(crate) fn first(pids: &[u32]) -> Option<Process> {
        let each = || pids.iter().filter_map(|pid| Process::of(*pid));
        let is_whole = |process: &Process| !process.arguments.is_empty();
        let first = each().find(is_whole).or_else(|| each().next())?;
        Some(Process {
            all: pids.to_vec(),
            ..first
        })
    }

    fn of(pid: u32) -> Option<Process> {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let kind = ProxyKind::of_process(name.trim())?;
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<String> = match line.split_once("nginx: ") {
            Some((_, title)) => {
                let title = title.trim_end_matches('\0');
                let words = title.strip_prefix("master process ").unwrap_or_default();
                words.split_whitespace().map(str::to_owned).collect()
            }
            None => line.split('\0').map(str::to_owned).collect(),
        };
        Some(Process {
            pid,
            all: vec![pid],
            kind,
            arguments: words.into_iter().filter(|word| !word.is_empty()).collect(),
        })
    }

    /// The values of an option, in any of its spellings: `-c FILE`, `--config-path=FILE`, `-cFILE` for one letter.
    pub(crate) fn values(&self, spellings: &[&str]) -> Vec<&str> {
        let mut found = Vec::new();
        let mut words = self.arguments.iter().skip(1).map(String::as_str);
        while let Some(word) = words.next() {
            for spelling in spellings {
                let rest = word.strip_prefix(spelling);
                match rest {
                    Some("") => found.extend(words.next()),
                    Some(value) if value.starts_with('=') => found.push(&value[1..]),
                    Some(value) if spelling.len() == 2 => found.push(value),
                    _ => continue,
                }
                break;
            }
        }
        found
    }

    /// A path of its own, from its working folder.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        let folder = fs::read_link(format!("/proc/{}/cwd", self.pid));
        folder.unwrap_or_else(|_| PathBuf::from("/")).join(path)
    }

    /// Whether it has the file systems that this process has, so that its paths mean the same here.
    pub(crate) fn has_our_files(&self) -> bool {
        let root = |path: &Path| {
            let found = fs::metadata(path).ok()?;
            Some((found.dev(), found.ino()))
        };
        let own = root(Path::new("/"));
        own.is_some() && own == root(Path::new(&format!("/proc/{}/root/", self.pid)))
    }

    /// What its program prints of itself: `nginx -V`, `apache2 -V`.
    pub(crate) fn printed(&self) -> String {
        let mut program = Command::new(format!("/proc/{}/exe", self.pid));
        let output = program.arg("-V").stdin(Stdio::null()).output();
        let bytes = output.map(|output| [output.stdout, output.stderr].concat());
        String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_all_their_spellings() {
        let words = [
            "x",
            "-c",
            "a",
            "-cb",
            "--config",
            "c",
            "--config=d",
            "-d",
            "--configure",
            "e",
        ];
        let process = Process {
            pid: std::process::id(),
            all: Vec::new(),
            kind: ProxyKind::Nginx,
            arguments: words.map(str::to_owned).to_vec(),
        };
        assert_eq!(process.values(&["-c", "--config"]), ["a", "b", "c", "d"]);
        assert!(process.has_our_files());
        assert_eq!(process.path("/a"), Path::new("/a"));
        assert!(process.path("a").is_absolute());
        assert_eq!(Process::of(std::process::id()).map(|it| it.pid), None);
    }
}
