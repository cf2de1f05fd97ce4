//! Copies that run beside others and touch nothing of the user's.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use weir_configuration::{Source, nginx};

use super::{Copy, LISTEN, ORIGIN, TLS_LISTEN, User, build, checkable, surroundings};
use crate::support::{Running, free_address};

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

/// The text of a copy of one file, which nginx accepts.
fn copied(user: &User) -> String {
    let copy = Copy::of(&user.read());
    copy.accepted("a copy");
    fs::read_to_string(copy.main).unwrap()
}

#[test]
fn a_variable_stays_where_all_that_it_is_seen_to_hold_are_groups() {
    let user = User::with(
        "events { }
         http {
             map $http_x $pool { default app; include pools; }
             map $http_y $mixed { default app; b 192.0.2.2:80; }
             split_clients $remote_addr $half { 50% app; * other; }
             upstream app { server 192.0.2.1:80; }
             upstream other { server 192.0.2.2:80; }
             server {
                 listen 80;
                 set $whole http://app;
                 set $copied $pool;
                 set $safe https://app;
                 location /1 { proxy_pass http://$pool; }
                 location /2 { proxy_pass http://${copied}$request_uri; }
                 location /3 { proxy_pass $whole; }
                 location /4 { proxy_pass https://$half/x; }
                 location /5 { proxy_pass http://$mixed/5; }
                 location /6 { proxy_pass $safe; }
                 location /7 { proxy_pass http://$http_host/7; }
                 location /8 { proxy_pass $scheme://other/; }
                 location /9 { proxy_pass $scheme://$host$request_uri; }
             }
         }\n",
    );
    user.write("pools", "b other;");
    let text = copied(&user);
    for pass in [
        "/1 { proxy_pass http://$pool; }".to_owned(),
        "/2 { proxy_pass http://${copied}$request_uri; }".to_owned(),
        "/3 { proxy_pass $whole; }".to_owned(),
        "/4 { proxy_pass http://$half/x; }".to_owned(),
        format!("/5 {{ proxy_pass http://{ORIGIN}/5; }}"),
        format!("/6 {{ proxy_pass http://{ORIGIN}; }}"),
        format!("/7 {{ proxy_pass http://{ORIGIN}/7; }}"),
        "/8 { proxy_pass http://other/; }".to_owned(),
        format!("/9 {{ proxy_pass http://{ORIGIN}$request_uri; }}"),
    ] {
        assert!(text.contains(&pass), "{pass}: {text}");
    }
}

#[test]
fn a_stream_has_groups_of_its_own_and_no_scheme() {
    let user = User::with(
        "events { }
         stream {
             map $ssl_preread_server_name $direct { default 192.0.2.1:443; }
             map $ssl_preread_server_name $group { default web; }
             upstream web { server 192.0.2.2:443; }
             server { listen 1; proxy_pass $direct; }
             server { listen 2; proxy_pass $group; }
         }
         http { server { listen 80; location / { proxy_pass http://web; } } }\n",
    );
    let surroundings = surroundings(Path::new("/trial"), false);
    let after = nginx::adapt(&user.read(), &surroundings, "").unwrap();
    let text = &after.files[0].text;
    for pass in [
        format!("proxy_pass {ORIGIN}; }}"),
        "proxy_pass $group; }".to_owned(),
        format!("proxy_pass http://{ORIGIN}; }}"),
    ] {
        assert!(text.contains(&pass), "{pass}: {text}");
    }
}

#[test]
fn nothing_of_the_user_s_is_written_to_or_asked_from() {
    let text = copied(&User::with(
        "events { }
         http {
             proxy_bind 192.0.2.9;
             server {
                 listen 80;
                 root /srv/www;
                 location /a { proxy_store on; proxy_pass http://192.0.2.1; }
                 location /b { fastcgi_store /srv/$uri; fastcgi_pass 192.0.2.1:9000; }
                 location /c { proxy_bind off; proxy_store off; proxy_pass http://192.0.2.1; }
             }
         }\n",
    ));
    for expected in [
        "/temp/proxy_store$uri; proxy_pass",
        "/temp/fastcgi_store$uri; fastcgi_pass",
        "proxy_bind off; proxy_store off;",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("192.0.2."), "{text}");
    assert!(
        !text.contains("_store on") && !text.contains("_store /srv"),
        "{text}"
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
    let mut running = Running::start(&mut command);

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
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\nfrom the origin")
                .unwrap();
        }
        heads
    });
    for _ in 0..2 {
        assert!(
            running.ask(wanted.listen, "/").ends_with("from the origin"),
            "{}",
            fs::read_to_string(&log).unwrap()
        );
    }
    let heads = served.join().unwrap();
    for head in heads {
        assert!(
            head.starts_with("GET / HTTP/1.1\r\nHost: example.com\r\n"),
            "{head}"
        );
        assert!(
            head.contains("X-Real-IP: 127.0.0.1\r\n") && !head.contains("Connection"),
            "{head}"
        );
    }
}
