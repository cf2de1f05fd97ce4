//! Tests of `weir load` with impossible or missing TLS: one clear line and a hint.

use std::net::{Ipv4Addr, SocketAddr};

use rcgen::date_time_ymd;
use weir_sut::free_port;
use weir_testkit::faulty::{Faulty, start_origin};
use weir_testkit::loads::{Server, only_status, report};
use weir_testkit::program::{HasAll, row, run};
use weir_testkit::secure::{Authority, Nginx};

#[test]
fn words_that_nobody_speaks_get_the_nearest_right_one() {
    #[rustfmt::skip]
    let rows = [
        (
            "--ciphers ECDHE-RSA-AES256-GCM-SHA38",
            "--ciphers: there is no cipher `ECDHE-RSA-AES256-GCM-SHA38`; \
             did you mean `ECDHE-RSA-AES256-GCM-SHA384`?\nhint: known are TLS_AES_256_GCM_SHA384,",
        ),
        ("--ciphers TLS_AES_128_GCM_SHA265", "did you mean `TLS_AES_128_GCM_SHA256`?\nhint: "),
        ("--groups x25591", "did you mean `x25519`?\nhint: known are "),
        ("--groups p-265", "did you mean `P-256`?\nhint: "),
        ("--ciphers RC4-SHA", "`RC4-SHA`"),
        ("--tls 1.1", "--tls: `1.1` is not a TLS version"),
        ("--resumption 120%", "--resumption: `120%` is not a share"),
        ("--early-data", "early data needs TLS 1.3 and resumption\nhint: "),
        ("--early-data --resumption on --tls 1.2", "early data needs TLS 1.3 and resumption"),
        ("--tls 1.3 --ciphers ECDHE-RSA-AES256-GCM-SHA384",
         "none of the ciphers asked for is for TLS 1.3\nhint: "),
        ("--sni under_score..test", "`under_score..test` is neither"),
        ("--ca /nonexistent/ca.pem", "cannot read /nonexistent/ca.pem"),
        ("--cert /nonexistent/a --key /nonexistent/b", "cannot read /nonexistent/a"),
    ];
    for (flags, words) in rows {
        run(&format!("load {flags} https://127.0.0.1:9/")).refused_in_a_line(&[words]);
    }
    run("load --cert a https://127.0.0.1:9/").refused(&["--key <FILE>"]);
    run("load -k --ca a https://127.0.0.1:9/").refused(&["cannot be used with"]);
}

#[test]
fn files_that_hold_something_else() {
    let authority = Authority::new();
    let identity = authority.issue(|_| {});
    let elsewhere = Authority::new();
    let foreign = elsewhere.issue(|_| {});
    let text = authority.write("text.pem", "no certificate\n");
    let mismatch = format!("--cert {} --key {}", identity.certificate, foreign.key);
    let swapped = format!("--cert {} --key {}", identity.key, identity.certificate);
    for (flags, words) in [
        (format!("--ca {text}"), "text.pem has no certificate"),
        (format!("--ca {}", identity.key), "ecdsa.key has no certificate"),
        (mismatch, "is not that of the certificate in "),
        (swapped, "ecdsa.key has no certificate"),
    ] {
        let line = format!("load {flags} https://127.0.0.1:9/");
        run(&line).refused_in_a_line(&[words, "\nhint: "]);
    }
}

#[test]
fn options_of_tls_are_for_https() {
    let origin = start_origin();
    let url = origin.url();
    #[rustfmt::skip]
    let words = [
        "--tls 1.3", "--ciphers TLS_AES_256_GCM_SHA384", "--groups x25519", "--alpn http/1.1",
        "--sni weir.test", "--resumption on", "--early-data", "--cert a --key b", "--ca a",
    ];
    for flags in words {
        let flag = flags.split(' ').next().unwrap_or_default();
        origin.load(flags).refused_in_a_line(&[
            &format!("{flag}: `{url}` has no TLS"),
            "\nhint: a URL over TLS begins with https://",
        ]);
    }
    assert_eq!(origin.counters(0).requests, 0);
}

#[test]
fn certificates_out_of_their_time() {
    let authority = Authority::new();
    for (from, to, words) in
        [(2001, 2002, "certificate expired"), (4000, 4001, "certificate not valid yet")]
    {
        let identity = authority.issue(|params| {
            params.not_before = date_time_ymd(from, 1, 1);
            params.not_after = date_time_ymd(to, 1, 1);
        });
        let server = Faulty::secure(identity.server());
        let ended = server.load(&format!("-q -n 4 -c 2 -t 1 --ca {}", authority.file()));
        ended.failed_in_a_line(&[words, "\nhint: renew it"]);
        server.load("-q -n 4 -c 2 -t 1 -k").with_code(0);
    }
}

#[test]
fn tls_on_a_port_that_speaks_http() {
    let origin = start_origin();
    for policy in ["keep-alive", "per-request"] {
        let line = format!(
            "load -q -n 4 -c 2 -t 1 -k --connection {policy} https://{}/",
            origin.addresses()[0]
        );
        let ended = run(&line);
        assert_ne!(ended.code, Some(0), "{policy}");
        ended.says(&["the server does not speak TLS on this port", "\nhint: "]);
    }
    assert_eq!(origin.counters(0).requests, 0);
}

#[test]
fn answers_of_400_in_clear_are_not_taken_for_tls() {
    let server = Faulty::answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    server.load("-q -n 4 -c 1 -t 1").with_code(0).stderr.has_none(&["speaks TLS"]);
}

#[test]
fn http_on_a_port_that_speaks_tls() {
    let authority = Authority::new();
    // nginx understands, and says so in clear.
    let nginx = Nginx::start(&authority, "");
    let url = format!("http://{}/", nginx.address);
    let (answered, ended) = report(&format!("-n 4 -c 2 -t 1 {url}"));
    assert_eq!(only_status(&answered), (400, 4));
    let secure = url.replace("http:", "https:");
    let message = format!(
        "every answer was status 400, and the port speaks TLS\nhint: ask over TLS: {secure}"
    );
    ended.with_code(1).says(&[&message]);
    assert!(!answered.validity.is_empty());
    // Others send an alert.
    let server = Faulty::secure(authority.issue(|_| {}).server());
    let url = server.url().replace("https", "http");
    run(&format!("load -q -n 4 -c 2 -t 1 {url}")).with_code(1).stderr.has_all(&["TLS", "\nhint: "]);
}

/// Tests real servers that answer in an unintended way: the result and the message describe it, and the exit code is a
/// failure only if no request was answered properly.
#[test]
fn answers_that_were_not_meant_are_named() {
    let authority = Authority::new();
    let [proxied, plain] = [2, 3].map(|last| {
        let ip = Ipv4Addr::new(127, 0, 0, last).into();
        SocketAddr::new(ip, free_port(ip).expect("a free port"))
    });
    let more = format!(
        "ssl_verify_client on; ssl_client_certificate {}; listen {proxied} proxy_protocol; listen {plain};\n\
         location = /away {{ return 307 https://weir.test/b; }} location = /here {{ return 301 /c?token=S3CRET; }}",
        authority.file()
    );
    let nginx = Nginx::start(&authority, &more);
    let endless = Faulty::requests(1, |victim| {
        victim.stall_after(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n")
    });
    let untyped = Faulty::requests(1, |victim| victim.stall_after(b"HTTP/1.1 200 OK\r\n\r\n1"));
    #[rustfmt::skip]
    let rows = [
        (format!("-T 300ms {}", untyped.url()), 1, "responses begin (status 200, first byte"),
        (format!("-k https://{}/", nginx.address), 1, "status 400, because the server demands a client certificate; give one with"),
        (format!("http://{proxied}/"), 1, "the port answers where a header of the PROXY protocol comes first"),
        (format!("http://{plain}/away"), 0, "100 % of the answers are redirects (status 307, Location: https://weir.test/b), which weir does not follow; use https://weir.test/b; or, if the"),
        (format!("http://{plain}/here"), 0, "(status 301, Location: http://"),
        (format!("-T 300ms {}", endless.url()), 1, "responses begin (status 200, Content-Type text/event-stream, first byte"),
    ];
    for (line, code, words) in rows {
        row(&line);
        let (answered, ended) = report(&format!("-n 6 -c 2 -t 1 {line}"));
        let message = ended.with_code(code).stderr.replace("\nhint: ", "; ");
        message.has(words);
        message.has_none(&["S3CRET"]);
        answered.notes.concat().has(words);
    }
    // What may change something at the server is not sent by weir's own wish.
    let moved =
        Faulty::answering(b"HTTP/1.1 308 Moved\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n");
    let (answered, _) = moved.report("-n 6 -c 2 -t 1 -m POST -b x");
    assert_eq!(moved.texts().len(), 6);
    answered.notes.concat().has("(status 308), which weir does not follow");
    let capacity = run(&format!("capacity -q http://{plain}/away"));
    capacity.did_nothing(1, &["status 307, Location: https://weir.test/b"]);
}
