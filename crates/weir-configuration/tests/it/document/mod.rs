//! Envoy's and Caddy's documents in the manner of real ones.

mod adapted;
mod changed;
mod kept;
mod refused;

use std::fs;
use std::path::PathBuf;

use weir_configuration::Source;
use weir_configuration::document::{self, Dialect, Edit, Pointer};

/// A document as a user has it: in a folder of its own with the files that it names.
pub(crate) struct Users {
    pub(crate) main: PathBuf,
    pub(crate) dialect: Dialect,
    _folder: tempfile::TempDir,
}

const ENVOY: [&str; 8] = [
    "front.yaml",
    "front-crlf.yaml",
    "front-bom.yaml",
    "anchors.yaml",
    "tls.yaml",
    "plain.json",
    "dense.json",
    "many.yaml",
];
const CADDY: [&str; 4] = ["shop.json", "pretty.json", "tls.json", "pretty-crlf.json"];

fn all() -> impl Iterator<Item = &'static str> {
    ENVOY.into_iter().chain(CADDY)
}

fn named(name: &str) -> &'static str {
    match name {
        "front.yaml" => include_str!("../../data/document/front.yaml"),
        "anchors.yaml" => include_str!("../../data/document/anchors.yaml"),
        "tls.yaml" => include_str!("../../data/document/tls.yaml"),
        "plain.json" => include_str!("../../data/document/plain.json"),
        "dense.json" => include_str!("../../data/document/dense.json"),
        "shop.json" => include_str!("../../data/document/shop.json"),
        "pretty.json" => include_str!("../../data/document/pretty.json"),
        "tls.json" => include_str!("../../data/document/tls.json"),
        _ => panic!("no document {name}"),
    }
}

impl Users {
    pub(crate) fn new(name: &str) -> Users {
        let folder = tempfile::tempdir().unwrap();
        let text = match name {
            "front-crlf.yaml" => named("front.yaml").replace('\n', "\r\n"),
            "pretty-crlf.json" => named("pretty.json").replace('\n', "\r\n"),
            "front-bom.yaml" => format!("\u{feff}{}", named("front.yaml")),
            "many.yaml" => many(1_000),
            name => named(name).to_owned(),
        };
        let main = folder.path().join(name);
        fs::write(&main, text).unwrap();
        let (certificate, key) = crate::support::certificate();
        fs::create_dir(folder.path().join("certs")).unwrap();
        fs::write(folder.path().join("certs/site.crt"), certificate).unwrap();
        fs::write(folder.path().join("certs/site.key"), key).unwrap();
        let is_envoy = ENVOY.contains(&name);
        let dialect = if is_envoy {
            Dialect::Envoy
        } else {
            Dialect::Caddy
        };
        Users {
            main,
            dialect,
            _folder: folder,
        }
    }

    pub(crate) fn read(&self) -> Source {
        let format = self.dialect.format(&self.main);
        document::read(&self.main, format).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// One value put in, or taken out.
fn set(source: &Source, at: &str, value: Option<&str>) -> Source {
    let edit = Edit {
        at: Pointer::parse(at),
        value: value.map(str::to_owned),
    };
    let format = Dialect::Envoy.format(&source.files[0].path);
    document::set(source, format, &[edit]).unwrap_or_else(|e| panic!("{e}"))
}

/// As the front proxy, with more clusters.
fn many(clusters: usize) -> String {
    let mut text = named("front.yaml").to_owned();
    for cluster in 0..clusters {
        text += &format!(
            "  - name: c{cluster} # of team {}\n    type: STRICT_DNS\n    connect_timeout: {}s\n    \
             load_assignment:\n      cluster_name: c{cluster}\n      endpoints:\n      - lb_endpoints:\n\
             \x20       - endpoint:\n            address:\n              socket_address: {{address: \
             10.0.0.1, port_value: 80}}\n",
            cluster % 7,
            cluster % 5 + 1,
        );
    }
    text
}

#[test]
fn nothing_wanted_changes_no_byte() {
    for name in all() {
        let users = Users::new(name);
        let read = users.read();
        assert_eq!(
            fs::read(&users.main).unwrap(),
            read.files[0].text.as_bytes(),
            "{name}"
        );
        assert_eq!(
            document::change(&read, users.dialect, &[]).unwrap(),
            read,
            "{name}"
        );
    }
}

#[test]
fn listeners_are_found() {
    for (name, expected) in [
        (
            "front.yaml",
            vec![
                (11, "0.0.0.0:8080", Some(8080), false),
                (48, "10.1.2.3:9090", Some(9090), false),
            ],
        ),
        ("anchors.yaml", vec![(24, "[::]:80", Some(80), false)]),
        (
            "tls.yaml",
            vec![
                (5, "0.0.0.0:443", Some(443), true),
                (32, "0.0.0.0:80", Some(80), false),
            ],
        ),
        ("dense.json", vec![(1, "0.0.0.0:10000", Some(10000), false)]),
        (
            "tls.json",
            vec![
                (8, ":80", Some(80), false),
                (8, ":443", Some(443), true),
                (17, "10.0.0.9:9180", Some(9180), false),
            ],
        ),
    ] {
        let users = Users::new(name);
        let found = document::listeners(&users.read(), users.dialect).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|l| (l.line, l.address.as_str(), l.port, l.tls))
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}
