//! Parts that copies of a haproxy.cfg replace, by the rules that apply to a request.

use crate::languages::asked::ask;
use crate::languages::replaced::{must_be, paths};
use crate::languages::support::make_source;
use weir_haproxy::language as haproxy;

const HAPROXY: &str = "\
global
    crt-base /etc/keys
defaults
    mode http
    default-server ssl verify none
frontend web
    bind :80 accept-proxy
    bind :443 ssl crt site.pem
    compression algo gzip
    http-request set-header X-Office yes if { src 192.0.2.0/24 }
    use_backend many if { path_beg /many }
    use_backend inner if { path_beg /inner }
    default_backend one
backend one
    server a 192.0.2.1:80 no-ssl-reuse send-proxy
backend many
    stick-table type ip size 1m store http_req_rate(10s)
    server a unix@/run/a.sock no-ssl
    server-template b 1-3 app.example:80 resolvers dns
backend inner
    server a 127.0.0.1:81 no-ssl
frontend behind
    bind 127.0.0.1:81
    default_backend one
";

#[test]
fn haproxy_by_frontend_backend_and_defaults() {
    let configuration = make_source("haproxy.cfg", HAPROXY);
    let web = "client_address 10 http-request set-header X-Office yes if { src 192.0.2.0/24 }";
    must_be(
        &|ask| haproxy::replaced(&configuration, ask),
        &format!(
            "
            :80 => origin_tls 5 ssl; origin_tls 5 verify none; origin_tls 15 no-ssl-reuse; proxy_protocol 7 bind … accept-proxy; proxy_protocol 15 send-proxy; {web}
            :80 /many Accept-Encoding=gzip => origin_tls 5 ssl; origin_tls 5 verify none; origin_tls 18 no-ssl; servers 16 4 servers; servers 18 server unix@; names 19 resolvers; proxy_protocol 7 bind … accept-proxy; content 9 compression algo gzip; limit 17 stick-table type ip size 1m store http_req_rate(10s); {web}
            "
        ),
    );
    let disabled = "server b 192.0.2.2:80 disabled";
    let in_clear = HAPROXY.replace("server-template b 1-3 app.example:80 resolvers dns", disabled);
    let configuration = make_source("haproxy.cfg", &in_clear);
    must_be(
        &|ask| haproxy::replaced(&configuration, ask),
        &format!(
            ":80 /many => servers 18 server unix@; proxy_protocol 7 bind … accept-proxy; limit 17 stick-table type ip size 1m store http_req_rate(10s); {web}"
        ),
    );
    let shown = haproxy::certificates(&configuration, &ask("tls")).unwrap();
    assert_eq!(paths(&shown), ["8 /etc/keys/site.pem"]);
    let elsewhere = HAPROXY.replace("crt-base /etc/keys", "default-path origin /srv");
    let shown =
        haproxy::certificates(&make_source("haproxy.cfg", &elsewhere), &ask("tls")).unwrap();
    assert_eq!(paths(&shown), ["8 /srv/site.pem"]);
}

const HAPROXY_RULES: &str = "\
defaults
    mode http
frontend web
    bind :80
    tcp-request connection expect-proxy layer4 if { src_is_local }
    acl unused src 192.0.2.0/24
    acl office src,map_ip(/etc/map) -m found
    http-request track-sc1 src table rates
    http-request deny if { sc_http_req_rate(0,more) gt 10 }
    http-request set-header X-A b if !office
    http-response deny if { res.hdr(x-a) -m found }
    http-response set-header X-B c
    default_backend one
backend one
    source 0.0.0.0 usesrc clientip
    server a 192.0.2.1:80
backend rates
    stick-table type ip size 1m store http_req_rate(10s)
backend more
    stick-table type ip size 1m store conn_rate(10s)
";

#[test]
fn haproxy_by_rules_and_tables_elsewhere() {
    let configuration = make_source("haproxy.cfg", HAPROXY_RULES);
    must_be(
        &|ask| haproxy::replaced(&configuration, ask),
        "
        :80 => proxy_protocol 5 tcp-request connection expect-proxy layer4 if { src_is_local }; content 11 http-response deny if { res.hdr(x-a) -m found }; limit 18 stick-table type ip size 1m store http_req_rate(10s); limit 20 stick-table type ip size 1m store conn_rate(10s); client_address 7 acl office src,map_ip(/etc/map) -m found; client_address 8 http-request track-sc1 src table rates; client_address 15 source 0.0.0.0 usesrc clientip
        ",
    );
}

const HAPROXY_MET: &str = "\
defaults
    mode http
    log global
frontend web
    bind :80
    compression type text/html
    acl office src 192.0.2.0/24
    http-request return status 200 if { path /ping }
    http-request track-sc0 src table rates if { path_beg /login }
    http-request deny if { path_beg /login } { src_http_req_rate(rates) gt 5 }
    http-request deny if { path /busy } { fe_req_rate gt 1000 }
    http-response replace-value Location a b
    use_backend many if { path_beg /many } || { path_beg /one }
    use_backend old if { path /old }
    use_backend old if office { path_beg /office }
    use_backend old if { rand(9) lt 2 } { path /chance }
    default_backend app
global
    log 192.0.2.9:514 local0
    log /dev/log local0
backend app
    http-request cache-use c if { path_end .js }
    balance leastconn
    default-server ssl verify none
    server a 192.0.2.1:80 no-ssl agent-check agent-port 9 resolvers dns
    server b 192.0.2.2:80 backup
    server c 192.0.2.2:80 disabled
    server d 192.0.2.2:80 weight 0
backend many
    no log
    balance uri
    hash-type consistent
    use-server b if { path /one }
    server a 192.0.2.1:80 weight 9
    server b app.example:80 resolvers dns
backend old
    server a 192.0.2.1:80 ssl
backend rates
    stick-table type ip size 1m store http_req_rate(10s) peers all
resolvers dns
    nameserver a 192.0.2.53:53
    hold valid 1s
";

#[test]
fn haproxy_by_what_a_request_comes_to() {
    let configuration = make_source("haproxy.cfg", HAPROXY_MET);
    let log = "log 19 log over the network";
    let response = "content 12 http-response replace-value Location a b";
    must_be(
        &|ask| haproxy::replaced(&configuration, ask),
        &format!(
            "
            :80 /ping => {log}
            :80 => peers 25 agent-check; {response}; {log}
            :80 /login => peers 25 agent-check; peers 39 stick-table … peers; {response}; limit 39 stick-table type ip size 1m store http_req_rate(10s) peers all; client_address 9 http-request track-sc0 src table rates if {{ path_beg /login }}; client_address 10 http-request deny if {{ path_beg /login }} {{ src_http_req_rate(rates) gt 5 }}; {log}
            :80 /busy => peers 25 agent-check; {response}; limit 11 http-request deny if {{ path /busy }} {{ fe_req_rate gt 1000 }}; {log}
            :80 /a.js => peers 25 agent-check; {response}; content 22 http-request cache-use c if {{ path_end .js }}; {log}
            :80 /many Accept-Encoding=gzip => servers 29 2 servers with weights 9, 1; servers 31 balance uri; servers 32 hash-type consistent; names 35 resolvers; names 41 nameserver; names 42 hold valid 1s; {response}; {log}
            :80 /one => names 35 resolvers; names 41 nameserver; names 42 hold valid 1s; {response}; {log}
            :80 /old => origin_tls 37 ssl; {response}; {log}
            :80 /office => origin_tls 37 ssl; peers 25 agent-check; {response}; client_address 7 acl office src 192.0.2.0/24; {log}
            :80 /chance => origin_tls 37 ssl; peers 25 agent-check; {response}; {log}
            "
        ),
    );
}
