use weir_configuration::Answer;
use weir_nginx::language as nginx;

use super::{all_must_be, ask, must_be};
use crate::languages::support::make_source;

const NGINX: &str = "\
events { }
http {
    upstream app { server 192.0.2.1:80; }
    server { listen 80 default_server; return 404; }
    server {
        if ($host = shop.example) { return 301 https://$host$request_uri; }
        listen 80;
        server_name shop.example;
        return 404;
    }
    server {
        listen 443 ssl default_server;
        ssl_reject_handshake on;
    }
    server {
        listen 443 ssl;
        server_name shop.example *.shop.example;
        location = /exact { return 204; }
        location / { proxy_pass http://app; }
        location ^~ /static/ { root /srv; }
        location ~* \\.(png|jpg)$ { expires 1h; root /srv; }
        location /api/ {
            proxy_pass http://app;
            location ~ \\.json$ { proxy_pass http://app; }
        }
        location /old/ { return 308 /new/; }
        location /spa/ { try_files $uri @app; }
        location @app { proxy_pass http://app; }
        location /status { stub_status; }
        location /gone { return 410; }
    }
    server { listen 443 ssl; server_name www.*; location /only { proxy_pass http://app; } }
    server { listen 443 ssl; server_name ~^node\\d+\\.example$; location / { proxy_pass http://app; } }
    server { listen 127.0.0.1:8081; location / { stub_status; } }
    server { listen 8080; server_name internal; location / { proxy_pass http://app; } }
    server { listen unix:/run/x.sock; location / { proxy_pass http://app; } }
}
";

#[test]
fn nginx_chooses_by_server_name_and_location() {
    let source = make_source("nginx.conf", NGINX);
    all_must_be(
        &|ask| nginx::asked(&source, ask, ""),
        r"
            => 8080 | server internal | location / | passes it on
            :80 => 80 | server | - | returns 404
            :80 shop.example => 80 | server shop.example | - | redirects
            # The default of the only TLS port refuses whoever names nobody that it knows.
            tls => 12:9 no listener with TLS passes on a request for `/` with the host `weir.test`: 443 (TLS)…
            tls shop.example => 443 | server shop.example *.shop.example | location / | passes it on
            tls shop.example /exact => 443 | server shop.example *.shop.example | location = /exact | returns 204
            tls shop.example /static/a.png => 443 | server shop.example *.shop.example | location ^~ /static/ | answers from files
            tls shop.example /x/a.PNG?v=1 => 443 | server shop.example *.shop.example | location ~* \.(png|jpg)$ | answers from files
            tls shop.example /api/a.json => 443 | server shop.example *.shop.example | location ~ \.json$ | passes it on
            tls shop.example /api/a.png => 443 | server shop.example *.shop.example | location ~* \.(png|jpg)$ | answers from files
            tls shop.example /api/a => 443 | server shop.example *.shop.example | location /api/ | passes it on
            tls shop.example /spa/a => 443 | server shop.example *.shop.example | location @app | passes it on
            tls :443 shop.example /old/ => 443 | server shop.example *.shop.example | location /old/ | redirects
            tls :443 shop.example /status => 443 | server shop.example *.shop.example | location /status | shows statistics or health
            tls :443 shop.example /gone => 443 | server shop.example *.shop.example | location /gone | returns 410
            tls a.b.shop.example => 443 | server shop.example *.shop.example | location / | passes it on
            tls www.any.example /only/a => 443 | server www.* | location /only | passes it on
            tls node17.example => 443 | server ~^node\d+\.example$ | location / | passes it on
            :8081 => 127.0.0.1:8081 | server | location / | shows statistics or health
            # What is named must be there.
            :81 => 4:14 no HTTP server listens in clear on port 81
            :443 => 4:14 no HTTP server listens in clear on port 443
            tls :443 www.any.example /x => 32:5 a request for `/x` with the host `www.any.example` at 443 (TLS): no location of server www.* takes it…
        ",
    );
}

#[test]
fn a_host_that_no_server_of_nginx_has_is_refused_unless_the_default_is_for_all() {
    for (name, expected) in [
        ("_", "80 | server _ | location / | passes it on"),
        (
            "a.example",
            "3:5 a request for `/` with the host `b.example` at 80: no server there has the name `b.example`; the names there are a.example",
        ),
    ] {
        let text = format!(
            "events {{ }}\nhttp {{\n    server {{ listen 80; server_name {name}; location / {{ proxy_pass http://192.0.2.1; }} }}\n}}\n"
        );
        let source = make_source("nginx.conf", &text);
        must_be(&|ask| nginx::asked(&source, ask, ""), &[("b.example", expected)]);
        // Whoever names nobody gets the default.
        assert!(nginx::asked(&source, &ask(""), "").is_ok(), "{name}");
    }
}

/// Front controllers in the manner of PHP frameworks, with locations that only some requests reach.
const FRONTS: &str = r#"
events { }
http {
    root /srv;
    server {
        listen 81;
        location / { try_files $uri /index.php$is_args$args; }
        location ~ ^/index\.php(/|$) { fastcgi_pass 192.0.2.1:9000; internal; }
    }
    server {
        listen 82;
        location / { try_files $uri @old; }
        location @old { rewrite ^/(.*)$ /index.php?q=$1; }
        location ~ \.php$ { fastcgi_pass 192.0.2.1:9000; }
    }
    server {
        listen 83;
        index index.php /index.php$request_uri;
        location = / { }
        location ~ \.php(?:$|/) { fastcgi_pass 192.0.2.1:9000; }
    }
    server {
        listen 84;
        rewrite ^/(?!(assets|\.well-known)/) /index.php last;
        location / { proxy_pass http://192.0.2.1; }
        location ~ \.php$ { fastcgi_pass 192.0.2.1:9000; }
    }
    server {
        listen 85;
        try_files $uri/index.html $uri @app;
        location @app { proxy_pass http://192.0.2.1; }
    }
    server {
        listen 86;
        location / {
            if ($http_x_forwarded_proto != "https") { return 301 https://$host$request_uri; }
            if ($request_method = HEAD) { return 405; }
            if ($cookie_beta) { return 302 /beta; }
            proxy_pass http://192.0.2.1;
        }
    }
    server {
        listen 87;
        if ($server_port = 87) { rewrite ^ https://$host$request_uri? permanent; }
        location / { proxy_pass http://192.0.2.1; }
    }
    server {
        listen 88;
        location /a/ { rewrite ^/a/(.*)$ /b/$1 break; proxy_pass http://192.0.2.1; }
        location /b/ { return 404; }
        location / { rewrite ^ $unknown last; }
    }
    server { listen 89; server_name shop.example; location / { return 204; } }
    server { listen 90; server_name _; location / { proxy_pass http://192.0.2.1; } }
    map $uri $new { ~^/old/(.*)$ /new/$1; /gone ''; default ''; }
    map $new$http_x $answer { hidden 404; ~*^/new/hid(.*)$ $1; }
    server {
        listen 91;
        set $away 0;
        if ($host = a.example) { set $away 1; }
        if ($away) { return 301 https://b.example/; }
        if ($answer) { return 404; }
        if ($new) { return 301 $new; }
        if ($cookie_c) { set $odd 1; }
        if ($odd) { return 410; }
        location / { proxy_pass http://192.0.2.1; }
    }
}
"#;

#[test]
fn rewrites_variables_and_headers_are_followed_as_far_as_the_load_decides_them() {
    let source = make_source("nginx.conf", FRONTS);
    let cases = [
        (":81", r"location ~ ^/index\.php(/|$) | passes it on"),
        (":81 /a?b=c", r"location ~ ^/index\.php(/|$) | passes it on"),
        (":82 /a/b", r"location ~ \.php$ | passes it on"),
        (":83", r"location ~ \.php(?:$|/) | passes it on"),
        (":84 /shop", r"location ~ \.php$ | passes it on"),
        (":84 /assets/a.css", "location / | passes it on"),
        (":85 /a", "location @app | passes it on"),
        (":86", "location / | redirects"),
        (":86 X-Forwarded-Proto=https", "location / | passes it on"),
        (":86 X-Forwarded-Proto={{line:protos}}", "location / | passes it on"),
        (":86 HEAD X-Forwarded-Proto=https", "location / | returns 405"),
        (":87", "- | redirects"),
        (":88 /a/x", "location /a/ | passes it on"),
        (":88", "location / | does what the configuration alone does not say"),
        (":91", "location / | passes it on"),
        (":91 /gone", "location / | passes it on"),
        (":91 /?C=1 Cookie=b=2", "location / | passes it on"),
        (":91 Cookie=b=2;c=1", "- | returns 410"),
        (":91 a.example", "- | redirects"),
        (":91 /old/x", "- | redirects"),
        (":91 X=Hidden", "- | returns 404"),
        (":91 /old/HIDx", "- | returns 404"),
    ]
    .map(|(ask, shown)| {
        let port = ask[1..].split(' ').next().unwrap();
        (ask, format!("{port} | server | {shown}"))
    });
    let mut cases: Vec<(&str, &str)> = cases.iter().map(|(ask, shown)| (*ask, &**shown)).collect();
    // Who is called as the host comes before who takes any.
    cases.push(("shop.example", "89 | server shop.example | location / | returns 204"));
    must_be(&|ask| nginx::asked(&source, ask, ""), &cases);
}

/// Uses the layout of `sites-enabled`, in which the main file has no listener itself.
#[test]
fn listeners_of_nginx_are_found_through_includes() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| write_below(folder.path(), name, text);
    write("nginx.conf", "events { }\nhttp { include conf.d/*.conf; include sites-enabled/*; }\n");
    write("conf.d/10-log.conf", "access_log off;\nmap $uri $gone { include gone.map; }\n");
    write("gone.map", "/gone 1;\n");
    write(
        "sites-enabled/a-tls",
        "server {\n    listen 443 ssl;\n    location / { include proxy.conf; }\n}\n",
    );
    write(
        "sites-enabled/b-clear",
        "server { listen 80; if ($gone) { return 410; } location / { include proxy.conf; } }\n",
    );
    write("proxy.conf", "proxy_pass http://192.0.2.1;\n");
    let user = nginx::read(&folder.path().join("nginx.conf"), None).unwrap();
    for (text, file, line, port) in [("", "b-clear", 1, 80), ("tls", "a-tls", 2, 443)] {
        let answer = nginx::asked(&user, &ask(text), "").unwrap().remove(0);
        assert!(answer.listener.file.ends_with(file), "{answer:?}");
        assert_eq!((answer.listener.line, answer.listener.port), (line, Some(port)));
        assert_eq!(answer.location.unwrap().name, "location /");
    }
    let answers = nginx::asked(&user, &ask(":80 /gone"), "").unwrap();
    assert_eq!(answers[0].answer, Answer::Returns(410));
}

/// A load whose role answers from files prefers a listener with files.
#[test]
fn the_role_counts_where_nothing_is_named() {
    let conf = "events { }\nhttp {\n    server { listen 80; location / { proxy_pass http://192.0.2.1; } }\n    \
                server { listen 81; root /srv; }\n    server { listen 82; return 204; }\n}\n";
    let source = make_source("nginx.conf", conf);
    all_must_be(
        &|ask| nginx::asked(&source, ask, ""),
        "
            => 80 | server | location / | passes it on
            files => 81 | server | - | answers from files
            :82 files => 82 | server | - | returns 204
        ",
    );
}

/// An error page takes over if its own status becomes that of the answer (`=`); files decide an `if` about them;
/// methods may be forbidden.
#[test]
fn what_sends_a_request_on_or_does_not_is_followed() {
    let pass = "proxy_pass http://192.0.2.1;";
    let conf = format!(
        "events {{ }}\nhttp {{\n    server {{\n        listen 80;\n        location @app {{ {pass} }}\n        \
         location /taken {{ error_page 418 = @app; return 418; }}\n        \
         location /kept {{ error_page 418 @app; return 418; }}\n        \
         location /file {{ if (!-f $request_filename) {{ {pass} break; }} }}\n        \
         location /post {{ limit_except POST {{ deny all; }} {pass} }}\n        \
         location /get {{ limit_except get {{ deny all; }} {pass} }}\n        \
         location /tried {{ deny all; try_files $uri @app; }}\n        \
         location /away {{ error_page 404 = https://a.example/; return 404; }}\n        \
         location /args {{ error_page 404 = /get?a=b; return 404; }}\n        \
         location /inner {{ internal; {pass} }}\n        \
         location /to-inner {{ try_files /nothing /inner; }}\n        \
         location /login {{ auth_basic a; {pass} }}\n        \
         location /either {{ satisfy any; auth_basic a; deny all; {pass} }}\n    }}\n    \
         server {{ listen 81; deny all; auth_basic a; location / {{ {pass} }} \
         location /open {{ allow 192.0.2.0/24; deny all; auth_basic off; {pass} }} }}\n}}\n"
    );
    let source = make_source("nginx.conf", &conf);
    all_must_be(
        &|ask| nginx::asked(&source, ask, ""),
        "
            :80 /taken => 80 | server | location @app | passes it on
            :80 /kept => 80 | server | location /kept | returns 418
            :80 /file => 80 | server | location /file | does what the configuration alone does not say
            :80 /post => 80 | server | location /post | returns 403
            :80 /get => 80 | server | location /get | passes it on
            :80 /tried => 80 | server | location /tried | returns 403
            :80 /away => 80 | server | location /away | redirects
            :80 /args => 80 | server | location /get | passes it on
            :80 /inner => 80 | server | location /inner | returns 404
            :80 /to-inner => 80 | server | location /inner | passes it on
            :80 /login => 80 | server | location /login | returns 401
            :80 /login Authorization=x => 80 | server | location /login | passes it on
            :80 /either => 80 | server | location /either | passes it on
            :81 => 81 | server | location / | returns 403
            :81 /open => 81 | server | location /open | passes it on
        ",
    );
}

/// Covers a client certificate, and HTTP/2 in clear, which excludes HTTP/1.1 before nginx 1.25.1.
#[test]
fn what_nginx_wants_of_clients_that_a_load_has_not_is_refused() {
    let text = "events { }\nhttp {\n    ssl_verify_client on;\n    \
                server { listen 443 ssl; server_name a.example; location / { proxy_pass http://192.0.2.1; } }\n    \
                server { listen 443 ssl; server_name b.example; ssl_verify_client optional;\n        \
                location / { if ($ssl_client_verify != SUCCESS) { return 403; } proxy_pass http://192.0.2.1; } }\n    \
                server { listen 50051; location / { grpc_pass grpc://192.0.2.1; } }\n    \
                server { listen 50051 http2; server_name g.example; location / { grpc_pass grpc://192.0.2.1; } }\n}\n";
    let source = make_source("nginx.conf", text);
    let certificate = "3:5 a request for `/` with the host `a.example` at 443 (TLS): clients have to show a certificate (`ssl_verify_client on`), and the load has none";
    let alone = "8:27 a request for `/` with the host `weir.test` at 50051: it speaks only HTTP/2 (`listen 50051 http2`), and loads speak HTTP/1.1";
    let both = "50051 | server | location / | passes it on";
    let a = "443 | server a.example | location / | passes it on";
    let b = "443 | server b.example | location / | returns 403";
    for (build, clear) in [
        ("nginx version: nginx/1.22.1\nbuilt", alone),
        ("nginx version: openresty/1.25.1.1", both),
        ("nginx version: nginx/1.25.1 (x)", both),
        ("nginx version: nginx/1.9.5", alone),
    ] {
        let cases = [
            ("", clear),
            (":50051", clear),
            ("tls a.example", certificate),
            ("cert a.example", a),
            ("tls :443 b.example", b),
            ("cert :443 b.example", "443 | server b.example | location / | passes it on"),
        ];
        must_be(&|ask| nginx::asked(&source, ask, build), &cases);
    }
}

/// In a copy no clients come through `stream`, so servers of `stream` before a listener are named.
#[test]
fn servers_of_stream_that_lead_to_a_listener_are_named() {
    let http = "http { server { listen 8443 ssl; location / { proxy_pass http://192.0.2.1; } }\n    \
                server { listen unix:/run/a.sock ssl; server_name a; location / { proxy_pass http://192.0.2.1; } } }\n";
    let past = "8443 | past stream server 443: server | location / | passes it on";
    let alone = "8443 | server | location / | passes it on";
    for (stream, expected) in [
        ("server { listen 443; proxy_pass 127.0.0.1:8443; }", past),
        ("upstream w { server localhost:8443; } server { listen 443; proxy_pass w; }", past),
        (
            "map $ssl_preread_server_name $w { default 127.0.0.1:8443; } server { listen 443; proxy_pass $w; }",
            past,
        ),
        ("upstream w { server 192.0.2.1:8443; } server { listen 443; proxy_pass w; }", alone),
        ("server { listen 443; proxy_timeout 8443; proxy_pass 192.0.2.1:443; }", alone),
    ] {
        let text = format!("events {{ }}\nstream {{ {stream} }}\n{http}");
        let source = make_source("nginx.conf", &text);
        must_be(&|ask| nginx::asked(&source, ask, ""), &[("tls :8443", expected)]);
    }
}

/// Covers compression in `http`, in the server and in locations, for loads that do not accept it.
#[test]
fn compression_that_somebody_wrote_for_it_is_told_where_it_is_not_asked_for() {
    #[rustfmt::skip]
    let cases = [
        // As Debian's file has it, and as one that was thought about.
        (["gzip on;", "", "", ""], "", None),
        (["gzip on; gzip_types text/css;", "", "", ""], "", Some(3)),
        (["gzip on;", "", "gzip_comp_level 5;", ""], "", Some(3)),
        (["gzip off;", "gzip on;", "", ""], "", Some(6)),
        (["", "gzip on;", "gzip off;", ""], "", None),
        (["", "gzip on;", "gzip off;", "gzip on;"], "/in", Some(11)),
        (["", "", "gzip on;", ""], "/in", Some(8)),
        (["gzip_types text/css;", "", "", ""], "", None),
        (["", "gzip on;", "", ""], "accept-encoding=identity", Some(6)),
        (["", "gzip on;", "", ""], "Accept-Encoding=gzip", None),
        (["", "gzip on;", "", ""], "Accept-Encoding={{line:codings}}", None),
    ];
    for (texts, asks, line) in cases {
        let source = make_source("nginx.conf", &compressing(texts));
        let answers = nginx::asked(&source, &ask(asks), "").expect("it listens");
        let gzip = answers[0].compressed.as_ref();
        assert_eq!(gzip.map(|spot| spot.line), line, "{texts:?} {asks}");
    }
}

fn write_below(folder: &std::path::Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn compressing([http, server, outer, inner]: [&str; 4]) -> String {
    format!(
        "events {{ }}\nhttp {{\n{http}\nserver {{\nlisten 80;\n{server}\nlocation / {{\n{outer}\nproxy_pass http://192.0.2.1;\n\
         location /in {{\n{inner}\nproxy_pass http://192.0.2.1;\n}}\n}}\n}}\n}}\n"
    )
}
