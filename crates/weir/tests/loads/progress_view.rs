//! Tests of the live view on a real terminal, made by script(1).

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

use weir_testkit::faulty::start_origin;
use weir_testkit::loads::Server;
use weir_testkit::program::{HasAll, wait_until};

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// A terminal of a given number of columns, a shell on it, and its contents.
struct OnTerminal {
    script: Child,
    keys: ChildStdin,
    folder: tempfile::TempDir,
}

impl OnTerminal {
    /// Runs `weir` with these words; its standard output goes to a file.
    fn start(columns: u16, line: &str) -> OnTerminal {
        OnTerminal::start_with(columns, line, "none")
    }

    /// Like [`OnTerminal::start`], with a panic (`weir_probe::fault`).
    fn start_with(columns: u16, line: &str, fault: &str) -> OnTerminal {
        let folder = tempfile::tempdir().expect("a folder");
        let weir = env!("CARGO_BIN_EXE_weir");
        // The shell outlives Ctrl-C, which weir answers with its result.
        let shell = format!(
            "stty cols {columns} rows 24; trap : INT; stty -g > before; {weir} {line} > result; \
             echo $? > code; stty -g > after"
        );
        let mut script = Command::new("script")
            .args(["-q", "-f", "-c", &shell, "shown"])
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .env("WEIR_FAULT", fault)
            .env_remove("NO_COLOR")
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("these tests need script(1): apt-get install bsdutils");
        let keys = script.stdin.take().expect("a pipe");
        OnTerminal { script, keys, folder }
    }

    fn read(&self, name: &str) -> String {
        let bytes = std::fs::read(self.folder.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn await_shown(&self, words: &str) {
        wait_until(words, || self.read("shown").contains(words));
    }

    fn press(&mut self, key: &str) {
        self.keys.write_all(key.as_bytes()).expect("a terminal");
        self.keys.flush().expect("a terminal");
    }

    /// Waits for the end, and checks that the terminal is as before. Returns everything that was shown, the result, and
    /// the exit code.
    fn end(mut self) -> (String, String, String) {
        wait_until("the end", || !self.read("after").is_empty());
        let _ = self.script.wait();
        let [before, after] = ["before", "after"].map(|name| without_input_speed(&self.read(name)));
        assert_eq!(before, after, "stty -g");
        let shown = self.read("shown");
        assert_eq!(shown.matches(ENTER).count(), shown.matches(LEAVE).count());
        (shown, self.read("result"), self.read("code"))
    }
}

/// Returns the terminal settings of `stty -g` without the input speed. An input speed of 0 means that of the output
/// (tcgetattr(3)), and a program that restores a terminal may write it in full.
fn without_input_speed(shown: &str) -> Vec<String> {
    const INPUT_SPEED: u32 = 0x100f_0000;
    let fields = shown.trim().split(':').enumerate().map(|(sandbox, field)| {
        match u32::from_str_radix(field, 16) {
            // The third are the control flags.
            Ok(flags) if sandbox == 2 => format!("{:x}", flags & !INPUT_SPEED),
            _ => field.to_owned(),
        }
    });
    fields.collect()
}

#[test]
fn a_load_on_a_terminal_is_seen_and_gives_the_terminal_back() {
    let server = start_origin();
    let flags = "load --progress tui -R 200 -c 2 -d 3s";
    for columns in [40, 100] {
        let view = OnTerminal::start(columns, &format!("{flags} {}", server.url()));
        let (shown, result, code) = view.end();
        let (_, view) = shown.split_once(ENTER).expect("the view");
        let (view, after) = view.split_once(LEAVE).expect("its end");
        view.has_all(&["weir load", "measuring", "p99", "so far", "validity"]);
        // How punctual the load is depends on what else this machine does.
        assert!(["VALID", "SUSPECT"].iter().any(|word| view.contains(word)), "{view}");
        after.has_none(&["\x1b["]);
        result.has("response_time");
        assert_eq!(code.trim(), "0");
    }
}

#[test]
fn the_view_is_left_by_q_and_the_load_by_ctrl_c() {
    let server = start_origin();
    let line = format!("load -R 200 -c 2 -d 1h {}", server.url());
    let mut view = OnTerminal::start(100, &line);
    view.await_shown("so far");
    view.press("q");
    view.await_shown(LEAVE);
    view.await_shown("responses/s");
    view.press("\x03");
    let (_, result, code) = view.end();
    result.has("interrupted");
    assert_eq!(code.trim(), "130");
}

#[test]
fn ctrl_c_in_the_view_ends_the_load_with_its_result() {
    let server = start_origin();
    let mut view = OnTerminal::start(80, &format!("load -c 2 -d 1h {}", server.url()));
    view.await_shown("so far");
    view.press("\x03");
    let (_, result, code) = view.end();
    result.has("interrupted");
    assert_eq!(code.trim(), "130");
}

#[test]
fn a_panic_gives_the_terminal_back_and_says_what_it_was_there() {
    let server = start_origin();
    let line = format!("load -c 2 -d 1h {}", server.url());
    // While the view draws, and holds the lock of standard error.
    let (shown, _, code) = OnTerminal::start_with(80, &line, "screen:4").end();
    let (_, after) = shown.split_once(LEAVE).expect("its end");
    after.has("a bug in weir: a fault that a test asked for");
    assert_eq!(code.trim(), "101");
}

#[test]
fn there_is_no_view_where_it_would_not_fit_or_was_not_asked_for() {
    let server = start_origin();
    for (columns, flags) in
        [(39, "-d 6s"), (100, "-d 2s"), (100, "-d 6s --progress lines"), (100, "-d 6s --every 3s")]
    {
        let line = format!("load -R 50 -c 1 {flags} {}", server.url());
        let (shown, ..) = OnTerminal::start(columns, &line).end();
        shown.has_none(&[ENTER]);
    }
}
