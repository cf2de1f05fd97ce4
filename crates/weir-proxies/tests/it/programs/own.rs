//! Tests of copies of users' configurations, on the real proxies.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use weir_model::study::ProxyKind::{self, Caddy, Envoy, Haproxy, Nginx};
use weir_probe::process::command_line;
use weir_sut::{
    Ask, Certificate, Configuration, Launch, Proxy, RunningProxy, SutError, UserConfiguration,
    WorkFolder,
};

use crate::programs::haproxy::haproxy;
use crate::programs::nginx::nginx;
use crate::programs::secure::NAME;
use crate::programs::setup::{Setup, ask_at, catalog_of, nobody, program, run, run_with};
use crate::programs::support::{Origin, free_address, get, processes, until};

/// Returns an nginx.conf whose listener has `flags`, with `main` on top.
fn nginx_conf(main: &str, flags: &str) -> String {
    format!(
        "{main}\nworker_processes 2;\npid nginx.pid;\nerror_log error.log;\nevents {{ }}\n\
         http {{\n    access_log off;\n    server {{ listen 18080{flags}; return 204; }}\n}}\n"
    )
}

/// Returns a setup for a user's file and its asks, with these settings and no others.
fn of_user<'a>(
    kind: ProxyKind,
    (file, asks): (&'a Path, &'a [Ask]),
    settings: &[(&str, &str)],
) -> Setup<'a> {
    let settings =
        settings.iter().map(|(id, level)| ((*id).to_owned(), (*level).to_owned())).collect();
    Setup {
        settings,
        own: Some(UserConfiguration { file, asks }),
        ..Setup::proxy(kind, &[], nobody())
    }
}

/// Writes a copy of a configuration that listens at `listen`.
fn copy(proxy: &dyn Proxy, folder: &WorkFolder, text: &str, listen: SocketAddr) -> Configuration {
    let file = folder.prefix("user.conf");
    fs::write(&file, text).expect("the work folder can be written");
    let asks = [ask_at(listen)];
    let setup = of_user(proxy.kind(), (&file, &asks), &[]);
    let written = setup.try_write(folder, listen);
    written.expect("the configuration is understood")
}

#[test]
fn nginx_is_ready_behind_a_launcher_that_stays() {
    let folder = WorkFolder::create().unwrap();
    let configuration = copy(&*nginx(), &folder, &nginx_conf("", ""), free_address());
    let prefix = ["sh", "-c", "\"$@\"; exit", "sh"].map(str::to_owned);
    let launch = Launch { prefix: prefix.to_vec(), ..Launch::default() };
    let mut proxy = run_with(&*nginx(), &configuration, &launch).unwrap();
    proxy.alive().unwrap();
    let title = command_line(proxy.master_pid()).unwrap();
    assert!(title.starts_with("nginx: master process"), "{title}");
    assert_eq!(proxy.worker_pids().len(), 2);
    assert!(get(proxy.address(), "/").starts_with("HTTP/1.1 204"));
    let all = processes(&proxy);
    proxy.stop();
    until("none is left", || !all.iter().any(|process| process.is_alive()));
}

/// Number of requests, each on a client's connection of its own.
const REQUESTS: usize = 20;

/// Returns the number of connections that a copy opens to its origin server for [`REQUESTS`] requests.
fn count_opened(proxy: &dyn Proxy, text: &str, settings: &[(&str, &str)]) -> usize {
    let folder = WorkFolder::create().expect("the work folder can be made");
    let origin = Origin::start();
    let file = folder.prefix("user.conf");
    fs::write(&file, text).expect("the work folder can be written");
    let asks = [ask_at(free_address())];
    let setup =
        Setup { origin: Some(origin.address), ..of_user(proxy.kind(), (&file, &asks), settings) };
    let configuration = setup.write(&folder);
    let running = run(proxy, &configuration).expect("the copy runs");
    for _ in 0..REQUESTS {
        let answer = get(running.address(), "/");
        assert!(answer.ends_with("hello"), "{text}\n{answer}");
    }
    running.stop();
    origin.connections()
}

/// Typical users' files close every connection to the origin server, by different lines.
#[test]
fn connections_to_the_origin_are_kept_whatever_the_user_s_file_has() {
    let map = "    map $http_upgrade $connection_upgrade { default upgrade; '' close; }\n";
    let upgrade = "            proxy_http_version 1.1;\n            \
                   proxy_set_header Upgrade $http_upgrade;\n            \
                   proxy_set_header Connection $connection_upgrade;\n";
    let group = "    upstream app { server 192.0.2.1:80; }\n";
    let by_name = "            proxy_pass http://app;\n";
    let by_address = "            proxy_pass http://192.0.2.1:3000;\n";
    let keepalive = [("origin_keepalive", "16")];
    for (http, location) in [
        (group.to_owned(), by_name.to_owned()),
        (format!("{map}{group}"), format!("{upgrade}{by_name}")),
        (String::new(), by_address.to_owned()),
        (String::new(), by_address.replace(":3000", "")),
        (
            map.to_owned(),
            format!("{upgrade}            proxy_set_header Host $host;\n{by_address}"),
        ),
    ] {
        let text = format!(
            "worker_processes 1;\npid nginx.pid;\nerror_log error.log;\nevents {{ }}\nhttp {{\n    \
             access_log off;\n{http}    server {{\n        listen 18080;\n        location / {{\n\
             {location}        }}\n    }}\n}}\n"
        );
        let counted =
            [&[][..], &keepalive].map(|settings| count_opened(&*nginx(), &text, settings));
        assert_eq!(counted, [REQUESTS, 1], "{text}");
    }
    for option in ["http-server-close", "httpclose"] {
        let text = format!(
            "global\n    nbthread 1\ndefaults\n    mode http\n    option {option}\n    timeout connect 1s\n    \
             timeout client 1s\n    timeout server 1s\n\
             listen web\n    bind :18080\n    server app 192.0.2.1:80\n"
        );
        let keepalive = [("http_connection_mode", "http-keep-alive"), ("http_reuse", "always")];
        let counted =
            [&[][..], &keepalive].map(|settings| count_opened(&*haproxy(), &text, settings));
        assert_eq!(counted[0], REQUESTS, "{text}");
        // One may be on its way back to the pool when the next request comes.
        assert!(counted[1] < REQUESTS / 2, "{option}: {}", counted[1]);
    }
}

/// Returns the configuration of an Envoy with these access logs of its connection manager and of its listener.
fn envoy_json(of_manager: &str, of_listener: &str) -> String {
    const EXTENSIONS: &str = "\"@type\": \"type.googleapis.com/envoy.extensions";
    format!(
        "{{\"static_resources\": {{\"listeners\": [{{\"name\": \"web\", \"access_log\": [{of_listener}],\n\
         \"address\": {{\"socket_address\": {{\"address\": \"0.0.0.0\", \"port_value\": 18080}}}},\n\
         \"filter_chains\": [{{\"filters\": [{{\"name\": \"http\", \"typed_config\": {{{EXTENSIONS}.filters.network.\
         http_connection_manager.v3.HttpConnectionManager\",\n\
         \"stat_prefix\": \"web\", \"access_log\": [{of_manager}],\n\
         \"http_filters\": [{{\"name\": \"router\", \"typed_config\": {{{EXTENSIONS}.filters.http.router.v3.Router\"}}}}],\n\
         \"route_config\": {{\"virtual_hosts\": [{{\"name\": \"all\", \"domains\": [\"*\"],\n\
         \"routes\": [{{\"match\": {{\"prefix\": \"/\"}}, \"route\": {{\"cluster\": \"app\"}}}}]}}]}}}}}}]}}]}}],\n\
         \"clusters\": [{{\"name\": \"app\", \"load_assignment\": {{\"cluster_name\": \"app\", \"endpoints\": [\n\
         {{\"lb_endpoints\": [{{\"endpoint\": {{\"address\": {{\"socket_address\": {{\"address\": \"192.0.2.1\", \
         \"port_value\": 80}}}}}}}}]}}]}}}}]}}}}\n"
    )
}

/// Levels that a proxy reports for a copy are checked without and with a setting of the row.
#[test]
fn what_users_files_say_in_other_words_is_read() {
    let other_group = "pid nginx.pid;\nerror_log error.log;\nevents { }\nhttp {\n    access_log off;\n    \
                       upstream other { server 192.0.2.2:80; keepalive 5; }\n    server { listen 18080; \
                       location / { proxy_pass http://192.0.2.1:3000; } }\n}\n";
    let switched_off = "{\"apps\": {\"http\": {\"servers\": {\"web\": {\"listen\": [\":18080\"], \"routes\": [\
                        {\"handle\": [{\"handler\": \"reverse_proxy\", \"upstreams\": [{\"dial\": \"192.0.2.1:80\"}], \
                        \"transport\": {\"protocol\": \"http\", \"keep_alive\": {\"enabled\": false}}}]}]}}}}}\n";
    #[rustfmt::skip]
    let rows = [
        (Envoy, "e.json", envoy_json(&envoy_log("StdoutAccessLog"), ""), ["access_log", "off"], "on"),
        (Envoy, "e.json", envoy_json("", &envoy_log("StderrAccessLog")), ["access_log", "off"], "on"),
        (Envoy, "e.json", envoy_json("", ""), ["access_log", "on"], "off"),
        (Nginx, "nginx.conf", other_group.to_owned(), ["origin_keepalive", "8"], "0"),
        (Caddy, "c.json", switched_off.to_owned(), ["origin_keepalive", "8"], "0"),
    ];
    for (kind, name, text, [id, level], expected) in rows {
        let both = [&[][..], &[(id, level)]].map(|settings: &[(&str, &str)]| {
            let folder = WorkFolder::create().unwrap();
            let file = folder.prefix(name);
            fs::write(&file, &text).unwrap();
            let asks = [ask_at(free_address())];
            let configuration = of_user(kind, (&file, &asks), settings).write(&folder);
            let effective = program(kind).effective(&configuration, None, &catalog_of(kind));
            effective.unwrap().levels[id].clone()
        });
        assert_eq!(both, [expected, level], "{text}");
    }
}

fn envoy_log(name: &str) -> String {
    format!(
        "{{\"name\": \"a\", \"typed_config\": {{\"@type\": \
         \"type.googleapis.com/envoy.extensions.access_loggers.stream.v3.{name}\"}}}}"
    )
}

/// Configuration with a server in clear, and one over TLS with two locations.
const TWO_SERVERS: &str = "pid nginx.pid;\nerror_log error.log;\nevents { }\nhttp {\n    access_log off;\n    \
                      ssl_session_cache none;\n    server { listen 18080; gzip on; return 204; }\n    server {\n        \
                      listen 18443 ssl;\n        ssl_certificate /nowhere/a.pem;\n        \
                      ssl_certificate_key /nowhere/a.key;\n        ssl_session_cache off;\n        gzip off;\n        \
                      location / { proxy_pass http://192.0.2.1; }\n        location /api/ { gzip on; proxy_pass \
                      http://192.0.2.1; }\n    }\n}\n";

/// Configuration with a frontend in clear, one over TLS, and two backends.
const TWO_FRONTENDS: &str = "global\n    ssl-default-bind-options ssl-min-ver TLSv1.2\ndefaults\n    mode http\n    \
                       timeout connect 1s\n    timeout server 1s\n    timeout client 5s\nfrontend clear\n    \
                       bind :18080\n    default_backend app\nfrontend secure\n    \
                       bind :18443 ssl crt /nowhere/a.pem ssl-min-ver TLSv1.3\n    timeout client 7s\n    \
                       use_backend api if { path_beg /api/ }\n    default_backend app\nbackend app\n    \
                       server app 192.0.2.1:80\nbackend api\n    timeout server 9s\n    server app 192.0.2.1:80\n";

/// A load over TLS has the levels of its own listener, server and location; if several loads differ, both levels are
/// read.
#[test]
fn levels_are_read_where_the_loads_go() {
    let (gzip, cache) = ("gzip", "ssl_session_cache");
    let (client, server, version) = ("timeout_client", "timeout_server", "ssl_min_ver");
    #[rustfmt::skip]
    let rows = [
        (Nginx, TWO_SERVERS, &["/"][..], &[(gzip, "off"), (cache, "off")][..]),
        (Nginx, TWO_SERVERS, &["/api/x"], &[(gzip, "on"), (cache, "off")]),
        (Nginx, TWO_SERVERS, &["", "/"], &[(gzip, "on and off"), (cache, "off")]),
        (Haproxy, TWO_FRONTENDS, &["/"], &[(client, "7s"), (server, "1s"), (version, "TLSv1.3")]),
        (Haproxy, TWO_FRONTENDS, &["/api/x"], &[(client, "7s"), (server, "9s")]),
        (Haproxy, TWO_FRONTENDS, &["", "/"], &[(client, "5s and 7s"), (version, "TLSv1.3")]),
    ];
    for (kind, text, targets, expected) in rows {
        let folder = WorkFolder::create().unwrap();
        let certificate = Certificate::make(folder.path(), &[NAME.to_owned()]).unwrap();
        let file = folder.prefix("user.conf");
        fs::write(&file, text).unwrap();
        // Without a target in clear, with one over TLS.
        let asks = targets.iter().map(|target| {
            let mut ask = ask_at(free_address());
            if !target.is_empty() {
                ask.spec.tls = true;
                ask.spec.requests[0].target = (*target).to_owned();
            }
            ask
        });
        let asks: Vec<Ask> = asks.collect();
        let setup = Setup { certificate: Some(&certificate), ..of_user(kind, (&file, &asks), &[]) };
        let configuration = setup.write(&folder);
        let effective = program(kind).effective(&configuration, None, &catalog_of(kind));
        let levels = effective.unwrap().levels;
        for (id, level) in expected {
            assert_eq!(levels[*id], *level, "{kind:?} {targets:?} {id}");
        }
    }
}

/// With SO_REUSEPORT two nginx would share the port.
#[test]
fn a_port_that_is_taken_is_not_shared_because_the_user_s_file_would() {
    let folders = [(); 2].map(|()| WorkFolder::create().unwrap());
    let first = start_copy(&folders[0], free_address()).unwrap();
    let error = start_copy(&folders[1], first.address()).unwrap_err();
    assert!(matches!(error, SutError::PortTaken { .. }), "{error}");
}

fn start_copy(folder: &WorkFolder, listen: SocketAddr) -> Result<RunningProxy, SutError> {
    let text = nginx_conf("", " reuseport");
    let configuration = copy(&*nginx(), folder, &text, listen);
    run(&*nginx(), &configuration)
}

fn number(database: &str, name: &str) -> String {
    let text = fs::read_to_string(database).expect("every system has it");
    let mut entries = text.lines().map(|line| line.split(':'));
    let mut fields =
        entries.find(|fields| fields.clone().next() == Some(name)).expect("every system has it");
    fields.nth(2).expect("a number").to_owned()
}

#[test]
fn workers_are_of_the_group_that_the_user_s_file_names() {
    // Who is not root changes no user.
    let is_root = rustix::process::geteuid().is_root();
    let folder = WorkFolder::create().unwrap();
    let written = |proxy: &dyn Proxy, text: &str| {
        let configuration = copy(proxy, &folder, text, free_address());
        proxy.check(&configuration).unwrap();
        configuration.texts().unwrap().remove(0).1
    };
    let text = written(&*nginx(), &nginx_conf("user nobody daemon;", ""));
    assert_eq!(text.contains("user nobody daemon;"), is_root, "{text}");

    let by_number = format!(
        "uid {}\n    gid {}",
        number("/etc/passwd", "nobody"),
        number("/etc/group", "daemon")
    );
    for named in ["user nobody\n    group daemon", &by_number] {
        let text = written(
            &*haproxy(),
            &format!(
                "global\n    {named}\n\
                 defaults\n    mode http\n    timeout connect 1s\n    timeout client 1s\n    timeout server 1s\n\
                 listen web\n    bind :18080\n    server app 192.0.2.1:80\n"
            ),
        );
        for line in ["user nobody\n", "group daemon\n"] {
            assert_eq!(text.contains(line), is_root, "{named}: {text}");
        }
    }
}
