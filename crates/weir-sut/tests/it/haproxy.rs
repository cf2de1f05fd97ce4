//! Configurations of the real HAProxy: accepted, read back, refused; and what it does with them.

use std::fs;
use std::net::SocketAddr;

use std::sync::Arc;

use weir_model::quantity::CpuSet;
use weir_model::study::{ProxyKind, ProxyRole, Settings};
use weir_parameters::{Catalog, Parameter};
use weir_sut::{Certificate, Launch, Proxy, Site, SutError, TlsListener, WorkFolder};

use crate::support::{Arm, Origin, free_address, get, program, start_any, stock, until};

const ORIGIN: &str = "127.0.0.1:9";

pub(crate) fn haproxy() -> Arc<dyn Proxy> {
    program(ProxyKind::Haproxy)
}

pub(crate) fn stock_with(changes: &[(&str, &str)]) -> Settings {
    stock(ProxyKind::Haproxy, changes)
}

pub(crate) fn start(changes: &[(&str, &str)], origin: SocketAddr) -> Arm {
    start_with(changes, origin, &Launch::default())
}

fn start_with(changes: &[(&str, &str)], origin: SocketAddr, launch: &Launch) -> Arm {
    let role = ProxyRole::ReverseProxy;
    start_any(
        &*haproxy(),
        &stock_with(changes),
        &role,
        Some(origin),
        launch,
    )
}

/// The level of a parameter that an arm runs with, by what it says itself.
fn in_force(arm: &Arm, id: &str) -> Option<String> {
    let catalog = Catalog::builtin();
    let effective = haproxy().effective(&arm.configuration, Some(&arm.proxy), &catalog);
    effective.expect("it can be asked").levels.remove(id)
}

fn counter(arm: &Arm, name: &str) -> u64 {
    let counters = haproxy().counters(&arm.configuration);
    counters.expect("it can be asked")[name]
}

fn levels(row: &Parameter) -> Vec<String> {
    let fixed = |levels: [&str; 2]| levels.map(str::to_owned).to_vec();
    match row.id.as_str() {
        "ssl_ciphers" => fixed(["ECDHE-RSA-AES256-GCM-SHA384", "HIGH:!aNULL:!SHA1"]),
        // Suites of TLS 1.3 have names of their own.
        "ssl_ciphersuites" => fixed(["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"]),
        _ => crate::nginx::levels(row),
    }
}

/// All rows at once, each at another of its levels, until all have been seen.
#[test]
fn every_level_of_every_parameter_is_accepted_and_reads_back() {
    let catalog = Catalog::builtin();
    let folder = WorkFolder::create().unwrap();
    let certificate = Certificate::make(folder.path(), "weir.test").unwrap();
    let role = ProxyRole::ReverseProxy;
    let tls = TlsListener {
        listen: free_address(),
        certificate: &certificate,
    };
    let site = Site {
        tls: Some(tls),
        ..Site::new(&role, free_address(), Some(ORIGIN.parse().unwrap()))
    };
    let rows = catalog.parameters(ProxyKind::Haproxy);
    let rows: Vec<(&str, Vec<String>)> = rows.map(|row| (&*row.id, levels(row))).collect();
    let few: Vec<_> = rows.iter().filter(|(_, levels)| levels.len() < 2).collect();
    assert!(
        few.is_empty(),
        "samples of their levels are missing: {few:?}"
    );
    let most = rows.iter().map(|(_, levels)| levels.len()).max().unwrap();
    for turn in 0..most {
        let level = |levels: &[String]| levels[turn % levels.len()].clone();
        let settings = rows
            .iter()
            .map(|(id, levels)| ((*id).to_owned(), level(levels)));
        let settings: Settings = settings.collect();
        let prefix = folder.prefix("arm");
        let configuration = haproxy()
            .write(&prefix, &settings, &site, &catalog)
            .unwrap();
        let remarks = haproxy().check(&configuration);
        let remarks = remarks.unwrap_or_else(|error| panic!("{settings:#?}: {error}"));
        assert_eq!(remarks, Vec::<String>::new(), "{settings:#?}");
        let effective = haproxy().effective(&configuration, None, &catalog).unwrap();
        assert_eq!(effective.levels, settings);
    }
}

/// What rows call Debian's is what its file says, where it says anything.
#[test]
fn stock_is_what_debian_ships() {
    let text = fs::read_to_string("/etc/haproxy/haproxy.cfg").expect("Debian's package is there");
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_ascii_whitespace().collect())
        .collect();
    let has = |wanted: &str| {
        let wanted: Vec<&str> = wanted.split_ascii_whitespace().collect();
        let (first, rest) = wanted.split_first().unwrap();
        let is_so = |line: &Vec<&str>| {
            line.first() == Some(first) && rest.iter().all(|word| line.contains(word))
        };
        assert!(lines.iter().any(is_so), "{wanted:?} is not in the file");
    };
    for row in Catalog::builtin().parameters(ProxyKind::Haproxy) {
        for directive in row.debian.iter().flat_map(|level| row.directives(level)) {
            // Debian's goes to syslog.
            if !directive.text.starts_with("log stdout") {
                has(&directive.text);
            }
        }
    }
}

#[test]
fn requests_go_through_and_are_counted() {
    const REQUESTS: u64 = 20;
    let origin = Origin::start();
    let mut arm = start(&[], origin.address);
    let cpu = arm.proxy.cpu_ns();
    // weir's own looks at whether it listens are counted as well.
    let before = haproxy().counters(&arm.configuration).unwrap();
    for _ in 0..REQUESTS {
        let response = get(arm.proxy.address(), "/");
        assert!(
            response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("hello"),
            "{response}"
        );
    }
    assert!(arm.proxy.cpu_ns() > cpu);
    arm.proxy.alive().unwrap();
    assert_eq!(arm.proxy.worker_pids().len(), 1);
    let grew = |name: &str| counter(&arm, name) - before[name];
    // The last request may be counted a moment after its client has the response.
    for name in ["req_tot", "conn_tot", "hrsp_2xx"].map(|name| format!("frontend.{name}")) {
        until(&name, || grew(&name) >= REQUESTS);
        assert_eq!(grew(&name), REQUESTS, "{name}");
    }
    let passed_on = || grew("backend.connect") + grew("backend.reuse");
    until("all are passed on", || passed_on() >= REQUESTS);
    assert_eq!(passed_on(), REQUESTS);
    assert_eq!(grew("backend.connect"), origin.connections() as u64);

    let log = arm.configuration.prefix().join("logs/access.log");
    let text = || fs::read_to_string(&log).unwrap();
    let lines = |text: &str| text.matches(" 200 ").count() as u64;
    until("the last line is written", || lines(&text()) >= REQUESTS);
    assert_eq!(
        lines(&text()),
        REQUESTS,
        "it logs into its own folder: {}",
        text()
    );
    let said = fs::read_to_string(arm.configuration.output()).unwrap();
    assert!(
        !said.contains("ALERT") && !said.contains("WARNING"),
        "{said}"
    );
}

/// Under load the CPU time of all threads is counted.
#[test]
fn cpu_time_grows_with_the_work_of_every_thread() {
    let origin = Origin::start();
    let mut arm = start(&[("nbthread", "2"), ("busy_polling", "on")], origin.address);
    let begin = arm.proxy.cpu_ns();
    // Two threads that never sleep.
    until("100 ms of CPU time", || {
        arm.proxy.cpu_ns() > begin + 100_000_000
    });
}

#[test]
fn connections_to_the_origin_are_kept_as_the_settings_say() {
    const REQUESTS: usize = 10;
    // Each request on a client's connection of its own.
    for (changes, are_kept) in [
        (&[("http_reuse", "safe")][..], false),
        (
            &[("http_reuse", "always"), ("pool_purge_delay", "60s")],
            true,
        ),
        (&[("http_reuse", "always"), ("pool_max_conn", "0")], false),
        (
            &[
                ("http_reuse", "always"),
                ("http_connection_mode", "http-server-close"),
            ],
            false,
        ),
    ] {
        let origin = Origin::start();
        let changes = [&[("nbthread", "1")], changes].concat();
        let arm = start(&changes, origin.address);
        for _ in 0..REQUESTS {
            assert!(get(arm.proxy.address(), "/").ends_with("hello"));
        }
        // One may be on its way back to the pool when the next request comes.
        let connections = origin.connections();
        match are_kept {
            true => assert!(connections < REQUESTS / 2, "{changes:?}: {connections}"),
            false => assert_eq!(connections, REQUESTS, "{changes:?}"),
        }
    }
}

#[test]
fn what_runs_says_itself_what_it_runs_with() {
    let changes = [
        ("nbthread", "2"),
        ("maxconn", "500"),
        ("frontend_maxconn", "400"),
        ("server_maxconn", "30"),
        ("server_maxqueue", "20"),
        ("pool_max_conn", "10"),
        ("tune_bufsize", "32k"),
        ("ulimit_n", "4000"),
    ];
    let arm = start(&changes, ORIGIN.parse().unwrap());
    for (id, level) in changes {
        assert_eq!(in_force(&arm, id).as_deref(), Some(level), "{id}");
    }
    // Against what was written: the process counts, not the file.
    let file = arm.configuration.file();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("maxconn 500", "maxconn 600")).unwrap();
    assert_eq!(in_force(&arm, "maxconn").as_deref(), Some("500"));
}

#[test]
fn what_is_left_to_it_is_read_of_the_process_too() {
    let launch = Launch {
        nofile: Some(900),
        ..Launch::default()
    };
    let arm = start_with(&[], ORIGIN.parse().unwrap(), &launch);
    let nofile: u64 = in_force(&arm, "ulimit_n").unwrap().parse().unwrap();
    assert!(
        nofile > 900,
        "it raises its limit to the hard one: {nofile}"
    );
    let maxconn: u64 = in_force(&arm, "maxconn").unwrap().parse().unwrap();
    assert!(
        maxconn < nofile / 2,
        "{maxconn} connections, {nofile} descriptors"
    );
    assert_eq!(
        in_force(&arm, "frontend_maxconn"),
        Some(maxconn.to_string())
    );
}

#[test]
fn it_has_a_thread_for_each_cpu_that_it_is_bound_to() {
    let one: CpuSet = first_cpu().parse().unwrap();
    let launch = Launch {
        cpus: Some(one),
        ..Launch::default()
    };
    let arm = start_with(&[], ORIGIN.parse().unwrap(), &launch);
    assert_eq!(in_force(&arm, "nbthread").as_deref(), Some("1"));
    for pid in arm.proxy.worker_pids() {
        assert_eq!(
            allowed_cpus(pid),
            first_cpu(),
            "it stays where it was bound"
        );
    }
}

fn allowed_cpus(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("proc(5) has it").trim().to_owned()
}

/// A CPU that this test may run on.
fn first_cpu() -> String {
    let all = allowed_cpus(std::process::id());
    let first = all.split([',', '-']).next().expect("it runs somewhere");
    first.to_owned()
}

#[test]
fn two_arms_live_side_by_side() {
    let origin = Origin::start();
    let arms = [
        &[("nbthread", "1")][..],
        &[("nbthread", "2"), ("shards", "2")],
    ]
    .map(|changes| start(changes, origin.address));
    for arm in &arms {
        assert!(get(arm.proxy.address(), "/").ends_with("hello"));
    }
    // One master and one worker each.
    let processes = |arm: &Arm| arm.proxy.worker_pids().len() + 1;
    assert_eq!(arms.each_ref().map(processes), [2, 2]);
    assert_ne!(arms[0].proxy.master_pid(), arms[1].proxy.master_pid());
}

#[test]
fn nothing_of_the_system_s_service_is_named() {
    let catalog = Catalog::builtin();
    let folder = WorkFolder::create().unwrap();
    let role = ProxyRole::ReverseProxy;
    let site = Site::new(&role, free_address(), Some(ORIGIN.parse().unwrap()));
    for settings in [Settings::new(), stock_with(&[])] {
        let prefix = folder.prefix("arm");
        let configuration = haproxy()
            .write(&prefix, &settings, &site, &catalog)
            .unwrap();
        let text = fs::read_to_string(configuration.file()).unwrap();
        let strange: Vec<&str> = text
            .split_ascii_whitespace()
            .filter(|word| word.starts_with('/') || word.contains("@/"))
            .collect();
        assert_eq!(strange, Vec::<&str>::new());
    }
    // The program's own defaults wait for ever, which it does not like.
    let prefix = folder.prefix("arm");
    let configuration = haproxy()
        .write(&prefix, &Settings::new(), &site, &catalog)
        .unwrap();
    let remarks = haproxy().check(&configuration).unwrap();
    assert!(
        remarks
            .iter()
            .any(|remark| remark.contains("missing timeouts")),
        "{remarks:?}"
    );
    let arm = start(&[], ORIGIN.parse().unwrap());
    let prefix = fs::canonicalize(arm.configuration.prefix()).unwrap();
    for pid in arm
        .proxy
        .worker_pids()
        .into_iter()
        .chain([arm.proxy.master_pid()])
    {
        for file in files_of(pid) {
            let is_own = file.starts_with(&prefix) || !file.is_absolute();
            assert!(is_own || file.starts_with("/dev"), "{}", file.display());
        }
    }
}

/// What a process has open: files by their paths, everything else by a name without a folder.
fn files_of(pid: u32) -> Vec<std::path::PathBuf> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    descriptors
        .flatten()
        .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
        .collect()
}

#[test]
fn a_refusal_is_in_haproxy_s_own_words() {
    let catalog = Catalog::builtin();
    let folder = WorkFolder::create().unwrap();
    let role = ProxyRole::ReverseProxy;
    let site = Site::new(&role, free_address(), Some(ORIGIN.parse().unwrap()));
    let settings = stock_with(&[("timeout_client", "soon")]);
    let prefix = folder.prefix("arm");
    let configuration = haproxy()
        .write(&prefix, &settings, &site, &catalog)
        .unwrap();
    let error = haproxy().check(&configuration).unwrap_err();
    let SutError::Refused { words, .. } = &error else {
        panic!("{error}");
    };
    assert!(words.contains("parsing [conf/haproxy.cfg:"), "{words}");
    assert!(words.contains("'timeout client'"), "{words}");
    assert!(error.hint().is_some());
    let launcher = crate::support::launcher();
    let error = weir_sut::start(&*haproxy(), &configuration, &launcher, &Launch::default());
    let error = error.unwrap_err();
    assert!(
        matches!(&error, SutError::NotStarted { words, .. } if words.contains("'timeout client'")),
        "{error}"
    );
}

#[test]
fn what_cannot_be_configured_is_refused_before_anything_is_written() {
    let catalog = Catalog::builtin();
    let folder = WorkFolder::create().unwrap();
    let write = |settings: &Settings, role: &ProxyRole, origin: Option<&str>| {
        let origin = origin.map(|origin| origin.parse().unwrap());
        let site = Site::new(role, free_address(), origin);
        haproxy().write(&folder.prefix("arm"), settings, &site, &catalog)
    };
    let (proxy, files) = (ProxyRole::ReverseProxy, ProxyRole::StaticFiles { size: 1 });
    let none = Settings::new();
    assert!(matches!(
        write(&none, &proxy, None),
        Err(SutError::NoOrigin)
    ));
    let error = write(&none, &files, None).unwrap_err().to_string();
    assert!(error.starts_with("HAProxy cannot serve files"), "{error}");
    for (id, level) in [("worker_processes", "1"), ("colour", "red")] {
        let unknown = Settings::from([(id.to_owned(), level.to_owned())]);
        let refused = write(&unknown, &proxy, Some(ORIGIN));
        assert!(matches!(refused, Err(SutError::UnknownParameter { id: of, .. }) if of == id));
    }
    let kernel = Settings::from([("net.core.somaxconn".to_owned(), "9".to_owned())]);
    let refused = write(&kernel, &proxy, Some(ORIGIN));
    assert!(matches!(refused, Err(SutError::NotOfProxy { .. })));
    assert!(!folder.prefix("arm").exists());
}
