//! Tests of what all proxies have in common, with each one's own settings.

use std::fs;
use std::path::Path;

use weir_model::study::{ProxyKind, Settings};
use weir_parameters::Catalog;
use weir_sut::WorkFolder;

use crate::programs::gate::{Client, Gate, HOST};
use crate::programs::setup::{Changes, Setup, nobody, program};
use crate::programs::support::until;

/// Returns a setup that serves a page of 5000 bytes, or passes requests on to an origin server if the proxy serves no
/// files.
fn serving<'a>(kind: ProxyKind, changes: Changes<'_>, origin: &Gate) -> Setup<'a> {
    match kind {
        ProxyKind::Haproxy | ProxyKind::Envoy => Setup::proxy(kind, changes, origin.address),
        _ => Setup::files(kind, changes, 5000),
    }
}

/// Returns the open files of a process that have an absolute path.
fn files_of(pid: u32) -> Vec<String> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs");
    descriptors
        .flatten()
        .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
        .filter(|link| link.is_absolute())
        .map(|file| file.display().to_string())
        .collect()
}

#[test]
fn nothing_of_the_system_s_services_is_named_or_open() {
    let origin = Gate::start();
    for kind in ProxyKind::started() {
        let folder = WorkFolder::create().unwrap();
        let stock = serving(kind, &[], &origin);
        for setup in [stock.clone(), Setup::proxy(kind, &[], nobody())] {
            let bare = Setup { settings: Settings::new(), ..setup.clone() };
            must_name_its_own(&setup, &folder, "");
            // HAProxy waits for ever by itself, which it does not like.
            let is_patient = kind == ProxyKind::Haproxy;
            let remark = if is_patient { "missing timeouts" } else { "" };
            must_name_its_own(&bare, &folder, remark);
        }
        let arm = stock.start();
        // Once it answers it has read all that it needs.
        arm.get("/");
        let prefix = fs::canonicalize(arm.configuration.prefix()).unwrap();
        let own_paths = [&prefix.display().to_string(), "/dev/", "/sys/", "/memfd:"];
        let workers = arm.proxy.worker_pids().into_iter();
        for pid in workers.chain([arm.proxy.master_pid()]) {
            // A worker that begins has the C library read the host's groups, and a thread that ends has it
            // load another one: these are closed at once.
            for file in files_of(pid) {
                let is_own = own_paths.iter().any(|path| file.starts_with(path));
                until(&format!("{kind:?} closes {file}"), || {
                    is_own || !files_of(pid).contains(&file)
                });
            }
        }
    }
}

/// Asserts that no path leads out of the prefix, and that the program's only remark is `remark`.
#[track_caller]
fn must_name_its_own(setup: &Setup<'_>, folder: &WorkFolder, remark: &str) {
    let configuration = setup.write(folder);
    let prefix = configuration.prefix().display().to_string();
    let text = fs::read_to_string(configuration.file()).expect("it was written");
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    // The root of all targets, httpd's own, and the list of media types that nginx comes with.
    let begins = [&prefix, "/.weir/"];
    let strange = lines
        .flat_map(|line| line.split([' ', '"', '>', ';', '@']))
        .filter(|word| word.starts_with('/') && *word != "/" && !word.ends_with("/mime.types"))
        .filter(|word| !begins.iter().any(|it| word.starts_with(it)));
    assert_eq!(strange.collect::<Vec<_>>(), [""; 0], "{text}");
    // nginx writes one unless it is told otherwise.
    assert!(setup.kind != ProxyKind::Nginx || text.contains("access_log logs/access.log"));
    let remarks = program(setup.kind).check(&configuration).expect("it is accepted").join("\n");
    assert_eq!(remarks.is_empty(), remark.is_empty(), "{remarks}");
    assert!(remarks.contains(remark), "{remarks}");
}

#[test]
fn text_is_compressed_for_those_who_ask_and_only_where_it_is_on() {
    let origin = Gate::start();
    #[rustfmt::skip]
    let rows = [
        (ProxyKind::Nginx, &[("gzip", "on")][..], Some("gzip")),
        (ProxyKind::Nginx, &[("gzip", "off")], None),
        (ProxyKind::Envoy, &[("gzip", "on"), ("gzip_comp_level", "1")], Some("gzip")),
        (ProxyKind::Envoy, &[("gzip", "off"), ("gzip_comp_level", "1")], None),
        (ProxyKind::Httpd, &[("deflate", "on")], Some("gzip")),
        (ProxyKind::Httpd, &[("deflate", "off")], None),
        (ProxyKind::Caddy, &[], None),
        (ProxyKind::Caddy, &[("gzip_comp_level", "9")], None),
        (ProxyKind::Caddy, &[("compression", "gzip")], Some("gzip")),
        (ProxyKind::Caddy, &[("compression", "zstd gzip")], Some("zstd")),
        (ProxyKind::Caddy, &[("compression", "gzip"), ("compression_min_length", "8k")], None),
    ];
    for (kind, changes, expected) in rows {
        let arm = serving(kind, changes, &origin).start();
        for (field, expected) in [("Accept-Encoding: gzip, zstd\r\n", expected), ("", None)] {
            let fields = format!("{HOST}{field}");
            let mut client = Client::asking(arm.proxy.address(), "/", &fields);
            let head = client.head().expect("it answers").to_ascii_lowercase();
            let mut lines = head.lines();
            let encoding = lines.find_map(|line| line.strip_prefix("content-encoding: "));
            assert_eq!(encoding, expected, "{kind:?} {changes:?}: {head}");
        }
    }
}

#[test]
fn the_access_log_has_a_line_for_each_request_in_the_arm_s_own_folder() {
    const REQUESTS: usize = 3;
    let origin = Gate::start();
    let catalog = Catalog::builtin();
    for kind in ProxyKind::started().filter(|kind| catalog.get(*kind, "access_log").is_some()) {
        for (level, lines) in [("on", REQUESTS), ("off", 0)] {
            let arm = serving(kind, &[("access_log", level)], &origin).start();
            for _ in 0..REQUESTS {
                arm.get("/logged");
            }
            let [log, output] = ["logs/access.log", "logs/output"]
                .map(|name| arm.configuration.prefix().join(name));
            // Clients have their answers before the line of the last is written; what waits is written at the end.
            if kind == ProxyKind::Haproxy {
                until("the last line is written", || count_logged(&log) >= lines);
            }
            arm.proxy.stop();
            assert_eq!((count_logged(&log), count_logged(&output)), (lines, 0), "{kind:?} {level}");
        }
    }
}

fn count_logged(file: &Path) -> usize {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter(|line| line.contains("/logged")).count()
}
