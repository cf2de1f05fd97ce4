//! Settings: accepted, read back, refused.

use std::fs;
use std::path::Path;

use weir_model::study::{ProxyKind, ProxyRole, Settings};
use weir_parameters::{Catalog, LevelKind, Parameter, Rule};
use weir_sut::{Certificate, Configuration, Launch, Own, Site, SutError, TlsListener, WorkFolder};

use super::{FILES, caddy, start, stock_with};
use crate::support::{free_address, launcher};

/// Levels of a parameter in their canonical spelling: bounds, words, and something of every kind.
fn levels(row: &Parameter) -> Vec<String> {
    let mut samples: Vec<String> = ["on", "off", "250ms"].map(str::to_owned).into();
    match &row.level {
        LevelKind::Integer { min, max, words } | LevelKind::Size { min, max, words } => {
            samples.extend([min.to_string(), max.to_string()]);
            samples.extend(words.clone());
        }
        LevelKind::Duration { min, max, .. } => {
            samples.extend([min, max].map(|bound| format!("{}ms", bound.as_millis())));
        }
        LevelKind::Choice(words) => samples.extend(words.clone()),
        _ => {}
    }
    let levels = samples.iter().filter_map(|level| row.check(level).ok());
    let mut levels: Vec<String> = levels.collect();
    levels.sort();
    levels.dedup();
    levels
}

/// What must be set besides for a parameter to have an effect.
fn companions(row: &Parameter, catalog: &Catalog) -> Vec<(String, String)> {
    let rules = row.constraints.iter().map(|constraint| &constraint.rule);
    rules
        .filter_map(|rule| match rule {
            Rule::NotWith {
                setting,
                levels: idle,
            } => {
                let other = catalog.get(ProxyKind::Caddy, setting).expect("a row");
                let level = levels(other)
                    .into_iter()
                    .find(|level| !idle.contains(level));
                Some((setting.clone(), level.expect("a level that is not idle")))
            }
            _ => None,
        })
        .collect()
}

/// A reverse proxy with both kinds of listener.
fn write(settings: &Settings, folder: &WorkFolder, certificate: &Certificate) -> Configuration {
    let tls = TlsListener {
        listen: free_address(),
        certificate,
    };
    let origin = "127.0.0.1:9".parse().ok();
    let site = Site {
        tls: Some(tls),
        ..Site::new(&ProxyRole::ReverseProxy, free_address(), origin)
    };
    caddy()
        .write(&folder.prefix("arm"), settings, &site, &Catalog::builtin())
        .expect("the configuration can be written")
}

/// Whether it has an effect whatever the others are.
fn stands_alone(row: &Parameter) -> bool {
    let rules = row.constraints.iter().map(|constraint| &constraint.rule);
    !rules
        .into_iter()
        .any(|rule| matches!(rule, Rule::NotWith { .. }))
}

#[test]
fn every_level_of_every_parameter_is_accepted_and_reads_back() {
    let catalog = Catalog::builtin().for_proxy(ProxyKind::Caddy, caddy().version());
    let folder = WorkFolder::create().unwrap();
    let certificate = Certificate::make(folder.path(), "weir.test").unwrap();
    let try_with = |changes: Vec<(String, String)>| {
        let mut settings = stock_with(&[]);
        settings.extend(changes.clone());
        let configuration = write(&settings, &folder, &certificate);
        // Which lets Caddy check it first.
        let effective = caddy()
            .effective(&configuration, None, &catalog)
            .unwrap_or_else(|error| panic!("{changes:?}: {error}"));
        let expected = catalog.complete(ProxyKind::Caddy, &settings);
        assert_eq!(effective.levels, expected, "{changes:?}");
    };
    let (alone, others): (Vec<&Parameter>, Vec<&Parameter>) = catalog
        .parameters(ProxyKind::Caddy)
        .partition(|row| stands_alone(row));
    // All together: a start of the program for each level of each would take minutes.
    let rounds = alone.iter().map(|row| levels(row).len());
    assert!(
        rounds.clone().all(|levels| levels > 1),
        "no sample of its kind"
    );
    for round in 0..rounds.max().unwrap() {
        let level = |row: &&Parameter| {
            let levels = levels(row);
            (row.id.clone(), levels[round % levels.len()].clone())
        };
        try_with(alone.iter().map(level).collect());
    }
    for row in others {
        for level in levels(row) {
            let mut changes = companions(row, &catalog);
            changes.push((row.id.clone(), level));
            try_with(changes);
        }
    }
}

#[test]
fn a_process_says_what_it_runs_with() {
    let changes = [
        ("gomaxprocs", "3"),
        ("gogc", "400"),
        ("gomemlimit", "512m"),
        ("keepalive_timeout", "7s"),
        ("compression", "zstd gzip"),
        ("gzip_comp_level", "1"),
        ("origin_keepalive", "100"),
        ("origin_max_requests", "50"),
        ("origin_compression", "off"),
        ("flush_interval", "immediate"),
        ("access_log", "on"),
        ("metrics", "on"),
    ];
    let origin = "127.0.0.1:9".parse().ok();
    let arm = start(&changes, &ProxyRole::ReverseProxy, origin);
    let catalog = Catalog::builtin().for_proxy(ProxyKind::Caddy, caddy().version());
    let read = || {
        caddy()
            .effective(&arm.configuration, Some(&arm.proxy), &catalog)
            .unwrap()
    };
    let complete = catalog.complete(ProxyKind::Caddy, &stock_with(&changes));
    assert_eq!(read().levels, complete);
    assert!(read().text.contains("\"idle_timeout\": \"7s\""));
    // From the process, and not from the file.
    fs::write(arm.configuration.file(), "{}").unwrap();
    assert_eq!(read().levels, complete);
}

#[test]
fn a_stock_configuration_is_accepted_without_a_remark_and_names_nothing_outside_the_prefix() {
    let folder = WorkFolder::create().unwrap();
    let certificate = Certificate::make(folder.path(), "weir.test").unwrap();
    let configuration = write(&stock_with(&[("access_log", "on")]), &folder, &certificate);
    assert_eq!(caddy().check(&configuration).unwrap(), Vec::<String>::new());
    let text = fs::read_to_string(configuration.file()).unwrap();
    assert!(text.contains("\"logs/access.log\"") && text.contains("\"conf/key.pem\""));
    assert!(!text.contains("\"/"), "{text}");
    let whole = folder.path().display().to_string();
    assert!(!text.contains(&whole), "{text}");
}

#[test]
fn a_process_writes_nowhere_but_below_the_prefix() {
    let arm = start(&[("access_log", "on")], &FILES, None);
    let pid = arm.proxy.master_pid();
    let environment = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
    for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
        let values = environment
            .split('\0')
            .filter_map(|pair| pair.split_once('='));
        let value = values.clone().find(|(key, _)| *key == name).unwrap().1;
        assert!(value.starts_with("temp"), "{name}={value}");
    }
    let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    assert_eq!(cwd, arm.configuration.prefix());
    for descriptor in fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten() {
        let Ok(file) = fs::read_link(descriptor.path()) else {
            continue;
        };
        let is_own = file.starts_with(arm.configuration.prefix());
        let is_plain = file.is_absolute() && !file.starts_with("/dev") && !file.starts_with("/sys");
        assert!(is_own || !is_plain, "{}", file.display());
    }
}

#[test]
fn a_refusal_is_in_caddy_s_own_words() {
    let folder = WorkFolder::create().unwrap();
    let site = Site::new(&FILES, free_address(), None);
    let settings = stock_with(&[("keepalive_timeout", "soon")]);
    let configuration = caddy()
        .write(&folder.prefix("arm"), &settings, &site, &Catalog::builtin())
        .unwrap();
    let error = caddy().check(&configuration).unwrap_err();
    let SutError::Refused { words, .. } = &error else {
        panic!("{error}");
    };
    assert!(words.contains("invalid duration \"soon\""), "{words}");
    assert!(!words.contains("\"level\":\"info\""), "{words}");
    let error =
        weir_sut::start(&*caddy(), &configuration, &launcher(), &Launch::default()).unwrap_err();
    assert!(
        matches!(&error, SutError::NotStarted { words, .. } if words.contains("\"soon\"")),
        "{error}"
    );
}

#[test]
fn a_setting_that_this_version_does_not_know_is_refused_with_its_name() {
    let rows = r#"
proxy: caddy
parameters:
  - id: keepalive_count
    scope: proxy_directive
    level: {integer: {min: 1, max: 9}}
    default: {level: "9", since: 2.11.0}
    why: Probes of the kernel on an idle connection before it is given up.
    source: https://caddyserver.com/docs/json/apps/http/servers/
    effective: {value: {context: server, at: /keepalive_count}}
    writes:
      - {context: server, at: /keepalive_count, text: "{value}"}
"#;
    let catalog = Catalog::builtin().with_rows("mine.yaml", rows).unwrap();
    let folder = WorkFolder::create().unwrap();
    let site = Site::new(&FILES, free_address(), None);
    let settings = stock_with(&[("keepalive_count", "3")]);
    let configuration = caddy()
        .write(&folder.prefix("arm"), &settings, &site, &catalog)
        .unwrap();
    // A newer Caddy takes it.
    if let Err(error) = caddy().check(&configuration) {
        assert!(
            matches!(&error, SutError::Refused { words, .. } if words.contains("keepalive_count")),
            "{error}"
        );
    }
}

#[test]
fn what_cannot_be_configured_is_refused_before_anything_is_written() {
    let catalog = Catalog::builtin();
    let folder = WorkFolder::create().unwrap();
    let write = |settings: &Settings, own: Option<Own<'_>>| {
        let site = Site {
            own,
            ..Site::new(&ProxyRole::ReverseProxy, free_address(), None)
        };
        caddy().write(&folder.prefix("arm"), settings, &site, &catalog)
    };
    assert!(matches!(
        write(&stock_with(&[]), None),
        Err(SutError::NoOrigin)
    ));
    assert!(matches!(
        write(&stock_with(&[("worker_processes", "1")]), None),
        Err(SutError::UnknownParameter { .. })
    ));
    assert!(matches!(
        write(&stock_with(&[("net.core.somaxconn", "1")]), None),
        Err(SutError::NotOfProxy { .. })
    ));
    let own = Own {
        file: Path::new("/nonexistent.json"),
        port: None,
    };
    assert!(matches!(
        write(&stock_with(&[]), Some(own)),
        Err(SutError::Own(_))
    ));
    assert!(!folder.prefix("arm").exists());
}
