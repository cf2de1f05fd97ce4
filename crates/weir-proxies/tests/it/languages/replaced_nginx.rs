//! Parts that copies of nginx's configurations replace because of variables and of requests beside the client's.

use crate::languages::replaced::must_be;
use crate::languages::support::make_source;
use weir_nginx::language as nginx;

const BESIDE: &str = "\
http {
    resolver 192.0.2.53 valid=5s;
    upstream looked_up { zone u 64k; server app.example resolve; }
    server {
        listen 80;
        location / { proxy_pass http://looked_up; }
        location /name/ { set $to app.example; proxy_pass http://$to; }
        location /uwsgi/ { uwsgi_pass suwsgi://192.0.2.1:1; }
        location /page/ { add_before_body /head; post_action /log; proxy_pass http://192.0.2.1; }
        location /head { proxy_pass https://192.0.2.1; }
        location /log { proxy_pass http://192.0.2.1; }
    }
}
";

#[test]
fn nginx_by_what_is_asked_beside_and_how_names_are_looked_up() {
    let configuration = make_source("nginx.conf", BESIDE);
    must_be(
        &|ask| nginx::replaced(&configuration, ask, ""),
        "
        :80 => names 2 resolver 192.0.2.53 valid=5s; names 3 server app.example resolve
        :80 /name/ => names 2 resolver 192.0.2.53 valid=5s; names 7 proxy_pass http://$to
        :80 /uwsgi/ => origin_tls 8 uwsgi_pass suwsgi://
        :80 /page/ => origin_tls 10 proxy_pass https://; service 9 add_before_body /head; service 9 post_action /log; content 9 add_before_body /head
        ",
    );
}

const BY_VARIABLES: &str = "\
events { }
http {
    geo $blocked { default 0; 192.0.2.0/24 1; }
    map $remote_addr $pool { default one; 192.0.2.9 many; }
    map $cookie_v $choice { default one; b many; }
    map $blocked $key { 0 ''; 1 $binary_remote_addr; }
    split_clients ${remote_addr}a $half { 50% one; * many; }
    limit_req_zone $key zone=keyed:1m rate=10r/s;
    limit_conn_zone $binary_remote_addr zone=each:1m;
    upstream one { server 192.0.2.1; }
    upstream many { server 192.0.2.1; server 192.0.2.2; }
    server {
        listen 80;
        allow 192.0.2.0/24;
        location / { limit_req zone=keyed; auth_request /auth; mirror /auth; sub_filter a b; try_files $uri @app; }
        location @app { deny 192.0.2.1; proxy_pass http://one; }
        location /auth { proxy_pass https://192.0.2.1; }
        location /blocked/ { if ($blocked) { return 403; } proxy_pass http://one; }
        location /pool/ { proxy_pass http://$pool; }
        location /choice/ { proxy_pass http://$choice; }
        location /half/ { proxy_pass http://$half; }
        location /value/ { set $to https://app.example; proxy_pass $to; }
        location /self/ { auth_request /ok; limit_conn each 5; limit_rate 1m; proxy_pass http://one; }
        location /ok { return 204; }
        location /error/ { error_page 418 = @app; return 418; }
        location /rewritten/ { limit_req zone=keyed; rewrite ^ /choice/ last; }
        location /country/ { if ($geoip_country_code = XX) { return 403; } proxy_pass http://one; }
        location /circle/ { proxy_pass http://127.0.0.1:80/circle/again/; }
        location /post/ { limit_except POST { allow 192.0.2.7; deny all; } proxy_pass http://one; }
        location /asked/ { auth_request /inner; proxy_pass http://one; }
        location /inner { proxy_pass http://127.0.0.1:80/auth; }
    }
}
";

#[test]
fn nginx_by_variables_and_by_locations_that_are_left() {
    let configuration = make_source("nginx.conf", BY_VARIABLES);
    let allow = "client_address 14 allow 192.0.2.0/24";
    must_be(
        &|ask| nginx::replaced(&configuration, ask, ""),
        &format!(
            "
            :80 => origin_tls 17 proxy_pass https://; service 15 auth_request /auth; service 15 mirror /auth; limit 15 limit_req zone=keyed; client_address 8 limit_req_zone $key zone=keyed:1m rate=10r/s; {allow}; client_address 16 deny 192.0.2.1
            :80 /blocked/ => {allow}; client_address 18 if ($blocked)
            :80 /pool/ => servers 11 2 servers; {allow}; client_address 19 proxy_pass http://$pool
            :80 /choice/ => {allow}
            :80 /choice/ Cookie=v=b => servers 11 2 servers; {allow}
            :80 /choice/ Cookie={{{{line:choices}}}} => servers 11 2 servers; {allow}
            :80 /half/ => servers 11 2 servers; {allow}; client_address 21 proxy_pass http://$half
            :80 /value/ => origin_tls 22 proxy_pass https://; names 22 proxy_pass $to; {allow}
            :80 /self/ => client_address 9 limit_conn_zone $binary_remote_addr zone=each:1m; {allow}
            :80 /error/ => client_address 16 deny 192.0.2.1
            :80 /rewritten/ => {allow}
            :80 /country/ => {allow}; client_address 27 if ($geoip_country_code = XX)
            :80 /circle/ => own_listener 28 its own listener; {allow}
            :80 /post/ => client_address 29 allow 192.0.2.7
            :80 /asked/ => origin_tls 17 proxy_pass https://; own_listener 31 its own listener; {allow}
            "
        ),
    );
}

const MET: &str = "\
error_log syslog:server=192.0.2.5;
http {
    access_log syslog:server=192.0.2.5 combined;
    limit_conn_zone $proxy_protocol_addr zone=each:1m;
    map $http_authorization $key { \"\" $binary_remote_addr; default \"\"; }
    limit_req_zone $key zone=named:1m rate=10r/s;
    upstream paths { server unix:/a; server unix:/b; }
    upstream spare { hash $request_uri; server 192.0.2.1 weight=2; server 192.0.2.2 backup; }
    upstream single { least_conn; server 192.0.2.1 weight=2; }
    server {
        listen 443 ssl;
        ssl_stapling on;
        error_log off;
        location / { access_log off; limit_conn each 5; proxy_pass http://single; }
        location /bound/ { proxy_bind 192.0.2.9; proxy_pass http://single; }
        location /spare/ { access_log off; proxy_bind off; proxy_pass http://spare; }
        location /paths/ { access_log off; proxy_pass http://paths; }
        location /post/ { access_log off; if ($request_method = POST) { proxy_pass https://192.0.2.1; } proxy_pass http://single; }
        location /set/ { access_log off; set $to single; if ($arg_a = b) { set $to paths; } proxy_pass http://$to; }
        location /told/ { access_log off; set $to single; auth_request_set $to $upstream_http_x; proxy_pass http://$to; }
        location /known/ { access_log off; limit_req zone=named; set $to single; proxy_pass http://$to; }
    }
    server { listen 80; access_log off; location / { proxy_pass http://single; } }
}
";

#[test]
fn nginx_by_what_the_requests_of_the_load_meet() {
    let configuration = make_source("nginx.conf", MET);
    let stapled = "left_out 12 ssl_stapling on";
    must_be(
        &|ask| nginx::replaced(&configuration, ask, ""),
        &format!(
            "
            :80 => left_out 1 error_log syslog:
            tls => {stapled}; proxy_protocol 4 limit_conn_zone $proxy_protocol_addr zone=each:1m
            tls /bound/ => left_out 3 access_log syslog:; {stapled}; left_out 15 proxy_bind
            tls /spare/ => servers 8 2 servers backup weight=2; servers 8 hash $request_uri; {stapled}
            tls /paths/ => servers 7 2 servers; servers 7 2 servers unix:; {stapled}
            tls /post/ => {stapled}
            tls /set/ => names 19 proxy_pass http://$to; {stapled}
            tls /set/?a=b => servers 7 2 servers; servers 7 2 servers unix:; names 19 proxy_pass http://$to; {stapled}
            tls /told/ => names 20 proxy_pass http://$to; {stapled}
            tls /known/ => names 21 proxy_pass http://$to; {stapled}; limit 21 limit_req zone=named; client_address 6 limit_req_zone $key zone=named:1m rate=10r/s
            tls /known/ Authorization=a => names 21 proxy_pass http://$to; {stapled}
            "
        ),
    );
}
