//! Handling of a panic, which is a bug in weir: reports it and restores what this process has changed.
//!
//! The release program does not unwind: the tables and the code for that were a quarter of it. Instead, the thread that
//! panics replaces the process by a fresh one of the same number (execve(2)), whose only work is to restore, as `weir
//! restore` does after a kill: settings from the journal, work folders and the proxies that still run in them, objects
//! of clusters. The kernel ends all other threads first and releases every lock and socket, so neither their work nor
//! the locks they held matter. Builds that could unwind do the same, so tests see what users see.
//!
//! If the system refuses a thread, weir ends in the same way, wherever the thread was to be started, though this is no
//! bug.
//!
//! A panic of the fresh process is its end: the journal is as after a kill, and `weir restore` goes on with it.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::os::unix::process::CommandExt as _;
use std::panic::{self, PanicHookInfo};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};

use weir_host::journal::{self, Journal};
use weir_sut::WorkFolder;

use crate::commands::{kube, restore};
use crate::failure::{BUG, FAILED, Failure};
use crate::progress::view::screen;
use crate::{signals, terminal};

/// First argument of the process that restores. After it come the exit code to end with, and the clusters in which the
/// process before had pods.
const PUT_BACK: &str = "put-back-before-the-end";

/// Beginnings of the standard library's panic message when a thread cannot be started (std::thread::spawn), or has no
/// memory for the stack of its signal handlers.
const NO_THREAD: [&str; 2] = ["failed to spawn thread", "failed to allocate an alternative stack"];

/// Installs the panic hook.
pub(crate) fn watch() {
    panic::set_hook(Box::new(|panic| end(panic)));
}

/// Returns true if this process is the one that restores.
pub(crate) fn is_putting_back() -> bool {
    std::env::args_os().nth(1).is_some_and(|first| first == PUT_BACK)
}

/// Reports the panic and replaces this process by the one that restores.
fn end(panic: &PanicHookInfo<'_>) -> ! {
    static IS_ENDING: AtomicBool = AtomicBool::new(false);
    while IS_ENDING.swap(true, Ordering::Relaxed) {
        // Another thread has panicked as well, and ends this one with the process.
        std::thread::park();
    }
    let reason = message(panic);
    let (code, text) = if NO_THREAD.iter().any(|words| reason.starts_with(words)) {
        (FAILED, no_thread(reason))
    } else {
        (BUG, describe_bug(panic, reason))
    };
    terminal::tell_at_once(screen::give_back(), &text);
    // Else it would be in the network namespace of an arm, and settings of the host's would be none of its own.
    let _ = weir_host::return_to_first_network();
    let error = Command::new("/proc/self/exe")
        .arg0("weir")
        .arg(PUT_BACK)
        .arg(code.to_string())
        .args(weir_kube::pods_of_this_process())
        .exec();
    terminal::tell_at_once(
        b"",
        &format!("weir: cannot put anything back: {error}\nhint: weir restore\n"),
    );
    signal_hook::low_level::exit(i32::from(code))
}

fn message<'a>(panic: &'a PanicHookInfo<'_>) -> &'a str {
    let payload = panic.payload();
    let fixed = payload.downcast_ref::<&str>().copied();
    fixed
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

/// Returns the message for a refused thread. `what` is the standard library's panic message, which ends with a colon
/// and the kernel's error.
fn no_thread(what: &str) -> String {
    format!(
        "\nweir: the system refuses another thread: {what}\n\
         hint: raise the limit of processes: `ulimit -u`, pids.max of the control group, or the memory that they may have\n"
    )
}

/// Returns the message for a panic: its text, its location, and what to do.
fn describe_bug(panic: &PanicHookInfo<'_>, what: &str) -> String {
    let location = panic.location().map(ToString::to_string);
    let thread = std::thread::current();
    // Where RUST_BACKTRACE asks for it and the build can tell.
    let trace = Backtrace::capture();
    let trace = match trace.status() {
        BacktraceStatus::Captured => format!("{trace}\n"),
        _ => String::new(),
    };
    format!(
        "\nweir: a bug in weir: {what}\n  thread `{}` panicked at {}; weir {}\n\
         hint: please report these lines and the command\n{trace}",
        thread.name().unwrap_or("unnamed"),
        location.as_deref().unwrap_or("an unknown place"),
        crate::args::version()
    )
}

/// Runs the process that restores, and returns the exit code to end with.
pub(crate) fn put_back() -> ExitCode {
    // Ctrl-C does not end it, and a second one says what is left.
    let _ = signals::stop_flag();
    let folder = Journal::default_folder();
    let settings = journal::is_left_by_this_process(&folder).then(|| settings(&folder));
    let removed = WorkFolder::sweep_own();
    // Told when it is done: a reader that takes nothing holds up no work on this host.
    if let Some(settings) = settings {
        tell("restore", settings);
    }
    for folder in removed {
        terminal::tell(&format!("{}: removed\n", folder.display()));
    }
    for on in weir_objects::left_by_this_process(&folder) {
        tell(&format!("restore {on}"), objects(&on, &folder));
    }
    let mut arguments = std::env::args_os().skip(2).filter_map(|it| it.into_string().ok());
    let code = arguments.next().and_then(|code| code.parse().ok());
    for cluster in arguments {
        terminal::tell(&format!(
            "The pods in {cluster} end by themselves within ten minutes\n\
             hint: weir restore --on {cluster}  # removes all of weir's there at once\n"
        ));
    }
    ExitCode::from(code.unwrap_or(BUG))
}

fn settings(folder: &std::path::Path) -> Result<String, Failure> {
    let settings = journal::restore(folder).map_err(restore::refused)?;
    Ok(settings.iter().map(|setting| restore::describe_setting(setting, false)).collect())
}

/// Removes what this process left in a cluster. `on` is the option of `weir restore` that names the cluster: `--on
/// CLUSTER`.
fn objects(on: &str, folder: &std::path::Path) -> Result<String, Failure> {
    let cluster = kube::connect(on.trim_start_matches("--on "))?;
    let objects = weir_objects::undo(&cluster, folder, false).map_err(kube::refused)?;
    Ok(objects.iter().map(|object| restore::object(object, false)).collect())
}

/// Prints what was restored, or the error and the command with which the user can restore it.
fn tell(command: &str, done: Result<String, Failure>) {
    match done {
        Ok(text) => terminal::tell(&text),
        Err(failure) => {
            terminal::tell(&format!("{}\nhint: weir {command}\n", failure.rendered(false)));
        }
    }
}
