//! Orderly end after Ctrl-C and SIGTERM: trials stop, proxies stop, results are written.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM,
    SIGXCPU, SIGXFSZ,
};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::exit;
use weir_host::journal::{self, Journal};
use weir_sut::{Launcher, WorkFolder};

use crate::failure::{Failure, INTERRUPTED};
use crate::progress::view::screen;
use crate::terminal;

/// Signals that request an end.
const SIGNALS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Returns signals that would end weir at once, though nobody sends them on purpose (signal(7)): SIGSTKFLT, SIGPWR,
/// those of timers and of real time. The first two real-time signals are the C library's.
fn stray_signals() -> impl Iterator<Item = i32> {
    [SIGALRM, SIGVTALRM, SIGPROF, SIGIO, 16, 30].into_iter().chain(34..=64)
}

/// Time after the first signal within which further ones count as the same request: timeout(1) signals a process and
/// its group.
const ONE_WISH: Duration = Duration::from_millis(500);

/// Returns a flag that the first signal sets. A second one ends weir at once, after a message about what is left; the
/// processes that weir started die with it (see `weir-sut`'s launcher).
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let (stop, is_ending) = (Arc::new(AtomicBool::new(false)), Arc::default());
    watch(&stop, &is_ending)
        .map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
    let launcher = Launcher::new("/proc/self/exe".into());
    weir_sut::installed::end_programs_at(&stop, launcher);
    Ok(stop)
}

/// Returns a flag that SIGUSR1 and SIGUSR2 set: the user wants to know the state. All callers share it, and it exists
/// from the start of the program, so these signals never end a command, even one that has no answer.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn asked_flag() -> Result<Arc<AtomicBool>, Failure> {
    static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(asked) = ASKED.get() {
        return Ok(Arc::clone(asked));
    }
    let request = Arc::new(AtomicBool::new(false));
    let _ = ASKED.set(Arc::clone(&request));
    for signal in [SIGUSR1, SIGUSR2] {
        flag::register(signal, Arc::clone(&request))
            .map_err(|error| Failure::failed(format!("cannot watch for signals: {error}")))?;
    }
    // A file that may not grow is an error of whoever writes it (setrlimit(2)), and not the end.
    let _ = flag::register(SIGXFSZ, Arc::default());
    Ok(request)
}

fn watch(stop: &Arc<AtomicBool>, is_ending: &Arc<AtomicBool>) -> std::io::Result<()> {
    for signal in SIGNALS {
        // A terminal that takes nothing could hold up whoever says what is left: the next signal does not wait.
        flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(is_ending))?;
        flag::register(signal, Arc::clone(stop))?;
    }
    // Comes every second until the hard limit of CPU time ends the process (setrlimit(2)): no further wish.
    flag::register(SIGXCPU, Arc::clone(stop))?;
    for signal in stray_signals() {
        // A debugger or a sandbox may keep some for itself.
        let _ = flag::register(signal, Arc::clone(stop));
    }
    let (mut signals, is_ending) = (Signals::new(SIGNALS)?, Arc::clone(is_ending));
    let builder = std::thread::Builder::new().name("weir-signals".to_owned());
    builder.spawn(move || {
        let mut first: Option<Instant> = None;
        let mut received = signals.forever();
        if received.any(|_| first.get_or_insert_with(Instant::now).elapsed() > ONE_WISH) {
            screen::leave();
            let leftovers = describe_leftovers();
            is_ending.store(true, Ordering::Relaxed);
            if let Some(text) = leftovers {
                terminal::tell(&text);
            }
            exit(i32::from(INTERRUPTED));
        }
    })?;
    Ok(())
}

/// Describes what this process would leave if it ended now, and how to remove it.
fn describe_leftovers() -> Option<String> {
    let mut leftovers: Vec<String> =
        WorkFolder::own().iter().map(|folder| format!("the folder {}", folder.display())).collect();
    let journal = journal::pending(&Journal::default_folder()).ok();
    let settings = journal
        .filter(|journal| {
            let holder = journal.holder.as_ref();
            holder.is_some_and(|holder| holder.pid == std::process::id())
        })
        .map(|journal| journal.settings)
        .unwrap_or_default();
    leftovers.extend(settings.iter().map(|setting| format!("the setting {}", setting.key)));
    let clusters = weir_objects::left_by_this_process(&Journal::default_folder());
    let hints: Vec<String> = std::iter::once(String::new())
        .filter(|_| !leftovers.is_empty())
        .chain(clusters.iter().map(|on| format!(" {on}")))
        .map(|on| format!("hint: weir restore{on}\n"))
        .collect();
    leftovers.extend(clusters.iter().map(|on| format!("changed objects ({on})")));
    (!leftovers.is_empty()).then(|| {
        format!(
            "\nweir: ended at once, and leaves behind: {}\n{}",
            leftovers.join(", "),
            hints.concat()
        )
    })
}
