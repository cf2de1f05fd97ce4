//! Reads facts from a host and its proxy. No function here writes.

mod advice;
mod cgroup;
mod host;
mod nginx;
mod processes;
mod source;
mod trust;

use std::path::PathBuf;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::facts::{Facts, Listener, LoadDemand, Reading};
use crate::shell::quoted;
use source::Source;

/// Selection of the host, proxy and files to examine.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The load that the host is to carry.
    pub asked: LoadDemand,
    /// Path of nginx's configuration file; `None` for that of the running nginx.
    pub nginx: Option<PathBuf>,
    /// Master process of the proxy; `None` to search for it.
    pub pid: Option<u32>,
    /// Folder to use as `/`: a host that was laid out for a test, or mounted.
    pub root: Option<PathBuf>,
}

/// Input that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The given file cannot be read.
    #[error("cannot read {file}: {source}")]
    Unreadable {
        /// Path of the file.
        file: String,
        /// Error from the operating system.
        source: std::io::Error,
    },
    /// The configuration has a syntax error.
    #[error("{file}: {source}")]
    Syntax {
        /// Path of the file.
        file: String,
        /// Position and kind of the error.
        source: weir_nginx::language::syntax::SyntaxError,
    },
    /// A file includes itself, or includes are nested deeper than in any real configuration.
    #[error("{file}:{line}: includes are nested more than {most} deep")]
    Nested {
        /// Path of the file with the include.
        file: String,
        /// Line of the include.
        line: usize,
        /// Maximum nesting depth.
        most: usize,
    },
    /// More files or bytes are included than in any real configuration.
    #[error(
        "{file}:{line}: more is included than 50,000 files or {} MiB in all",
        nginx::MOST_BYTES >> 20
    )]
    TooMuch {
        /// Path of the file with the include.
        file: String,
        /// Line of the include.
        line: usize,
    },
    /// More than one nginx runs here.
    #[error("{} nginx are running here; name one", .masters.len())]
    Several {
        /// A description of each master process, with its `--pid` option.
        masters: Vec<String>,
    },
    /// The process belongs neither to root nor to the caller: it could be any program, with any configuration.
    #[error("process {pid} belongs to user {user}, neither to root nor to you")]
    AnothersProcess {
        /// Process id.
        pid: u32,
        /// Its real user id.
        user: u32,
    },
    /// There is no such process, or it is not an nginx.
    #[error("process {pid} is not an nginx: {why}")]
    NotNginx {
        /// Process id.
        pid: u32,
        /// Description of the process, or that there is none.
        why: String,
    },
}

impl GatherError {
    /// Returns advice on how to resolve the error.
    pub fn hint(&self) -> String {
        match self {
            GatherError::Unreadable { .. } => {
                "--nginx takes the path of nginx's configuration file".to_owned()
            }
            GatherError::Syntax { file, .. }
            | GatherError::Nested { file, .. }
            | GatherError::TooMuch { file, .. } => {
                let file = quoted(file);
                format!(
                    "`nginx -t -c FILE`, with the file that includes {file}, shows how nginx reads it"
                )
            }
            GatherError::Several { masters } => format!(
                "choose a process with --pid, or check a file by itself with --config:\n  {}",
                masters.join("\n  ")
            ),
            GatherError::AnothersProcess { user, .. } => {
                format!("run weir as that user: `sudo -u '#{user}' weir doctor --pid PID`")
            }
            GatherError::NotNginx { .. } => {
                "--pid takes nginx's master process; `pgrep -o nginx` finds it".to_owned()
            }
        }
    }
}

/// Reads a host and its proxy. Changes nothing.
///
/// # Errors
/// Fails if a file or process that the request names cannot be used. Anything else that cannot be read is left out of
/// the facts and listed in [`Facts::unread`].
pub fn gather(request: &Request) -> Result<Facts, GatherError> {
    let mut source = Source::new(request.root.as_deref());
    let mut facts = Facts { asked: request.asked, ..Facts::default() };
    // A configuration that was named is judged as it would run, not by the nginx that happens to.
    if request.nginx.is_some() && request.pid.is_none() {
        source.unread("a running nginx", "not searched for with --nginx; --pid names one");
    } else {
        processes::read(&mut source, request.pid, &mut facts)?;
    }
    nginx::read(&mut source, request.nginx.as_deref(), &mut facts)?;
    within_proxys_network(&mut source, &mut facts, |source, facts| {
        host::read(source, facts);
        listeners(source, facts);
    });
    cgroup::read(&mut source, &mut facts);
    advice::read(&mut source, &mut facts);
    let has_limit = facts.unit_limit.is_some()
        || facts
            .configuration
            .as_ref()
            .is_some_and(|configuration| configuration.main("worker_rlimit_nofile").is_some());
    if facts.proxy.is_none() && facts.configuration.is_some() && !has_limit {
        source.unread(
            "the descriptors of a worker",
            "nginx does not run, has no unit, and sets no worker_rlimit_nofile: \
             it will have those of the shell that starts it",
        );
    }
    facts.looked_at = source.looked_at;
    facts.unread = source.unread;
    Ok(facts)
}

/// Calls `read` in the proxy's network namespace: /proc/sys/net and sock_diag(7) answer for the namespace of the
/// calling thread.
fn within_proxys_network(
    source: &mut Source,
    facts: &mut Facts,
    read: impl FnOnce(&mut Source, &mut Facts) + Send,
) {
    let Some(master) = facts.proxy.as_ref().map(|proxy| proxy.master) else {
        return read(source, facts);
    };
    let is_elsewhere =
        match (source.is_real(), read_network("self"), read_network(&master.to_string())) {
            (true, Ok(own), Ok(proxys)) => own != proxys,
            (true, _, Err(error)) => {
                source.unread(
                    "the proxy's network namespace",
                    format!("{error}; its sysctls and listeners are assumed to be this one's"),
                );
                false
            }
            _ => false,
        };
    if !is_elsewhere {
        return read(source, facts);
    }
    if let Some(proxy) = &mut facts.proxy {
        proxy.own_network = true;
    }
    std::thread::scope(|scope| {
        scope.spawn(move || {
            match join_network(master) {
                Ok(()) => source.looked(Reading::Network),
                Err(error) => source.unread(
                    "the proxy's network namespace",
                    format!(
                        "{error}; net.* and listeners below are this one's, not the proxy's: run as root"
                    ),
                ),
            }
            read(source, facts);
        });
    });
}

fn read_network(pid: &str) -> std::io::Result<std::path::PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/net"))
}

fn join_network(pid: u32) -> std::io::Result<()> {
    let file = std::fs::File::open(format!("/proc/{pid}/ns/net"))?;
    use std::os::fd::AsFd;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
    Ok(())
}

fn listeners(source: &mut Source, facts: &mut Facts) {
    if !source.is_real() {
        return;
    }
    match weir_host::listeners::listen_queues() {
        Ok(queues) => {
            source.looked(Reading::Listeners);
            facts.listeners = Some(
                queues
                    .into_iter()
                    .map(|queue| Listener {
                        address: queue.address,
                        waiting: queue.waiting,
                        backlog: queue.backlog,
                    })
                    .collect(),
            );
        }
        Err(error) => {
            let hint = error.hint().map(|hint| format!("; {hint}"));
            let why = format!("{error}{}", hint.unwrap_or_default());
            source.unread("listeners and their queues", why);
        }
    }
}
