//! Configurations like those of users, for each proxy.

use std::path::Path;
use std::process::Command;

use weir_model::study::ProxyKind;

/// A configuration that needs no root.
pub struct Case {
    pub kind: &'static str,
    /// Path that the study names.
    pub main: &'static str,
    pub files: &'static [(&'static str, &'static str)],
    pub setting: (&'static str, &'static str),
}

/// Returns the proxy's command that checks a configuration.
pub fn check(kind: &str, main: &Path) -> Command {
    let folder = main.parent().expect("a folder");
    let (kind, arguments) = match kind {
        "nginx" => (ProxyKind::Nginx, "-t -c"),
        "haproxy" => (ProxyKind::Haproxy, "-c -f"),
        "envoy" => (ProxyKind::Envoy, "--mode validate --config-path"),
        "caddy" => (ProxyKind::Caddy, "validate --config"),
        other => panic!("{other} checks no configuration"),
    };
    let installed =
        weir_proxies::find(kind, None).expect("these tests need all proxies: make setup-proxies");
    let mut check = Command::new(installed.program());
    if kind == ProxyKind::Nginx {
        check.arg("-p").arg(folder);
    }
    check.args(arguments.split(' ')).arg(main);
    check.env("HOME", folder);
    check
}

pub const NGINX: Case = Case {
    kind: "nginx",
    main: "main.conf",
    files: &[
        ("main.conf", include_str!("../data/own/main.conf")),
        ("sites/default.conf", include_str!("../data/own/sites/default.conf")),
        ("sites/shop.conf", include_str!("../data/own/sites/shop.conf")),
    ],
    setting: ("origin_keepalive", "16"),
};

pub const HAPROXY: Case = Case {
    kind: "haproxy",
    main: "haproxy.cfg",
    files: &[("haproxy.cfg", include_str!("../data/own/haproxy.cfg"))],
    setting: ("http_reuse", "never"),
};

/// Configurations whose only listener for the load has TLS: the proxy, the file's name and its text.
#[rustfmt::skip]
pub const SECURE: [(&str, &str, &str); 4] = [
    ("nginx", "nginx.conf", include_str!("../data/secure/nginx.conf")),
    ("haproxy", "haproxy.cfg", include_str!("../data/secure/haproxy.cfg")),
    ("envoy", "envoy.json", include_str!("../data/secure/envoy.json")),
    ("caddy", "Caddyfile", include_str!("../data/secure/Caddyfile")),
];
