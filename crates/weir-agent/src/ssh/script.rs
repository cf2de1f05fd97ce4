//! Scripts that are run on the host.
//!
//! The account's login shell gets a single word from weir, `sh -c '…'`, which must mean the same to all shells: bash,
//! dash, ksh and zsh, but also csh, tcsh and fish. Scripts therefore contain no single quote, backslash, exclamation
//! mark or newline, and need nothing beyond POSIX and, if present, sha256sum.
//!
//! File kept on the host:
//!
//! ```text
//! ${XDG_CACHE_HOME:-$HOME/.cache}/weir/agent/<SHA-256 of the executable>/weir
//! ```

use std::path::Path;

use super::SshError;

/// Exit code: the host has no copy of this weir.
pub(super) const ABSENT: i32 = 93;
/// Exit code: the copy could not be written.
pub(super) const UNWRITABLE: i32 = 94;
/// Exit code: the received bytes differ from those sent.
pub(super) const GARBLED: i32 = 95;
/// Exit code: the copy does not run on the host.
pub(super) const UNUSABLE: i32 = 96;

/// Text on standard error before the machine's kind. Other output may precede it: a banner, or messages of a shell's
/// start-up file.
const MARK: &str = "weir-agent: absent on ";

/// Folder of the copies, as a shell expression.
const COPIES: &str = "${XDG_CACHE_HOME:-$HOME/.cache}/weir/agent";

/// Number of copies that are kept: the one in use, and the one used before.
const KEPT: usize = 2;

/// Returns a script that becomes the copy's agent, or exits with [`ABSENT`] if there is no copy.
pub(super) fn start_copy(hash: &str) -> String {
    // Touched, so that copies are told apart by their last use and not by their first.
    let script = format!(
        "d={COPIES}/{hash}; \
         if test -x \"$d/weir\"; then \
         touch -c \"$d\" 2> /dev/null; exec \"$d/weir\" agent; fi; \
         echo \"{MARK}$(uname -s) $(uname -m)\" >&2; exit {ABSENT}"
    );
    quoted(&script)
}

/// Returns a script that becomes the agent of a weir that the user has installed on the host.
///
/// # Errors
/// The path has a character that is special to a shell.
pub(super) fn start_installed(path: &Path) -> Result<String, SshError> {
    let plain = path.to_str().filter(|text| {
        !text.is_empty()
            && !text.starts_with('-')
            && !text.contains(|c: char| c.is_control() || "'\"\\$`!".contains(c))
    });
    let Some(text) = plain else {
        return Err(SshError::RemotePath(path.to_owned()));
    };
    Ok(quoted(&format!("exec \"{text}\" agent")))
}

/// Returns a script that reads the copy from standard input, verifies it, tries to run it, and moves it into place. It
/// then removes all copies but the newest.
pub(super) fn copy(hash: &str, size: u64) -> String {
    let unwanted = KEPT + 1;
    quoted(&format!(
        "umask 077; b={COPIES}; d=$b/{hash}; t=$d/weir.$$; \
         clean() {{ rm -f \"$t\"; rmdir \"$d\" 2> /dev/null; }}; \
         mkdir -p \"$d\" || exit {UNWRITABLE}; \
         trap clean 0; trap \"exit {UNWRITABLE}\" 1 2 13 15; \
         cat > \"$t\" || exit {UNWRITABLE}; \
         if command -v sha256sum > /dev/null; then \
         case $(sha256sum < \"$t\") in {hash}*) ;; *) exit {GARBLED} ;; esac; \
         else test $(wc -c < \"$t\") -eq {size} || exit {GARBLED}; fi; \
         chmod 700 \"$t\" || exit {UNWRITABLE}; \
         \"$t\" --version > /dev/null || exit {UNUSABLE}; \
         mv -f \"$t\" \"$d/weir\" || exit {UNWRITABLE}; \
         ls -t \"$b\" | tail -n +{unwanted} | while read -r o; do \
         rm -f \"$b/$o/weir\" \"$b/$o\"/weir.*; rmdir \"$b/$o\"; done 2> /dev/null; exit 0"
    ))
}

fn quoted(script: &str) -> String {
    format!("sh -c '{script}'")
}

/// Extracts the machine's kind (`uname -s -m`) from the messages of a host that has no copy.
pub(super) fn machine(words: &str) -> Option<String> {
    let (_, told) = words.rsplit_once(MARK)?;
    let line = told.lines().next()?.trim();
    Some(line.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::process::{Command, Output, Stdio};

    use super::*;
    use crate::ssh::hash;

    /// A stand-in for a host, without ssh: a shell whose cache is a temporary folder.
    struct Host(tempfile::TempDir);

    impl Host {
        fn new() -> Host {
            Host(tempfile::tempdir().unwrap())
        }

        fn run(&self, command: &str, input: &[u8]) -> Output {
            let mut child = Command::new("sh")
                .args(["-c", command])
                .env("XDG_CACHE_HOME", self.0.path().join("a cache"))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            // Fails when it has ended without a look at its input.
            let _ = child.stdin.take().unwrap().write_all(input);
            child.wait_with_output().unwrap()
        }

        fn copy(&self, program: &str) -> (String, Output) {
            let file = self.0.path().join("program");
            fs::write(&file, program).unwrap();
            let (hash, size) = hash(&file).unwrap();
            let output = self.run(&copy(&hash, size), program.as_bytes());
            (hash, output)
        }

        fn copies(&self) -> PathBuf {
            self.0.path().join("a cache/weir/agent")
        }

        /// Returns the paths of all files below the copies' folder.
        fn left(&self) -> Vec<String> {
            let mut names = Vec::new();
            for entry in fs::read_dir(self.copies()).unwrap() {
                let folder = entry.unwrap().path();
                for entry in fs::read_dir(&folder).unwrap() {
                    let file = entry.unwrap().path();
                    let name = file.strip_prefix(self.copies()).unwrap();
                    names.push(name.to_str().unwrap().to_owned());
                }
            }
            names.sort();
            names
        }
    }

    /// Returns a script that prints its number when it is run as an agent.
    fn program(number: u32) -> String {
        format!("#!/bin/sh\necho \"$1 {number}\"\n")
    }

    #[test]
    fn nothing_in_a_script_means_something_to_a_login_shell() {
        let installed = start_installed(Path::new("/opt/the weir/weir")).unwrap();
        for command in [start_copy("abc"), copy("abc", 7), installed] {
            let script =
                command.strip_prefix("sh -c '").and_then(|rest| rest.strip_suffix('\'')).unwrap();
            let special: &[_] = &['\'', '\\', '!', '\n'];
            assert!(!script.contains(special), "{script}");
        }
        for path in ["", "-x", "/a'b", "$(id)", "`id`", "a\\b", "a\"b", "a!b", "a\nb"] {
            assert!(start_installed(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn what_is_copied_is_run_and_only_its_user_can_read_it() {
        let host = Host::new();
        let (hash, output) = host.copy(&program(1));
        assert!(output.status.success(), "{output:?}");
        let ran = host.run(&start_copy(&hash), b"");
        assert_eq!(ran.stdout, b"agent 1\n");
        let copied = host.copies().join(&hash).join("weir");
        let mode = fs::metadata(copied).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn a_host_without_a_copy_says_what_machine_it_is() {
        let host = Host::new();
        let output = host.run(&start_copy("abc"), b"");
        assert_eq!(output.status.code(), Some(ABSENT));
        let words = format!("Welcome!\n{}", String::from_utf8_lossy(&output.stderr));
        let ours =
            String::from_utf8(Command::new("uname").args(["-s", "-m"]).output().unwrap().stdout)
                .unwrap();
        assert_eq!(machine(&words).as_deref(), Some(ours.trim()));
        assert!(!host.copies().exists(), "asking must leave nothing");
    }

    #[test]
    fn what_arrives_otherwise_than_it_was_sent_is_not_kept() {
        let host = Host::new();
        let file = host.0.path().join("program");
        fs::write(&file, program(1)).unwrap();
        let (hash, size) = hash(&file).unwrap();
        for arrived in [&program(2), &program(1)[..9], ""] {
            let output = host.run(&copy(&hash, size), arrived.as_bytes());
            assert_eq!(output.status.code(), Some(GARBLED), "{output:?}");
        }
        assert_eq!(fs::read_dir(host.copies()).unwrap().count(), 0);
    }

    #[test]
    fn what_does_not_run_there_is_not_kept() {
        let host = Host::new();
        let (_, output) = host.copy("#!/nowhere/at/all\n");
        assert_eq!(output.status.code(), Some(UNUSABLE), "{output:?}");
        assert_eq!(fs::read_dir(host.copies()).unwrap().count(), 0);
    }

    #[test]
    fn the_two_copies_that_were_used_last_are_kept() {
        let host = Host::new();
        let (first, _) = host.copy(&program(1));
        age_copy(&host, &first, 3);
        let (second, _) = host.copy(&program(2));
        age_copy(&host, &second, 2);
        // What a copying that was killed has left goes with its copy.
        fs::write(host.copies().join(&second).join("weir.123"), "half").unwrap();
        age_copy(&host, &second, 2);
        host.run(&start_copy(&first), b"");
        let (third, _) = host.copy(&program(3));
        let mut expected = [format!("{first}/weir"), format!("{third}/weir")];
        expected.sort();
        assert_eq!(host.left(), expected);
    }

    fn age_copy(host: &Host, hash: &str, days: u32) {
        let folder = fs::File::open(host.copies().join(hash)).unwrap();
        let day = std::time::Duration::from_secs(24 * 3600);
        folder.set_modified(std::time::SystemTime::now() - day * days).unwrap();
    }
}
