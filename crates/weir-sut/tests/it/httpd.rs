//! Configurations of the real httpd: accepted, read back, refused; and what it serves with them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;

use std::sync::Arc;
use std::time::Duration;

use weir_model::study::{ProxyKind, ProxyRole, Settings};
use weir_parameters::{Catalog, LevelKind, Parameter};
use weir_sut::{Launch, Own, Proxy, Site, SutError, WorkFolder};

use crate::support::{Arm, Origin, free_address, get, launcher, program, start_any, stock};

const ORIGIN: &str = "127.0.0.1:9";

/// One process, so that there is one pool of connections to the origin.
pub(crate) const ALONE: (&str, &str) = ("max_request_workers", "25");

pub(crate) fn httpd() -> Arc<dyn Proxy> {
    program(ProxyKind::Httpd)
}

pub(crate) fn stock_with(changes: &[(&str, &str)]) -> Settings {
    stock(ProxyKind::Httpd, changes)
}

pub(crate) fn start(changes: &[(&str, &str)], role: &ProxyRole, origin: Option<SocketAddr>) -> Arm {
    let settings = stock_with(changes);
    start_any(&*httpd(), &settings, role, origin, &Launch::default())
}

/// Levels of a parameter in their canonical spelling.
fn levels(row: &Parameter) -> Vec<String> {
    const SAMPLES: [&str; 11] = [
        "on", "off", "0", "1", "64", "4k", "500k", "0s", "250ms", "10s", "none",
    ];
    let mut samples: Vec<String> = SAMPLES.iter().map(|&s| s.to_owned()).collect();
    match &row.level {
        LevelKind::Integer { min, max, .. } => samples.extend([min.to_string(), max.to_string()]),
        LevelKind::Choice(words) => samples.extend(words.clone()),
        LevelKind::Size { words, .. } => samples.extend(words.clone()),
        LevelKind::CipherList => {
            samples = ["DEFAULT", "ECDHE-RSA-AES256-GCM-SHA384", "HIGH:!aNULL"]
                .map(str::to_owned)
                .to_vec();
        }
        _ => {}
    }
    let mut levels: Vec<String> = samples
        .iter()
        .filter_map(|level| row.check(level).ok())
        .collect();
    levels.sort();
    levels.dedup();
    levels
}

/// The role in which a row has an effect.
fn role_of(row: &Parameter) -> ProxyRole {
    let is_for_files = row.writes[0].context.name() == "directory";
    match is_for_files {
        true => ProxyRole::StaticFiles { size: 1 },
        false => ProxyRole::ReverseProxy,
    }
}

#[test]
fn every_level_of_every_parameter_is_accepted_and_reads_back() {
    let catalog = Catalog::builtin();
    let folder = WorkFolder::create().unwrap();
    let (httpd, origin) = (httpd(), ORIGIN.parse().unwrap());
    for row in catalog.parameters(ProxyKind::Httpd) {
        let levels = levels(row);
        assert!(levels.len() > 1, "{}: no sample of its kind", row.id);
        let role = role_of(row);
        for level in levels {
            let settings = stock_with(&[(&row.id, &level)]);
            let site = Site::new(&role, free_address(), Some(origin));
            let prefix = folder.prefix("arm");
            let configuration = httpd.write(&prefix, &settings, &site, &catalog).unwrap();
            let effective = httpd
                .effective(&configuration, None, &catalog)
                .unwrap_or_else(|error| panic!("{} = {level}: {error}", row.id));
            let expected = catalog.complete(ProxyKind::Httpd, &settings);
            assert_eq!(effective.levels, expected, "{} = {level}", row.id);
        }
    }
}

/// Every parameter at another level than its default, as the running httpd tells it.
#[test]
fn what_runs_is_what_was_asked_for() {
    let catalog = Catalog::builtin();
    let httpd = httpd();
    for role in [ProxyRole::ReverseProxy, ProxyRole::StaticFiles { size: 1 }] {
        for mpm in ["event", "worker", "prefork"] {
            let mut settings = stock_with(&[("mpm", mpm)]);
            for row in catalog.parameters(ProxyKind::Httpd) {
                let is_for_threads = row.writes[0].context.name() == "threads";
                let is_left_out = match row.writes[0].context.name() {
                    "event" => mpm != "event",
                    "directory" => role == ProxyRole::ReverseProxy,
                    "proxy" => role != ProxyRole::ReverseProxy,
                    _ => row.id == "mpm" || row.id == "max_request_workers",
                };
                let other = levels(row).into_iter().find(|level| {
                    let default = row.default.newest().level.as_ref();
                    Some(level) != default && level.len() < 12
                });
                if let Some(level) = other.filter(|_| !is_left_out) {
                    settings.insert(row.id.clone(), level);
                }
                if is_for_threads {
                    let threads = if mpm == "prefork" { "25" } else { "10" };
                    settings.insert(row.id.clone(), threads.to_owned());
                }
            }
            let workers = if mpm == "prefork" { "3" } else { "30" };
            settings.insert("max_request_workers".to_owned(), workers.to_owned());
            let origin = Origin::start();
            let launch = Launch::default();
            let arm = start_any(&*httpd, &settings, &role, Some(origin.address), &launch);
            assert_eq!(arm.proxy.worker_pids().len(), 3, "{mpm}");
            let effective = httpd
                .effective(&arm.configuration, Some(&arm.proxy), &catalog)
                .unwrap();
            let expected = catalog.complete(ProxyKind::Httpd, &settings);
            assert_eq!(effective.levels, expected, "{mpm} {role:?}");
            let response = get(arm.proxy.address(), "/");
            assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        }
    }
}

#[test]
fn connections_to_the_origin_are_kept_unless_they_are_not_to_be() {
    const REQUESTS: usize = 20;
    for (changes, connections) in [
        (&[ALONE][..], 1),
        (&[ALONE, ("proxy_disablereuse", "on")], REQUESTS),
    ] {
        let origin = Origin::start();
        let mut arm = start(changes, &ProxyRole::ReverseProxy, Some(origin.address));
        let before = arm.proxy.cpu_ns();
        for _ in 0..REQUESTS {
            let response = get(arm.proxy.address(), "/");
            assert!(
                response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("hello"),
                "{response}"
            );
        }
        assert_eq!(origin.connections(), connections, "{changes:?}");
        assert!(arm.proxy.cpu_ns() > before);
        arm.proxy.alive().unwrap();
        let log = fs::read_to_string(arm.configuration.prefix().join("logs/access.log")).unwrap();
        assert_eq!(
            log.lines().count(),
            REQUESTS,
            "the arm logs into its own folder"
        );
    }
}

/// An origin server for one connection; the head of the request that it was asked.
fn listening_origin() -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port can be had");
    let address = listener.local_addr().expect("a listener has an address");
    let asked = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the proxy connects");
        let lines = BufReader::new(stream.try_clone().expect("it can be cloned")).lines();
        let head: Vec<String> = lines
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect();
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(response).expect("the proxy reads");
        head.join("\n")
    });
    (address, asked)
}

#[test]
fn targets_go_on_unchanged_and_the_host_as_the_setting_says() {
    const TARGET: &str = "/a%2Fb//c;d/%7Ee?x=%20&y=/";
    for (level, is_the_client_s) in [("off", false), ("on", true)] {
        let (origin, asked) = listening_origin();
        let changes = [("proxy_preserve_host", level)];
        let arm = start(&changes, &ProxyRole::ReverseProxy, Some(origin));
        let response = get(arm.proxy.address(), TARGET);
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        let head = asked.join().unwrap();
        assert!(
            head.starts_with(&format!("GET {TARGET} HTTP/1.1\n")),
            "{head}"
        );
        let host = if is_the_client_s {
            "test".to_owned()
        } else {
            origin.to_string()
        };
        assert!(head.contains(&format!("\nHost: {host}\n")), "{head}");
    }
}

#[test]
fn what_is_asked_of_httpd_itself_is_no_client_s_to_see_and_never_goes_on() {
    let (origin, asked) = listening_origin();
    let arm = start(&[ALONE], &ProxyRole::ReverseProxy, Some(origin));
    let httpd = httpd();
    let before = httpd.counters(&arm.configuration).unwrap();
    let response = get(arm.proxy.address(), "/.weir/else");
    assert!(response.starts_with("HTTP/1.1 403 "), "{response}");
    assert!(get(arm.proxy.address(), "/").starts_with("HTTP/1.1 200 "));
    assert!(
        asked.join().unwrap().starts_with("GET / "),
        "the only request"
    );
    let after = httpd.counters(&arm.configuration).unwrap();
    // The two above, and the asking before: each is counted when it is over.
    let grown = after["Total Accesses"] - before["Total Accesses"];
    assert_eq!(grown, 3, "{before:?} {after:?}");
    // The origin is gone: httpd says so by its own number, and 503.
    assert!(get(arm.proxy.address(), "/").starts_with("HTTP/1.1 503 "));
    let troubles = httpd.counters(&arm.configuration).unwrap();
    assert_eq!(troubles.get("AH00957"), Some(&1), "{troubles:?}");
}

#[test]
fn without_extended_status_requests_are_not_counted() {
    let changes = [ALONE, ("extended_status", "off")];
    let arm = start(&changes, &ProxyRole::StaticFiles { size: 1 }, None);
    let counters = httpd().counters(&arm.configuration).unwrap();
    assert_eq!(counters.get("Total Accesses"), None, "{counters:?}");
}

#[test]
fn files_have_the_sizes_and_types_that_were_asked_for() {
    let folder = WorkFolder::create().unwrap();
    let role = ProxyRole::StaticFiles { size: 5000 };
    let site = Site {
        sizes: &[0, 1024, 1 << 20],
        ..Site::new(&role, free_address(), None)
    };
    let settings = stock_with(&[("access_log", "off")]);
    let catalog = Catalog::builtin();
    let httpd = httpd();
    let prefix = folder.prefix("arm");
    let configuration = httpd.write(&prefix, &settings, &site, &catalog).unwrap();
    let proxy = weir_sut::start(&*httpd, &configuration, &launcher(), &Launch::default()).unwrap();
    for (target, size, media_type) in [
        ("/", 5000, "text/html"),
        ("/index.html", 5000, "text/html"),
        ("/1024", 1024, "application/octet-stream"),
        ("/1048576", 1 << 20, "application/octet-stream"),
        ("/0", 0, "application/octet-stream"),
    ] {
        let response = get(proxy.address(), target);
        let (head, content) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains(&format!("Content-Length: {size}")), "{head}");
        assert!(
            head.contains(&format!("Content-Type: {media_type}")),
            "{head}"
        );
        assert_eq!(content.len(), size);
    }
    assert!(get(proxy.address(), "/2").starts_with("HTTP/1.1 404 "));
    assert!(!prefix.join("logs/access.log").exists());
}

/// What comes back on one connection for several requests, sent in one piece: between two an idle
/// connection may be closed.
fn ask_again(address: SocketAddr, requests: usize, fields: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the proxy accepts");
    let request = format!("GET /index.html HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
    stream
        .write_all(request.repeat(requests).as_bytes())
        .expect("the proxy reads");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("the proxy answers");
    String::from_utf8_lossy(&all).into_owned()
}

#[test]
fn a_client_s_connection_is_kept_as_the_settings_say() {
    let role = ProxyRole::StaticFiles { size: 1 };
    for (changes, answered) in [
        // The first request and three more.
        (&[("keepalive_requests", "3")][..], 4),
        (&[("keepalive", "off")], 1),
        (
            &[("keepalive_requests", "0"), ("keepalive_timeout", "50ms")],
            5,
        ),
    ] {
        let arm = start(changes, &role, None);
        let responses = ask_again(arm.proxy.address(), 5, "");
        assert_eq!(
            responses.matches("HTTP/1.1 200 OK").count(),
            answered,
            "{changes:?}"
        );
    }
}

#[test]
fn compression_is_for_those_who_ask() {
    let role = ProxyRole::StaticFiles { size: 5000 };
    for (level, is_compressed) in [("on", true), ("off", false)] {
        let arm = start(&[("deflate", level)], &role, None);
        let fields = "Accept-Encoding: gzip\r\nConnection: close\r\n";
        let response = ask_again(arm.proxy.address(), 1, fields);
        let says_so = response.contains("Content-Encoding: gzip");
        assert_eq!(says_so, is_compressed, "{level}");
        assert!(!get(arm.proxy.address(), "/").contains("Content-Encoding"));
    }
}

#[test]
fn nothing_of_the_system_s_service_is_named() {
    let folder = WorkFolder::create().unwrap();
    let catalog = Catalog::builtin();
    for role in [ProxyRole::ReverseProxy, ProxyRole::StaticFiles { size: 0 }] {
        let site = Site::new(&role, free_address(), ORIGIN.parse().ok());
        let prefix = folder.prefix("arm");
        let configuration = httpd()
            .write(&prefix, &Settings::new(), &site, &catalog)
            .unwrap();
        let text = fs::read_to_string(configuration.file()).unwrap();
        let own = configuration.prefix().display().to_string();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let words = line.split([' ', '"', '>']);
            let is_own =
                |word: &str| word == "/" || word.starts_with("/.weir/") || word.starts_with(&own);
            let mut paths = words.filter(|word| word.starts_with('/'));
            assert!(paths.all(is_own), "{line}");
        }
        assert_eq!(httpd().check(&configuration).unwrap(), Vec::<String>::new());
    }
}

#[test]
fn remarks_and_refusals_are_in_httpd_s_own_words() {
    let folder = WorkFolder::create().unwrap();
    let catalog = Catalog::builtin();
    let role = ProxyRole::StaticFiles { size: 1 };
    let write = |changes: &[(&str, &str)]| {
        let site = Site::new(&role, free_address(), None);
        let settings = stock_with(changes);
        let prefix = folder.prefix("arm");
        httpd().write(&prefix, &settings, &site, &catalog).unwrap()
    };
    let odd = httpd()
        .check(&write(&[("max_request_workers", "90")]))
        .unwrap();
    assert!(
        odd.join("\n").contains("not an integer multiple"),
        "{odd:?}"
    );

    let configuration = write(&[("keepalive", "perhaps")]);
    let error = httpd().check(&configuration).unwrap_err();
    let SutError::Refused { words, .. } = &error else {
        panic!("{error}");
    };
    assert!(words.contains("KeepAlive must be On or Off"), "{words}");
    assert!(words.contains("httpd.conf"), "with the place: {words}");
    assert!(error.hint().is_some());
    let error = weir_sut::start(&*httpd(), &configuration, &launcher(), &Launch::default());
    let error = error.unwrap_err();
    assert!(
        matches!(&error, SutError::NotStarted { words, .. } if words.contains("On or Off")),
        "{error}"
    );
}

#[test]
fn what_cannot_be_configured_is_refused_before_anything_is_written() {
    let catalog = Catalog::builtin();
    let folder = WorkFolder::create().unwrap();
    let site = Site::new(&ProxyRole::ReverseProxy, free_address(), None);
    let write = |settings: &Settings, site: &Site<'_>| {
        httpd().write(&folder.prefix("arm"), settings, site, &catalog)
    };
    assert!(matches!(
        write(&Settings::new(), &site),
        Err(SutError::NoOrigin)
    ));
    let unknown = Settings::from([("colour".to_owned(), "red".to_owned())]);
    let refused = write(&unknown, &site);
    assert!(matches!(refused, Err(SutError::UnknownParameter { id, .. }) if id == "colour"));
    let kernel = Settings::from([("net.core.somaxconn".to_owned(), "65536".to_owned())]);
    assert!(matches!(
        write(&kernel, &site),
        Err(SutError::NotOfProxy { .. })
    ));
    let own = Own {
        file: Path::new("/etc/apache2/apache2.conf"),
        port: None,
    };
    let site = Site {
        own: Some(own),
        ..site
    };
    let refused = write(&Settings::new(), &site);
    assert!(matches!(refused, Err(SutError::Unable { .. })));
    assert!(!folder.prefix("arm").exists());
}

/// Its pool is the same after a load of more connections than it has threads for, and after none.
#[test]
fn workers_stay_the_same_under_load_and_without() {
    let origin = Origin::start();
    let changes = [("max_request_workers", "6"), ("threads_per_child", "2")];
    let mut arm = start(&changes, &ProxyRole::ReverseProxy, Some(origin.address));
    let workers = arm.proxy.worker_pids();
    assert_eq!(workers.len(), 3);
    let address = arm.proxy.address();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| (0..20).for_each(|_| assert!(get(address, "/").ends_with("hello"))));
        }
    });
    // Once a second httpd looks whether processes are too many or too few.
    std::thread::sleep(Duration::from_millis(2500));
    arm.proxy.alive().unwrap();
    let now = weir_probe::process::children(arm.proxy.master_pid()).unwrap();
    assert_eq!(now, workers);
}

/// What only the start finds out httpd logs, and prints no more than that it failed.
#[test]
fn a_start_that_fails_has_the_words_of_the_log() {
    let folder = WorkFolder::create().unwrap();
    let site = Site::new(&ProxyRole::StaticFiles { size: 1 }, free_address(), None);
    let configuration = httpd()
        .write(
            &folder.prefix("arm"),
            &stock_with(&[ALONE]),
            &site,
            &Catalog::builtin(),
        )
        .unwrap();
    let types = configuration.prefix().join("conf/mime.types");
    fs::remove_file(types).unwrap();
    let error = weir_sut::start(&*httpd(), &configuration, &launcher(), &Launch::default());
    let error = error.unwrap_err();
    let SutError::NotStarted { words, .. } = &error else {
        panic!("{error}");
    };
    assert!(
        words.contains("could not open mime types config file"),
        "{words}"
    );
}
