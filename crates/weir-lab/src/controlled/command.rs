//! Runs a command from the study that prints the configuration of a data plane or restarts a controller.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::LabError;

/// Time limit of a command. [`MOST_PRINTED`] limits its output in bytes.
const WITHIN: Duration = Duration::from_secs(20);
const MOST_PRINTED: u64 = 64 << 20;

/// Runs a command and returns its output. `key` is the study's key for the command.
///
/// # Errors
/// The command cannot be started, fails, or takes too long.
pub(super) fn run(key: &str, program: &str, words: &[String]) -> Result<String, LabError> {
    let failed = |why: String| LabError::Controller(format!("`{program}` ({key}): {why}"));
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let (done, is_done) = channel();
    let streams = (child.stdout.take(), child.stderr.take());
    std::thread::spawn(move || {
        let (Some(out), Some(mut err)) = streams else {
            return;
        };
        let reader = std::thread::spawn(move || {
            let mut stderr = String::new();
            let _ = err.read_to_string(&mut stderr);
            stderr
        });
        let mut text = Vec::new();
        let _ = out.take(MOST_PRINTED).read_to_end(&mut text);
        let _ = done.send((text, reader.join().unwrap_or_default()));
    });
    let printed = is_done.recv_timeout(WITHIN);
    if printed == Err(RecvTimeoutError::Timeout) {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    match printed {
        Ok((text, _)) if status.success() => Ok(String::from_utf8_lossy(&text).into_owned()),
        Ok((_, stderr)) => Err(failed(format!("{status}: {}", stderr.trim()))),
        Err(_) => Err(failed(format!("no end within {} s", WITHIN.as_secs()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_shell(line: &str) -> Result<String, LabError> {
        run("read", "sh", &["-c".to_owned(), line.to_owned()])
    }

    #[test]
    fn what_a_command_prints_is_read_unless_it_fails() {
        assert_eq!(run_shell("echo a; echo b >&2").unwrap(), "a\n");
        let error = run_shell("echo no such file >&2; exit 3").unwrap_err();
        assert!(error.to_string().contains("no such file"), "{error}");
        assert!(run("read", "/nonexistent/program", &[]).is_err());
    }
}
