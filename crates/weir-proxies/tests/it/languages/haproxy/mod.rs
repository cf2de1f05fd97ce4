//! haproxy.cfg in the manner of real ones.

mod adapted;
mod changed;
mod left_alone;
mod refused;

use std::fs;
use std::path::{Path, PathBuf};

use weir_configuration::Source;
use weir_haproxy::language as haproxy;

/// A configuration in a folder of its own, with the files that it names.
pub(crate) struct Users {
    pub(crate) main: PathBuf,
    pub(crate) folder: tempfile::TempDir,
}

/// Names of all configurations that HAProxy accepts.
fn all() -> impl Iterator<Item = &'static str> {
    small().chain(["large"])
}

/// Returns the configurations that can be copied: those without Lua.
fn adaptable() -> impl Iterator<Item = &'static str> {
    all().filter(|name| *name != "lua")
}

/// Returns the configurations that take little time.
fn small() -> impl Iterator<Item = &'static str> {
    "debian debian-crlf many from peers lua quoted tls macros tabs bare kubernetes folder"
        .split(' ')
}

/// Returns a configuration of the test data.
fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/haproxy")
        .join(name)
        .with_extension("cfg");
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{name}: {e}"))
}

impl Users {
    pub(crate) fn new(name: &str) -> Users {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| write_below(folder.path(), path, text);
        match name {
            "debian-crlf" => write("haproxy.cfg", &text("debian").replace('\n', "\r\n")),
            "kubernetes" => write("haproxy.cfg", &kubernetes(40)),
            "large" => write("haproxy.cfg", &large(10_000)),
            "folder" => {
                let many = text("many");
                let (global, proxies) = many.split_at(many.find("frontend shop").unwrap());
                write("conf.d/00-global.cfg", global);
                write("conf.d/10-proxies.cfg", proxies);
                let late = "backend late\n    server a 10.0.0.9:80\n";
                write("conf.d/Zz-late.cfg", late);
                write("conf.d/.hidden.cfg", "not read");
                write("conf.d/README", "not read");
            }
            "tls" => {
                let (certificate, key) = crate::languages::support::certificate();
                write("certs/site.pem", &(certificate + &key));
                let certs = folder.path().join("certs").display().to_string();
                write("haproxy.cfg", &text("tls").replace("CERTS", &certs));
            }
            name => write("haproxy.cfg", &text(name)),
        }
        let hello = "core.register_service('hello', 'http', function(applet) end)\n";
        write("lua/hello.lua", hello);
        write("lua/case.map", "");
        write("lua/bad.lst", "/bad\n");
        write("lua/hello.txt", "hello\n");
        let page = "HTTP/1.0 503 Service Unavailable\r\nContent-Length: 4\r\n\r\naway";
        write("errors/503.http", page);
        let main = folder.path().join(if name == "folder" { "conf.d" } else { "haproxy.cfg" });
        Users { main, folder }
    }

    pub(crate) fn read(&self) -> Source {
        haproxy::read(&self.main).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// Returns a configuration in the manner of Kubernetes controllers: many backends of slots, all alike.
fn kubernetes(services: usize) -> String {
    let mut text = String::from(
        "global\n  daemon\n  master-worker\n  maxconn 1000\n  stats socket /var/run/haproxy.sock \
         expose-fd listeners level admin\n  cpu-map auto:1/1-2 0-1\n  log 127.0.0.1:514 local0 notice\n\
         \ndefaults haproxytech\n  mode http\n  log global\n  option redispatch\n  option \
         http-keep-alive\n  timeout http-request 5s\n  timeout connect 5s\n  timeout client 50s\n  \
         timeout queue 5s\n  timeout server 50s\n  timeout tunnel 1h\n  timeout http-keep-alive 1m\n  \
         load-server-state-from-file global\n\nfrontend http from haproxytech\n  mode http\n  bind \
         0.0.0.0:8080 name v4\n  bind :::8080 name v6\n  http-request set-var(txn.base) base\n  \
         use_backend %[var(txn.path_match),field(1,.)]\n  default_backend ns_svc_0_http\n\n",
    );
    for service in 0..services {
        text += &format!(
            "backend ns_svc_{service}_http from haproxytech\n  mode http\n  balance roundrobin\n  \
             option forwardfor\n  no option abortonclose\n  default-server check\n"
        );
        for slot in 0..4 {
            text += &format!("  server SRV_{slot} 10.1.{service}.{slot}:8080 enabled\n");
        }
        text += "\n";
    }
    text
}

/// Returns a configuration with `backends` backends of two servers each.
fn large(backends: usize) -> String {
    let mut conf = text("from");
    for backend in 0..backends {
        conf += &format!(
            "\nbackend b{backend} from base # of team {}\n  balance roundrobin\n  \
             timeout server {}s\n  server a 10.0.0.1:80 weight 10\n  server b 10.0.0.2:80 backup\n",
            backend % 7,
            backend % 50 + 1,
        );
    }
    conf
}

#[test]
fn nothing_wanted_changes_no_byte() {
    for name in all() {
        let users = Users::new(name);
        let read = users.read();
        for file in &read.files {
            assert_eq!(fs::read_to_string(&file.path).unwrap(), file.text, "{name}");
        }
        assert_eq!(haproxy::change(&read, &[]).unwrap(), read, "{name}");
    }
}

/// Every word of every statement is at the place that the tree records, and no line is left out.
#[test]
fn the_tree_covers_all_lines() {
    for name in all() {
        let source = Users::new(name).read();
        let tree = haproxy::Tree::parse(&source).unwrap();
        let mut lines = 0;
        for section in &tree.sections {
            let text = &source.files[section.file].text;
            for statement in std::iter::once(&section.header).chain(&section.statements) {
                lines += 1;
                let line = &text[statement.line.clone()];
                assert_eq!(line.matches('\n').count(), 1, "{name}: {line}");
                for word in &statement.words {
                    assert!(statement.line.contains(&word.span.start), "{name}: {line}");
                }
            }
        }
        let written = source
            .files
            .iter()
            .flat_map(|file| file.text.lines())
            .map(str::trim_start)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .count();
        let before_sections = if name == "macros" { 3 } else { 0 };
        assert_eq!(written - before_sections, lines, "{name}");
    }
}

#[test]
fn a_folder_is_read_in_the_order_of_bytes() {
    let source = Users::new("folder").read();
    let names: Vec<&str> =
        source.files.iter().map(|file| file.path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["00-global.cfg", "10-proxies.cfg", "Zz-late.cfg"]);
}

#[test]
fn listeners_are_found() {
    let source = Users::new("tls").read();
    let listeners = haproxy::listeners(&source).unwrap();
    assert_eq!(
        crate::languages::support::listed(&listeners),
        "14 :80 80, 15 :::80 80, 20 :443 443 TLS, 21 :8443 8443 TLS, 27 192.0.2.1:444 444, 35 abns@inner"
    );
}

fn write_below(folder: &Path, path: &str, text: &str) {
    let file = folder.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}
