//! The rows: complete, spelled as nginx spells them, and reversible.

use weir_model::study::ProxyKind::Nginx;
use weir_parameters::{Catalog, Context, Directive, EffectiveFrom, Parameter, Scope};

fn row(id: &str) -> Parameter {
    Catalog::builtin().get(Nginx, id).expect("a row").clone()
}

fn texts(id: &str, level: &str) -> Vec<(Context, String)> {
    let directives = row(id).directives(level);
    directives
        .into_iter()
        .map(|d| (d.context, d.text))
        .collect()
}

#[test]
fn every_parameter_of_the_first_studies_has_a_row() {
    let catalog = Catalog::builtin();
    let ids: Vec<_> = catalog
        .parameters(Nginx)
        .map(|row| row.id.as_str())
        .collect();
    for id in [
        "worker_processes",
        "worker_connections",
        "worker_rlimit_nofile",
        "multi_accept",
        "reuseport",
        "keepalive_requests",
        "keepalive_timeout",
        "origin_keepalive",
        "origin_keepalive_requests",
        "open_file_cache",
        "open_file_cache_valid",
        "sendfile",
        "tcp_nopush",
        "tcp_nodelay",
        "gzip",
        "gzip_comp_level",
        "gzip_types",
        "access_log",
        "proxy_buffering",
        "backlog",
    ] {
        assert!(ids.contains(&id), "{id} is missing");
    }
}

#[test]
fn every_row_says_why_and_whence() {
    for row in Catalog::builtin().all(Nginx) {
        assert!(row.why.len() > 30, "{}", row.id);
        let sources = match row.scope {
            Scope::ProxyDirective => "https://nginx.org/en/docs/",
            Scope::ProcessLaunch => "https://man7.org/linux/man-pages/",
            _ => "https://docs.kernel.org/",
        };
        assert!(row.source.starts_with(sources), "{}", row.id);
    }
}

#[test]
fn keepalive_to_the_origin_is_three_directives_and_none_when_stock() {
    assert_eq!(
        texts("origin_keepalive", "32"),
        [
            (Context::Upstream, "keepalive 32".to_owned()),
            (Context::Location, "proxy_http_version 1.1".to_owned()),
            (
                Context::Location,
                "proxy_set_header Connection \"\"".to_owned()
            ),
        ]
    );
    assert_eq!(texts("origin_keepalive", "0"), []);
}

#[test]
fn the_access_log_leaves_the_folder_to_the_runner() {
    let on = texts("access_log", "on");
    assert_eq!(
        on,
        [(Context::Http, "access_log {logs}/access.log".to_owned())]
    );
    let buffered = texts("access_log", "buffered");
    assert!(
        buffered[0]
            .1
            .contains("{logs}/access.log combined buffer=64k")
    );
    assert_eq!(
        texts("access_log", "off"),
        [(Context::Http, "access_log off".to_owned())]
    );
}

#[test]
fn listen_flags_are_flags() {
    assert_eq!(
        texts("reuseport", "on"),
        [(Context::Listen, "reuseport".to_owned())]
    );
    assert_eq!(texts("reuseport", "off"), []);
    assert_eq!(
        texts("backlog", "4096"),
        [(Context::Listen, "backlog=4096".to_owned())]
    );
    let listen = "listen 127.0.0.1:80 reuseport backlog=4096";
    assert_eq!(
        row("backlog").read_back(Some(listen)).as_deref(),
        Some("4096")
    );
    assert_eq!(
        row("reuseport").read_back(Some(listen)).as_deref(),
        Some("on")
    );
    let bare = Some("listen 127.0.0.1:80");
    assert_eq!(row("backlog").read_back(bare).as_deref(), Some("511"));
    assert_eq!(row("reuseport").read_back(bare).as_deref(), Some("off"));
}

#[test]
fn what_nginx_says_is_read_back_as_a_level() {
    let cases = [
        ("access_log", "access_log /tmp/a b/access.log", Some("on")),
        (
            "access_log",
            "access_log /t/access.log combined buffer=64k flush=1s",
            Some("buffered"),
        ),
        ("access_log", "access_log off", Some("off")),
        ("access_log", "access_log /var/log/else.txt main", None),
        ("keepalive_timeout", "keepalive_timeout 65", Some("65s")),
        ("origin_keepalive", "keepalive 32", Some("32")),
        (
            "open_file_cache",
            "open_file_cache max=1024  inactive=10s",
            Some("max=1024 inactive=10s"),
        ),
        ("worker_processes", "worker_processes auto", Some("auto")),
        ("worker_rlimit_nofile", "1024", Some("1024")),
        ("ssl_session_cache", "ssl_session_cache none", Some("none")),
        (
            "ssl_session_cache",
            "ssl_session_cache shared:weir:10m",
            Some("10m"),
        ),
        (
            "ssl_session_cache",
            "ssl_session_cache shared:other:10m",
            None,
        ),
        (
            "ssl_protocols",
            "ssl_protocols TLSv1.3 TLSv1.2",
            Some("TLSv1.2 TLSv1.3"),
        ),
        (
            "ssl_ciphers",
            "ssl_ciphers HIGH:!aNULL:!MD5",
            Some("HIGH:!aNULL:!MD5"),
        ),
    ];
    for (id, found, level) in cases {
        assert_eq!(row(id).read_back(Some(found)).as_deref(), level, "{found}");
    }
    assert_eq!(
        row("keepalive_requests").read_back(None).as_deref(),
        Some("1000")
    );
    assert_eq!(row("worker_rlimit_nofile").read_back(None), None);
}

/// A few levels of each row: its default, Debian's, and some that its kind accepts.
pub(crate) fn sample_levels(row: &Parameter) -> Vec<String> {
    let guesses = [
        "on",
        "off",
        "auto",
        "buffered",
        "1",
        "7",
        "100",
        "4096",
        "10s",
        "4k",
        "max=1024 inactive=10s",
        "text/css text/plain",
        "none",
        "64k",
        "TLSv1.2 TLSv1.3",
        "ECDHE-RSA-AES256-GCM-SHA384:HIGH:!aNULL",
        "1024 65000",
        "4096 131072 6291456",
        "cubic",
        "fq",
        "8080,9000-9010",
    ];
    let guesses = guesses.iter().filter_map(|level| row.check(level).ok());
    row.default
        .all()
        .iter()
        .filter_map(|default| default.level.as_ref())
        .chain(&row.debian)
        .cloned()
        .chain(guesses)
        .collect()
}

#[test]
fn what_is_written_reads_back_as_the_level_it_was_written_for() {
    for row in Catalog::builtin().all(Nginx) {
        let levels = sample_levels(row);
        assert!(!levels.is_empty(), "{} has no level", row.id);
        for level in levels {
            let found = effective_text(row, &row.directives(&level), &level);
            assert_eq!(row.read_back(found.as_deref()), Some(level), "{}", row.id);
        }
    }
}

/// What a reader of the effective configuration would find after `directives` were written.
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
            .find(|d| d.context == *context && d.text.split(' ').next() == Some(name))
            .map(|d| d.text.replace("{logs}", "/some/folder")),
    }
}

#[test]
fn ids_are_found_in_spite_of_typing() {
    let catalog = Catalog::builtin();
    assert_eq!(
        catalog.nearest(Nginx, "keepalive_reqests"),
        Some("keepalive_requests")
    );
    assert_eq!(
        catalog.nearest(Nginx, "Worker-Conections"),
        Some("worker_connections")
    );
    for (written, meant) in [
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

#[test]
fn the_documentation_has_a_line_for_every_row() {
    let text = include_str!("../../../../docs/parameters.md");
    for row in Catalog::builtin().all(Nginx) {
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", row.id)))
            .unwrap_or_else(|| panic!("docs/parameters.md has no line for {}", row.id));
        let columns: Vec<&str> = line.split(" | ").collect();
        let newest = &row.default.newest().level;
        for (level, column) in [(newest, 2), (&row.debian, 3)] {
            let written = level
                .as_ref()
                .is_none_or(|level| columns[column].contains(level));
            assert!(
                written,
                "{}: {level:?} is not in {}",
                row.id, columns[column]
            );
        }
        let safe = row.safe_on_kubernetes.is_some();
        assert_eq!(
            safe,
            row.scope.is_kernel() && columns[3].starts_with("safe"),
            "{}",
            row.id
        );
    }
}
