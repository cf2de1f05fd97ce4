//! Configurations of the real nginx: accepted, read back, refused; and what it serves with them.

use std::fs;
use std::net::SocketAddr;

use weir_model::study::{ProxyKind, ProxyRole, Settings};
use weir_parameters::{Catalog, LevelKind, Parameter};
use weir_sut::{Launch, Site, SutError, WorkFolder};

use crate::support::{Origin, free_address, get, launcher, nginx, start, start_with, stock_with};

const ORIGIN: &str = "127.0.0.1:9";

/// Levels of a parameter in their canonical spelling: bounds, words, and whatever it accepts of a
/// list that has something for every kind.
pub(crate) fn levels(row: &Parameter) -> Vec<String> {
    const SAMPLES: &[&str] = &[
        "on",
        "off",
        "buffered",
        "auto",
        "0",
        "1",
        "2",
        "64",
        "1000",
        "4k",
        "1m",
        "0s",
        "250ms",
        "10s",
        "2m",
        "max=1000",
        "max=1000 inactive=10s",
        "text/html",
        "text/css application/json",
        "none",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "HIGH:!aNULL:!SHA1",
    ];
    let mut samples: Vec<String> = SAMPLES.iter().map(|&s| s.to_owned()).collect();
    match &row.level {
        LevelKind::Integer { min, max, words } => {
            samples.extend([min.to_string(), max.to_string()]);
            samples.extend(words.clone());
        }
        LevelKind::Set(words) => samples.extend([words.join(" "), words[words.len() - 1].clone()]),
        LevelKind::Choice(words) => samples.extend(words.clone()),
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

#[test]
fn every_level_of_every_parameter_is_accepted_and_reads_back() {
    let catalog = Catalog::builtin().for_proxy(ProxyKind::Nginx, nginx().version());
    let folder = WorkFolder::create().unwrap();
    let origin: SocketAddr = ORIGIN.parse().unwrap();
    for row in catalog.parameters(ProxyKind::Nginx) {
        let levels = levels(row);
        assert!(
            levels.len() > 1,
            "{}: a sample for its kind of level is missing here",
            row.id
        );
        for level in levels {
            let settings = stock_with(&[(&row.id, &level)]);
            let configuration = nginx()
                .write(
                    &folder.prefix("arm"),
                    &settings,
                    &Site::new(&ProxyRole::ReverseProxy, free_address(), Some(origin)),
                    &catalog,
                )
                .unwrap();
            let effective = nginx()
                .effective(&configuration, None, &catalog)
                .unwrap_or_else(|error| panic!("{} = {level}: {error}", row.id));
            let mut expected = catalog.complete(ProxyKind::Nginx, &settings);
            // Shows in a process alone.
            expected.remove("worker_rlimit_nofile");
            assert_eq!(effective.levels, expected, "{} = {level}", row.id);
        }
    }
}

#[test]
fn a_stock_arm_opens_a_connection_to_the_origin_for_each_request_and_a_keepalive_arm_one_in_all() {
    const REQUESTS: usize = 20;
    for (changes, connections) in [
        (&[("worker_processes", "1")][..], REQUESTS),
        (&[("worker_processes", "1"), ("origin_keepalive", "16")], 1),
    ] {
        let origin = Origin::start();
        let mut arm = start(
            &stock_with(changes),
            &ProxyRole::ReverseProxy,
            Some(origin.address),
        );
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
        assert_eq!(arm.proxy.error_log_tail(), "");
    }
}

#[test]
fn two_arms_live_side_by_side_and_each_has_its_workers() {
    let origin = Origin::start();
    let settings = [
        stock_with(&[("worker_processes", "1")]),
        stock_with(&[("worker_processes", "3"), ("reuseport", "on")]),
    ];
    let arms =
        settings.map(|settings| start(&settings, &ProxyRole::ReverseProxy, Some(origin.address)));
    assert_eq!(arms[0].proxy.worker_pids().len(), 1);
    assert_eq!(arms[1].proxy.worker_pids().len(), 3);
    for arm in &arms {
        assert!(get(arm.proxy.address(), "/").ends_with("hello"));
    }
}

#[test]
fn a_file_of_the_size_that_was_asked_for_is_served_and_looks_like_text() {
    let role = ProxyRole::StaticFiles { size: 5000 };
    let arm = start(&stock_with(&[("access_log", "off")]), &role, None);
    for target in ["/", "/index.html"] {
        let response = get(arm.proxy.address(), target);
        let (head, content) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(
            head.contains("Content-Length: 5000") && head.contains("Content-Type: text/html"),
            "{head}"
        );
        assert_eq!(content.len(), 5000);
        assert!(
            content
                .bytes()
                .all(|b| b == b'\n' || b.is_ascii_graphic() || b == b' ')
        );
    }
    assert!(!arm.configuration.prefix().join("logs/access.log").exists());
}

#[test]
fn limits_are_those_that_were_asked_for() {
    let launch = Launch {
        nofile: Some(900),
        ..Launch::default()
    };
    let role = ProxyRole::StaticFiles { size: 1 };
    let inherited = start_with(&stock_with(&[]), &role, None, &launch);
    assert_eq!(inherited.proxy.nofile().unwrap(), 900);

    let settings = stock_with(&[("worker_rlimit_nofile", "901")]);
    let own = start_with(&settings, &role, None, &launch);
    let nofile = own.proxy.nofile().unwrap();
    assert_eq!(nofile, 901);
    let effective = nginx()
        .effective(&own.configuration, Some(&own.proxy), &Catalog::builtin())
        .unwrap();
    assert_eq!(effective.levels["worker_rlimit_nofile"], "901");
    assert!(effective.text.contains("worker_rlimit_nofile 901;"));
}

#[test]
fn nothing_of_the_system_s_service_is_named() {
    let catalog = Catalog::builtin();
    let folder = WorkFolder::create().unwrap();
    // Not even the access log, which nginx writes unless it is told otherwise.
    let configuration = nginx()
        .write(
            &folder.prefix("arm"),
            &Settings::new(),
            &Site::new(&ProxyRole::StaticFiles { size: 0 }, free_address(), None),
            &catalog,
        )
        .unwrap();
    let text = fs::read_to_string(configuration.file()).unwrap();
    for line in text
        .lines()
        .filter(|line| line.contains('/') && !line.starts_with('#'))
    {
        let is_own = !line.contains(" /") && !line.contains("\"/");
        assert!(
            is_own || line.contains("mime.types") || line.contains("location /"),
            "{line}"
        );
    }
    assert_eq!(nginx().check(&configuration).unwrap(), Vec::<String>::new());
    assert!(text.contains("access_log logs/access.log;"));
}

#[test]
fn a_refusal_is_in_nginx_s_own_words() {
    let catalog = Catalog::builtin();
    let folder = WorkFolder::create().unwrap();
    let settings = stock_with(&[("keepalive_timeout", "soon")]);
    let configuration = nginx()
        .write(
            &folder.prefix("arm"),
            &settings,
            &Site::new(&ProxyRole::StaticFiles { size: 1 }, free_address(), None),
            &catalog,
        )
        .unwrap();
    let error = nginx().check(&configuration).unwrap_err();
    let SutError::Refused { words, .. } = &error else {
        panic!("{error}");
    };
    assert!(
        words.contains(r#"[emerg] "keepalive_timeout" directive invalid value"#),
        "{words}"
    );
    assert!(error.hint().is_some());
    let error =
        weir_sut::start(&*nginx(), &configuration, &launcher(), &Launch::default()).unwrap_err();
    assert!(
        matches!(&error, SutError::NotStarted { words, .. } if words.contains("invalid value")),
        "{error}"
    );
}

#[test]
fn what_cannot_be_configured_is_refused_before_anything_is_written() {
    let catalog = Catalog::builtin();
    let folder = WorkFolder::create().unwrap();
    let write = |settings: &Settings| {
        nginx().write(
            &folder.prefix("arm"),
            settings,
            &Site::new(&ProxyRole::ReverseProxy, free_address(), None),
            &catalog,
        )
    };
    assert!(matches!(write(&Settings::new()), Err(SutError::NoOrigin)));
    let unknown = Settings::from([("colour".to_owned(), "red".to_owned())]);
    assert!(
        matches!(write(&unknown), Err(SutError::UnknownParameter { id, .. }) if id == "colour")
    );
    for id in ["net.core.somaxconn", "fs.file-max", "rlimit_nofile"] {
        let kernel = Settings::from([(id.to_owned(), "65536".to_owned())]);
        let refused = write(&kernel);
        assert!(matches!(refused, Err(SutError::NotOfProxy { id: of }) if of == id));
    }
    assert!(!folder.prefix("arm").exists());
}

#[test]
fn its_own_counters_count_what_it_was_asked() {
    let arm = start(&stock_with(&[]), &ProxyRole::StaticFiles { size: 1 }, None);
    let before = nginx().counters(&arm.configuration).unwrap();
    for _ in 0..5 {
        get(arm.configuration.listen(), "/");
    }
    let after = nginx().counters(&arm.configuration).unwrap();
    // And once for the second look itself.
    for name in ["accepts", "handled", "requests"] {
        assert_eq!(after[name] - before[name], 6, "{name}");
    }
}
