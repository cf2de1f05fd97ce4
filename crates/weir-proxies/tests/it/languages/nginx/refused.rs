//! Errors for bad input name its place.

use std::path::Path;

use weir_configuration::{ConfigurationError, WantedSetting};
use weir_nginx::language as nginx;

use super::{User, change, load_catalog, row};
use crate::languages::support::{must_have, of_a_test, with_tls};

fn refused(user: &User) -> ConfigurationError {
    nginx::read(&user.main(), None).unwrap_err()
}

fn place(error: &ConfigurationError) -> (String, usize, usize) {
    let name = error.file.file_name().unwrap().to_str().unwrap();
    (name.to_owned(), error.line, error.column)
}

#[test]
fn a_file_that_is_missing_or_none_is_told_at_its_include() {
    let user = User::with("events { }\nhttp {\n    include a/*.conf; include missing.conf;\n}\n");
    let error = refused(&user);
    assert_eq!(place(&error), ("nginx.conf".to_owned(), 3, 31));
    assert!(error.what.contains("missing.conf: No such file"), "{error}");
    must_have(error.hint.unwrap(), &["relative paths are taken from"]);

    user.write("missing.conf/file", "");
    assert!(refused(&user).what.contains("is a folder"));

    let nowhere = nginx::read(Path::new("/nowhere/nginx.conf"), None).unwrap_err();
    assert_eq!((nowhere.line, nowhere.column), (1, 1));
}

#[test]
fn a_circle_is_told_with_all_its_files() {
    let user = User::with("events { }\nhttp { include a.conf; }\n");
    user.write("a.conf", "server {\n\tinclude b*;\n}\n");
    user.write("b.conf", "include a.conf;");
    let error = refused(&user);
    assert_eq!(place(&error), ("b.conf".to_owned(), 1, 9));
    let names = ["/a.conf", "/b.conf", "/a.conf"];
    let at: Vec<usize> = names
        .iter()
        .scan(0, |from, name| {
            let at = error.what[*from..].find(name)? + *from;
            *from = at + 1;
            Some(at)
        })
        .collect();
    assert_eq!(at.len(), 3, "{error}");

    let user = User::with("include nginx.conf;");
    assert!(refused(&user).what.contains("cycle"));
}

#[test]
fn bytes_that_are_no_utf_8_are_told_in_their_own_file() {
    let user = User::with("include latin1;");
    user.write("latin1", b"# caf\xc3\xa9\n# \xc3\xbc caf\xe9\n");
    let error = refused(&user);
    assert_eq!(place(&error), ("latin1".to_owned(), 2, 8));
    assert!(error.what.contains("0xe9"), "{error}");
}

#[test]
fn what_is_not_nginx_s_language_is_told_with_its_place() {
    #[rustfmt::skip]
    let rows = [
        ("events { }\n}\n", 2, 1, "`}` too many"),
        ("events { }\nhttp {\n server {\n }\n", 2, 6, "`}` of this block is missing"),
        ("a 'b", 1, 3, "quote is not closed"),
        ("a \"b\"c;", 1, 6, "behind a closing quote"),
        ("a;\n\tb c\n", 2, 2, "not ended"),
        ("\u{feff} ;", 1, 2, "no name"),
        ("http { content_by_lua_block { \"}\" ", 1, 29, "of Lua is missing"),
    ];
    for (text, line, column, what) in rows {
        let error = refused(&User::with(text));
        assert_eq!((error.line, error.column), (line, column), "{text:?} {error}");
        must_have(error, &[what]);
    }
    let deep = "a{".repeat(100_000);
    assert!(refused(&User::with(&deep)).what.contains("deeper than 100"));
}

#[test]
fn a_wrong_block_is_told_with_the_right_one() {
    #[rustfmt::skip]
    let rows = [
        ("events { }\nhttp { server {\n http { } } }", 3, "`http` cannot stand in `server`",
         "it belongs outside all blocks"),
        ("events { }\nhttp {\n worker_connections 5; }", 3,
         "`worker_connections` cannot stand in `http`", "it belongs in `events`"),
        ("events { }\n gzip on;", 2, "`gzip` cannot stand outside all blocks",
         "it belongs in `http` or in `server` or in `location`"),
        ("http { location / { } }", 1, "`location` cannot stand in `http`",
         "it belongs in `server` or in `location`"),
        ("events { include inner; }", 1, "`worker_processes` cannot stand in `events`",
         "it belongs outside all blocks"),
        ("http { server { keepalive 5; } }", 1, "`keepalive` cannot stand in `server`",
         "it belongs in `upstream`"),
    ];
    for (text, line, what, hint) in rows {
        let user = User::with(text);
        user.write("inner", "worker_processes 1;");
        let error = refused(&user);
        assert_eq!((error.line, &*error.what), (line, what));
        assert_eq!(error.hint.as_deref(), Some(hint));
    }
    // Others have directives of the same names, and blocks that nobody knows here.
    let text = "events { } stream { ssl_protocols TLSv1.2; server { listen 1; tcp_nodelay on; } }\n\
                rtmp { server { application live { live on; } } }";
    User::with(text).read();
}

#[test]
fn a_row_without_its_block_is_told() {
    for (text, id, level, what) in [
        ("events { }", "gzip", "on", "a block `http`"),
        ("http { }", "multi_accept", "on", "a block `events`"),
        ("http { }", "origin_keepalive", "5", "an `upstream`"),
        ("http { server { } }", "backlog", "5", "needs a `listen`"),
        ("http { }", "reuseport", "on", "an HTTP server"),
    ] {
        let error = change(&User::with(text).read(), &[(id, level)]).unwrap_err();
        must_have(error.what, &[what, id]);
    }
}

#[test]
fn a_listener_that_is_not_there_is_told_with_those_that_are() {
    let source = User::of("tls").read();
    let mut wanted = with_tls(Path::new("/prefix"));
    wanted.asks[0].spec.port = Some(81);
    let error = nginx::adapt(&source, &wanted, "").unwrap_err();
    must_have(error.what, &["in clear on port 81"]);
    must_have(error.hint.unwrap(), &["443 (TLS) at "]);

    let in_clear = User::of("proxy").read();
    let error = nginx::adapt(&in_clear, &with_tls(Path::new("/prefix")), "").unwrap_err();
    must_have(error.what, &["no HTTP server listens with TLS"]);

    let long = format!("/{}", "x".repeat(110));
    let many = User::of("listeners").read();
    let error = nginx::adapt(&many, &of_a_test(Path::new(&long)), "").unwrap_err();
    must_have(error.what, &["of more than 97 bytes"]);
}

#[test]
fn a_file_that_is_too_large_is_told_at_its_include() {
    let user = User::with("events { }\ninclude large;\n");
    let large = std::fs::File::create(user.folder.path().join("large")).unwrap();
    large.set_len((64 << 20) + 1).unwrap();
    let error = refused(&user);
    assert_eq!(place(&error), ("nginx.conf".to_owned(), 2, 9));
    must_have(error.what, &["is larger than 67108864 bytes"]);
}

#[test]
fn a_pattern_that_is_not_understood_is_told_at_its_include() {
    let error = refused(&User::with("include [[:digit:]]*;"));
    assert_eq!(place(&error), ("nginx.conf".to_owned(), 1, 9));
    must_have(error.what, &["write them out"]);
}

#[test]
fn a_flag_of_several_servers_is_told_at_their_listen() {
    let user = User::with(
        "events { }\nhttp {\n    server { include ports; server_name a; }\n    \
         server { include ports; server_name b; }\n}\n",
    );
    user.write("ports", "listen 8080;\n");
    let error = change(&user.read(), &[("backlog", "99")]).unwrap_err();
    assert_eq!(place(&error), ("ports".to_owned(), 1, 1));
    must_have(&error, &["`backlog`"]);
    must_have(error.hint.unwrap(), &["into the servers themselves"]);
}

#[test]
fn a_header_that_a_location_of_websocket_shares_is_told_at_its_place() {
    let user = User::with(
        "events { }
         http {
             upstream app { server 192.0.2.1:80; }
             server {
                 location / { include headers; proxy_pass http://app; }
                 location /socket { include headers; proxy_set_header Upgrade $http_upgrade; proxy_pass http://app; }
             }
         }\n",
    );
    let settings = [("origin_keepalive", "32")];
    let header = "proxy_set_header Connection \"\";\n";
    let headers = "proxy_set_header Host $host;\nproxy_set_header Connection close;\n";
    user.write("headers", headers);
    let error = change(&user.read(), &settings).unwrap_err();
    assert_eq!(place(&error), ("headers".to_owned(), 2, 1));
    must_have(error.what, &["speaks WebSocket"]);
    user.write("headers", header);
    let after = change(&user.read(), &settings).unwrap();
    assert_eq!(after.files[1].text, header);
}

#[test]
fn settings_that_contradict_each_other_are_told_at_the_directive() {
    let user = User::with("events { }\nhttp {\n    keepalive_requests 5;\n}\n");
    let catalog = load_catalog();
    let rival = crate::languages::support::row(
        r#"{"integer": {"min": 1, "max": 9}}"#,
        r#"{"directive": {"name": "keepalive_requests", "context": "http"}}"#,
        r#"[{"context": "http", "text": "keepalive_requests {value}"}]"#,
    );
    let rows = [(row(&catalog, "keepalive_requests"), "6"), (&rival, "7")];
    let wanted = rows.map(|(row, level)| WantedSetting { row, level });
    let error = nginx::change(&user.read(), &wanted).unwrap_err();
    assert_eq!(place(&error), ("nginx.conf".to_owned(), 3, 24));
    must_have(error.what, &["two settings"]);
}
