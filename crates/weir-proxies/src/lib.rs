//! The proxies that weir knows, by kind. Nothing above this crate knows one of them by name.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir_model::study::ProxyKind;
use weir_parameters::Catalog;
use weir_sut::installed::{self, Installed, ProxyProgram};
use weir_sut::observed::{ObservedProxy, Process};
use weir_sut::{Effective, Proxy, RequestRoute, SutError};
use {
    weir_caddy as caddy, weir_envoy as envoy, weir_haproxy as haproxy, weir_httpd as httpd,
    weir_nginx as nginx,
};

/// Reads the configuration of a proxy elsewhere, on the way that loads take, from the text of its own report: the
/// output of `nginx -T`, or Envoy's `/config_dump` with its `/server_info` before or behind it.
///
/// # Errors
/// The text cannot be read; or weir does not read texts of this kind of proxy.
pub fn read_report(
    kind: ProxyKind,
    text: String,
    meeting: &RequestRoute,
    catalog: &Catalog,
) -> Result<Effective, SutError> {
    let read = program_of(kind)
        .and_then(|program| program.read_report)
        .ok_or(SutError::NotStartable { kind })?;
    read(text, meeting, catalog)
}

/// Finds a proxy's program, at the given path or else on PATH and in the folders of system programs, and reads its
/// version.
///
/// # Errors
/// [`SutError::NotFound`]; or the program is something else; or weir does not start this kind.
pub fn find(kind: ProxyKind, executable: Option<&Path>) -> Result<Arc<dyn Proxy>, SutError> {
    let program = program_of(kind).ok_or(SutError::NotStartable { kind })?;
    (program.open)(Installed::find(program, executable)?)
}

/// Returns the program that [`find`] would use without a given path. Runs nothing.
///
/// # Errors
/// [`SutError::NotFound`]; or weir does not start this kind.
pub fn locate(kind: ProxyKind) -> Result<PathBuf, SutError> {
    installed::locate(program_of(kind).ok_or(SutError::NotStartable { kind })?, None)
}

/// Returns the kind whose name, or that of its program, is in the name of a file; `None` if it is no kind's.
pub fn kind_by_name(file: &str) -> Option<ProxyKind> {
    let lower = file.to_lowercase();
    ProxyKind::ALL.into_iter().find(|kind| {
        let programs = program_of(*kind).map_or(&[][..], |program| program.names);
        programs.iter().any(|name| lower.contains(name)) || lower.contains(kind.name())
    })
}

/// Returns the proxy that these processes run and that listens at an address, without weir having started it; `None` if
/// they run no known program.
pub fn observe(processes: &[u32], address: SocketAddr) -> Option<ObservedProxy> {
    let process = Process::first(processes)?;
    let running = program_of(process.kind)?.running;
    Some(ObservedProxy::of(&process, running, address))
}

/// Defines the properties of each proxy of weir's list, from the crate with its name.
macro_rules! programs_by_kind {
    ($($variant:ident $name:ident $title:literal $files:literal;)*) => {
        /// Returns the properties of a kind of proxy; `None` for a kind that weir does not start.
        fn program_of(kind: ProxyKind) -> Option<&'static ProxyProgram> {
            match kind {
                $(ProxyKind::$variant => Some(&$name::PROGRAM),)*
                ProxyKind::External => None,
            }
        }
    };
}

weir_model::proxies!(programs_by_kind);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_told_by_its_version_and_no_other_is() {
        let caddy =
            "caddy.HomeDir=/\ncaddy.Version=v2.8.4 h1:q3pe0wpBj1OcHFZ3n/1nl4V4bxBrYoSoab7=\nA=/";
        #[rustfmt::skip]
        let rows = [
            (ProxyKind::Nginx, "nginx version: nginx/1.18.0 (Ubuntu)", "nginx/1.18.0"),
            (ProxyKind::Nginx, "nginx version: openresty/1.21.4.1\nbuilt", "openresty/1.21.4.1"),
            (ProxyKind::Haproxy, "HAProxy version 2.6.12-1+deb12u4 2026/10/17\nx",
             "haproxy/2.6.12-1+deb12u4"),
            (ProxyKind::Haproxy, "HA-Proxy version 2.2.9-2+deb11u6 2023/12",
             "haproxy/2.2.9-2+deb11u6"),
            (ProxyKind::Envoy, "envoy  version: 9e55809/1.40.0/Clean/RELEASE/BoringSSL",
             "envoy/1.40.0"),
            (ProxyKind::Caddy, "caddy.HomeDir=/\ncaddy.Version=2.6.2\nHOME=/\n", "caddy/2.6.2"),
            (ProxyKind::Caddy, caddy, "caddy/2.8.4"),
            (ProxyKind::Httpd, "Server version: Apache/2.4.57 (Debian)\nServer built",
             "Apache/2.4.57"),
        ];
        let strangers = "|caddy.Version=|envoy version: none|Server version: Other/1.0|Apache/2.4";
        for kind in ProxyKind::started() {
            let version_of = program_of(kind).unwrap().version_of;
            for (of, words, version) in rows {
                let expected = (of == kind).then_some(version);
                assert_eq!(version_of(words).as_deref(), expected, "{kind:?}: {words}");
            }
            for words in strangers.split('|') {
                assert_eq!(version_of(words), None, "{kind:?}: {words}");
            }
        }
    }

    #[test]
    fn a_kind_is_known_by_the_name_of_a_file() {
        for (file, kind) in [
            ("nginx.conf", Some(ProxyKind::Nginx)),
            ("haproxy-3.4", Some(ProxyKind::Haproxy)),
            ("Caddyfile", Some(ProxyKind::Caddy)),
            ("apache2.conf", Some(ProxyKind::Httpd)),
            ("edge.yaml", None),
        ] {
            assert_eq!(kind_by_name(file), kind, "{file}");
        }
    }
}
