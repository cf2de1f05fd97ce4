//! Changes of settings in users' configurations, which must touch nothing else.

use weir_configuration::{Source, WantedSetting, diff};
use weir_model::study::ProxyKind;
use weir_nginx::language as nginx;
use weir_parameters::{LevelKind, Parameter};

use super::generated::{ingress, sites};
use super::levels::list_levels;
use super::{Copy, User, all, load_catalog, set};
use crate::languages::support::{must_have, text};

/// Returns the lines that a change takes away (`-`) and adds (`+`).
fn changed_lines(before: &Source, settings: &[(&str, &str)]) -> Vec<String> {
    let after = set(before, settings);
    diff(before, &after)
        .lines()
        .filter(|line| line.starts_with(['+', '-']))
        .filter(|line| !line.starts_with("+++") && !line.starts_with("---"))
        .map(str::to_owned)
        .collect()
}

fn changed(source: &Source, settings: &[(&str, &str)]) -> String {
    text(&set(source, settings)).to_owned()
}

/// Buffers that only make room for the wanted one stay if the user has set them.
#[test]
fn what_only_makes_room_yields() {
    let buffers = "            proxy_buffer_size 16k;\n            proxy_buffers 256 16k;\n            \
               proxy_busy_buffers_size 256k;\n";
    let text = &set_buffer_size(buffers).files[0].text;
    must_have(text, &["proxy_buffer_size 32k;", "proxy_buffers 256 16k;"]);
    let text = &set_buffer_size("").files[0].text;
    must_have(text, &["proxy_buffer_size 32k;", "proxy_buffers 8 32k;"]);
}

#[test]
fn only_the_argument_is_changed() {
    let debian = User::of("debian").read();
    assert_eq!(
        changed_lines(&debian, &[("worker_connections", "4096")]),
        ["-\tworker_connections 768;", "+\tworker_connections 4096;"]
    );
    assert_eq!(
        changed_lines(&debian, &[("ssl_protocols", "TLSv1.3")]),
        [
            "-\tssl_protocols TLSv1 TLSv1.1 TLSv1.2 TLSv1.3; # Dropping SSLv3, ref: POODLE",
            "+\tssl_protocols TLSv1.3; # Dropping SSLv3, ref: POODLE"
        ]
    );
}

#[test]
fn what_is_not_there_goes_behind_the_simple_directives_as_they_are_written() {
    let debian = User::of("debian").read();
    assert_eq!(
        changed_lines(&debian, &[("multi_accept", "on"), ("gzip_comp_level", "5")]),
        ["+\tmulti_accept on;", "+\tgzip_comp_level 5;"]
    );
    let after = changed(&debian, &[("gzip_comp_level", "5")]);
    must_have(after, &["\tgzip on;\n\tgzip_comp_level 5;\n"]);

    let crlf = User::rewritten("debian", |text| text.replace('\n', "\r\n")).read();
    let after = changed(&crlf, &[("gzip_comp_level", "5")]);
    must_have(after, &["\tgzip on;\r\n\tgzip_comp_level 5;\r\n"]);

    let endless = User::of("endless").read();
    let settings = [("worker_connections", "64"), ("gzip", "on"), ("worker_rlimit_nofile", "99")];
    assert_eq!(
        changed(&endless, &settings),
        "events {\n    worker_connections 64;\n\n}\n\nhttp {\n    gzip on;\n    server {\n    }\n}\n\
         worker_processes 1;\nworker_rlimit_nofile 99;"
    );
    let minified = User::of("minified").read();
    let after = changed(&minified, &[("multi_accept", "on"), ("gzip", "on")]);
    must_have(after, &["worker_connections 99; multi_accept on;}http{ gzip on;upstream"]);
}

#[test]
fn what_means_the_same_is_left_alone() {
    let debian = [("sendfile", "on"), ("worker_processes", "auto"), ("access_log", "on")];
    let tls = [("ssl_session_timeout", "300s"), ("ssl_session_cache", "10m")];
    let gzip = [("gzip_min_length", "1024"), ("open_file_cache", "max=1000 inactive=20s")];
    #[rustfmt::skip]
    let rows = [
        ("debian", &debian[..]),
        ("wordpress", &[("keepalive_timeout", "65s"), ("backlog", "1024")]),
        ("quotes", &[("worker_processes", "2")]),
        ("tls", &tls),
        ("static", &gzip),
        ("static", &[("gzip_types", "application/json text/css text/plain")]),
        ("cache", &[("reuseport", "on")]),
        ("endless", &[("gzip_types", "text/html"), ("origin_keepalive", "0")]),
    ];
    for (name, settings) in rows {
        let source = User::of(name).read();
        assert_eq!(changed_lines(&source, settings), [""; 0], "{name}");
    }
}

#[test]
fn inner_blocks_that_say_it_again_are_changed_too() {
    let source = User::of("conditions").read();
    assert_eq!(
        changed_lines(&source, &[("sendfile", "on")]),
        [
            "-    sendfile off;",
            "+    sendfile on;",
            "-            location ~ \\.png$ { sendfile off; gzip off; proxy_pass http://backend; }",
            "+            location ~ \\.png$ { sendfile on; gzip off; proxy_pass http://backend; }",
        ]
    );
    let nested = User::of("nested").read();
    let after = set(&nested, &[("proxy_buffering", "on"), ("worker_processes", "1")]);
    let changed: Vec<usize> =
        (0..nested.files.len()).filter(|&file| nested.files[file] != after.files[file]).collect();
    assert_eq!(changed, [1, 3]);
}

#[test]
fn connections_to_the_origin_are_kept_in_every_group_that_is_used() {
    assert_eq!(
        changed_lines(&User::of("proxy").read(), &[("origin_keepalive", "32")]),
        [
            "+        keepalive 32;",
            "+            proxy_http_version 1.1;",
            "+            proxy_set_header Connection \"\";",
            "-            proxy_http_version 1.0;",
            "+            proxy_http_version 1.1;",
            "+            proxy_set_header Connection \"\";",
        ]
    );
    // In `http` other headers are set, which one in the location would hide; a location of
    // WebSocket has headers of its own that are not touched, and a group that is not used neither.
    assert_eq!(
        changed_lines(&User::of("websocket").read(), &[("origin_keepalive", "32")]),
        [
            "-        ''      close;",
            "+        ''      '';",
            "-    upstream app { server 192.0.2.5:3000; }",
            "+    proxy_set_header Connection \"\";",
            "+    upstream app { server 192.0.2.5:3000; keepalive 32; }",
            "-        location / { proxy_pass http://app; }",
            "+        location / { proxy_pass http://app; proxy_http_version 1.1; }",
        ]
    );
    assert_eq!(
        changed_lines(&User::of("cache").read(), &[("origin_keepalive", "0")]),
        [
            "-    upstream origin { zone origin 64k; server 192.0.2.30:80; keepalive 16; }",
            "+    upstream origin { zone origin 64k; server 192.0.2.30:80; }",
            "-            proxy_http_version 1.1;",
            "-            proxy_set_header Connection \"\";",
        ]
    );
}

#[test]
fn directives_side_by_side_are_taken_away_together() {
    let beside = User::of("beside").read();
    assert_eq!(
        changed_lines(&beside, &[("origin_keepalive", "0")]),
        [
            "-    upstream app { server 192.0.2.70:80; keepalive 4; }",
            "+    upstream app { server 192.0.2.70:80; }",
            "-            proxy_http_version 1.1; proxy_set_header Connection \"\";",
            "+            ",
            "-proxy_http_version 1.1;",
            "-proxy_set_header Connection \"\";",
        ]
    );
    assert_eq!(
        changed_lines(&beside, &[("access_log", "off")]),
        [
            "-    access_log /var/log/nginx/one.log; access_log /var/log/nginx/two.log combined;",
            "+    access_log off;",
        ]
    );
}

#[test]
fn a_location_of_websocket_keeps_what_it_has_from_above_and_from_files() {
    let user = User::with(
        "events { }
         http {
             upstream app { server 192.0.2.1:80; keepalive 4; }
             server {
                 listen 80;
                 proxy_http_version 1.1;
                 location / { proxy_pass http://app; }
                 location /socket { proxy_set_header Upgrade $http_upgrade; proxy_pass http://app; }
             }
             server {
                 listen 81;
                 location / { include version; proxy_pass http://app; }
                 location /socket { include version; proxy_set_header Upgrade $http_upgrade; proxy_pass http://app; }
                 location /own { proxy_http_version 1.1; proxy_pass http://app; }
             }
         }\n",
    );
    user.write("version", "proxy_http_version 1.1;\n");
    assert_eq!(
        changed_lines(&user.read(), &[("origin_keepalive", "0")]),
        [
            "-             upstream app { server 192.0.2.1:80; keepalive 4; }",
            "+             upstream app { server 192.0.2.1:80; }",
            "-                 location /own { proxy_http_version 1.1; proxy_pass http://app; }",
            "+                 location /own { proxy_pass http://app; }",
        ]
    );
}

/// In the location, the header would hide the second server's headers for the same location.
#[test]
fn a_header_hides_no_other_from_a_location_of_several_servers() {
    let user = User::with(
        "events { }
         http {
             upstream app { server 192.0.2.1:80; }
             server { listen 80; server_name a; include site; }
             server { listen 80; server_name b; proxy_set_header Host $host; include site; }
         }\n",
    );
    user.write("site", "location / {\n    proxy_pass http://app;\n}\n");
    let source = user.read();
    let settings = [("origin_keepalive", "32")];
    assert_eq!(
        changed_lines(&source, &settings),
        [
            "-             upstream app { server 192.0.2.1:80; }",
            "-             server { listen 80; server_name a; include site; }",
            "-             server { listen 80; server_name b; proxy_set_header Host $host; include site; }",
            "+             upstream app { server 192.0.2.1:80; keepalive 32; }",
            "+             server { listen 80; server_name a; proxy_set_header Connection \"\"; include site; }",
            "+             server { listen 80; server_name b; proxy_set_header Host $host; \
             proxy_set_header Connection \"\"; include site; }",
            "+    proxy_http_version 1.1;",
        ]
    );
    let after = set(&source, &settings);
    assert_eq!(set(&after, &settings), after);
    Copy::of(&after).accepted("a location of two servers");
}

#[test]
fn a_flag_goes_to_a_listener_that_is_one_server_s() {
    let user = User::with(
        "events { }
         http {
             server { include ports; server_name a; }
             server { include ports; server_name b; }
             server { listen *:8080; server_name c; }
         }\n",
    );
    user.write("ports", "listen 8080;\n");
    let after = set(&user.read(), &[("backlog", "99"), ("reuseport", "on")]);
    must_have(text(&after), &["listen *:8080 backlog=99 reuseport; server_name c;"]);
    Copy::of(&after).accepted("a file of two servers");
}

#[test]
fn flags_go_to_one_listener_of_each_address() {
    let source = User::rewritten("listeners", |text| {
        text.replace("server_name e;", "listen 8091; server_name e;")
    })
    .read();
    let after = changed(&source, &[("backlog", "1024")]);
    let servers = after.lines().skip(3);
    for (server, part) in servers.zip([
        "listen 8087; listen 127.0.0.1:8087; listen [::1]:8088 backlog=1024;",
        "*:8087 default_server backlog=1024; listen 127.0.0.1:8089;",
        "nginx-c.sock backlog=1024; listen localhost:8089 deferred backlog=1024;",
        "so_keepalive=on backlog=1024;",
    ]) {
        must_have(server, &[part]);
    }
}

#[test]
fn a_flag_has_nowhere_to_go_without_a_listen() {
    let error = super::change(&User::of("listeners").read(), &[("reuseport", "on")]);
    // Of *:80 there is the implicit one alone.
    assert_eq!(error.unwrap_err().line, 8);
}

#[test]
fn logs_keep_their_files_formats_and_conditions() {
    let source = User::of("logs").read();
    let text = |level| changed(&source, &[("access_log", level)]);
    let buffered = [
        "access_log /var/log/nginx/access.log json if=$loggable buffer=64k flush=1s;",
        "access_log syslog:server=192.0.2.60:514,facility=local7,tag=nginx combined;",
        "access_log /srv/logs/access.log combined buffer=64k flush=1s;",
        "access_log /srv/logs/$host.log combined;",
    ];
    must_have(text("buffered"), &buffered);
    let on = "access_log /var/log/nginx/access.log json if=$loggable;";
    must_have(text("on"), &[on, "location /quiet { access_log off; return"]);
    let off = text("off");
    assert_eq!(off.matches("access_log").count(), 4, "{off}");
    assert_eq!(off.matches("access_log off;").count(), 4, "{off}");
}

#[test]
fn what_is_the_user_s_own_in_a_directive_stays() {
    let wordpress = User::of("wordpress").read();
    assert_eq!(
        changed_lines(&wordpress, &[("keepalive_timeout", "10s")]),
        ["-    keepalive_timeout 65 60;", "+    keepalive_timeout 10 60;"]
    );
    let tls = User::of("tls").read();
    let after = changed(&tls, &[("ssl_session_cache", "64m")]);
    assert_eq!(after.matches("shared:SSL:64m").count(), 2);
}

#[test]
fn an_ingress_of_many_lines_is_changed_in_few() {
    let user = User::with(&ingress(70));
    let settings =
        [("keepalive_requests", "100000"), ("origin_keepalive", "64"), ("backlog", "8192")];
    assert_eq!(
        changed_lines(&user.read(), &settings),
        [
            "-\tkeepalive_requests 1000;",
            "+\tkeepalive_requests 100000;",
            "-\t\tkeepalive 320;",
            "+\t\tkeepalive 64;",
            "-\t\tlisten 80 default_server reuseport backlog=4096 ;",
            "-\t\tlisten [::]:80 default_server reuseport backlog=4096 ;",
            "+\t\tlisten 80 default_server reuseport backlog=8192 ;",
            "+\t\tlisten [::]:80 default_server reuseport backlog=8192 ;",
        ]
    );
}

#[test]
fn ten_thousand_groups_are_changed() {
    let user = User::with(&sites(10_000));
    let text = changed(&user.read(), &[("origin_keepalive", "8")]);
    let header = "            proxy_set_header Connection \"\";\n";
    for line in ["        keepalive 8;\n", header] {
        assert_eq!(text.matches(line).count(), 10_000);
    }
}

fn change(source: &Source, row: &Parameter, level: &str) -> Option<Source> {
    nginx::change(source, &[WantedSetting { row, level }]).ok()
}

/// Returns true if a level cannot be restored as it was written, after another level was set.
fn is_lost(name: &str, row: &Parameter, one: &str, other: &str) -> bool {
    let is_shared = |level: &str| {
        let directives = row.directives(level);
        directives.iter().any(|it| it.text.contains("shared:"))
    };
    match row.id.as_str() {
        // Whoever switches logs off does not know their files any more; the diff does.
        "access_log" => (one == "off") != (other == "off"),
        "origin_keepalive" => match name {
            // Nor does whoever wants the version that kept connections need, and then no kept ones.
            "beside" | "proxy" => one != other,
            // Nor where the file's own words about them stood, once nothing is kept.
            "cache" | "lua" => (one == "0") != (other == "0"),
            // A group that was made for them, and an entry of a `map` that closes none, are there to stay.
            "limits" | "tls" | "websocket" => (one == "0") != (other == "0"),
            _ => false,
        },
        // Nor does whoever has no cache know the name of the one that was shared.
        _ => is_shared(one) != is_shared(other),
    }
}

/// Returns the part of a text that is restored, with the rest normalised.
fn normalise(text: &str, row: &Parameter, one: &str, other: &str) -> String {
    // Parameters of a log need the format that nginx takes without being told; whether somebody
    // had written it is forgotten.
    let text = match row.id.as_str() {
        "access_log" => text.replace(" combined;", ";"),
        _ => text.to_owned(),
    };
    // Nor does anybody know in which unit a quantity was, once it came out even in none of the user's.
    let text = match row.level {
        LevelKind::Duration { .. } => plain_units(&text, TIMES),
        LevelKind::Size { .. } => plain_units(&text, SIZES),
        _ => text,
    };
    // Between words that were fewer or more meanwhile there is one blank, whatever was there.
    if one.split_whitespace().count() == other.split_whitespace().count() {
        text
    } else {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Units of times in milliseconds, and of sizes in bytes.
const TIMES: &[(&str, u64)] =
    &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("", 1000)];
const SIZES: &[(&str, u64)] = &[("k", 1 << 10), ("m", 1 << 20), ("", 1)];

fn plain_units(text: &str, units: &[(&str, u64)]) -> String {
    let ends = [' ', ';', ':', '=', '\n', '\r'];
    text.split_inclusive(ends)
        .map(|word| {
            let bare = word.trim_end_matches(ends);
            plain_quantity(bare, units)
                .map_or_else(|| word.to_owned(), |plain| word.replacen(bare, &plain, 1))
        })
        .collect()
}

/// Returns a quantity in the smallest unit.
fn plain_quantity(word: &str, units: &[(&str, u64)]) -> Option<String> {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit()).to_ascii_lowercase();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let number: u64 = word[..word.len() - unit.len()].parse().ok()?;
    Some((number * factor).to_string())
}

/// Sets all levels of all rows in all configurations, another level, and the first again: the bytes are the same.
#[test]
fn a_level_that_is_set_back_leaves_no_trace() {
    let catalog = load_catalog();
    let rows: Vec<&Parameter> = catalog.parameters(ProxyKind::Nginx).collect();
    let cases = all().flat_map(|name| [(name, "\n"), (name, "\r\n")]);
    let mut tried = 0;
    for (name, end) in cases {
        let source = User::rewritten(name, |text| text.replace('\n', end)).read();
        for row in &rows {
            let levels = list_levels(row);
            for one in &levels {
                let Some(former) = change(&source, row, one) else {
                    continue;
                };
                for other in &levels {
                    if is_lost(name, row, one, other) {
                        continue;
                    }
                    let Some(between) = change(&former, row, other) else {
                        continue;
                    };
                    let back = change(&between, row, one).unwrap();
                    for (back, former) in back.files.iter().zip(&former.files) {
                        let [back, former] =
                            [back, former].map(|file| normalise(&file.text, row, one, other));
                        assert_eq!(back, former, "{name}: {}: {one}, {other}", row.id);
                    }
                    // What a diff takes away it gives back, on the texts themselves.
                    assert_eq!(diff(&former, &between).is_empty(), former == between);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 1000, "{tried}");
}

/// Sets the size of a buffer in a location with some lines.
fn set_buffer_size(lines: &str) -> Source {
    let text = format!(
        "events {{ }}\nhttp {{\n    server {{\n        listen 80;\n        location / {{\n            \
         proxy_pass http://192.0.2.1;\n{lines}        }}\n    }}\n}}\n"
    );
    set(&User::with(&text).read(), &[("proxy_buffer_size", "32k")])
}
