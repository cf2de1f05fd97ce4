//! Tests of the listener, server and location of a user's configuration that each load requests: they are determined,
//! reported, and used.

use weir_testkit::own::User;
use weir_testkit::program::HasAll;
use weir_testkit::sandbox::{self, Sandbox, proxy_of};

/// Files in the layout of `sites-enabled`: the main file has no listener.
const SITES: [(&str, &str); 5] = [
    (
        "nginx.conf",
        "worker_processes 1;\nevents {}\nhttp {\n    access_log off;\n    include conf.d/*.conf;\n    \
         include sites-enabled/*;\n}\n",
    ),
    ("conf.d/origin.conf", "upstream app { server 192.0.2.1:8080; keepalive 4; }\n"),
    (
        "sites-enabled/00-default",
        "server {\n    listen 18080 default_server;\n    return 301 https://$host$request_uri;\n}\n\
         server {\n    listen 18443 ssl default_server;\n    ssl_reject_handshake on;\n}\n",
    ),
    (
        "sites-enabled/shop",
        "server {\n    listen 18443 ssl;\n    server_name shop.example;\n    \
         ssl_certificate /nowhere/shop.pem;\n    ssl_certificate_key /nowhere/shop.key;\n    \
         location / { proxy_pass http://app; }\n    location /cart/ { proxy_pass http://app; }\n}\n",
    ),
    (
        "sites-enabled/zz-internal",
        "server {\n    listen 18081;\n    server_name internal;\n    location / { proxy_pass http://app; }\n}\n\
         server {\n    listen 18082;\n    location /only/ { proxy_pass http://app; }\n    \
         location / { return 404; }\n}\n",
    ),
];

const LOADS: &str = "\
- {name: clear, closed: true, connections: 2, duration: 2s, timeout: 10s}
- {name: shop, closed: true, connections: 2, duration: 2s, timeout: 10s, tls: true, host: shop.example, path: /cart/1}
- {name: other, closed: true, connections: 2, duration: 2s, timeout: 10s, port: 18082, path: /only/1}
";

fn study(user: &User, loads: &str, arms: &str) -> String {
    let main = user.path("nginx.conf");
    let proxy = format!("{{kind: nginx, configuration: {}}}", main.display());
    sandbox::study(&proxy, loads, &format!("a/a: false\narms:\n{arms}"))
}

/// Tests loads with and without TLS, on two ports, in one study; all of their servers are in included files.
#[test]
fn every_load_goes_to_its_listener_and_the_run_says_which() {
    let sandbox = Sandbox::new();
    let user = User::new(&sandbox, &SITES);
    let arms = "- {name: changed, settings: {keepalive_requests: 50}}\n";
    let text = study(&user, LOADS, arms);
    sandbox.write("study.yaml", &text);
    let [shop, internal] = ["shop", "zz-internal"]
        .map(|name| user.path("sites-enabled").join(name).display().to_string());
    let lines = [
        format!(
            "clear: 18081 in clear ({internal}:2): server internal ({internal}:1), location / ({internal}:4), passes it on"
        ),
        format!(
            "shop: 18443 over TLS ({shop}:2): server shop.example ({shop}:1), location /cart/ ({shop}:7), passes it on"
        ),
        format!(
            "other: 18082 in clear ({internal}:7): server ({internal}:6), location /only/ ({internal}:8), passes it on"
        ),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    sandbox.call("run study.yaml --check").with_code(0).stdout.has_all(&lines);

    sandbox.run(&text).end().with_code(0).stderr.has_all(&lines);
    sandbox.assert_clean();
    user.assert_untouched();
    let run = sandbox.records();
    for load in ["clear", "shop", "other"] {
        let trials = run.trials().filter(|trial| trial.load == load);
        let (mut answered, mut responses) = (0, 0);
        for trial in trials {
            answered += trial.status_classes[2];
            responses += trial.status_classes.iter().sum::<u64>();
        }
        assert!(answered > 0 && answered == responses, "{load}: {answered} of {responses}");
    }
    let asked_urls = &proxy_of(&run, "changed").expect("the arm ran").asked;
    let ports: Vec<&str> = asked_urls.iter().map(|url| &*url.listener.name).collect();
    assert_eq!(ports, ["18081", "18443", "18082"]);
    let report = sandbox.call("report 'a run' --format markdown").with_code(0);
    report.stdout.has_all(&["Where each load goes", "location /cart/"]);
}

/// Checks that one arm without a place for its setting does not end the run.
#[test]
fn an_arm_without_a_place_is_left_out_and_the_others_run() {
    let sandbox = Sandbox::new();
    let user = User::new(
        &sandbox,
        &[(
            "nginx.conf",
            "events {}\nhttp {\n    server {\n        listen 18080;\n        location / { proxy_pass http://192.0.2.1; }\n    }\n}\n",
        )],
    );
    let arms = "- {name: kept, settings: {origin_keepalive_requests: 8}}\n\
                - {name: fewer, settings: {keepalive_requests: 50}}\n";
    let load = "- {name: clear, closed: true, connections: 2, duration: 2s, timeout: 10s}\n";
    let text = study(&user, load, arms);
    sandbox.write("study.yaml", &text);
    let why =
        format!("not varied: arm `kept` is left out: {}:5:22: ", user.path("nginx.conf").display());
    sandbox.call("run study.yaml --check").with_code(0).stdout.has_all(&[&why]);
    sandbox.run(&text).end().with_code(0).stderr.has_all(&[&why]);
    sandbox.assert_clean();
    let run = sandbox.records();
    assert!(proxy_of(&run, "fewer").is_some());
    assert!(proxy_of(&run, "kept").is_none());
}

/// Tests a fault that only the proxy's own checker detects.
#[test]
fn an_arm_that_its_proxy_refuses_is_left_out_and_the_others_run() {
    let sandbox = Sandbox::new();
    let text = "events {}\nhttp {\n    proxy_busy_buffers_size 16k;\n    server {\n        listen 18080;\n        \
                location / { proxy_pass http://192.0.2.1; }\n    }\n}\n";
    let user = User::new(&sandbox, &[("nginx.conf", text)]);
    let arms = "- {name: larger, settings: {proxy_buffer_size: 32k}}\n\
                - {name: fewer, settings: {keepalive_requests: 50}}\n";
    let load = "- {name: clear, closed: true, connections: 2, duration: 2s, timeout: 10s}\n";
    let both = study(&user, load, arms);
    sandbox.run(&both).end().with_code(0).stderr.has_all(&[
        "not varied: arm `larger` is left out: nginx refuses the configuration",
        "\"proxy_busy_buffers_size\" must be equal to or greater than",
    ]);
    let run = sandbox.records();
    assert!(proxy_of(&run, "fewer").is_some());
    assert!(proxy_of(&run, "larger").is_none());
    sandbox.assert_clean();
    user.assert_untouched();
    // Alone, it ends the run before anything is measured.
    let alone = both.replace("- {name: fewer, settings: {keepalive_requests: 50}}\n", "");
    sandbox.write("alone.yaml", &alone);
    sandbox
        .call("run alone.yaml --out other")
        .refused(&["arm `larger`: nginx refuses the configuration"]);
    assert!(!sandbox.path("other").exists());
}

/// Checks that names in a load must exist: errors come before anything is started, with the position in the user's
/// file.
#[test]
fn what_a_load_names_and_nobody_has_is_refused() {
    let sandbox = Sandbox::new();
    let user = User::new(&sandbox, &SITES);
    let arms = "- {name: changed, settings: {keepalive_requests: 50}}\n";
    let default = user.path("sites-enabled/00-default").display().to_string();
    for (names, words) in [
        (
            "port: 18443",
            &[":2:5: no HTTP server listens in clear on port 18443", "hint: listeners: 18080 at "]
                [..],
        ),
        ("port: 1, tls: true", &[":2:5: no HTTP server listens with TLS on port 1"]),
        (
            "tls: true",
            &[
                ":6:5: no listener with TLS passes on a request for `/` with the host `weir.test`: 18443 (TLS) at ",
                " closes the connection",
                "hint: name `host`, `path` or `port` in the load",
            ],
        ),
    ] {
        let load =
            format!("- {{name: clear, closed: true, connections: 2, duration: 2s, {names}}}\n");
        let text = study(&user, &load, arms);
        sandbox.write("study.yaml", &text);
        let words: Vec<String> = words
            .iter()
            .map(|text| {
                if text.starts_with(':') { format!("{default}{text}") } else { (*text).to_owned() }
            })
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        sandbox.call("run study.yaml --check").refused(&words);
        sandbox.run(&text).end().refused(&words);
        assert!(!sandbox.run_folder().exists(), "nothing was begun");
    }
    sandbox.assert_clean();
    user.assert_untouched();
}

/// Tests requests without a host name, which a distribution's default server answers without the origin server, and
/// requests that do not accept compression.
#[test]
fn answers_that_are_seldom_meant_are_remarked() {
    let sandbox = Sandbox::new();
    let page = "server {\n    listen 18080 default_server;\n    location / { return 200; }\n}\n\
                server {\n    listen 18081 default_server;\n    root ROOT;\n    location / { try_files $uri /page; }\n}\n\
                server {\n    listen 18081;\n    server_name shop.example;\n    gzip on;\n    location / { proxy_pass http://app; }\n}\n";
    let root = sandbox.path("www");
    std::fs::create_dir(&root).expect("own folder");
    std::fs::write(root.join("page"), "It works!").expect("own file");
    let site = page.replace("ROOT", &root.display().to_string());
    let user = User::new(&sandbox, &[SITES[0], SITES[1], ("sites-enabled/default", &site)]);
    let load = "- {name: page, closed: true, connections: 2, duration: 2s, timeout: 10s}\n\
                - {name: shop, closed: true, connections: 2, duration: 2s, timeout: 10s, host: shop.example}\n";
    let arms = "- {name: changed, settings: {keepalive_requests: 50}}\n";
    let text = study(&user, load, arms);
    sandbox.write("study.yaml", &text);
    let file = user.path("sites-enabled/default").display().to_string();
    let remark = format!(
        "page: server ({file}:5), location / ({file}:8), answers from files, so the origin server gets no requests"
    );
    let plain = format!(
        "shop: gzip on ({file}:13) has no effect: no request has the header Accept-Encoding"
    );
    let checked = sandbox.call("run study.yaml --check").with_code(0);
    checked.stdout.has_all(&[&remark, &plain]);
    assert_eq!(checked.stdout.matches("the origin server gets no requests").count(), 1);
    sandbox.run(&text).end().with_code(0).stderr.has_all(&[&remark, &plain]);
    sandbox.assert_clean();
}
