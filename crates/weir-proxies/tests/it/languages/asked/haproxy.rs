use weir_configuration::Source;
use weir_haproxy::language as haproxy;
use weir_model::study::AskSpec;

use super::{all_must_be, ask, must_be};
use crate::languages::support::{make_source, must_have};

const HAPROXY: &str = "\
defaults
    mode http
frontend stats
    bind :8404
    stats enable
    stats uri /
frontend redirects
    bind :80
    acl acme path_beg /.well-known/acme-challenge/
    use_backend acme if acme
    redirect scheme https code 301 unless acme or { ssl_fc }
    http-request redirect scheme https unless { ssl_fc } or acme
frontend web
    bind :8080
    bind :443 ssl crt site.pem
    monitor-uri /alive
    acl is_api hdr(host) -i api.example API2.example
    acl is_static path_beg /static /img
    acl is_static path_end .css
    acl limited src_http_req_rate gt 100
    http-request deny if limited
    http-request return status 200 if { path /ping }
    use_backend api if is_api !is_static
    use_backend static if is_static
    use_backend bk_%[req.hdr(host),map(/etc/map)] if { hdr_sub(host) dynamic }
    use_backend never if { ssl_fc_sni -m end .never }
    default_backend app
frontend closed
    bind :9000
    use_backend api if { hdr(host) api.example }
listen plain
    bind :7000-7010
    server s 192.0.2.1:80
frontend passed
    mode tcp
    bind :444
    tcp-request inspect-delay 5s
    use_backend app if { req.ssl_sni -m found }
backend acme
    server a 192.0.2.1:80
backend api
    server a 192.0.2.1:80
backend static
    server a 192.0.2.1:80
backend never
    server a 192.0.2.1:80
backend app
    server a 192.0.2.1:80
";

#[test]
fn haproxy_chooses_by_its_rules() {
    let source = make_source("haproxy.cfg", HAPROXY);
    all_must_be(
        &|ask| haproxy::asked(&source, ask),
        "
            => :8080 | frontend web | backend app | passes it on
            tls => :443 | frontend web | backend app | passes it on
            tls a.never => :443 | frontend web | backend never | passes it on
            api.example => :8080 | frontend web | backend api | passes it on
            api2.example => :8080 | frontend web | backend api | passes it on
            api.example /img/a => :8080 | frontend web | backend static | passes it on
            :8080 /a.css?x => :8080 | frontend web | backend static | passes it on
            :8080 /alive => :8080 | frontend web | - | shows statistics or health
            :8080 /ping => :8080 | frontend web | - | returns 200
            :8404 => :8404 | frontend stats | - | shows statistics or health
            :80 => :80 | frontend redirects | - | redirects
            /.well-known/acme-challenge/x => :80 | frontend redirects | backend acme | passes it on
            :7003 => :7000-7010 | listen plain | - | passes it on
            :444 => :444 | frontend passed | - | closes the connection
            tls :444 => 47:1 a request for `/` with the host `weir.test` at :444: backend app passes TLS through, and the study's origin server does not speak TLS
            :9000 api.example => :9000 | frontend closed | backend api | passes it on
            :9000 => 28:1 a request for `/` with the host `weir.test` at :9000: no rule gives it a backend
            :81 => 4:5 no `bind` line of a frontend is in clear on port 81
            tls :8080 => 4:5 no `bind` line of a frontend has `ssl` on port 8080
        ",
    );
}

/// Configuration in the manner of cluster routers: a map chooses the backend, and TLS ends at a socket of the host's
/// own.
const CHAINED: &str = "\
defaults
    mode http
frontend public
    bind :80
    use_backend %[base,map_reg(/etc/routes.map)]
    default_backend none
frontend public_ssl
    mode tcp
    bind :443
    use_backend be_vault if { req.ssl_sni vault.example }
    use_backend be_old if { req.ssl_sni old.example }
    default_backend be_sni
backend be_sni
    mode tcp
    server fe_sni unix@/run/sni.sock send-proxy
frontend fe_sni
    bind unix@/run/sni.sock ssl crt site.pem accept-proxy
    default_backend app
backend be_vault
    mode tcp
    server vault 192.0.2.9:443
backend be_old
    mode tcp
    server fe_old 127.0.0.1:8444
frontend fe_old
    bind 127.0.0.1:8444 ssl crt a verify required ca-file b
    default_backend app
backend none
    errorfile 503 /etc/503.http
backend app
    server a 192.0.2.1:80
";

#[test]
fn what_haproxy_s_maps_choose_is_not_guessed() {
    let source = make_source("haproxy.cfg", CHAINED);
    all_must_be(
        &|ask| haproxy::asked(&source, ask),
        "
            => :80 | frontend public | backend none | does what the configuration alone does not say
            tls => :443 | frontend public_ssl → frontend fe_sni | backend app | passes it on
            tls vault.example => 19:1 a request for `/` with the host `vault.example` at :443: backend be_vault passes TLS through, and the study's origin server does not speak TLS
            tls old.example => 26:35 a request for `/` with the host `old.example` at :443: clients have to show a certificate (`verify required`), and the load has none
            cert old.example => :443 | frontend public_ssl → frontend fe_old | backend app | passes it on
            # Whoever has no name in a handshake is led to nobody who speaks without TLS.
            :443 => :443 | frontend public_ssl → frontend fe_sni | - | closes the connection
        ",
    );
}

/// The proxy's port counts only for loads that name none, and for loads over TLS only if it speaks TLS.
#[test]
fn the_port_of_the_proxy_is_weaker_than_the_load_s() {
    let source: Source = make_source("haproxy.cfg", HAPROXY);
    for (text, port, expected) in [
        ("api.example", 9000, ":9000"),
        (":8080", 8404, ":8080"),
        ("", 8404, ":8404"),
        ("tls", 8080, ":443"),
        ("", 443, ":8080"),
    ] {
        assert_eq!(address_of(&source, text, port).as_deref(), Ok(expected), "{text} {port}");
    }
    must_have(address_of(&source, "", 9000).unwrap_err(), &["no rule gives it a backend"]);
    must_have(address_of(&source, "", 81).unwrap_err(), &["on port 81"]);
}

#[test]
fn haproxy_knows_the_headers_that_a_load_sends() {
    let conf = "\
frontend balanced
    mode http
    bind :80
    http-request tarpit deny_status 429 if METH_POST
    http-request deny deny_status 405 if METH_GET { path /head }
    redirect scheme https if !{ hdr(X-Forwarded-Proto) -i https }
    default_backend app
frontend marked
    mode http
    bind :81
    http-request set-header X-Forwarded-Proto https
    redirect scheme https if !{ hdr(X-Forwarded-Proto) https }
    default_backend app
backend app
    mode http
    http-request deny if { hdr(X-Blocked) -m reg ^$ }
    server a 192.0.2.1:80
";
    let source = make_source("haproxy.cfg", conf);
    must_be(
        &|ask| haproxy::asked(&source, ask),
        &[
            (":80", ":80 | frontend balanced | - | redirects"),
            (":80 X-Forwarded-Proto=HTTPS", ":80 | frontend balanced | backend app | passes it on"),
            (":80 HEAD /head", ":80 | frontend balanced | - | returns 405"),
            (":81", ":81 | frontend marked | backend app | passes it on"),
        ],
    );
}

/// Configuration in which rules change a request before later rules look at it.
const REWRITTEN: &str = "\
defaults
    mode http
frontend web
    bind :80
    http-request auth if { path /login } !{ http_auth(users) }
    http-request replace-path /v1(/.*) \\1
    http-request set-path /api/%[query] if { path /part }
    http-request set-path /api if { rand(2) eq 1 } { path /chance }
    http-request set-header Host inner.example if { hdr(host) outer.example }
    http-request set-var(txn.pool) base,lower,concat(,txn.none,),map_beg(pools.map)
    use_backend %[var(txn.pool)] if { var(txn.pool) -m found }
    use_backend api if { path_beg /api }
    use_backend inner if { hdr(host),field(1,:) -f inner.lst }
    use_backend inner if { cook(inner) 1 } or { nbsrv(api) lt 2 }
    use_backend api if { rand(100) lt 10 } { path /x }
    use_backend %[path,field(3,/),map(gone.map,api)] if { path_beg /gone }
    use_backend none_%[path] if { path /none }
    use_backend api if { path /none }
    .if defined(CANARY)
    use_backend api if { path /canary }
    .endif
    use_backend inner if { urlp(inner) 1 }
    default_backend app
frontend open
    bind :82
    use_backend a%[rand(2)]
frontend outer
    bind :81
    http-request set-path /api if { path /outer }
    default_backend web
backend web
    server web 127.0.0.1:80
backend api
    server-template a 1-2 192.0.2.1:80
backend inner
    http-request deny if { hdr(host) -m found } { path /denied }
    server a 192.0.2.1:80
backend down
    server a 192.0.2.1:80 disabled
backend app
    server a 192.0.2.1:80
";

#[test]
fn haproxy_s_rules_ask_about_what_those_before_have_made() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("haproxy.cfg", REWRITTEN),
        ("inner.lst", "# hosts\n\ninner.example\n"),
        (
            "pools.map",
            "shop.example/ inner\nshop.example/api api\ndown.example down\nshop.example/api/x inner\n",
        ),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let source = haproxy::read(&folder.path().join("haproxy.cfg")).unwrap();
    all_must_be(
        &|ask| haproxy::asked(&source, ask),
        "
            :80 => :80 | frontend web | backend app | passes it on
            :80 /login => :80 | frontend web | - | returns 401
            :80 /v1/api => :80 | frontend web | backend api | passes it on
            :80 /part?a => :80 | frontend web | backend api | passes it on
            :80 /chance => :80 | frontend web | backend app | does what the configuration alone does not say
            :80 outer.example => :80 | frontend web | backend inner | passes it on
            :80 inner.example:80 /denied => :80 | frontend web | backend inner | returns 403
            :80 Cookie=a=2;inner=1 => :80 | frontend web | backend inner | passes it on
            :80 shop.example /API/ => :80 | frontend web | backend api | passes it on
            :80 shop.example /v1/api/x => :80 | frontend web | backend inner | passes it on
            :80 down.example => :80 | frontend web | backend down | returns 503
            :80 /x => :80 | frontend web | backend app | does what the configuration alone does not say
            :80 /gone/a => :80 | frontend web | backend app | does what the configuration alone does not say
            :80 /canary => :80 | frontend web | backend app | does what the configuration alone does not say
            :80 /?a=2&inner=1 => :80 | frontend web | backend inner | passes it on
            :82 => :82 | frontend open | - | does what the configuration alone does not say
            :81 /outer => :81 | frontend outer → frontend web | backend api | passes it on
            :81 /login => :81 | frontend outer → frontend web | - | returns 401
            # A name that no backend has ends the search.
            :80 /none => :80 | frontend web | backend app | passes it on
        ",
    );
}

/// A request that an undecided `allow` may let pass is not certainly refused by a `deny` behind it.
#[test]
fn a_deny_behind_an_undecided_allow_is_not_certain() {
    let text = "frontend web\n    mode http\n    bind :8080\n    \
                http-request allow if { path_beg /a } { env(PASS) -m bool }\n    \
                http-request allow if { path_beg /c }\n    http-request deny\n    \
                redirect location / if { path_end /d }\n    \
                default_backend app\nbackend app\n    mode http\n    server a 192.0.2.1:80\n";
    let source = make_source("haproxy.cfg", text);
    must_be(
        &|ask| haproxy::asked(&source, ask),
        &[
            (
                ":8080 /a",
                ":8080 | frontend web | - | does what the configuration alone does not say",
            ),
            (":8080 /b", ":8080 | frontend web | - | returns 403"),
            (":8080 /c", ":8080 | frontend web | backend app | passes it on"),
            (":8080 /c/d", ":8080 | frontend web | - | redirects"),
        ],
    );
}

/// The field Host is compared in the form that clients send.
#[test]
fn a_host_has_its_port() {
    let text = "frontend web\n    mode http\n    bind :8080\n    \
                use_backend app if { hdr(host) -i www.example.com:8080 }\n    default_backend other\n\
                backend app\n    mode http\n    server a 192.0.2.1:80\n\
                backend other\n    mode http\n    server a 192.0.2.2:80\n";
    let source = make_source("haproxy.cfg", text);
    must_be(
        &|ask| haproxy::asked(&source, ask),
        &[
            ("www.example.com:8080", ":8080 | frontend web | backend app | passes it on"),
            ("www.example.com", ":8080 | frontend web | backend other | passes it on"),
        ],
    );
}

/// Variables in double quotes have the values that earlier lines of `global` have set.
#[test]
fn variables_are_what_the_lines_before_have_made_of_them() {
    let answers = "| frontend web | backend app | passes it on";
    let unset = "nothing sets";
    for (global, bind, expected) in [
        ("setenv W 8110", r#""*:${W}""#, answers),
        ("setenv W 8110", r#""*:$W""#, answers),
        ("setenv W 8110", r#"*:"${W}""#, answers),
        ("presetenv W 8110", r#""*:${W}""#, answers),
        ("setenv W 8110\n    presetenv W 9", r#""*:${W}""#, answers),
        ("setenv W 9\n    setenv W 8110", r#""*:${W}""#, answers),
        ("setenv W 81\n    setenv W2 \"${W}10\"", r#""*:${W2}""#, answers),
        ("setenv W 9\n    unsetenv A W", r#""*:${W-8110}""#, answers),
        ("setenv W 9\n    resetenv A", r#""*:${W-8110}""#, answers),
        ("setenv W 8110\n    resetenv W", r#""*:${W}""#, answers),
        ("resetenv\n    presetenv CARGO_PKG_NAME 8110", r#""*:${CARGO_PKG_NAME}""#, answers),
        ("maxconn 9", r#""*:${WEIR_TEST_UNSET-8110}""#, answers),
        ("maxconn 9", r#""*:${WEIR_TEST_UNSET}""#, unset),
        ("setenv W 8110\n    unsetenv W", r#""*:${W}""#, unset),
        // Which of the two is in force, the proxy alone knows.
        (".if defined(A)\n    setenv W 8110\n.endif", r#""*:${W-8110}""#, unset),
        // In addresses variables are replaced whatever is around them.
        ("setenv W 8110", "'*:${W}'", answers),
        ("setenv W 8110", r#""*:\${W}""#, answers),
        ("setenv W 8110", "*:${W}", answers),
        ("setenv W 8110", ":$W", answers),
    ] {
        let source = make_source("haproxy.cfg", &configuration(global, bind));
        let report = match haproxy::asked(&source, &ask(":8110")) {
            Ok(asked) => super::shown(&asked[0]),
            Err(error) => error.what,
        };
        assert!(report.contains(expected), "{global}, {bind}: {report}");
    }
    let unset =
        make_source("haproxy.cfg", &configuration("maxconn 9", r#""*:${WEIR_TEST_UNSET}""#));
    let error = haproxy::asked(&unset, &ask(":8110")).unwrap_err();
    assert_eq!(
        (&*error.what, error.line, error.column),
        (
            "no `bind` line of a frontend is in clear on port 8110: `*:${WEIR_TEST_UNSET}` has its port from the \
             variable `WEIR_TEST_UNSET` of the environment, which nothing sets",
            5,
            5
        )
    );
    must_have(error.hint.unwrap(), &["`setenv WEIR_TEST_UNSET 8110`"]);
    // Nobody has to know the port whom no load names.
    assert!(haproxy::asked(&unset, &ask("")).is_ok());
}

#[test]
fn what_haproxy_wants_of_clients_that_a_load_has_not_is_refused() {
    let proxies = "frontend web\n    bind :443 ssl crt a verify required ca-file b\n    bind :80 proto h2\n    \
                bind :81\n    http-request deny if { path /own } !{ ssl_c_used }\n    default_backend app\n\
                backend app\n    server a 192.0.2.1:80\n";
    let text = format!("defaults\n    mode http\n{proxies}");
    let source = make_source("haproxy.cfg", &text);
    must_be(
        &|ask| haproxy::asked(&source, ask),
        &[
            (
                "tls",
                "4:25 a request for `/` with the host `weir.test` at :443 (TLS): clients have to show a certificate (`verify required`), and the load has none",
            ),
            ("cert", ":443 | frontend web | backend app | passes it on"),
            // Of two the one that serves.
            ("", ":81 | frontend web | backend app | passes it on"),
            (
                ":80",
                "5:14 a request for `/` with the host `weir.test` at :80: it speaks only HTTP/2 (`proto h2`), and loads speak HTTP/1.1",
            ),
            (":81 /own", ":81 | frontend web | - | returns 403"),
            ("cert /own", ":443 | frontend web | backend app | passes it on"),
        ],
    );
}

/// Returns the address of the listener that a load asks if the proxy's own port is given too.
fn address_of(
    source: &Source,
    text: &str,
    port: u16,
) -> Result<String, weir_configuration::ConfigurationError> {
    let ask = AskSpec { proxy_port: Some(port), ..ask(text) };
    haproxy::asked(source, &ask).map(|asked| asked[0].listener.address.clone())
}

fn configuration(global: &str, bind: &str) -> String {
    let binds = format!("frontend web\n    mode http\n    bind {bind}\n    default_backend app\n");
    format!("global\n    {global}\n{binds}backend app\n    mode http\n    server a 192.0.2.1:80\n")
}
