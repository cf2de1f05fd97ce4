//! Copies that run beside the original.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value as Json, json};
use weir_caddy::language as caddy;
use weir_caddy::language::CaddyJson;
use weir_configuration::document::Dialect;
use weir_configuration::{Pem, Source, Surroundings};
use weir_envoy::language as envoy;
use weir_envoy::language::Bootstrap;

use super::{Users, all, named};
use crate::languages::support::{
    LISTEN, ORIGIN, Running, TLS_LISTEN, at_port, checked, for_host, free_address, has, located,
    make_prefix, make_source, make_surroundings, must_have, of_a_test, origin, text, with_tls,
    write,
};

fn find_program(dialect: &'static dyn Dialect) -> PathBuf {
    match dialect.name() {
        "Envoy" => located("envoy"),
        _ => located("caddy"),
    }
}

fn adapt(
    source: &Source,
    dialect: &'static dyn Dialect,
    surroundings: &Surroundings<'_>,
) -> Source {
    let copy = match dialect.name() {
        "Envoy" => envoy::adapt(source, surroundings),
        _ => caddy::adapt(source, surroundings),
    };
    copy.unwrap_or_else(|e| panic!("{e}"))
}

/// Makes a copy and checks it with the proxy's own checker.
pub(super) fn checked_copy(name: &str, source: &Source, dialect: &'static dyn Dialect) {
    let prefix = make_prefix();
    let surroundings = if name.starts_with("tls") {
        with_tls(prefix.path())
    } else {
        for_host(of_a_test(prefix.path()), "example.com")
    };
    let main = write(&adapt(source, dialect, &surroundings), prefix.path());
    let program = find_program(dialect);
    if !has(&program) {
        return;
    }
    let mut command = Command::new(program);
    match dialect.name() {
        "Envoy" => command.args(["--mode", "validate", "-c"]).arg(main),
        _ => command.args(["validate", "--config"]).arg(main).env("HOME", prefix.path()),
    };
    checked(name, command.current_dir("/"));
}

#[test]
fn the_checkers_accept_copies_of_all() {
    for name in all() {
        let users = Users::new(name);
        checked_copy(name, &users.read(), users.dialect);
    }
}

#[test]
fn copies_touch_nothing_of_the_users() {
    for name in all() {
        let users = Users::new(name);
        let prefix = make_prefix();
        let surroundings = for_host(of_a_test(prefix.path()), "example.com");
        let copy = adapt(&users.read(), users.dialect, &surroundings);
        let words = "socket_address: { address: 0.0.0.0|10.0.0.1|10.0.0.2|192.0.2.|/var/log|/var/lib|\
                     service1.example|www.example.com|:2019|\":8080\"|10.1.2.3|10000|_DNS|\
                     backend.example.com:";
        for line in text(&copy).lines().map(|line| line.split(" #").next().unwrap()) {
            let leak = words.split('|').find(|word| line.contains(word));
            assert_eq!(leak, None, "{name}: {line}");
        }
    }
}

#[test]
fn copies_run_and_ask_the_origin_server() {
    for name in all() {
        let users = Users::new(name);
        let program = find_program(users.dialect);
        if !has(&program) || name == "many.yaml" {
            continue;
        }
        let prefix = make_prefix();
        let (listen, origin) = (free_address(), origin());
        let surroundings = make_surroundings(prefix.path(), listen, origin);
        let surroundings = for_host(surroundings, "example.com");
        let copy = adapt(&users.read(), users.dialect, &surroundings);
        let main = write(&copy, prefix.path());
        let mut command = Command::new(program);
        command.args(match users.dialect.name() {
            // One region of shared memory for all Envoys of a host is the default.
            "Envoy" => &["--use-dynamic-base-id", "-l", "error", "--concurrency", "1", "-c"][..],
            _ => &["run", "--config"],
        });
        command.arg(main).env("HOME", prefix.path()).current_dir("/");
        let mut proxy = Running::start(command.stderr(std::process::Stdio::null()));
        let answer = proxy.ask(listen, "/service/2");
        assert!(answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
        assert!(prefix.path().join("run/admin.sock").exists(), "{name}");
    }
}

/// Returns a value of a JSON document; null if it is not there.
fn value(source: &Source, at: &str) -> Json {
    let document: Json = serde_json::from_str(text(source)).unwrap();
    document.pointer(at).cloned().unwrap_or_default()
}

#[test]
fn caddys_listeners_and_upstreams_get_new_addresses() {
    let users = Users::new("tls.json");
    let copy = adapt(&users.read(), &CaddyJson, &with_tls(Path::new("/p")));
    let dynamic = "/apps/http/servers/metrics/routes/0/handle/0";
    for (at, expected) in [
        ("/apps/http/servers/both/listen/0", json!(LISTEN)),
        ("/apps/http/servers/both/listen/1", json!(TLS_LISTEN)),
        ("/apps/http/servers/metrics/listen/0", json!("unix//p/run/2.sock")),
        ("/apps/http/http_port", json!(7001)),
        ("/admin/listen", json!("unix//p/run/admin.sock")),
        ("/storage/root", json!("/p/storage")),
        ("/apps/tls/certificates/automate", Json::Null),
        (&format!("{dynamic}/upstreams/0/dial"), json!(ORIGIN)),
        (&format!("{dynamic}/dynamic_upstreams"), Json::Null),
    ] {
        assert_eq!(value(&copy, at), expected, "{at}");
    }
}

#[test]
fn a_port_chooses_the_listener() {
    let surroundings = at_port(of_a_test(Path::new("/p")), 9090);
    let users = Users::new("front.yaml");
    let copy = adapt(&users.read(), &Bootstrap, &surroundings);
    let first = "    address:\n      pipe:\n        path: /p/run/0.sock\n";
    let second = "        address: 127.0.0.1\n        port_value: 7001\n";
    must_have(text(&copy), &[first, second]);
    let surroundings = at_port(surroundings, 1);
    let error = envoy::adapt(&users.read(), &surroundings).unwrap_err();
    assert_eq!(error.what, "no listener is in clear on port 1");
    must_have(error.hint.unwrap(), &["0.0.0.0:8080 at ", ", 10.1.2.3:9090 at "]);
    let error = caddy::adapt(&Users::new("tls.json").read(), &surroundings).unwrap_err();
    assert_eq!(error.what, "no server is in clear on port 1");
    let mut surroundings = for_host(with_tls(Path::new("/p")), "example.com");
    surroundings.asks.remove(0);
    // Automatic HTTPS would have given the server on the HTTPS port its policies.
    let users = Users::new("shop.json").read();
    let copy = caddy::adapt(&users, &surroundings).unwrap();
    assert!(text(&copy).contains("\"tls_connection_policies\": [{}]"));
    // Where the copy speaks TLS is not the port that the user has for HTTP.
    let http = "\"http\":{\"http_port\":7003,\"servers\"";
    let at_http = users.files[0].text.replace("\"http\":{\"servers\"", http);
    let copy = caddy::adapt(&make_source("shop.json", &at_http), &surroundings).unwrap();
    assert_eq!(value(&copy, "/apps/http/http_port"), json!(80));
    let listen = "\"listen\":[\":443\"]";
    let off = format!("\"automatic_https\": {{\"disable\": true}}, {listen}");
    let without_https = users.files[0].text.replace(listen, &off);
    let error = caddy::adapt(&make_source("shop.json", &without_https), &surroundings).unwrap_err();
    assert_eq!(error.what, "no server has tls_connection_policies");
}

#[test]
fn files_that_envoy_writes_are_the_copys() {
    let bootstrap = "\
static_resources:
  listeners:
  - address: {socket_address: {address: 0.0.0.0, port_value: 80}}
  clusters:
  - name: a
    health_checks:
    - event_log_path: /var/log/envoy/health.log
      event_logger:
      - typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink
          eventLogPath: /var/log/envoy/sink.log
clusterManager: {outlierDetection: {eventLogPath: /var/log/envoy/outliers.log}}
";
    let source = make_source("envoy.yaml", bootstrap);
    let copy = adapt(&source, &Bootstrap, &of_a_test(Path::new("/p")));
    assert!(!text(&copy).contains("/var/log"), "{}", text(&copy));
    for log in 0..3 {
        let path = format!("/p/logs/events-{log}.log");
        assert_eq!(text(&copy).matches(&path).count(), 1, "{}", text(&copy));
    }
}

#[test]
fn constants_of_envoy_are_taken_in_any_case() {
    for kind in ["LOGICAL_DNS", "logical_dns", "Strict-Dns", "static"] {
        let bootstrap = format!(
            "static_resources:\n  listeners:\n  - address: {{socket_address: {{address: 0.0.0.0, port_value: 80}}}}\n  \
             clusters:\n  - name: a\n    type: {kind}\n    load_assignment: {{cluster_name: a}}\n"
        );
        let source = make_source("envoy.yaml", &bootstrap);
        let copy = adapt(&source, &Bootstrap, &of_a_test(Path::new("/p")));
        assert!(text(&copy).contains("type: STATIC"), "{}", text(&copy));
    }
}

/// The origin server's answers differ from those of the user's servers, and the listener has another address.
#[test]
fn checks_and_destinations_of_envoy_fit_the_trial() {
    let bootstrap = r#"{"static_resources": {
  "listeners": {"address": {"socket_address": {"address": "0.0.0.0", "port_value": 15006}}, "listener_filters": [{"name": "p",
    "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"}}], "filter_chains": [
    {"use_proxy_proto": true, "filter_chain_match": {"destination_port": 15006, "prefix_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 8}]}},
    {"filter_chain_match": {"destination_port": 9000}}
  ]},
  "clusters": [{"name": "a", "health_checks": [
    {"interval": "1s", "http_health_check": {"path": "/up", "expected_statuses": [{"start": 204, "end": 205}],
     "receive": [{"text": "4f4b"}], "service_name_matcher": {"prefix": "a"}}},
    {"interval": "1s", "tcp_health_check": {"send": {"text": "50"}, "receive": [{"text": "51"}]}},
    {"interval": "1s", "grpc_health_check": {"service_name": "a"}}
  ]}]
}}"#;
    let source = make_source("envoy.json", bootstrap);
    let copy = adapt(&source, &Bootstrap, &of_a_test(Path::new("/p")));
    let cluster = "/static_resources/clusters/0/health_checks";
    let chains = "/static_resources/listeners/filter_chains";
    for (at, expected) in [
        (
            format!("{cluster}/0"),
            json!({"interval": "1s", "http_health_check": {"path": "/up"}}),
        ),
        (
            format!("{cluster}/1"),
            json!({"interval": "1s", "tcp_health_check": {}}),
        ),
        (
            format!("{cluster}/2"),
            json!({"interval": "1s", "tcp_health_check": {}}),
        ),
        (
            format!("{chains}/0/filter_chain_match"),
            json!({"destination_port": 7001}),
        ),
        (
            format!("{chains}/1/filter_chain_match"),
            json!({"destination_port": 9000}),
        ),
        (
            "/static_resources/listeners/listener_filters/0/typed_config/allow_requests_without_proxy_protocol"
                .to_owned(),
            json!(true),
        ),
    ] {
        assert_eq!(value(&copy, &at), expected, "{at}");
    }
    assert!(!text(&copy).contains("use_proxy_proto"), "{}", text(&copy));
}

/// The replaced part contains a file of the user's, in the other spelling of the fields.
#[test]
fn what_is_replaced_is_not_looked_into() {
    let users = Users::new("tls.yaml");
    let camel = named("tls.yaml")
        .replace("common_tls_context", "commonTlsContext")
        .replace("tls_certificates", "tlsCertificates")
        .replace("typed_config", "typedConfig")
        .replace("transport_socket:", "transportSocket:")
        .replace("filter_chains", "filterChains");
    std::fs::write(&users.main, camel).unwrap();
    let surroundings = Surroundings {
        certificate: Some(Pem {
            certificate: Path::new("/p/lab.crt"),
            key: Path::new("/p/lab.key"),
        }),
        ..with_tls(Path::new("/p"))
    };
    let copy = adapt(&users.read(), &Bootstrap, &surroundings);
    must_have(text(&copy), &["/p/lab.crt"]);
    assert!(!text(&copy).contains("certs/site"), "{}", text(&copy));
}

#[test]
fn caddy_keeps_logs_and_asks_where_the_copy_is() {
    let document = r#"{
  "logging": {"sink": {"writer": {"output": "file", "filename": "/var/log/caddy/sink.log"}}},
  "apps": {
    "pki": {"certificate_authorities": {"mine": {"storage": {"module": "file_system", "root": "/srv/pki"}}}},
    "tls": {
      "automation": {"policies": [{"subjects": ["a"], "storage": {"module": "file_system", "root": "/srv/acme"}}]},
      "session_tickets": {"key_source": {"provider": "distributed", "storage": {"module": "file_system", "root": "/srv/keys"}}}
    },
    "http": {"servers": {"a": {"listen": [":80"], "routes": [{"handle": [{
      "handler": "reverse_proxy",
      "upstreams": [{"dial": "10.0.0.1:80"}],
      "health_checks": {"active": {"uri": "/up", "port": 8081, "upstream": "10.0.0.2:80", "expect_status": 204, "expect_body": "OK"}}
    }]}]}}}
  }
}
"#;
    let source = make_source("caddy.json", document);
    let copy = adapt(&source, &CaddyJson, &of_a_test(Path::new("/p")));
    for gone in ["/srv/", "/var/log", "8081", "10.0.0."] {
        assert!(!text(&copy).contains(gone), "{gone}: {}", text(&copy));
    }
    let tickets = "/apps/tls/session_tickets/key_source/provider";
    let active = "/apps/http/servers/a/routes/0/handle/0/health_checks/active";
    for (at, expected) in [
        ("/logging/sink/writer/filename", json!("/p/logs/sink.log")),
        ("/apps/tls/automation", Json::Null),
        (tickets, json!("distributed")),
        (active, json!({"uri": "/up"})),
    ] {
        assert_eq!(value(&copy, at), expected, "{at}");
    }
}
