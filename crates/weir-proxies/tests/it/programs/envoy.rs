//! Tests of configurations that are specific to Envoy.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use weir_model::study::{ProxyKind, Settings};
use weir_parameters::Catalog;
use weir_sut::{Launch, Proxy, SutError, WorkFolder};

use crate::programs::configured::rounds;
use crate::programs::setup::{Arm, Changes, Setup, catalog_of, nobody, program, run};

/// Rows about the compressing filter, which exists only with compression.
const OF_GZIP: [&str; 2] = ["gzip_comp_level", "gzip_min_length"];

pub(crate) fn envoy() -> Arc<dyn Proxy> {
    program(ProxyKind::Envoy)
}

/// Returns a reverse proxy; Envoy's stock has no settings of its own.
pub(crate) fn proxy(changes: Changes<'_>, origin: SocketAddr) -> Setup<'_> {
    Setup::proxy(ProxyKind::Envoy, changes, origin)
}

/// Starts an Envoy with a listener in clear and one with TLS.
pub(crate) fn start(settings: Settings, launch: Launch) -> Arm {
    let setup = Setup { settings, launch, ..proxy(&[], nobody()) };
    setup.start_with_tls()
}

#[test]
fn a_process_tells_the_levels_that_it_runs_with() {
    let catalog = catalog_of(ProxyKind::Envoy);
    for (number, mut settings) in rounds(ProxyKind::Envoy).into_iter().enumerate() {
        // Threads cost memory, and a container may forbid io_uring.
        settings.insert("concurrency".to_owned(), (1 + number % 2).to_string());
        settings.insert("io_uring".to_owned(), "off".to_owned());
        let expected = catalog.complete(ProxyKind::Envoy, &settings);
        let arm = start(settings, Launch::default());
        assert_eq!(arm.effective().levels, expected);
    }
}

#[test]
fn as_many_workers_as_cpus_are_told_as_their_number() {
    let cpus = weir_probe::allowed_cpus().unwrap();
    let first = cpus.cpus().first().unwrap().to_string();
    let launch =
        Launch { cpus: Some(first.parse().unwrap()), nofile: Some(900), ..Launch::default() };
    let arm = start(Settings::new(), launch);
    let effective = arm.effective();
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
    let idle =
        [("gzip_comp_level", "5"), ("gzip_min_length", "1k"), ("ssl_session_tickets", "off")];
    let catalog = Catalog::builtin();
    // Without TLS as well.
    let setup = proxy(&idle, nobody());
    let effective = envoy().effective(&setup.write(&folder), None, &catalog).unwrap();
    assert_eq!(effective.levels, catalog.defaults(ProxyKind::Envoy));
    for id in OF_GZIP {
        assert_ne!(effective.levels[id], setup.settings[id]);
    }
}

#[test]
fn its_own_words_about_a_taken_port_are_understood() {
    // What weir's look before the start misses when the port is taken right after it: here, since the
    // file names another than weir knows.
    let folder = WorkFolder::create().unwrap();
    let configuration = proxy(&[("reuseport", "off")], nobody()).write(&folder);
    let text = fs::read_to_string(configuration.file()).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let at = "/static_resources/listeners/0/address/socket_address/port_value";
    *document.pointer_mut(at).unwrap() = port.into();
    fs::write(configuration.file(), document.to_string()).unwrap();
    let error = run(&*envoy(), &configuration).unwrap_err();
    let is_so = matches!(&error, SutError::PortTaken { words, .. }
        if words.contains("Address already in use"));
    assert!(is_so, "{error}");
}
