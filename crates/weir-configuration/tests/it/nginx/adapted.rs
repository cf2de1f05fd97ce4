//! Copies that run beside others and touch nothing of the user's.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weir_configuration::{Source, nginx};

use super::{Copy, LISTEN, ORIGIN, TLS_LISTEN, User, build, checkable, surroundings};

fn adapted(name: &str) -> String {
    let source = User::of(name).read();
    let has_tls = nginx::listeners(&source).unwrap().iter().any(|it| it.tls);
    let surroundings = surroundings(Path::new("/trial"), has_tls);
    let after = nginx::adapt(&source, &surroundings, &build()).unwrap();
    check_lines(&source, &after, name);
    after.files.into_iter().map(|file| file.text).collect()
}

fn check_lines(before: &Source, after: &Source, name: &str) {
    for (before, after) in before.files.iter().zip(&after.files) {
        let count = |text: &str| text.matches('\n').count();
        assert_eq!(count(&before.text), count(&after.text), "{name}");
    }
}

fn tree(folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => tree(&path, into),
            false => {
                into.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
}

#[test]
fn nginx_accepts_every_copy_and_the_user_s_files_are_as_they_were() {
    for name in checkable() {
        let user = User::of(name);
        let state = || {
            let mut files = BTreeMap::new();
            tree(user.folder.path(), &mut files);
            files
        };
        let before = state();
        let copy = Copy::of(&user.read());
        let printed = copy.accepted(name);
        // Debian's nginx warns of its own list of types; no path but the copy's is written to.
        for path in ["/var/log", "/var/cache", "/run/", "/srv/logs"] {
            let prefix = copy.prefix.path().to_str().unwrap();
            let elsewhere = printed
                .replace(prefix, "")
                .replace(&*user.folder.path().to_string_lossy(), "");
            let elsewhere = elsewhere.replace("unix:/run", "");
            assert!(!elsewhere.contains(path), "{name}: {path}\n{elsewhere}");
        }
        assert_eq!(before, state(), "{name}");
    }
}

#[test]
fn the_chosen_listeners_are_asked_and_all_others_are_sockets() {
    let tls = adapted("tls");
    for text in [
        format!("listen {LISTEN};\n"),
        "listen unix:/trial/run/2.sock;".to_owned(),
        format!("listen {TLS_LISTEN} ssl http2 default_server;"),
        "listen unix:/trial/run/3.sock ssl http2 default_server ;".to_owned(),
        format!("proxy_pass http://{ORIGIN}/base/;"),
    ] {
        assert!(tls.contains(&text), "{text}: {tls}");
    }
    let listeners = adapted("listeners");
    assert_eq!(listeners.matches(&format!("listen {LISTEN}")).count(), 2);
    assert!(listeners.contains(&format!("listen {LISTEN} default_server backlog=300;")));
    assert!(
        listeners.contains("listen unix:/trial/run/3.sock ;"),
        "{listeners}"
    );
    assert!(
        listeners.contains("{ listen unix:/trial/run/6.sock; server_name e;"),
        "{listeners}"
    );
    let stream = User::of("stream").read();
    let surroundings = surroundings(Path::new("/trial"), false);
    let error = nginx::adapt(&stream, &surroundings, "").unwrap_err();
    assert!(
        error.what.contains("no HTTP server listens in clear"),
        "{error}"
    );
    assert!(adapted("mail").contains("listen unix:/trial/run/1.sock; protocol smtp;"));
}

#[test]
fn a_listener_is_chosen_by_its_port() {
    let source = User::of("listeners").read();
    let mut wanted = surroundings(Path::new("/trial"), false);
    wanted.port = Some(8090);
    let after = nginx::adapt(&source, &wanted, "").unwrap();
    let text = &after.files[0].text;
    assert!(
        text.contains(&format!("listen {LISTEN}  so_keepalive=on;")),
        "{text}"
    );
    assert_eq!(text.matches(LISTEN).count(), 1);
}

#[test]
fn origins_become_the_one_that_is_given() {
    let proxy = adapted("proxy");
    assert!(proxy.contains(&format!(
        "server {ORIGIN} weight=3 max_fails=2 fail_timeout=5s;"
    )));
    assert!(proxy.contains(&format!("server {ORIGIN} backup; # the old machine")));
    assert!(proxy.contains("proxy_pass http://app/v1/;"));
    let limits = adapted("limits");
    assert!(limits.contains(&format!("proxy_pass http://{ORIGIN};")));
    assert!(limits.contains(&format!("proxy_pass http://{ORIGIN}$request_uri;")));
    let grpc = adapted("grpc");
    assert!(grpc.contains("grpc_pass grpc://grpc_servers;"));
    assert!(grpc.contains(&format!("grpc_pass grpc://{ORIGIN};")));

    let source = User::of("proxy").read();
    let mut wanted = surroundings(Path::new("/trial"), false);
    wanted.origin = None;
    let after = nginx::adapt(&source, &wanted, "").unwrap();
    assert!(
        after.files[0]
            .text
            .contains("server 10.0.0.11:8080 weight=3")
    );
}

#[test]
fn logs_and_files_go_below_the_prefix_and_what_is_read_stays() {
    let logs = adapted("logs");
    for text in [
        "error_log /trial/logs/error.log notice;",
        "access_log /trial/logs/access.log json buffer=32k flush=5s if=$loggable;",
        "access_log /trial/logs/syslog.log combined;",
        "access_log /trial/logs/2-access.log;",
        "access_log off;",
        "access_log /trial/logs/$host.log combined;",
        "error_log /trial/logs/error.log crit;",
    ] {
        assert!(logs.contains(text), "{text}: {logs}");
    }
    let cache = adapted("cache");
    assert!(
        cache.contains("proxy_cache_path /trial/temp/2-proxy_cache keys_zone=two:1m;"),
        "{cache}"
    );
    assert!(cache.contains("proxy_temp_path /trial/temp/proxy 1 2;"));
    let user = User::of("scripts");
    let folder = user.folder.path().canonicalize().unwrap();
    let after = nginx::adapt(
        &user.read(),
        &surroundings(Path::new("/trial"), false),
        &build(),
    )
    .unwrap();
    let text = &after.files[0].text;
    let folder = folder.display();
    for text_of in [
        "load_module /usr/share/nginx/modules/ngx_http_js_module.so;".to_owned(),
        format!("js_path {folder}/njs/;"),
        format!("js_import main from {folder}/http/hello.js;"),
        "perl_modules /usr/share/nginx/perl/lib;".to_owned(),
    ] {
        assert!(text.contains(&text_of), "{text_of}: {text}");
    }
    assert!(adapted("static").contains("root /usr/share/nginx/files;"));
}

#[test]
fn a_user_is_set_or_none() {
    assert!(!adapted("debian").contains("user www-data"));
    let source = User::of("wordpress").read();
    let mut wanted = surroundings(Path::new("/trial"), false);
    wanted.user = Some(("nobody", "nogroup"));
    let after = nginx::adapt(&source, &wanted, "").unwrap();
    assert!(after.files[0].text.contains("user nobody nogroup;"));
    let source = User::of("proxy").read();
    let after = nginx::adapt(&source, &wanted, "").unwrap();
    assert!(
        after.files[0]
            .text
            .starts_with("user nobody nogroup; pid /trial/nginx.pid;")
    );
}

#[test]
fn copies_have_names_of_their_own_and_lie_below_the_folder() {
    let user = User::with("events { }\nhttp { server { listen 1; include \"a b/*\"; } }\n");
    user.write("a b/x[1]", "set $a 1;");
    user.write("a b/x{1}", "set $b 1;");
    let copy = Copy::of(&user.read());
    let printed = copy.accepted("names");
    assert!(printed.contains("set $a 1;") && printed.contains("set $b 1;"));
    let mut files = BTreeMap::new();
    tree(&copy.prefix.path().join("conf"), &mut files);
    assert_eq!(files.len(), 3);
}

/// A process that does not outlive the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill")
            .args(["-QUIT", &self.0.id().to_string()])
            .status();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(5) {
            if self.0.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// The whole way: a user's configuration with includes and headers, settings, a copy, a real nginx
/// that asks a real origin over a connection that it keeps.
#[test]
fn a_copy_runs_and_keeps_its_connection_to_the_origin() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let user = User::of("nested");
    let source = super::set(
        &user.read(),
        &[("origin_keepalive", "4"), ("worker_processes", "1")],
    );
    let prefix = tempfile::tempdir().unwrap();
    let mut wanted = surroundings(prefix.path(), false);
    wanted.listen = free_address();
    wanted.origin = Some(origin.local_addr().unwrap());
    let after = nginx::adapt(&source, &wanted, &build()).unwrap();
    for folder in ["logs", "temp", "run"] {
        fs::create_dir(prefix.path().join(folder)).unwrap();
    }
    let main = after.write_below(&prefix.path().join("conf")).unwrap();
    let log = prefix.path().join("logs/error.log");
    let mut command = Command::new("/usr/sbin/nginx");
    command
        .arg("-p")
        .arg(prefix.path())
        .arg("-c")
        .arg(main)
        .arg("-e")
        .arg(&log);
    let _running = Running(command.stdin(Stdio::null()).spawn().unwrap());

    // Both requests come over one connection, or the second is never answered.
    let served = std::thread::spawn(move || {
        let (mut connection, _) = origin.accept().unwrap();
        connection
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut heads = Vec::new();
        for _ in 0..2 {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                connection.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            heads.push(String::from_utf8(head).unwrap());
            connection
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
                .unwrap();
        }
        heads
    });
    for _ in 0..2 {
        assert!(
            ask(wanted.listen).ends_with("hi"),
            "{}",
            fs::read_to_string(&log).unwrap()
        );
    }
    let heads = served.join().unwrap();
    for head in heads {
        assert!(
            head.starts_with("GET / HTTP/1.1\r\nHost: alpha.example.com\r\n"),
            "{head}"
        );
        assert!(
            head.contains("X-Real-IP: 127.0.0.1\r\n") && !head.contains("Connection"),
            "{head}"
        );
    }
}

fn ask(address: SocketAddr) -> String {
    let begin = Instant::now();
    let mut client = loop {
        match TcpStream::connect(address) {
            Ok(client) => break client,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(20), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    client
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let head = b"GET / HTTP/1.1\r\nHost: alpha.example.com\r\nConnection: close\r\n\r\n";
    client.write_all(head).unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    response
}
