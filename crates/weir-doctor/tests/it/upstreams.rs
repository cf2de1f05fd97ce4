//! Upstream blocks that keep connections, and locations that serve a load.

use weir_testkit::doctor_host::{Host, SITE, list_lines};

/// The remedy creates an upstream block and keeps the scheme. The site already has an upstream `origin`, and nginx
/// accepts no second one of that name.
#[test]
fn an_origin_server_behind_tls_gets_an_upstream_of_its_port() {
    let host = Host::debian();
    let behind = "location /b { proxy_pass https://back.example; } location / {";
    host.site(&SITE.replace("location / {", behind));
    let change = host.finding("origin-keepalive-missing").change.join("\n");
    let group = "upstream origin_2 { server back.example:443; keepalive 64; }";
    assert!(change.contains(group), "{change}");
    assert!(change.contains("proxy_pass https://origin_2;"), "{change}");
    let host = Host::debian();
    let behind =
        "location /b { proxy_set_header Host b; proxy_pass https://[2001:db8::1]/x; } location / {";
    host.site(&SITE.replace("location / {", behind));
    let change = host.finding("origin-keepalive-missing").change.join("\n");
    let expected = ["server [2001:db8::1]:443;", "proxy_pass https://origin_2/x;"];
    assert!(expected.iter().all(|part| change.contains(part)), "{change}");
    assert!(!change.contains("Header Host"), "{change}");
}

const FIELDS: &str = "proxy_http_version 1.1; proxy_set_header Connection \"\";";
const MAP: &str = "map $http_upgrade $cu { default upgrade; '' close; }";

/// Sites before and after following the commands until none is left, and the remarks that remain.
#[rustfmt::skip]
const PATCHED: &[(&str, &str, &str)] = &[
    // A balancing method that stands behind `keepalive` takes its place.
    ("upstream u {\n\tserver 10.0.0.1;\n\tleast_conn;\n}\nserver { location / { proxy_pass http://u; } }",
     "upstream u {\n\tserver 10.0.0.1;\n\tleast_conn; keepalive 64;\n}\nserver { location / { FIELDS proxy_pass http://u; } }", ""),
    ("upstream u {\n\thash $uri;\n\tserver 10.0.0.1;\n}\nserver { location / { proxy_pass http://u; } }",
     "upstream u {\n\thash $uri;\n\tserver 10.0.0.1; keepalive 64;\n}\nserver { location / { FIELDS proxy_pass http://u; } }", ""),
    ("upstream u { server 10.0.0.1; keepalive 9; least_conn; }\nserver { location / { FIELDS proxy_pass http://u; } }",
     "upstream u { server 10.0.0.1;  least_conn; keepalive 9; }\nserver { location / { FIELDS proxy_pass http://u; } }", ""),
    // Several in one line.
    ("upstream u { server 10.0.0.1; } upstream v { server 10.0.0.2; }\nserver { location / { proxy_pass http://u; } location /v { proxy_set_header Host x; proxy_pass http://v; } }",
     "upstream u { server 10.0.0.1; keepalive 64; } upstream v { server 10.0.0.2; keepalive 64; }\nserver { location / { FIELDS proxy_pass http://u; } location /v { proxy_set_header Connection \"\"; proxy_set_header Host x; proxy_http_version 1.1; proxy_pass http://v; } }", ""),
    ("upstream u { server a:1; } upstream v { server a:1; }\nserver { location / { FIELDS proxy_pass http://u; } }",
     "upstream u { server a:1; } upstream v { server a:1; }\nserver { location / { FIELDS proxy_pass http://u; } }",
     "default:1: `server a:1` gets `keepalive 64;` behind it"),
    ("upstream u { server a:1; keepalive 9; }\nserver { proxy_http_version 1.1; location /b { proxy_set_header 'Connection' close; proxy_pass http://u; } location /c { proxy_set_header Connection Upgrade; proxy_pass http://u; } }",
     "upstream u { server a:1; keepalive 9; }\nserver { proxy_http_version 1.1; location /b { proxy_set_header 'Connection' close; proxy_pass http://u; } location /c { proxy_set_header Connection Upgrade; proxy_pass http://u; } }",
     "default:2: `proxy_set_header Connection close` becomes"),
    // Of several lines.
    ("upstream u { # server old;\n\tserver 10.0.0.1\n\t\tweight=2; }\nserver { location / { FIELDS proxy_pass http://u; } }",
     "upstream u { # server old;\n\tserver 10.0.0.1\n\t\tweight=2; }\nserver { location / { FIELDS proxy_pass http://u; } }",
     "default:2: `server 10.0.0.1 weight=2` gets `keepalive 64;` behind it"),
    // A variable that is a path, and one that says where.
    ("upstream u { server 10.0.0.1; keepalive 9; }\nserver { location / { proxy_pass http://u$request_uri; } }",
     "upstream u { server 10.0.0.1; keepalive 9; }\nserver { location / { FIELDS proxy_pass http://u$request_uri; } }", ""),
    ("upstream u { server 10.0.0.1; keepalive 9; }\nserver { location / { proxy_pass http://$uri_of$request_uri; } }",
     "upstream u { server 10.0.0.1; keepalive 9; }\nserver { location / { proxy_pass http://$uri_of$request_uri; } }", ""),
    // The variable of a `map` that something else has.
    ("MAP\nupstream u { server 10.0.0.1; keepalive 9; }\nserver { location / { proxy_http_version 1.1; proxy_set_header Connection $cu; add_header X-C \"${cu}\"; proxy_pass http://u; } }",
     "MAP\nupstream u { server 10.0.0.1; keepalive 9; }\nserver { location / { proxy_http_version 1.1; proxy_set_header Connection $cu; add_header X-C \"${cu}\"; proxy_pass http://u; } }",
     "default:1: behind this `map`, whose variable is used elsewhere too"),
    // What `proxy_pass` gave by default, written out.
    ("server { location /a/ { proxy_pass http://10.0.0.7/x/; proxy_redirect default; } }",
     "server { location /a/ { FIELDS proxy_redirect http://10.0.0.7/x/ /a/; proxy_set_header Host 10.0.0.7; proxy_pass http://10.0.0.7/x/; proxy_redirect default; } }",
     "becomes `proxy_pass http://origin/x/;`"),
];

#[test]
fn commands_change_what_they_are_for_and_nothing_else() {
    for (before, after, remark) in PATCHED {
        let host = Host::debian();
        host.site(&fill_in(before));
        let mut remarks = String::new();
        for _ in 0..3 {
            let findings = host.examined().findings.into_iter();
            let origin: Vec<_> =
                findings.filter(|one| one.problem.id().starts_with("origin-")).collect();
            origin.iter().for_each(|one| host.obey(one));
            remarks = origin.iter().flat_map(|one| one.change.clone()).collect();
        }
        assert_eq!(host.read("/etc/nginx/sites-enabled/default"), fill_in(after));
        assert!(remarks.contains(remark), "{remark}: {remarks}");
        assert!(!remark.is_empty() || remarks.is_empty(), "{before}: {remarks}");
    }
}

fn fill_in(text: &str) -> String {
    text.replace("FIELDS", FIELDS).replace("MAP", MAP)
}

/// A new upstream block comes with what nginx derived from `proxy_pass` before: the Host header, the name in the
/// handshake, and the resolver for a name at run time. Settings that locations inherit from their server stay in force.
#[test]
fn an_upstream_keeps_the_names_of_what_it_replaces() {
    for (server, location, expected, never) in [
        (
            "proxy_set_header X-Real-IP $remote_addr;",
            "proxy_pass http://10.5.0.1:30002;",
            &["`proxy_pass http://10.5.0.1:30002;` becomes `proxy_pass http://origin;`"][..],
            "resolve",
        ),
        (
            "proxy_http_version 1.1;",
            "proxy_ssl_server_name on; proxy_pass https://back.example/x/;",
            &["becomes `proxy_pass https://origin/x/;`", "proxy_ssl_name back.example;"],
            "proxy_http_version",
        ),
        (
            "resolver 10.0.0.53;",
            "set $to app.example:3000; proxy_pass http://$to;",
            &[
                "1.27.3",
                "zone origin 64k; resolver 10.0.0.53; server app.example:3000 resolve; keepalive 64;",
            ],
            "proxy_ssl_name",
        ),
    ] {
        let host = Host::debian();
        let site = format!(
            "server {{\n\tlisten 80;\n\t{server}\n\tlocation / {{\n\t\t{location}\n\t}}\n}}\n"
        );
        host.site(&site);
        let finding = host.finding("origin-keepalive-missing");
        let change = finding.change.join("\n");
        assert!(expected.iter().all(|part| change.contains(part)), "{change}");
        assert!(!change.contains(never), "{change}");
        host.obey(&finding);
        let site = host.read("/etc/nginx/sites-enabled/default");
        // What a server sets for its locations stays as it is there, and in force here.
        let (above, inside) = site.split_once("location").unwrap();
        assert!(above.contains(&format!("\t{server}\n")), "{site}");
        let header = server.strip_prefix("proxy_set_header");
        for part in header.into_iter().chain(["Connection \"\";", "proxy_set_header Host "]) {
            assert!(inside.contains(part), "{part}: {site}");
        }
        let redirects = inside.contains("proxy_redirect ");
        assert_eq!(redirects, !location.contains("$to"), "{site}");
    }
    // Behind a variable a URI is all that is asked for.
    let host = Host::debian();
    host.site("server {\n\tlisten 80;\n\tlocation /a {\n\t\tset $to app.example; proxy_pass http://$to/x;\n\t}\n}\n");
    assert_eq!(host.finding("origin-keepalive-missing").change, [""; 0]);
}

/// Servers that redirect everything or answer by themselves have no load; servers of static files have.
#[test]
fn what_redirects_is_no_place_of_a_load() {
    const IDS: [&str; 2] = ["client-keepalive-off", "backlog-short"];
    let mut host = Host::debian();
    host.asked.connections = Some(20_000);
    host.site(&format_site("root /srv;"));
    for id in IDS {
        let evidence = list_lines(&host.finding(id)).join("\n");
        assert!(evidence.contains("default:") && !evidence.contains("8050"), "{evidence}");
    }
    host.site(&format_site("rewrite ^/(.*)$ https://a.example/$1 permanent;"));
    IDS.iter().for_each(|id| host.is_silent_about(id));
}

fn format_site(answer: &str) -> String {
    format!(
        "server {{\n\tlisten 80;\n\tkeepalive_timeout 0;\n\t{answer}\n}}\n\
         server {{\n\tlisten 127.0.0.1:8050;\n\tlocation / {{\n\t\tstub_status;\n\t}}\n}}\n"
    )
}
