//! Configurations of the real Envoy: accepted, read back, refused.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use std::sync::Arc;

use weir_model::study::{ProxyKind, ProxyRole, Settings};
use weir_parameters::{Catalog, LevelKind, Parameter};
use weir_sut::{
    Certificate, Configuration, Launch, Own, Proxy, RunningProxy, Site, SutError, TlsListener,
    WorkFolder,
};

use crate::support::{free_address, launcher, program};

/// Where nobody listens: nothing here asks an origin server.
const ORIGIN: &str = "127.0.0.1:9";

/// Rows that make the filter that compresses what it is; without compression there is none.
const OF_GZIP: [&str; 2] = ["gzip_comp_level", "gzip_min_length"];

pub(crate) fn envoy() -> Arc<dyn Proxy> {
    program(ProxyKind::Envoy)
}

/// Settings from pairs; Envoy's stock has none of its own.
pub(crate) fn settings(changes: &[(&str, &str)]) -> Settings {
    let changes = changes.iter();
    changes
        .map(|&(id, level)| (id.to_owned(), level.to_owned()))
        .collect()
}

/// A proxy with a listener of either kind; it ends before its folder.
pub(crate) struct Arm {
    pub(crate) proxy: RunningProxy,
    pub(crate) configuration: Configuration,
    pub(crate) _folder: WorkFolder,
}

/// Starts a reverse proxy. Ports are picked before they are taken, and the machine may be shared: who
/// is beaten to a port picks another.
pub(crate) fn start(settings: &Settings, origin: SocketAddr, launch: &Launch) -> Arm {
    let folder = WorkFolder::create().expect("temporary files can be written");
    let certificate = Certificate::make(folder.path(), "weir.test").expect("a certificate");
    for attempt in 0.. {
        let site = Site {
            tls: Some(TlsListener {
                listen: free_address(),
                certificate: &certificate,
            }),
            ..Site::new(&ProxyRole::ReverseProxy, free_address(), Some(origin))
        };
        let prefix = folder.prefix(&format!("arm-{attempt}"));
        let configuration = envoy()
            .write(&prefix, settings, &site, &Catalog::builtin())
            .expect("the configuration can be written");
        match weir_sut::start(&*envoy(), &configuration, &launcher(), launch) {
            Ok(proxy) => {
                return Arm {
                    proxy,
                    configuration,
                    _folder: folder,
                };
            }
            Err(SutError::PortTaken { .. }) if attempt < 3 => {}
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("every attempt ends in one of three ways")
}

/// Writes a configuration in clear without starting it.
pub(crate) fn write(
    folder: &WorkFolder,
    settings: &Settings,
    listen: SocketAddr,
) -> Result<Configuration, SutError> {
    let origin = ORIGIN.parse().expect("an address");
    let site = Site::new(&ProxyRole::ReverseProxy, listen, Some(origin));
    envoy().write(&folder.prefix("arm"), settings, &site, &Catalog::builtin())
}

/// Levels of a parameter in their canonical spelling: bounds, words, and whatever it accepts of a list.
fn levels(row: &Parameter) -> Vec<String> {
    let samples = [
        "on",
        "off",
        "0",
        "2",
        "64",
        "1000",
        "4k",
        "1m",
        "0s",
        "250ms",
        "10s",
        "2m",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-CHACHA20-POLY1305",
    ];
    let mut samples: Vec<String> = samples.iter().map(|&s| s.to_owned()).collect();
    match &row.level {
        LevelKind::Integer { min, max, words } => {
            samples.extend([min.to_string(), max.to_string()]);
            samples.extend(words.clone());
        }
        LevelKind::Choice(words) => samples.extend(words.clone()),
        // Nearly every word is a cipher list, and names of no suite are refused.
        LevelKind::CipherList => samples.retain(|sample| sample.starts_with("ECDHE")),
        _ => {}
    }
    let checked = samples.iter().filter_map(|level| row.check(level).ok());
    let mut levels: Vec<String> = checked.collect();
    // The versions of TLS keep their order, so that the two rows of them agree in every round.
    if !matches!(row.level, LevelKind::Choice(_)) {
        levels.sort();
    }
    levels.dedup();
    levels
}

/// Settings of a round: of each row the level whose turn it is, so that all levels of all rows have had
/// theirs after as many rounds as the row with the most has levels.
fn round(catalog: &Catalog, number: usize) -> Settings {
    let rows = catalog.parameters(ProxyKind::Envoy);
    let mut settings: Settings = rows
        .map(|row| {
            let levels = levels(row);
            assert!(levels.len() > 1, "{}: no samples of its kind", row.id);
            (row.id.clone(), levels[number % levels.len()].clone())
        })
        .collect();
    if settings["gzip"] == "off" {
        settings.insert("gzip".to_owned(), "on".to_owned());
    }
    settings
}

fn rounds(catalog: &Catalog) -> usize {
    let rows = catalog.parameters(ProxyKind::Envoy);
    rows.map(|row| levels(row).len()).max().unwrap_or(0)
}

#[test]
fn every_level_of_every_parameter_is_accepted_and_reads_back() {
    let catalog = Catalog::builtin().for_proxy(ProxyKind::Envoy, envoy().version());
    let folder = WorkFolder::create().unwrap();
    let certificate = Certificate::make(folder.path(), "weir.test").unwrap();
    let without_gzip = settings(&[("gzip", "off")]);
    let mut all: Vec<Settings> = (0..rounds(&catalog))
        .map(|number| round(&catalog, number))
        .collect();
    all.push(without_gzip);
    for settings in all {
        let site = Site {
            tls: Some(TlsListener {
                listen: free_address(),
                certificate: &certificate,
            }),
            ..Site::new(
                &ProxyRole::ReverseProxy,
                free_address(),
                Some(ORIGIN.parse().unwrap()),
            )
        };
        let prefix = folder.prefix("arm");
        let configuration = envoy().write(&prefix, &settings, &site, &catalog).unwrap();
        let effective = envoy()
            .effective(&configuration, None, &catalog)
            .unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        assert_eq!(
            effective.levels,
            catalog.complete(ProxyKind::Envoy, &settings)
        );
    }
}

#[test]
fn a_process_tells_the_levels_that_it_runs_with() {
    let catalog = Catalog::builtin().for_proxy(ProxyKind::Envoy, envoy().version());
    for number in 0..rounds(&catalog) {
        let mut settings = round(&catalog, number);
        // Threads cost memory, and a container may forbid io_uring.
        settings.insert("concurrency".to_owned(), (1 + number % 2).to_string());
        settings.insert("io_uring".to_owned(), "off".to_owned());
        let arm = start(&settings, ORIGIN.parse().unwrap(), &Launch::default());
        let effective = envoy()
            .effective(&arm.configuration, Some(&arm.proxy), &catalog)
            .unwrap();
        assert_eq!(
            effective.levels,
            catalog.complete(ProxyKind::Envoy, &settings)
        );
    }
}

#[test]
fn as_many_workers_as_cpus_are_told_as_their_number() {
    let cpus = weir_probe::allowed_cpus().unwrap();
    let first = cpus.cpus().first().unwrap().to_string();
    let launch = Launch {
        cpus: Some(first.parse().unwrap()),
        nofile: Some(900),
        ..Launch::default()
    };
    let arm = start(&Settings::new(), ORIGIN.parse().unwrap(), &launch);
    let catalog = Catalog::builtin();
    let effective = envoy()
        .effective(&arm.configuration, Some(&arm.proxy), &catalog)
        .unwrap();
    assert_eq!(effective.levels["concurrency"], "1");
    // Envoy raises the limit that it was given to the highest that it may have.
    let (_, hard) = weir_probe::host::own_nofile();
    assert_eq!(arm.proxy.nofile().unwrap(), hard);
    assert!(effective.text.contains("\"disable_hot_restart\": true"));
    assert_eq!(effective.levels["max_requests"], "1024");
}

#[test]
fn settings_without_their_part_are_idle_and_read_back_as_defaults() {
    let folder = WorkFolder::create().unwrap();
    let idle = settings(&[
        ("gzip_comp_level", "5"),
        ("gzip_min_length", "1k"),
        ("ssl_session_tickets", "off"),
    ]);
    let catalog = Catalog::builtin();
    // Without TLS as well.
    let configuration = write(&folder, &idle, free_address()).unwrap();
    let effective = envoy().effective(&configuration, None, &catalog).unwrap();
    assert_eq!(effective.levels, catalog.defaults(ProxyKind::Envoy));
    for id in OF_GZIP {
        assert_ne!(effective.levels[id], idle[id]);
    }
}

#[test]
fn nothing_outside_of_the_prefix_is_named() {
    let folder = WorkFolder::create().unwrap();
    let settings = settings(&[("access_log", "on"), ("gzip", "on"), ("io_uring", "on")]);
    let configuration = write(&folder, &settings, free_address()).unwrap();
    let text = fs::read_to_string(configuration.file()).unwrap();
    let paths: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("\"/") || line.contains(".sock\"") || line.contains(".log\""))
        .map(str::trim)
        .collect();
    // Listed in the order of the document: a request's path, Envoy's log and its socket.
    let mut expected = [
        "\"path\": \"run/admin.sock\"",
        "\"path\": \"logs/access.log\"",
        "\"prefix\": \"/\"",
    ];
    expected.sort_unstable();
    let mut found: Vec<&str> = paths
        .iter()
        .map(|path| path.trim_end_matches(','))
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected, "{text}");
    assert_eq!(envoy().check(&configuration).unwrap(), Vec::<String>::new());
}

#[test]
fn a_refusal_is_in_envoy_s_own_words() {
    let folder = WorkFolder::create().unwrap();
    let wrong = settings(&[("keepalive_timeout", "soon")]);
    let configuration = write(&folder, &wrong, free_address()).unwrap();
    let error = envoy().check(&configuration).unwrap_err();
    let SutError::Refused { words, .. } = &error else {
        panic!("{error}");
    };
    assert!(
        words.contains("common_http_protocol_options.idle_timeout") && words.contains("duration"),
        "{words}"
    );
    assert!(words.lines().count() < 4, "without the document: {words}");
    assert!(error.hint().is_some());
    // Also when it is started all the same.
    let error =
        weir_sut::start(&*envoy(), &configuration, &launcher(), &Launch::default()).unwrap_err();
    assert!(
        matches!(&error, SutError::NotStarted { words, .. } if words.contains("idle_timeout")),
        "{error}"
    );
    // What fits the types and is wrong all the same.
    let wrong = settings(&[
        ("tls_minimum_protocol_version", "TLSv1_3"),
        ("tls_maximum_protocol_version", "TLSv1_2"),
        ("max_connections_to_accept_per_socket_event", "0"),
    ]);
    let configuration = write(&folder, &wrong, free_address()).unwrap();
    let error = envoy().check(&configuration).unwrap_err();
    assert!(
        matches!(&error, SutError::Refused { words, .. }
            if words.contains("MaxConnectionsToAcceptPerSocketEvent")),
        "{error}"
    );
}

#[test]
fn what_cannot_be_configured_is_refused_before_anything_is_written() {
    let catalog = Catalog::builtin();
    let folder = WorkFolder::create().unwrap();
    let prefix = folder.prefix("arm");
    let origin: SocketAddr = ORIGIN.parse().unwrap();
    let site = Site::new(&ProxyRole::ReverseProxy, free_address(), None);
    let error = envoy().write(&prefix, &Settings::new(), &site, &catalog);
    assert!(matches!(error, Err(SutError::NoOrigin)));

    let files = ProxyRole::StaticFiles { size: 1 };
    let site = Site::new(&files, free_address(), Some(origin));
    let error = envoy().write(&prefix, &Settings::new(), &site, &catalog);
    let words = error.unwrap_err().to_string();
    assert!(words.starts_with("Envoy cannot serve files: "), "{words}");

    let site = Site {
        own: Some(Own {
            file: Path::new("envoy.yaml"),
            port: None,
        }),
        ..Site::new(&ProxyRole::ReverseProxy, free_address(), Some(origin))
    };
    let error = envoy().write(&prefix, &Settings::new(), &site, &catalog);
    assert!(matches!(error, Err(SutError::Own(_))), "it is not there");

    let error = write(&folder, &settings(&[("colour", "red")]), free_address());
    assert!(matches!(error, Err(SutError::UnknownParameter { id, .. }) if id == "colour"));
    let kernel = settings(&[("net.core.somaxconn", "65536")]);
    let error = write(&folder, &kernel, free_address());
    assert!(matches!(error, Err(SutError::NotOfProxy { .. })));
    let error = write(&folder, &settings(&[("backlog", "many")]), free_address());
    let words = error.unwrap_err().to_string();
    assert!(words.contains("`many` in `listener`"), "{words}");
    assert!(!prefix.exists());
}

#[test]
fn its_own_words_about_a_taken_port_are_understood() {
    // What weir's look before the start misses when the port is taken right after it: here, since the
    // file names another than weir knows.
    let folder = WorkFolder::create().unwrap();
    let settings = settings(&[("reuseport", "off")]);
    let configuration = write(&folder, &settings, free_address()).unwrap();
    let text = fs::read_to_string(configuration.file()).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let at = "/static_resources/listeners/0/address/socket_address/port_value";
    *document.pointer_mut(at).unwrap() = port.into();
    fs::write(configuration.file(), document.to_string()).unwrap();
    let error = weir_sut::start(&*envoy(), &configuration, &launcher(), &Launch::default());
    let error = error.unwrap_err();
    assert!(
        matches!(&error, SutError::PortTaken { words, .. }
            if words.contains("Address already in use")),
        "{error}"
    );
}
