//! Command line and program of a running process.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use weir_model::study::ProxyKind;

use super::LogFile;
use crate::{installed, trust};

/// A process of a proxy.
#[derive(Debug)]
pub struct Process {
    pub pid: u32,
    /// All processes that listen at the same address.
    pub all: Vec<u32>,
    pub kind: ProxyKind,
    /// Arguments of the process. nginx writes its title over them; then the words of the title behind `master process`.
    pub arguments: Vec<String>,
}

impl Process {
    /// Finds the proxy that some processes are: the first of them and of those that have started them that has
    /// arguments, as nginx's master has and its workers have not; else the first of all.
    pub fn first(pids: &[u32]) -> Option<Process> {
        let parents = pids.iter().filter_map(|pid| weir_probe::process::parent(*pid));
        let candidates = || pids.iter().copied().chain(parents.clone());
        let first = candidates()
            .filter_map(Process::of)
            .find(|process| !process.arguments.is_empty())
            .or_else(|| candidates().find_map(Process::of))?;
        Some(Process { all: pids.to_vec(), ..first })
    }

    /// The error log that one of its processes has open whose word is taken ([`trust`]).
    pub(crate) fn open_log(&self) -> Option<LogFile> {
        let trusted: Vec<u32> =
            self.all.iter().copied().filter(|pid| trust::against_process(*pid).is_none()).collect();
        let (root, path) = weir_probe::error_log_of(&trusted)?;
        let root = (!is_our_root(&root)).then_some(root);
        Some(LogFile { root, path })
    }

    /// Returns the reason why files that the process names are not read; None if they are.
    pub fn distrust(&self) -> Option<String> {
        if !is_our_root(Path::new(&format!("/proc/{}/root", self.pid))) {
            return Some("it is in another file system than weir's".to_owned());
        }
        trust::against_process(self.pid)
    }

    fn of(pid: u32) -> Option<Process> {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        let kind = ProxyKind::of_process(name.trim())?;
        // What another user's process was started with is not asked: its memory may answer late, or never.
        let line = match trust::against_process(pid) {
            None => fs::read(format!("/proc/{pid}/cmdline")).ok()?,
            Some(_) => Vec::new(),
        };
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<String> = match line.split_once("nginx: ") {
            Some((_, title)) => {
                let words = title.trim_end_matches('\0').strip_prefix("master process ");
                words.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
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

    /// Returns the values of an option in any of its spellings: `-c FILE`, `--config-path=FILE`, and `-cFILE` for one
    /// letter.
    pub fn values(&self, spellings: &[&str]) -> Vec<&str> {
        let mut values = Vec::new();
        let mut words = self.arguments.iter().skip(1).map(String::as_str);
        while let Some(word) = words.next() {
            for spelling in spellings {
                let behind = word.strip_prefix(spelling);
                match behind {
                    Some("") => values.extend(words.next()),
                    Some(value) if value.starts_with('=') => values.push(&value[1..]),
                    Some(value) if spelling.len() == 2 => values.push(value),
                    _ => continue,
                }
                break;
            }
        }
        values
    }

    /// Resolves a path relative to the process's working folder.
    pub fn path(&self, path: &str) -> PathBuf {
        let folder = fs::read_link(format!("/proc/{}/cwd", self.pid));
        folder.unwrap_or_else(|_| PathBuf::from("/")).join(path)
    }

    /// Runs the process's program and returns its output, such as the build options for `-V`.
    ///
    /// # Errors
    /// The program is another user's, or cannot be run.
    pub fn printed(&self, arguments: &[&str]) -> Result<String, String> {
        // By its own path: the number may be another process's by the time that it is run.
        let program = fs::read_link(format!("/proc/{}/exe", self.pid))
            .map_err(|error| format!("its program is not known: {error}"))?;
        if let Some(why) = trust::against_program(&program) {
            return Err(format!("its program is not run: {why}"));
        }
        let mut command = installed::command(&program);
        command.args(arguments);
        let output = installed::output(command).map_err(|error| error.to_string())?;
        let text = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Returns true if the folder that stands for `/` of a process is this process's, so that its paths mean the same here.
fn is_our_root(root: &Path) -> bool {
    // With a slash: what it is a link to counts.
    let own_root = file_id(Path::new("/"));
    own_root.is_some() && own_root == file_id(root)
}

fn file_id(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path.join("")).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn options_are_read_in_all_their_spellings() {
        let words =
            ["x", "-c", "a", "-cb", "--config", "c", "--config=d", "-d", "--configure", "e"];
        let process = Process {
            pid: std::process::id(),
            all: Vec::new(),
            kind: ProxyKind::Nginx,
            arguments: words.map(str::to_owned).to_vec(),
        };
        assert_eq!(process.values(&["-c", "--config"]), ["a", "b", "c", "d"]);
        assert!(is_our_root(Path::new("/proc/self/root")));
        assert_eq!(process.path("/a"), Path::new("/a"));
        assert!(process.path("a").is_absolute());
        assert_eq!(Process::of(std::process::id()).map(|it| it.pid), None);
    }

    /// Anybody may start a program with the name nginx.
    #[test]
    fn nothing_that_another_user_s_process_names_is_read_or_run() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let program = folder.path().join("nginx");
        fs::copy("/bin/sleep", &program).unwrap();
        let stranger = 65_534;
        let mut child =
            std::process::Command::new(&program).arg("60").uid(stranger).spawn().unwrap();
        let process = Process::first(&[child.id()]).unwrap();
        let why = process.distrust();
        std::os::unix::fs::chown(&program, Some(stranger), None).unwrap();
        let not_run = process.printed(&["-V"]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(process.kind, ProxyKind::Nginx);
        assert!(why.is_some_and(|why| why.contains("is user 65534's")));
        assert!(not_run.is_err_and(|why| why.contains("belongs to user 65534")));
    }
}
