//! Changes look as if the author of the file had made them.

use super::{Copy, User, set};
use crate::languages::support::text;

/// Contents of `http`, the settings, and the contents of `http` afterwards.
type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // One server, or all of them, say it: nobody would take it from `http`.
    ("    server {\n        listen 80;\n        gzip on;\n        gzip_comp_level 6;\n    }\n",
     &[("gzip_comp_level", "2"), ("gzip", "on")],
     "    server {\n        listen 80;\n        gzip on;\n        gzip_comp_level 2;\n    }\n"),
    // Nor does a server that redirects whatever it is asked.
    ("    server { listen 80; return 301 https://$host$request_uri; }\n    server {\n        listen 81;\n        \
      location / { sendfile on; }\n        location /old { return 410; }\n    }\n",
     &[("sendfile", "off")],
     "    server { listen 80; return 301 https://$host$request_uri; }\n    server {\n        listen 81;\n        \
      location / { sendfile off; }\n        location /old { return 410; }\n    }\n"),
    // Another one does, and so does what no location takes.
    ("    root /srv;\n    server { listen 80; sendfile on; }\n    server { listen 81; }\n",
     &[("sendfile", "off")],
     "    root /srv;\n    sendfile off;\n    server { listen 80; sendfile off; }\n    server { listen 81; }\n"),
    ("    root /srv;\n    server { listen 80; location /a { sendfile on; } }\n",
     &[("sendfile", "off")],
     "    root /srv;\n    sendfile off;\n    server { listen 80; location /a { sendfile off; } }\n"),
    // Beside its relatives, where all that need it have them.
    ("    server {\n        listen 80;\n        gzip on;\n    }\n    server { listen 81; }\n",
     &[("gzip_comp_level", "2")],
     "    server {\n        listen 80;\n        gzip on;\n        gzip_comp_level 2;\n    }\n    server { listen 81; }\n"),
    ("    root /srv;\n    server { listen 80; keepalive_timeout 9; }\n    server { listen 81; }\n",
     &[("keepalive_requests", "9")],
     "    root /srv;\n    keepalive_requests 9;\n    server { listen 80; keepalive_timeout 9; }\n    server { listen 81; }\n"),
    // Below those of its kind, and where their arguments are.
    ("    gzip on;\n    gzip_vary on;\n    root /srv;\n    server { listen 80; }\n",
     &[("gzip_comp_level", "2")],
     "    gzip on;\n    gzip_vary on;\n    gzip_comp_level 2;\n    root /srv;\n    server { listen 80; }\n"),
    ("    sendfile           on;\n    keepalive_timeout  65;\n    server { listen 80; }\n",
     &[("tcp_nopush", "on"), ("keepalive_requests", "9"), ("open_file_cache_valid", "9s")],
     "    sendfile           on;\n    keepalive_timeout  65;\n    tcp_nopush         on;\n    keepalive_requests 9;\n    \
      open_file_cache_valid 9s;\n    server { listen 80; }\n"),
    ("\tsendfile\t\ton;\n\tkeepalive_timeout\t65;\n\tserver { listen 80; }\n",
     &[("tcp_nopush", "on")],
     "\tsendfile\t\ton;\n\tkeepalive_timeout\t65;\n\ttcp_nopush\t\ton;\n\tserver { listen 80; }\n"),
    ("    proxy_set_header   Host       $host;\n    proxy_set_header   X-Real-IP  $remote_addr;\n    \
      upstream app { server 127.0.0.1:1; keepalive 9; }\n    server {\n        listen 80;\n        proxy_http_version 1.1;\n        \
      location / { proxy_pass http://app; }\n    }\n",
     &[("origin_keepalive", "9")],
     "    proxy_set_header   Host       $host;\n    proxy_set_header   X-Real-IP  $remote_addr;\n    \
      proxy_set_header   Connection \"\";\n    \
      upstream app { server 127.0.0.1:1; keepalive 9; }\n    server {\n        listen 80;\n        proxy_http_version 1.1;\n        \
      location / { proxy_pass http://app; }\n    }\n"),
    // One wide gap is no column.
    ("    sendfile on;\n    keepalive_timeout   65;\n    server { listen 80; }\n",
     &[("tcp_nopush", "on")],
     "    sendfile on;\n    keepalive_timeout   65;\n    tcp_nopush on;\n    server { listen 80; }\n"),
    // Not behind the end of what is done.
    ("    upstream app { server 127.0.0.1:1; keepalive 9; }\n    server {\n        listen 80;\n        location / {\n            \
      if ($arg_x) { return 403; }\n            proxy_pass http://app;\n            break;\n        }\n        \
      location /b {\n            return 204;\n            proxy_pass http://app;\n        }\n    }\n",
     &[("origin_keepalive", "9")],
     "    upstream app { server 127.0.0.1:1; keepalive 9; }\n    server {\n        listen 80;\n        location / {\n            \
      if ($arg_x) { return 403; }\n            proxy_pass http://app;\n            proxy_http_version 1.1;\n            \
      proxy_set_header Connection \"\";\n            break;\n        }\n        \
      location /b {\n            proxy_http_version 1.1;\n            proxy_set_header Connection \"\";\n            \
      return 204;\n            proxy_pass http://app;\n        }\n    }\n"),
    // In the user's units.
    ("    keepalive_timeout 65;\n    client_header_timeout 1m;\n    server { listen 80; }\n",
     &[("keepalive_timeout", "75s"), ("client_header_timeout", "120s")],
     "    keepalive_timeout 75;\n    client_header_timeout 2m;\n    server { listen 80; }\n"),
    ("    keepalive_timeout 65;\n    client_header_timeout 1m;\n    server { listen 80; }\n",
     &[("keepalive_timeout", "500ms"), ("client_header_timeout", "90s")],
     "    keepalive_timeout 500ms;\n    client_header_timeout 90s;\n    server { listen 80; }\n"),
    ("    keepalive_timeout 65s 60;\n    gzip_min_length 1024;\n    ssl_session_cache shared:S:10M;\n    \
      server { listen 80; }\n",
     &[("keepalive_timeout", "0s"), ("gzip_min_length", "4k"), ("ssl_session_cache", "64m")],
     "    keepalive_timeout 0s 60;\n    gzip_min_length 4096;\n    ssl_session_cache shared:S:64M;\n    \
      server { listen 80; }\n"),
];

#[test]
fn changes_look_like_what_is_around_them() {
    for (before, settings, after) in ROWS {
        let source = User::with(&with_http(before)).read();
        let changed = set(&source, settings);
        assert_eq!(text(&changed), with_http(after), "{settings:?}");
        assert_eq!(set(&changed, settings), changed, "{settings:?}");
        Copy::of(&changed).accepted(before);
    }
}

#[test]
fn an_empty_block_is_indented_as_the_others_of_the_file() {
    for step in ["  ", "\t", "    "] {
        let text_of = |events: &str| {
            format!(
                "events {{\n{events}}}\nhttp {{\n{step}server {{\n{step}{step}listen 80;\n{step}}}\n}}\n"
            )
        };
        let source = User::with(&text_of("")).read();
        let after = set(&source, &[("multi_accept", "on")]);
        assert_eq!(text(&after), text_of(&format!("{step}multi_accept on;\n")));
    }
}

fn with_http(lines: &str) -> String {
    format!("events {{\n}}\nhttp {{\n{lines}}}\n")
}
