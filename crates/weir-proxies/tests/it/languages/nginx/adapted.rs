//! Copies that run beside others and touch nothing of the user's.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weir_configuration::{Source, Surroundings};
use weir_nginx::language as nginx;

use super::{Copy, User, build, checkable, make_surroundings};
use crate::languages::support::{
    LISTEN, ORIGIN, Running, TLS_LISTEN, free_address, must_have, of_a_test, text,
};

fn adapted(name: &str) -> String {
    let source = User::of(name).read();
    let after = adapt(&source, &make_surroundings(Path::new("/trial"), &source));
    check_lines(&source, &after, name);
    after.files.into_iter().map(|file| file.text).collect()
}

fn adapt(source: &Source, surroundings: &Surroundings<'_>) -> Source {
    nginx::adapt(source, surroundings, &build()).unwrap()
}

/// Returns the main file of a copy with changes to the surroundings of [`of_a_test`].
fn adapted_with(user: &User, other: impl Fn(&mut Surroundings<'_>)) -> String {
    let mut wanted = of_a_test(Path::new("/trial"));
    other(&mut wanted);
    text(&adapt(&user.read(), &wanted)).to_owned()
}

fn check_lines(before: &Source, after: &Source, name: &str) {
    for (before, after) in before.files.iter().zip(&after.files) {
        let [before, after] = [before, after].map(|file| file.text.matches('\n').count());
        assert_eq!(before, after, "{name}");
    }
}

fn tree(folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tree(&path, into);
        } else {
            into.insert(path.clone(), fs::read(&path).unwrap());
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
                .replace(&*user.folder.path().to_string_lossy(), "")
                .replace("unix:/run", "");
            assert!(!elsewhere.contains(path), "{name}: {path}\n{elsewhere}");
        }
        assert_eq!(before, state(), "{name}");
    }
}

#[test]
fn the_chosen_listeners_are_asked_and_all_others_are_sockets() {
    let over_tls = format!("listen {TLS_LISTEN} ssl http2 default_server;");
    let pass = format!("proxy_pass http://{ORIGIN}/base/;");
    let socket = "listen unix:/trial/run/3.sock ssl http2 default_server ;";
    let parts = [
        // It redirects, so no load asks it by itself.
        "listen unix:/trial/run/1.sock;",
        "listen unix:/trial/run/2.sock;",
        &over_tls,
        socket,
        &pass,
    ];
    must_have(adapted("tls"), &parts);
    let listeners = adapted("listeners");
    assert_eq!(listeners.matches(&format!("listen {LISTEN}")).count(), 2);
    let first = format!("listen {LISTEN} default_server backlog=300;");
    let last = "{ listen unix:/trial/run/6.sock; server_name e;";
    must_have(listeners, &[&first, "listen unix:/trial/run/3.sock ;", last]);
    let stream = User::of("stream").read();
    let error = nginx::adapt(&stream, &of_a_test(Path::new("/trial")), "").unwrap_err();
    must_have(error, &["no HTTP server listens in clear"]);
    let mail = adapted("mail");
    assert!(!mail.contains("mail {") && !mail.contains("auth_http"), "{mail}");
}

#[test]
fn a_listener_is_chosen_by_its_port() {
    let text = adapted_with(&User::of("listeners"), |it| {
        it.asks[0].spec.port = Some(8090);
    });
    must_have(&text, &[&format!("listen {LISTEN}  so_keepalive=on;")]);
    assert_eq!(text.matches(LISTEN).count(), 1);
}

#[test]
fn origins_become_the_one_that_is_given() {
    #[rustfmt::skip]
    let rows = [
        ("proxy", &["server ORIGIN weight=3 max_fails=2 fail_timeout=5s;"][..]),
        ("proxy", &["server ORIGIN backup; # the old machine", "proxy_pass http://app/v1/;"]),
        ("limits", &["proxy_pass http://ORIGIN;", "proxy_pass http://ORIGIN$request_uri;"]),
        ("grpc", &["grpc_pass grpc://grpc_servers;", "grpc_pass grpc://ORIGIN;"]),
    ];
    for (name, parts) in rows {
        must_have(adapted(name).replace(ORIGIN, "ORIGIN"), parts);
    }
}

/// Returns the text of a copy of one file, after nginx has accepted it.
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
                 location ~ ^(/app)?/10 { set $up http; set $host_of downloads; proxy_pass $up://$host_of:6800/10; }
             }
         }\n",
    );
    user.write("pools", "b other;");
    let parts = [
        "/1 { proxy_pass http://$pool; }",
        "/2 { proxy_pass http://${copied}$request_uri; }",
        "/3 { proxy_pass $whole; }",
        "/4 { proxy_pass http://$half/x; }",
        "/5 { proxy_pass http://ORIGIN$http_weir_nothing/5; }",
        "/6 { proxy_pass http://ORIGIN; }",
        "/7 { proxy_pass http://ORIGIN$http_weir_nothing/7; }",
        "/8 { proxy_pass http://other$http_weir_nothing/; }",
        "/9 { proxy_pass http://ORIGIN$request_uri; }",
        "proxy_pass http://ORIGIN$http_weir_nothing/10; }",
    ];
    must_have(copied(&user).replace(ORIGIN, "ORIGIN"), &parts);
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
    let text = adapted_with(&user, |_| {}).replace(ORIGIN, "ORIGIN");
    let pass = "proxy_pass http://ORIGIN; }";
    must_have(text, &["proxy_pass ORIGIN; }", "proxy_pass $group; }", pass]);
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
    let parts = [
        "/temp/proxy_store-$nginx_version; proxy_pass",
        "/temp/fastcgi_store-$nginx_version; fastcgi_pass",
        "proxy_bind off; proxy_store off;",
    ];
    must_have(&text, &parts);
    for gone in ["192.0.2.", "_store on", "_store /srv"] {
        assert!(!text.contains(gone), "{text}");
    }
}

#[test]
fn logs_and_files_go_below_the_prefix_and_what_is_read_stays() {
    let logs = [
        "error_log /trial/logs/error.log notice;",
        "access_log /trial/logs/access.log json buffer=32k flush=5s if=$loggable;",
        "access_log /trial/logs/syslog.log combined;",
        "access_log /trial/logs/2-access.log;",
        "access_log off;",
        "access_log /trial/logs/of-variables-$nginx_version.log combined;",
        "error_log /trial/logs/error.log crit;",
    ];
    let cache = [
        "proxy_cache_path /trial/temp/2-proxy_cache keys_zone=two:1m;",
        "proxy_temp_path /trial/temp/proxy 1 2;",
    ];
    let files = ["root /usr/share/nginx/files;"];
    for (name, parts) in [("logs", &logs[..]), ("cache", &cache), ("static", &files)] {
        must_have(adapted(name), parts);
    }
}

#[test]
fn a_user_is_set_or_none() {
    assert!(!adapted("debian").contains("user www-data"));
    let with_user =
        |name: &str| adapted_with(&User::of(name), |it| it.user = Some(("nobody", "nogroup")));
    must_have(with_user("wordpress"), &["user nobody nogroup;"]);
    let start = "user nobody nogroup; pid /trial/nginx.pid;";
    assert!(with_user("proxy").starts_with(start));
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

/// Tests the whole way: a user's configuration with includes and headers, settings, a copy, and a real nginx that asks
/// a real origin over a connection that it keeps.
#[test]
fn a_copy_runs_and_keeps_its_connection_to_the_origin() {
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let user = User::of("nested");
    let source = super::set(&user.read(), &[("origin_keepalive", "4"), ("worker_processes", "1")]);
    let prefix = tempfile::tempdir().unwrap();
    let origin_at = origin.local_addr().unwrap();
    let wanted =
        crate::languages::support::make_surroundings(prefix.path(), free_address(), origin_at);
    let main = super::copy(&source, &wanted);
    let log = prefix.path().join("logs/error.log");
    let mut running = Running::start(&mut super::make_command(prefix.path(), &main));

    // Both requests come over one connection, or the second is never answered.
    let served = std::thread::spawn(move || {
        let (mut connection, _) = origin.accept().unwrap();
        let patience = Some(Duration::from_secs(20));
        connection.set_read_timeout(patience).unwrap();
        let mut heads = Vec::new();
        for _ in 0..2 {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                connection.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            heads.push(String::from_utf8(head).unwrap());
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\nfrom the origin";
            connection.write_all(answer).unwrap();
        }
        heads
    });
    for _ in 0..2 {
        let answer = running.ask(wanted.asks[0].at, "/");
        let is_passed_on = answer.ends_with("from the origin");
        assert!(is_passed_on, "{}", fs::read_to_string(&log).unwrap());
    }
    for head in served.join().unwrap() {
        assert!(head.starts_with("GET / HTTP/1.1\r\n"), "{head}");
        must_have(&head, &["\r\nHost: example.com\r\n", "X-Real-IP: 127.0.0.1\r\n"]);
        assert!(!head.contains("Connection"), "{head}");
    }
}
