//! Envoy's and Caddy's documents in the manner of real ones.

mod adapted;
mod changed;
mod kept;
mod refused;

use std::fs;
use std::path::{Path, PathBuf};

use weir_caddy::language::CaddyJson;
use weir_configuration::Source;
use weir_configuration::document::{self, Dialect, Edit, Pointer};
use weir_envoy::language::Bootstrap;

use crate::languages::support::{listed, text};

/// A document in a folder of its own, with the files that it names.
pub(crate) struct Users {
    pub(crate) main: PathBuf,
    pub(crate) dialect: &'static dyn Dialect,
    _folder: tempfile::TempDir,
}

const ENVOY: &str = "front.yaml front-crlf.yaml front-bom.yaml anchors.yaml tls.yaml plain.json \
                     dense.json many.yaml";
const CADDY: [&str; 4] = ["shop.json", "pretty.json", "tls.json", "pretty-crlf.json"];

fn all() -> impl Iterator<Item = &'static str> {
    ENVOY.split(' ').chain(CADDY)
}

/// Returns a document of the test data.
fn named(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/document");
    fs::read_to_string(path.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

impl Users {
    pub(crate) fn new(name: &str) -> Users {
        let folder = tempfile::tempdir().unwrap();
        let text = match name {
            "front-crlf.yaml" => named("front.yaml").replace('\n', "\r\n"),
            "pretty-crlf.json" => named("pretty.json").replace('\n', "\r\n"),
            "front-bom.yaml" => format!("\u{feff}{}", named("front.yaml")),
            "many.yaml" => many(1_000),
            name => named(name),
        };
        let main = folder.path().join(name);
        fs::write(&main, text).unwrap();
        let (certificate, key) = crate::languages::support::certificate();
        fs::create_dir(folder.path().join("certs")).unwrap();
        fs::write(folder.path().join("certs/site.crt"), certificate).unwrap();
        fs::write(folder.path().join("certs/site.key"), key).unwrap();
        let dialect: &'static dyn Dialect =
            if ENVOY.split(' ').any(|it| it == name) { &Bootstrap } else { &CaddyJson };
        Users { main, dialect, _folder: folder }
    }

    pub(crate) fn read(&self) -> Source {
        let format = self.dialect.format(&self.main);
        document::read(&self.main, format).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// Sets one value, or takes it out.
fn set(source: &Source, at: &str, value: Option<&str>) -> Source {
    let edit = Edit { at: Pointer::parse(at), value: value.map(str::to_owned) };
    let format = Bootstrap.format(&source.files[0].path);
    document::set(source, format, &[edit]).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the front proxy's document with more clusters.
fn many(clusters: usize) -> String {
    let mut text = named("front.yaml");
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
        assert_eq!(fs::read_to_string(&users.main).unwrap(), text(&read), "{name}");
        let same = document::change(&read, users.dialect, &[]).unwrap();
        assert_eq!(same, read, "{name}");
    }
}

#[test]
fn listeners_are_found() {
    for (name, expected) in [
        ("front.yaml", "11 0.0.0.0:8080 8080, 48 10.1.2.3:9090 9090"),
        ("anchors.yaml", "24 [::]:80 80"),
        ("tls.yaml", "5 0.0.0.0:443 443 TLS, 32 0.0.0.0:80 80"),
        ("dense.json", "1 0.0.0.0:10000 10000"),
        ("tls.json", "8 :80 80, 8 :443 443 TLS, 17 10.0.0.9:9180 9180"),
    ] {
        let users = Users::new(name);
        let listeners = document::listeners(&users.read(), users.dialect).unwrap();
        assert_eq!(listed(&listeners), expected, "{name}");
    }
}
