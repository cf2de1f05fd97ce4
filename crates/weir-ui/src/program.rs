//! Answers of the program's commands.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;
use weir_report::secrets::visible;

/// Time for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest answer that is passed on, bytes.
const LONGEST: u64 = 32 << 20;
/// Longest error that is passed on, bytes.
const LONGEST_ERROR: u64 = 64 << 10;

/// The program, as the page runs it.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    path: PathBuf,
    folder: PathBuf,
}

impl Program {
    pub(crate) fn new(path: &Path, folder: &Path) -> Program {
        Program { path: path.to_owned(), folder: folder.to_owned() }
    }

    /// Returns a command that has no terminal and no input.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(words)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Returns what a command prints. Any exit code is fine as long as it prints something: some tell with it what they
    /// found.
    ///
    /// # Errors
    /// The command printed nothing but an error, too much, or did not end in time: its text, or one sentence.
    pub(crate) async fn answer(&self, words: &[&str]) -> Result<String, String> {
        let mut child = self
            .command(words)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("weir cannot be started: {error}"))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let printed = async {
            let (mut text, mut error) = (Vec::new(), Vec::new());
            let (mut out, mut err) =
                (stdout.map(|out| out.take(LONGEST)), stderr.map(|err| err.take(LONGEST_ERROR)));
            let reading_text = async {
                if let Some(out) = &mut out {
                    let _ = out.read_to_end(&mut text).await;
                }
            };
            let reading_error = async {
                if let Some(err) = &mut err {
                    let _ = err.read_to_end(&mut error).await;
                }
            };
            tokio::join!(reading_text, reading_error);
            let is_whole = text.len() < LONGEST as usize;
            (is_whole, text, error)
        };
        let Ok((is_whole, text, error)) = tokio::time::timeout(PATIENCE, printed).await else {
            return Err(format!("weir {} takes longer than {} s", words[0], PATIENCE.as_secs()));
        };
        let _ = child.start_kill();
        let _ = child.wait().await;
        if !is_whole {
            return Err(format!("weir {} prints more than a page can show", words[0]));
        }
        if text.is_empty() {
            return Err(visible(&String::from_utf8_lossy(&error)).into_owned());
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Returns the part of a page that is shown within another one: everything inside of `<main>`.
pub(crate) fn main_part(page: &str) -> &str {
    let begin = page.find("<main>").map_or(0, |at| at + "<main>".len());
    let end = page.rfind("</main>").unwrap_or(page.len());
    page.get(begin..end).unwrap_or_default()
}
