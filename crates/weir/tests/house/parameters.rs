//! Tests of `weir parameters`: the table, one parameter in full, and users' own.

use serde_json::Value;
use weir_testkit::program::{HasAll, run, within};
use weir_testkit::sandbox::{Sandbox, study};

#[test]
fn all_are_in_the_table() {
    let text = run("parameters").with_code(0).stdout;
    for id in "gzip backlog rlimit_nofile net.core.somaxconn fs.file-max".split(' ') {
        let mut ids = text.lines().map(|line| line.split_whitespace().next());
        assert!(ids.any(|listed| listed == Some(id)), "{id}:\n{text}");
    }
    text.lines().for_each(|line| within(line.chars().count(), ..=100));
    let here = std::fs::read_to_string("/proc/sys/fs/file-max").expect("there is one");
    let line = text.lines().find(|line| line.contains("fs.file-max"));
    line.expect("a line").has(here.trim());
}

#[test]
fn one_is_shown_in_full() {
    show("net.core.somaxconn").has_all(&[
        "a kernel parameter of each network namespace",
        "a whole number from 1 to 2147483647",
        "128; 4096 since Linux 5.4",
        "unsafe: the kubelet must allow it",
        "sysctl -w net.core.somaxconn=",
        "sysctl -n net.core.somaxconn, in the network namespace of the proxy",
        "listen backlog: Send-Q",
        "not above `backlog`",
        "https://docs.kernel.org/networking/ip-sysctl.html",
    ]);
    // An unquoted pair sets the first port alone.
    show("net.ipv4.ip_local_port_range").has("sysctl -w net.ipv4.ip_local_port_range=\"");
    show("gzip").has("http { gzip LEVEL; }");
    show("worker_connections").has_all(&[
        "max-worker-connections: \"LEVEL\" (ingress-nginx; left out: 16384)",
        "worker-connections: \"LEVEL\" (nginx-ingress; left out: 1024)",
    ]);
    run("parameters keepalive_requests --proxy envoy").with_code(0).stdout.has_all(&[
        "envoy.listener.maxRequestsPerConnection: LEVEL, none for unlimited (contour, `config`,",
        "(envoy-gateway, `client`)",
    ]);
    // By what it is called in nginx's configuration, and not the first id that some proxy has.
    let keepalive = show("keepalive");
    assert!(
        keepalive.starts_with("origin_keepalive\n  in the configuration of nginx\n"),
        "{keepalive}"
    );
    keepalive.has("  also        `weir parameters keepalive --proxy httpd`: ");
    show("keepalive --proxy httpd").has_none(&["  also "]);
    show("keepalive --proxy nginx").has("upstream { keepalive LEVEL; }");
    show("net.core.somaxconn").has_none(&["  also "]);
}

fn show(line: &str) -> String {
    run(&format!("parameters {line}")).with_code(0).stdout
}

#[test]
fn programs_get_json() {
    let all = list("parameters --format json");
    let [port_range, somaxconn, file_max, gzip] =
        ["net.ipv4.ip_local_port_range", "net.core.somaxconn", "fs.file-max", "gzip"]
            .map(|id| all.iter().find(|row| row["id"] == id).expect(id));
    assert_eq!(port_range["scope"], "kernel_netns");
    assert!(port_range["kubernetes"]["safe"].is_object());
    assert_eq!(somaxconn["defaults"][0]["level"], "128");
    assert_eq!(file_max["kubernetes"], "none");
    assert_eq!(file_max["only_raises"], true);
    assert!(gzip.get("kubernetes").is_none());
    let spelling = &gzip["controllers"]["ingress-nginx"];
    assert_eq!(spelling["key"], "use-gzip");
    assert_eq!(spelling["values"]["on"], "true");
    assert!(file_max.get("controllers").is_none());
    assert_eq!(list("parameters gzip --format json"), std::slice::from_ref(gzip));
}

fn list(line: &str) -> Vec<Value> {
    let document: Value = run(line).with_code(0).document();
    document["parameters"].as_array().expect("a list").clone()
}

#[test]
fn an_unknown_one_is_refused_with_what_was_meant() {
    run("parameters somaxcon").refused_in_a_line(&[
        "no parameter called `somaxcon`",
        "\nhint: did you mean `net.core.somaxconn`?",
    ]);
    // Of whichever proxy has it, unless one was asked for.
    run("parameters nbthreads").refused_in_a_line(&["\nhint: did you mean `nbthread`?"]);
    run("parameters nbthreads --proxy nginx").refused_in_a_line(&["`weir parameters` lists"]);
    run("parameters zzzzzzzz").refused_in_a_line(&["`zzzzzzzz`", "`weir parameters` lists"]);
}

const ROWS: &str = "
proxy: nginx
parameters:
  - id: net.ipv4.tcp_rto_min_us
    scope: kernel_netns
    level: {integer: {min: 1000, max: 1000000}}
    default: {level: \"200000\"}
    why: the shortest time before data is sent again
    source: https://docs.kernel.org/networking/ip-sysctl.html
    effective: {sysctl: {name: net.ipv4.tcp_rto_min_us}}
  - id: proxy_socket_keepalive
    scope: proxy_directive
    level: switch
    default: {level: \"off\"}
    why: keepalive probes on connections to the origin server
    source: https://nginx.org/en/docs/http/ngx_http_proxy_module.html
    effective: {directive: {name: proxy_socket_keepalive, context: http}}
    writes:
      - {context: http, text: \"proxy_socket_keepalive {value}\"}
";

#[test]
fn users_add_their_own() {
    let sandbox = Sandbox::new();
    sandbox.write("mine.yaml", ROWS);
    let all = sandbox.call("parameters --parameters mine.yaml").with_code(0).stdout;
    all.has_all(&["net.ipv4.tcp_rto_min_us", "proxy_socket_keepalive"]);
    let ended = sandbox.call("parameters --parameters mine.yaml tcp_rto_min_us");
    ended.refused_in_a_line(&["did you mean `net.ipv4.tcp_rto_min_us`?"]);
    sandbox.call("parameters --parameters mine.yaml --parameters mine.yaml").refused_in_a_line(&[
        "mine.yaml: row `net.ipv4.tcp_rto_min_us`: the id is there twice",
        "docs/parameters.md",
    ]);
    let ended = sandbox.call("parameters --parameters none.yaml");
    ended.refused_in_a_line(&["cannot read none.yaml: "]);
}

/// Checks that the lab writes a directive that weir does not know, and that nginx reads it.
#[test]
fn a_study_varies_what_a_user_added() {
    let sandbox = Sandbox::new();
    sandbox.write("mine.yaml", ROWS);
    let load = "- {name: closed, closed: true, connections: 2, duration: 2s}";
    let arms = "arms: [{name: probes, settings: {proxy_socket_keepalive: on}}]\n";
    let text = study("{kind: nginx, settings: {worker_processes: 1}}", load, arms);
    sandbox.write("study.yaml", &text);
    sandbox.call("run --check study.yaml").refused(&["unknown parameter `proxy_socket_keepalive`"]);

    sandbox.call("run study.yaml --parameters mine.yaml --out 'a run'").with_code(0);
    let written = sandbox.read("arms/probes/nginx.conf");
    assert!(written.contains("proxy_socket_keepalive on;"), "{written}");
    sandbox.assert_clean();
}
