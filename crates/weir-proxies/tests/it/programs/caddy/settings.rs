//! Tests of settings: in force, refused, and with no path outside the prefix.

use std::fs;

use weir_model::study::ProxyKind;
use weir_parameters::Catalog;
use weir_sut::{Certificate, Site, SutError, WorkFolder};

use super::{caddy, files, proxy};
use crate::programs::setup::{Setup, catalog_of, nobody, stock};
use crate::programs::support::free_address;

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
    let setup = proxy(&changes, nobody());
    let arm = setup.start();
    let complete = catalog_of(ProxyKind::Caddy).complete(ProxyKind::Caddy, &setup.settings);
    assert_eq!(arm.effective().levels, complete);
    assert!(arm.effective().text.contains("\"idle_timeout\": \"7s\""));
    // From the process, and not from the file.
    fs::write(arm.configuration.file(), "{}").unwrap();
    assert_eq!(arm.effective().levels, complete);
}

#[test]
fn a_stock_configuration_is_accepted_without_a_remark_and_names_nothing_outside_the_prefix() {
    let folder = WorkFolder::create().unwrap();
    let certificate = Certificate::make(folder.path(), &["weir.test".to_owned()]).unwrap();
    let setup =
        Setup { certificate: Some(&certificate), ..proxy(&[("access_log", "on")], nobody()) };
    let configuration = setup.write(&folder);
    assert_eq!(caddy().check(&configuration).unwrap(), Vec::<String>::new());
    let text = fs::read_to_string(configuration.file()).unwrap();
    assert!(text.contains("\"logs/access.log\"") && text.contains("\"conf/key.pem\""));
    assert!(!text.contains("\"/"), "{text}");
    let folder_path = folder.path().display().to_string();
    assert!(!text.contains(&folder_path), "{text}");
}

#[test]
fn a_process_writes_nowhere_but_below_the_prefix() {
    let arm = files(&[("access_log", "on")]).start();
    let pid = arm.proxy.master_pid();
    let environment = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
    for name in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
        let value = environment
            .split('\0')
            .filter_map(|pair| pair.split_once('='))
            .clone()
            .find(|(key, _)| *key == name)
            .unwrap()
            .1;
        assert!(value.starts_with("temp"), "{name}={value}");
    }
    let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    assert_eq!(cwd, arm.configuration.prefix());
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
    let role = files(&[]).role;
    let site = Site::new(&role, free_address(), None);
    let settings = stock(ProxyKind::Caddy, &[("keepalive_count", "3")]);
    let configuration = caddy().write(&folder.prefix("arm"), &settings, &site, &catalog).unwrap();
    // A newer Caddy takes it.
    if let Err(error) = caddy().check(&configuration) {
        let names =
            matches!(&error, SutError::Refused { words, .. } if words.contains("keepalive_count"));
        assert!(names, "{error}");
    }
}
