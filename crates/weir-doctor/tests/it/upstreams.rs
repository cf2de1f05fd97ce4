//! Upstream blocks that keep connections, and places that have a load to keep them for.

use crate::host::{Host, SITE};

/// What to write is about the place that has no upstream block, and its scheme stays.
#[test]
fn an_origin_server_behind_tls_gets_an_upstream_of_its_port() {
    let host = Host::debian();
    let behind = "location /b { proxy_pass https://back.example; } location / {";
    host.site(&SITE.replace("location / {", behind));
    let change = host.finding("origin-keepalive-missing").change.join("\n");
    let group = "upstream origin { server back.example:443; keepalive 64; }";
    assert!(change.contains(group), "{change}");
    assert!(change.contains("proxy_pass https://origin;"), "{change}");
    let host = Host::debian();
    let behind =
        "location /b { proxy_set_header Host b; proxy_pass https://[2001:db8::1]/x; } location / {";
    host.site(&SITE.replace("location / {", behind));
    let change = host.finding("origin-keepalive-missing").change.join("\n");
    let expected = ["server [2001:db8::1]:443;", "proxy_pass https://origin/x;"];
    assert!(
        expected.iter().all(|part| change.contains(part)),
        "{change}"
    );
    assert!(!change.contains("Header Host"), "{change}");
}

/// A balancing method that stands behind `keepalive` takes its place.
#[test]
fn connections_are_kept_behind_the_balancing_method() {
    for (methods, line) in [
        (
            "\tserver 10.0.0.1;\n\tleast_conn;",
            "'3s/\\(least_conn[^;]*;\\)/\\1 keepalive 64;/'",
        ),
        (
            "\thash $uri;\n\tserver 10.0.0.1;",
            "'3s/\\(server [^;]*;\\)/\\1 keepalive 64;/'",
        ),
    ] {
        let host = Host::debian();
        host.site(&format!(
            "upstream app {{\n{methods}\n}}\nserver {{\n\tlisten 80;\n\tlocation / {{\n\t\tproxy_pass http://app;\n\t}}\n}}\n"
        ));
        let change = host.finding("origin-keepalive-missing").change.join("\n");
        assert!(change.contains(line), "{change}");
    }
}

/// Beside an upstream block goes what nginx took from `proxy_pass` before: the header Host, the name in the handshake, and
/// what a name at run time is looked up by. What a server sets for its locations stays in force.
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
            &[
                "becomes `proxy_pass https://origin/x/;`",
                "proxy_ssl_name back.example;",
            ],
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
        assert!(
            expected.iter().all(|part| change.contains(part)),
            "{change}"
        );
        assert!(!change.contains(never), "{change}");
        host.obey(&finding);
        let site = host.read("/etc/nginx/sites-enabled/default");
        // What a server sets for its locations stays as it is there, and in force here.
        let (above, inside) = site.split_once("location").unwrap();
        assert!(above.contains(&format!("\t{server}\n")), "{site}");
        let header = server.strip_prefix("proxy_set_header");
        for part in header
            .into_iter()
            .chain(["Connection \"\";", "proxy_set_header Host "])
        {
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

/// Servers that redirect all, or answer by themselves, have no load; those that answer from files have.
#[test]
fn what_redirects_is_no_place_of_a_load() {
    const IDS: [&str; 2] = ["client-keepalive-off", "backlog-short"];
    let mut host = Host::debian();
    host.asked.connections = Some(20_000);
    let site = |answer: &str| {
        format!(
            "server {{\n\tlisten 80;\n\tkeepalive_timeout 0;\n\t{answer}\n}}\n\
             server {{\n\tlisten 127.0.0.1:8050;\n\tlocation / {{\n\t\tstub_status;\n\t}}\n}}\n"
        )
    };
    host.site(&site("root /srv;"));
    for id in IDS {
        let evidence = host.finding(id).evidence.join("\n");
        assert!(
            evidence.contains("default:") && !evidence.contains("8050"),
            "{evidence}"
        );
    }
    host.site(&site("rewrite ^/(.*)$ https://a.example/$1 permanent;"));
    IDS.iter().for_each(|id| host.is_silent_about(id));
}
