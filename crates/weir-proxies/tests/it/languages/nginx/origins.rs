//! Connections to origin servers that are kept: maps of `$http_upgrade`, and groups that are made.

use weir_configuration::{Source, diff};

use super::{Copy, User, change, set};
use crate::languages::support::must_have;

const KEPT: [(&str, &str); 1] = [("origin_keepalive", "32")];

/// Returns a configuration with these lines in `http` and in a server.
fn make_user(http: &str, server: &str) -> User {
    User::with(&format!(
        "events {{ }}\nhttp {{\n{http}    server {{\n        listen 80;\n{server}    }}\n}}\n"
    ))
}

/// Returns the added and removed lines, after checking that nginx accepts the result and a second change finds nothing
/// to do.
fn changed_lines(source: &Source) -> Vec<String> {
    let after = set(source, &KEPT);
    assert_eq!(set(&after, &KEPT), after, "nothing is left to do");
    Copy::of(&after).accepted("kept connections");
    let patch = diff(source, &after);
    patch
        .lines()
        .filter(|line| line.starts_with(['+', '-']))
        .filter(|line| !line.starts_with("+++") && !line.starts_with("---"))
        .map(str::to_owned)
        .collect()
}

const GROUP: &str = "    upstream app { server 192.0.2.1:80; keepalive 32; }\n";
const SOCKET: &str = "        location / {\n            proxy_pass http://app;\n            \
                      proxy_http_version 1.1;\n            proxy_set_header Upgrade $http_upgrade;\n            \
                      proxy_set_header Connection $connection_upgrade;\n        }\n";

#[test]
fn a_map_closes_no_connection_of_a_request_that_asks_for_no_upgrade() {
    for (entries, expected) in [
        (
            "        default upgrade;\n        ''      close;\n",
            &["-        ''      close;", "+        ''      '';"][..],
        ),
        (
            "        default upgrade;\n        \"\" Close;\n",
            &["-        \"\" Close;", "+        \"\" \"\";"],
        ),
        ("        websocket upgrade;\n        default close;\n", &["+        '' '';"]),
        ("        default upgrade;\n        '' '';\n", &[]),
        ("        default upgrade;\n        '' keep-alive;\n", &[]),
        ("        default upgrade;\n", &[]),
    ] {
        let lines = changed_lines(&make_user(&upgrade_map(entries), SOCKET).read());
        assert_eq!(lines, expected, "{entries}");
    }
}

#[test]
fn a_map_s_entries_in_a_file_are_found() {
    let map = format!("    map $http_upgrade $connection_upgrade {{ include upgrades; }}\n{GROUP}");
    let user = make_user(&map, SOCKET);
    user.write("upgrades", "default upgrade;\n'' close;\n");
    assert_eq!(changed_lines(&user.read()), ["-'' close;", "+'' '';"]);
}

#[test]
fn a_variable_that_serves_others_too_is_told_where_it_is_a_header() {
    let map = format!(
        "    map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}\n{GROUP}"
    );
    for (other, by) in [
        ("        add_header X-Was $connection_upgrade;\n", "add_header"),
        ("        if ($connection_upgrade = close) { return 400; }\n", "if"),
        ("        set $was \"a${connection_upgrade}\";\n", "set"),
    ] {
        let error =
            change(&make_user(&map, &format!("{other}{SOCKET}")).read(), &KEPT).unwrap_err();
        must_have(&error, &["$connection_upgrade", by, "`origin_keepalive`"]);
        // At the header, and with what to write there.
        assert_eq!(error.line, 12, "{error}");
        must_have(error.hint.unwrap(), &["'' '';", "Connection $connection_upgrade_kept"]);
    }
    let map = format!("{map}    map $connection_upgrade $other {{ close 1; }}\n");
    let error = change(&make_user(&map, SOCKET).read(), &KEPT).unwrap_err();
    must_have(error, &["`map` in line 5"]);
}

/// A location without WebSocket gets its own header, regardless of the variable's other uses.
#[test]
fn a_location_without_upgrade_gets_the_header_and_leaves_the_map() {
    let http = format!(
        "    map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}\n{GROUP}"
    );
    let plain = SOCKET.replace("            proxy_set_header Upgrade $http_upgrade;\n", "");
    assert_eq!(
        changed_lines(&make_user(&http, &plain).read()),
        [
            "-            proxy_set_header Connection $connection_upgrade;",
            "+            proxy_set_header Connection \"\";",
        ]
    );
}

#[test]
fn an_origin_server_with_a_port_gets_a_group_and_the_host_that_it_got() {
    let comment = "    # The shop.\n";
    let speaks = "+            proxy_http_version 1.1;";
    let empty = "+            proxy_set_header Connection \"\";";
    for (lines, expected) in [
        (
            ";\n            proxy_set_header Host $host;\n",
            vec![
                "-            proxy_pass http://127.0.0.1:3000;",
                "+            proxy_pass http://127.0.0.1-3000;",
                "+            proxy_redirect http://127.0.0.1:3000/ /;",
                speaks,
                empty,
            ],
        ),
        (
            "/app/;\n            proxy_set_header Host 127.0.0.1:3000;\n",
            vec![
                "-            proxy_pass http://127.0.0.1:3000/app/;",
                "+            proxy_pass http://127.0.0.1-3000/app/;",
                "+            proxy_redirect http://127.0.0.1:3000/app/ /shop/;",
                speaks,
                empty,
            ],
        ),
        (
            "/;\n",
            vec![
                "-            proxy_pass http://127.0.0.1:3000/;",
                "+            proxy_pass http://127.0.0.1-3000/;",
                "+            proxy_set_header Host 127.0.0.1:3000;",
                "+            proxy_redirect http://127.0.0.1:3000/ /shop/;",
                speaks,
                empty,
            ],
        ),
    ] {
        let source = make_user(comment, &shop(lines)).read();
        let mut changes = changed_lines(&source);
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        expected.extend(group_lines("127.0.0.1-3000"));
        // Which of two added lines comes first is not the point.
        changes.sort();
        expected.sort();
        assert_eq!(changes, expected);
        let text = &set(&source, &KEPT).files[0].text;
        must_have(text, &["    }\n\n    # The shop.\n    server {"]);
    }
}

#[test]
fn an_origin_server_without_a_port_gives_a_group_its_name() {
    let location = "        location / { proxy_pass http://192.0.2.7/x; }\n";
    assert_eq!(
        changed_lines(&make_user("", location).read()),
        [
            "+    upstream 192.0.2.7 {",
            "+        server 192.0.2.7;",
            "+        keepalive 32;",
            "+    }",
            "+",
            "-        location / { proxy_pass http://192.0.2.7/x; }",
            "+        location / { proxy_pass http://192.0.2.7/x; proxy_http_version 1.1; \
             proxy_set_header Connection \"\"; }",
        ]
    );
}

/// By default the name is neither in the handshake nor verified; port 443 has to be written.
#[test]
fn an_origin_server_behind_tls_gets_a_group_where_nobody_sees_its_name() {
    let location = "        location / {\n            proxy_pass https://back.example/x;\n        }\n        \
                    location /b { proxy_ssl_verify on; proxy_ssl_name back.example; proxy_pass https://back.example/; }\n        \
                    location /c { proxy_pass http://back.example; }\n";
    let text = set(&make_user("", location).read(), &KEPT).files[0].text.clone();
    must_have(
        &text,
        &[
            "upstream back.example-443 {\n        server back.example:443;\n        keepalive 32;\n",
            "            proxy_pass https://back.example-443/x;\n",
            "            proxy_set_header Host back.example;\n",
            "            proxy_redirect https://back.example/x /;\n",
            "proxy_pass https://back.example-443/;",
            "upstream back.example {\n        server back.example;\n        keepalive 32;\n",
            "proxy_pass http://back.example;",
        ],
    );
    assert_eq!(text.matches("server back.example").count(), 2, "{text}");
}

/// Each server gets one group, regardless of how many locations name it, even beside a group of the same name.
#[test]
fn a_group_is_made_once_and_its_name_is_free() {
    let server =
        location("/a", "localhost:81/") + &location("/b", "localhost:81") + &location("/c", "app");
    let http = GROUP.replace("app", "localhost-81") + GROUP;
    let text = set(&make_user(&http, &server).read(), &KEPT).files[0].text.clone();
    assert_eq!(text.matches("server localhost:81;").count(), 1, "{text}");
    must_have(
        &text,
        &["upstream localhost-81-2 {", "http://localhost-81-2/;", "http://localhost-81-2;"],
    );
    let unix = location("/", "unix:/run/app.sock:/x/");
    let text = set(&make_user("", &unix).read(), &KEPT).files[0].text.clone();
    must_have(&text, &["upstream app.sock {", "server unix:/run/app.sock;", "http://app.sock/x/;"]);
}

#[test]
fn a_group_that_would_change_requests_is_offered_with_its_reason() {
    let above = "        proxy_set_header X-Real-IP $remote_addr;\n";
    #[rustfmt::skip]
    let rows = [
        ("        proxy_ssl_server_name on;\n", "https://192.0.2.9:8443", "over TLS"),
        ("        proxy_ssl_verify on;\n", "https://192.0.2.9", "over TLS"),
        (above, "http://192.0.2.9:80", "headers from above"),
        ("", "http://unix:/run/app.sock", "no header `Host`"),
        ("        proxy_set_header Host $proxy_host;\n", "http://192.0.2.9:80", "made from that"),
        ("        proxy_redirect default;\n", "http://192.0.2.9:80", "`proxy_redirect default`"),
        ("", "http://back.example:80/x?room=$arg_room", "looks back.example:80 up for each request"),
    ];
    for (lines, target, why) in rows {
        let server = if lines.contains("redirect") {
            format!(
                "        location / {{\n    {lines}            proxy_pass {target};\n        }}\n"
            )
        } else {
            format!("{lines}        location / {{\n            proxy_pass {target};\n        }}\n")
        };
        let error = change(&make_user("", &server).read(), &KEPT).unwrap_err();
        must_have(&error, &[why, "`origin_keepalive`"]);
        let hint = error.hint.unwrap();
        must_have(&hint, &["write `upstream NAME"]);
        // Port 80 is that of a group's server where none is said.
        assert!(hint.contains("443;") || !target.contains("https"), "{hint}");
    }
    // What keeps nothing by itself makes no group.
    let server = "        location / { proxy_pass http://192.0.2.9:80; }\n";
    let settings = [("origin_keepalive_requests", "5")];
    change(&make_user("", server).read(), &settings).unwrap_err();
}

#[test]
fn a_group_that_the_copy_does_not_use_is_refused() {
    let plain = location("/plain", "app");
    for (values, more, is_used) in [
        ("default app; b app;", "", true),
        ("default app; b 192.0.2.9:80;", "", false),
        ("default app; b $http_x;", "", false),
        // A load may ask for this one; where it does not, the copy's remarks say so.
        ("default app; b 192.0.2.9:80;", &*plain, true),
    ] {
        let http = format!("    map $http_a $to {{ {values} }}\n{GROUP}");
        let user = make_user(&http, &format!("{}{more}", location("/", "$to")));
        let changed = change(&user.read(), &[("origin_keepalive", "8")]);
        assert_eq!(changed.is_ok(), is_used, "{values} {more}");
        let Err(error) = changed else { continue };
        must_have(error.what, &["$to may hold something else", "would have no effect"]);
        must_have(error.hint.unwrap(), &["only names of `upstream` blocks"]);
    }
}

fn upgrade_map(entries: &str) -> String {
    format!("    map $http_upgrade $connection_upgrade {{\n{entries}    }}\n{GROUP}")
}

fn shop(lines: &str) -> String {
    format!(
        "        location /shop/ {{\n            proxy_pass http://127.0.0.1:3000{lines}        }}\n"
    )
}

fn group_lines(name: &str) -> Vec<String> {
    vec![
        format!("+    upstream {name} {{"),
        "+        server 127.0.0.1:3000;".to_owned(),
        "+        keepalive 32;".to_owned(),
        "+    }".to_owned(),
        "+".to_owned(),
    ]
}

fn location(path: &str, to: &str) -> String {
    format!("        location {path} {{ proxy_set_header Host $host; proxy_pass http://{to}; }}\n")
}
