//! Tests of the rows: they are complete, spelled like nginx spells them, and reversible.

use std::fs;
use std::path::Path;

use weir_model::study::ProxyKind;
use weir_model::study::ProxyKind::Nginx;
use weir_parameters::{Catalog, Directive, EffectiveFrom, Parameter, Scope, Spelling};

fn row(id: &str) -> Parameter {
    Catalog::builtin().get(Nginx, id).expect("a row").clone()
}

/// Formats the directives of a level: `http: gzip on`, and so on.
fn texts(id: &str, level: &str) -> Vec<String> {
    row(id)
        .directives(level)
        .into_iter()
        .map(|d| format!("{}: {}", d.context.name(), d.text))
        .collect()
}

#[track_caller]
fn reads_back(id: &str, found: Option<&str>, level: Option<&str>) {
    assert_eq!(row(id).read_back(found).as_deref(), level, "{id}: {found:?}");
}

#[test]
fn every_parameter_of_the_first_studies_has_a_row() {
    let catalog = Catalog::builtin();
    let ids: Vec<&str> = catalog.parameters(Nginx).map(|row| &*row.id).collect();
    let all = "worker_processes worker_connections worker_rlimit_nofile multi_accept reuseport \
                   keepalive_requests keepalive_timeout origin_keepalive origin_keepalive_requests \
                   open_file_cache open_file_cache_valid sendfile tcp_nopush tcp_nodelay gzip \
                   gzip_comp_level gzip_types access_log proxy_buffering backlog";
    for id in all.split(' ') {
        assert!(ids.contains(&id), "{id} is missing");
    }
}

#[test]
fn every_row_says_why_and_whence() {
    for row in Catalog::builtin().all(Nginx) {
        assert!(row.why.len() > 30, "{}", row.id);
        let sources = match row.scope {
            Scope::ProxyDirective => "https://nginx.org/en/docs/",
            Scope::ProcessLaunch if row.id == "launcher" => "https://github.com/Xilinx-CNS/onload",
            Scope::ProcessLaunch | Scope::CpuSet => "https://man7.org/linux/man-pages/",
            Scope::Workload => "https://kubernetes.io/docs/",
            _ => "https://docs.kernel.org/",
        };
        assert!(row.source.starts_with(sources), "{}", row.id);
    }
}

#[test]
fn keepalive_to_the_origin_is_three_directives_and_none_when_stock() {
    let three = [
        "upstream: keepalive 32",
        "location: proxy_http_version 1.1",
        "location: proxy_set_header Connection \"\"",
    ];
    assert_eq!(texts("origin_keepalive", "32"), three);
    assert_eq!(texts("origin_keepalive", "0"), [""; 0]);
}

#[test]
fn the_access_log_leaves_the_folder_to_the_runner() {
    assert_eq!(texts("access_log", "on"), ["http: access_log {logs}/access.log"]);
    let buffered = texts("access_log", "buffered").concat();
    assert!(buffered.contains("{logs}/access.log combined buffer=64k"), "{buffered}");
    assert_eq!(texts("access_log", "off"), ["http: access_log off"]);
}

#[test]
fn listen_flags_are_flags() {
    assert_eq!(texts("reuseport", "on"), ["listen: reuseport"]);
    assert_eq!(texts("reuseport", "off"), [""; 0]);
    assert_eq!(texts("backlog", "4096"), ["listen: backlog=4096"]);
    let listen = Some("listen 127.0.0.1:80 reuseport backlog=4096");
    reads_back("backlog", listen, Some("4096"));
    reads_back("reuseport", listen, Some("on"));
    let bare = Some("listen 127.0.0.1:80");
    reads_back("backlog", bare, Some("511"));
    reads_back("reuseport", bare, Some("off"));
}

#[test]
fn what_nginx_says_is_read_back_as_a_level() {
    #[rustfmt::skip]
    let cases = [
        ("access_log", "access_log /tmp/a b/access.log", Some("on")),
        ("access_log", "access_log /t/access.log combined buffer=64k flush=1s", Some("buffered")),
        ("access_log", "access_log off", Some("off")),
        ("access_log", "access_log /var/log/else.txt main", None),
        ("keepalive_timeout", "keepalive_timeout 65", Some("65s")),
        ("origin_keepalive", "keepalive 32", Some("32")),
        ("open_file_cache", "open_file_cache max=1024  inactive=10s",
         Some("max=1024 inactive=10s")),
        ("worker_processes", "worker_processes auto", Some("auto")),
        ("worker_rlimit_nofile", "1024", Some("1024")),
        ("ssl_session_cache", "ssl_session_cache none", Some("none")),
        ("ssl_session_cache", "ssl_session_cache shared:weir:10m", Some("10m")),
        ("ssl_session_cache", "ssl_session_cache shared:other:10m", None),
        ("ssl_protocols", "ssl_protocols TLSv1.3 TLSv1.2", Some("TLSv1.2 TLSv1.3")),
        ("ssl_ciphers", "ssl_ciphers HIGH:!aNULL:!MD5", Some("HIGH:!aNULL:!MD5")),
    ];
    for (id, found, level) in cases {
        reads_back(id, Some(found), level);
    }
    reads_back("keepalive_requests", None, Some("1000"));
    reads_back("worker_rlimit_nofile", None, None);
}

/// Returns some levels of a row: its default, Debian's, and others that its kind accepts.
fn sample_levels(row: &Parameter) -> Vec<String> {
    let guesses = "on|off|auto|buffered|1|7|100|4096|10s|4k|max=1024 inactive=10s|none|64k|\
                   text/css text/plain|TLSv1.2 TLSv1.3|ECDHE-RSA-AES256-GCM-SHA384:HIGH:!aNULL|\
                   1024 65000|4096 131072 6291456|cubic|fq|8080,9000-9010|512Mi|preferred|\
                   pool=ingress|dedicated:NoSchedule"
        .split('|')
        .filter_map(|level| row.check(level).ok());
    row.default
        .all()
        .iter()
        .filter_map(|default| default.level.clone())
        .chain(row.debian.clone())
        .chain(guesses)
        .collect()
}

#[test]
fn what_is_written_reads_back_as_the_level_it_was_written_for() {
    for kind in ProxyKind::ALL {
        for row in Catalog::builtin().all(kind) {
            let levels = sample_levels(row);
            assert!(!levels.is_empty(), "{} has no level", row.id);
            for level in levels {
                let effective = effective_text(row, &row.directives(&level), &level);
                let read = row.read_back(effective.as_deref());
                assert_eq!(read, Some(level), "{kind:?} {}", row.id);
            }
        }
    }
}

/// Returns the text that a reader of the effective configuration would get after `directives` were written.
fn effective_text(row: &Parameter, directives: &[Directive], level: &str) -> Option<String> {
    match &row.effective {
        EffectiveFrom::ProcessLimit { .. } | EffectiveFrom::Sysctl { .. } => {
            Some(format!("{}\n", level.replace(' ', "\t")))
        }
        EffectiveFrom::ListenFlag { .. } => {
            let flags: String = directives.iter().map(|d| format!(" {}", d.text)).collect();
            Some(format!("listen 127.0.0.1:1{flags}"))
        }
        EffectiveFrom::Directive { name, context } => directives
            .iter()
            .find(|d| d.context == *context && is_named(&d.text, name))
            .map(|d| d.text.replace("{logs}", "/some/folder")),
        EffectiveFrom::Value { context, at } => directives
            .iter()
            .find(|d| d.context == *context && d.at.as_ref() == Some(at))
            .map(|d| d.text.replace("{logs}", "/some/folder")),
        EffectiveFrom::Launcher
        | EffectiveFrom::CpuSet
        | EffectiveFrom::Transport { .. }
        | EffectiveFrom::Workload(_) => Some(level.to_owned()),
    }
}

fn is_named(text: &str, name: &str) -> bool {
    let directive = text.strip_prefix("no ").unwrap_or(text);
    directive.strip_prefix(name).is_some_and(|tail| tail.is_empty() || tail.starts_with([' ', '=']))
}

#[test]
fn ids_are_found_in_spite_of_typing() {
    let catalog = Catalog::builtin();
    for (written, meant) in [
        ("keepalive_reqests", "keepalive_requests"),
        ("Worker-Conections", "worker_connections"),
        ("somaxconn", "net.core.somaxconn"),
        ("net.core.somaxcon", "net.core.somaxconn"),
        ("net/core/somaxconn", "net.core.somaxconn"),
        ("/proc/sys/fs/file-max", "fs.file-max"),
        ("sys.fs.file-max", "fs.file-max"),
        ("file_max", "fs.file-max"),
        ("tcp_tw_recycle", "net.ipv4.tcp_tw_reuse"),
        ("nofile", "rlimit_nofile"),
        ("tcp_nodelai", "tcp_nodelay"),
    ] {
        assert_eq!(catalog.nearest(Nginx, written), Some(meant), "{written}");
    }
    assert_eq!(catalog.nearest(Nginx, "zzzzzzzz"), None);
    assert_eq!(catalog.nearest(Nginx, ""), None);
}

/// Reads the page that documents the rows of a proxy. Rows that go with every proxy are on nginx's.
fn read_page(kind: ProxyKind) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = match kind {
        Nginx => docs.join("parameters.md"),
        kind => docs.join(format!("parameters/{}.md", kind.name())),
    };
    fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()))
}

#[test]
fn the_documentation_has_a_line_for_every_row_and_none_beside() {
    let catalog = Catalog::builtin();
    for kind in ProxyKind::started() {
        let page = read_page(kind);
        let mut described = 0;
        let of_all = catalog
            .host_parameters()
            .chain(catalog.workload_parameters())
            .filter(|_| kind == Nginx);
        for row in catalog.parameters(kind).chain(of_all) {
            assert_described(row, &page);
            described += 1;
        }
        // Tables of parameters have four columns.
        let rows =
            page.lines().filter(|line| line.starts_with("| `") && line.matches(" |").count() == 4);
        assert_eq!(rows.count(), described, "{kind:?}");
        for row in catalog.parameters(kind) {
            let keys = row.controllers.values().flat_map(Spelling::all);
            for key in keys.map(|of| format!("{}`", of.key)) {
                let is_there =
                    page.contains(&format!("`{key}")) || page.contains(&format!("/{key}"));
                assert!(is_there, "{kind:?}: {} has no {key}", row.id);
            }
        }
    }
}

#[track_caller]
fn assert_described(row: &Parameter, page: &str) {
    let begin = format!("| `{}` |", row.id);
    let line = page
        .lines()
        .find(|line| line.starts_with(&begin))
        .unwrap_or_else(|| panic!("no page has a line for {}", row.id));
    let columns: Vec<&str> = line.split(" |").collect();
    for (level, column) in [(&row.default.newest().level, columns[2]), (&row.debian, columns[3])] {
        let written = level.as_ref().is_none_or(|level| column.contains(level));
        assert!(written, "{}: {level:?} is not in {column}", row.id);
    }
    let is_called_safe = row.scope.is_kernel() && columns[3].trim().starts_with("safe");
    assert_eq!(row.safe_on_kubernetes.is_some(), is_called_safe, "{}", row.id);
}

#[test]
fn defaults_are_those_of_the_version() {
    for (program, requests, last) in [
        ("nginx/1.18.0", "100", "TLSv1.2"),
        ("nginx/1.19.10", "1000", "TLSv1.2"),
        ("openresty/1.27.1.1", "1000", "TLSv1.3"),
    ] {
        let catalog = Catalog::builtin().for_proxy(Nginx, program);
        let row = catalog.get(Nginx, "keepalive_requests").unwrap();
        assert_eq!(row.read_back(None).as_deref(), Some(requests), "{program}");
        let defaults = catalog.defaults(Nginx);
        assert_eq!(defaults["keepalive_requests"], requests, "{program}");
        assert!(defaults["ssl_protocols"].ends_with(last), "{program}");
    }
    // Where nobody has said which version it is, only what all have is taken for granted.
    let settings = Catalog::builtin().complete(Nginx, &Default::default());
    assert_eq!(settings.get("keepalive_requests"), None);
    assert_eq!(settings["gzip"], "off");
    let old = Catalog::builtin().for_proxy(Nginx, "nginx/1.18.0");
    let settings = old.complete(Nginx, &Default::default());
    assert_eq!(settings["keepalive_requests"], "100");
    #[rustfmt::skip]
    let rows = [
        (ProxyKind::Envoy, "envoy/1.21.6", "tls_minimum_protocol_version", Some("TLSv1_0")),
        (ProxyKind::Envoy, "envoy/1.40.0", "tls_minimum_protocol_version", Some("TLSv1_2")),
        (ProxyKind::Caddy, "caddy/2.2.1", "keepalive_timeout", None),
        (ProxyKind::Caddy, "caddy/2.6.2", "keepalive_timeout", Some("300s")),
        (ProxyKind::Caddy, "caddy/2.5.2", "metrics", Some("on")),
        (ProxyKind::Caddy, "caddy/2.6.2", "metrics", Some("off")),
    ];
    for (kind, program, id, level) in rows {
        let catalog = Catalog::builtin().for_proxy(kind, program);
        let defaults = catalog.complete(kind, &Default::default());
        let default = defaults.get(id).map(String::as_str);
        assert_eq!(default, level, "{program}: {id}");
        let open = Catalog::builtin().complete(kind, &Default::default());
        assert_eq!(open.get(id), None, "{id}");
    }
    // Others keep theirs.
    let caddys = Catalog::builtin().defaults(ProxyKind::Caddy);
    assert_eq!(old.defaults(ProxyKind::Caddy), caddys);
}
