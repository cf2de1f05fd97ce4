//! Tests of start and end of every proxy: no process is left behind, however things end, and each error is reported as
//! what it is.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use weir_model::study::ProxyKind;
use weir_parameters::Catalog;
use weir_probe::ProcessId;
use weir_sut::{Configuration, Proxy, SutError, WorkFolder};

use crate::programs::nginx::nginx;
use crate::programs::setup::{Arm, Setup, run};
use crate::programs::support::{Origin, executable, free_address, get, kill, processes, until};

/// A proxy with some settings, and what to expect of it.
pub(crate) struct Subject {
    pub(crate) kind: ProxyKind,
    changes: &'static [(&'static str, &'static str)],
    /// Number of processes below the first one.
    pub(crate) workers: usize,
    /// Text in its arguments when it is to serve, but not when it is queried.
    serves: &'static str,
    /// Message about a port that is taken; None if weir checks the port first, because the proxy would share it.
    taken: Option<&'static str>,
}

const NGINX: Subject = Subject {
    kind: ProxyKind::Nginx,
    changes: &[("worker_processes", "2")],
    workers: 2,
    serves: "-p ",
    taken: Some("bind() to {} failed (98: Address already in use)"),
};

const HAPROXY: Subject = Subject {
    kind: ProxyKind::Haproxy,
    changes: &[],
    workers: 1,
    serves: "-W ",
    taken: Some("cannot bind socket (Address already in use) for [{}]"),
};

const ENVOY: Subject = Subject {
    kind: ProxyKind::Envoy,
    changes: &[],
    workers: 0,
    serves: "--config-path ",
    taken: None,
};

const CADDY: Subject = Subject { kind: ProxyKind::Caddy, serves: "run --config", ..ENVOY };

const HTTPD: Subject = Subject {
    kind: ProxyKind::Httpd,
    changes: &[("mpm", "event"), ("max_request_workers", "50")],
    workers: 2,
    serves: "FOREGROUND",
    taken: Some("could not bind to address {}"),
};

/// Subjects, grouped by proxy, the plainest first.
const SUBJECTS: &[Subject] = &[
    NGINX,
    Subject {
        changes: &[("worker_processes", "1"), ("reuseport", "on")],
        workers: 1,
        taken: None,
        ..NGINX
    },
    HAPROXY,
    Subject { changes: &[("nbthread", "2"), ("shards", "2")], taken: None, ..HAPROXY },
    ENVOY,
    Subject { changes: &[("reuseport", "off")], ..ENVOY },
    CADDY,
    HTTPD,
    Subject {
        changes: &[
            ("mpm", "worker"),
            ("max_request_workers", "50"),
            ("listen_cores_buckets_ratio", "1"),
        ],
        taken: None,
        ..HTTPD
    },
    Subject { changes: &[("mpm", "prefork"), ("max_request_workers", "50")], workers: 50, ..HTTPD },
];

/// The first subject of each proxy.
pub(crate) fn one_of_each() -> impl Iterator<Item = &'static Subject> {
    let chunks = SUBJECTS.chunk_by(|one, next| one.kind == next.kind);
    chunks.map(|of_proxy| &of_proxy[0])
}

impl Subject {
    pub(crate) fn program(&self) -> Arc<dyn Proxy> {
        crate::programs::setup::program(self.kind)
    }

    fn setup(&self, origin: &Origin) -> Setup<'_> {
        Setup::proxy(self.kind, self.changes, origin.address)
    }

    pub(crate) fn start(&self, origin: &Origin) -> Arm {
        self.setup(origin).start()
    }

    pub(crate) fn write(
        &self,
        folder: &WorkFolder,
        listen: SocketAddr,
        origin: &Origin,
    ) -> Configuration {
        let written = self.setup(origin).try_write(folder, listen);
        written.expect("the configuration can be written")
    }

    /// Returns a program that answers queries as this proxy, but runs `does` first, or instead, when it is to serve.
    fn disguised(&self, folder: &WorkFolder, does: &str) -> Arc<dyn Proxy> {
        let file = folder.path().join(self.kind.name());
        let (mark, real) = (self.serves, self.program().program().display().to_string());
        let script =
            format!("#!/bin/sh\ncase \"$*\" in *'{mark}'*) {does};; esac\nexec {real} \"$@\"\n");
        executable(&file, &script);
        weir_proxies::find(self.kind, Some(&file)).expect("it answers as the real one")
    }
}

#[test]
fn stopping_or_dropping_a_proxy_leaves_no_process() {
    let origin = Origin::start();
    for subject in SUBJECTS {
        let stopped = subject.start(&origin);
        let dropped = subject.start(&origin);
        let mut all = processes(&stopped.proxy);
        all.extend(processes(&dropped.proxy));
        let (kind, changes) = (subject.kind, subject.changes);
        assert_eq!(all.len(), 2 * (subject.workers + 1), "{kind:?} {changes:?}");
        assert!(all.iter().all(|process| process.is_alive()));
        stopped.proxy.stop();
        drop(dropped.proxy);
        // Reaped, too: a zombie would still have its number.
        let is_gone = all.iter().all(|process| ProcessId::of(process.pid).ok() != Some(*process));
        assert!(is_gone, "{kind:?} {changes:?}");
        let path = stopped.folder.path().to_owned();
        drop(stopped.folder);
        assert!(!path.exists());
    }
}

/// Many proxies listen with SO_REUSEPORT, and would share the port with another program of the same user.
#[test]
fn a_port_that_is_taken_is_said_and_never_shared() {
    let origin = Origin::start();
    let folder = WorkFolder::create().unwrap();
    for subject in SUBJECTS {
        let arm = subject.start(&origin);
        // Somebody who accepts, so that a mere connection would pass for a proxy that is ready.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for address in [arm.proxy.address(), listener.local_addr().unwrap()] {
            let configuration = subject.write(&folder, address, &origin);
            let error = run(&*subject.program(), &configuration).unwrap_err();
            let SutError::PortTaken { words, address: at, .. } = &error else {
                panic!("{:?}: {error}", subject.kind);
            };
            assert_eq!(*at, address);
            assert!(error.hint().unwrap().contains(&address.port().to_string()));
            if let Some(message) = subject.taken {
                let expected = message.replace("{}", &address.to_string());
                assert_eq!(words.matches(&expected).count(), 1, "said once: {words}");
            }
        }
        for _ in 0..8 {
            assert!(arm.get("/").ends_with("hello"));
        }
    }
}

#[test]
fn a_worker_or_master_that_dies_is_noticed() {
    let origin = Origin::start();
    for subject in one_of_each() {
        for of_worker in [true, false] {
            if of_worker && subject.workers == 0 {
                continue;
            }
            let mut arm = subject.start(&origin);
            arm.proxy.alive().unwrap();
            let all = processes(&arm.proxy);
            let (victim, name) = if of_worker {
                (arm.proxy.worker_pids()[0], "worker process")
            } else {
                (arm.proxy.master_pid(), "master process")
            };
            kill(victim);
            until("it is missed", || arm.proxy.alive().is_err());
            let error = arm.proxy.alive().unwrap_err();
            let SutError::Died { what, pid, .. } = error else {
                panic!("{:?}: {error}", subject.kind);
            };
            // HAProxy's two take each other along; which is missed first is for the kernel to say.
            if subject.kind != ProxyKind::Haproxy {
                assert_eq!((what, pid), (name, victim), "{:?}", subject.kind);
            }
            if subject.workers == 0 {
                let counters = subject.program().counters(&arm.configuration);
                assert!(matches!(counters, Err(SutError::Admin { .. })));
            }
            if subject.kind == ProxyKind::Nginx && !of_worker {
                let outlives = all.iter().any(|process| process.is_alive());
                assert!(outlives, "workers outlive their master");
            }
            if subject.kind == ProxyKind::Haproxy && of_worker {
                until("none is left", || !all.iter().any(|process| process.is_alive()));
                let words = fs::read_to_string(arm.configuration.output()).unwrap();
                assert!(words.contains("exited with code 137 (Killed)"), "{words}");
            }
            arm.proxy.stop();
            assert!(!all.iter().any(|process| process.is_alive()));
        }
    }
}

#[test]
fn what_an_earlier_instance_left_in_the_prefix_does_not_matter() {
    let origin = Origin::start();
    for subject in one_of_each() {
        let folder = WorkFolder::create().unwrap();
        let prefix = folder.prefix("arm");
        let configuration = subject.write(&folder, free_address(), &origin);
        let first = run(&*subject.program(), &configuration).unwrap();
        for process in processes(&first) {
            // HAProxy's and httpd's follow each other.
            let _ = rustix::process::kill_process(
                rustix::process::Pid::from_raw(process.pid.cast_signed()).unwrap(),
                rustix::process::Signal::KILL,
            );
        }
        drop(first);
        // A socket that nobody listens at, and numbers of processes that are others' by now.
        match subject.kind {
            ProxyKind::Httpd => assert!(prefix.join("run/httpd.pid").exists()),
            _ => assert!(prefix.join("run/admin.sock").exists(), "{:?}", subject.kind),
        }
        let pid = format!("{}\n", std::process::id());
        fs::write(prefix.join(format!("run/{}.pid", subject.kind.name())), pid).unwrap();
        // Its port may have been taken meanwhile by whoever runs beside this.
        let configuration = subject.write(&folder, free_address(), &origin);
        let mut second = run(&*subject.program(), &configuration).unwrap();
        second.alive().unwrap();
        assert!(get(second.address(), "/").ends_with("hello"));
        assert!(subject.program().counters(&configuration).is_ok());
    }
}

#[test]
fn one_that_crashes_listens_late_or_never_is_told_apart() {
    let origin = &Origin::start();
    side_by_side(|subject| {
        let folder = WorkFolder::create().unwrap();
        let configuration = subject.write(&folder, free_address(), origin);
        let started = |does: &str| run(&*subject.disguised(&folder, does), &configuration);
        let crashed = started("echo out of luck >&2; exit 3");
        let is_so = matches!(&crashed, Err(SutError::NotStarted { words, status, .. })
            if words.contains("out of luck") && status.contains('3'));
        assert!(is_so, "{:?}: {crashed:?}", subject.kind);

        let late = started("sleep 0.5").unwrap();
        assert!(get(late.address(), "/").ends_with("hello"));
        assert_eq!(late.worker_pids().len(), subject.workers);
        let (program, catalog) = (subject.program(), Catalog::builtin());
        assert!(program.counters(&configuration).is_ok());
        let effective = program.effective(&configuration, Some(&late), &catalog);
        assert!(effective.is_ok());
        late.stop();

        let never = started("echo waiting >&2; echo $$ > run/pid; exec sleep 600");
        let is_so = matches!(&never, Err(SutError::NotListening { seconds: 30, words, .. })
            if words.ends_with("waiting"));
        assert!(is_so, "{:?}: {never:?}", subject.kind);
        let pid = fs::read_to_string(configuration.prefix().join("run/pid")).unwrap();
        assert!(ProcessId::of(pid.trim().parse().unwrap()).is_err());
    });
}

/// Another program accepts at the address before the proxy: a mere connection must not count as readiness.
#[test]
fn a_listener_of_somebody_else_s_is_not_taken_for_the_proxy() {
    let origin = Origin::start();
    side_by_side(|subject| {
        let folder = WorkFolder::create().unwrap();
        let configuration = subject.write(&folder, free_address(), &origin);
        let silent = subject.disguised(&folder, "touch run/started; exec sleep 600");
        let started = configuration.prefix().join("run/started");
        std::thread::scope(|scope| {
            // The listener is open until the thread is joined.
            let listener = scope.spawn(|| {
                until("the program was started", || started.exists());
                TcpListener::bind(configuration.listen()).unwrap()
            });
            let error = run(&*silent, &configuration).unwrap_err();
            assert!(matches!(error, SutError::NotListening { .. }), "{error}");
            listener.join().unwrap();
        });
    });
}

/// Runs a check on one subject of each proxy, all at the same time, so that their waiting times overlap.
fn side_by_side(look_at: impl Fn(&Subject) + Sync) {
    let look_at = &look_at;
    std::thread::scope(|scope| {
        one_of_each().for_each(|subject| drop(scope.spawn(move || look_at(subject))));
    });
}

#[test]
fn a_missing_or_wrong_program_is_said_with_what_to_do() {
    for (kind, install, version) in [
        (ProxyKind::Nginx, "apt-get install nginx-light", "nginx/1."),
        (ProxyKind::Haproxy, "apt-get install haproxy", "haproxy/2."),
        (ProxyKind::Envoy, "scripts/setup proxies", "envoy/1."),
        (ProxyKind::Caddy, "apt-get install caddy", "caddy/2."),
        (ProxyKind::Httpd, "apt-get install apache2-bin", "Apache/2."),
    ] {
        for missing in ["proxy-that-is-not-there", "/nonexistent/proxy", "/etc/passwd"] {
            let error = weir_proxies::find(kind, Some(Path::new(missing))).unwrap_err();
            assert!(matches!(error, SutError::NotFound { .. }), "{error}");
            let start = format!("{missing} was not found");
            assert!(error.to_string().starts_with(&start), "{error}");
            assert!(error.hint().unwrap().contains(install));
        }
        for other in ["true", "uname", "/bin/echo"] {
            let error = weir_proxies::find(kind, Some(Path::new(other))).unwrap_err();
            assert!(matches!(error, SutError::NotTheProgram { .. }), "{error}");
            let words = format!("does not look like {}", kind.title());
            assert!(error.to_string().contains(&words), "{error}");
        }
        let program = weir_proxies::find(kind, None).unwrap();
        assert_eq!(program.kind(), kind);
        assert!(program.version().starts_with(version), "{}", program.version());
    }
    let error = weir_proxies::find(ProxyKind::External, None).unwrap_err();
    assert!(matches!(error, SutError::NotStartable { .. }), "{error}");
}

#[test]
fn a_relative_path_of_the_program_is_one_below_weir_s_folder() {
    let here = std::env::current_dir().unwrap();
    let up = "../".repeat(here.components().count() - 1);
    let below_root = nginx().program().strip_prefix("/").unwrap().to_owned();
    let program = Path::new(&up).join(below_root);
    let program = weir_proxies::find(ProxyKind::Nginx, Some(&program)).unwrap();
    // It is checked and run in another folder than this.
    assert_eq!(
        program.program().canonicalize().unwrap(),
        nginx().program().canonicalize().unwrap()
    );
    assert!(program.program().is_absolute(), "{program:?}");
}

#[test]
fn a_proxy_ends_with_the_thread_that_started_it() {
    let origin = Origin::start();
    for subject in one_of_each() {
        let mut arm =
            std::thread::scope(|scope| scope.spawn(|| subject.start(&origin)).join().unwrap());
        until("it follows its thread", || arm.proxy.alive().is_err());
    }
}
