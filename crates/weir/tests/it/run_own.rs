//! `weir run` on configurations that users wrote, with the real proxies: each arm runs a copy with its
//! settings in it, `weir patch` gives these back as a diff, and no file of the user's is touched.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use weir_model::record::ProxyRecord;
use weir_model::study::ProxyKind;
use weir_record::Run;

use crate::place::{Place, proxy_of};
use crate::program::{HasAll, Running};

/// What a file is: its bytes, its number and when it was written.
type State = (Vec<u8>, u64, SystemTime);

/// The user of nobody.
const NOBODY: u32 = 65534;

/// A folder with a configuration, as a user has it.
pub(crate) struct User {
    pub(crate) folder: PathBuf,
    before: BTreeMap<PathBuf, State>,
}

impl User {
    /// Nobody may write to any of the files, nor make one beside them; root may all the same.
    pub(crate) fn new(place: &Place, files: &[(&str, &str)]) -> User {
        let folder = place.path("user");
        fs::create_dir_all(&folder).expect("own folder");
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("own folder");
            fs::write(&path, text).expect("own folder");
            fs::set_permissions(&path, Permissions::from_mode(0o444)).expect("own file");
        }
        User {
            before: states(&folder),
            folder,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Everything is as it was, and nothing is there besides.
    #[track_caller]
    pub(crate) fn assert_untouched(&self) {
        assert!(states(&self.folder) == self.before, "the user's files");
    }

    /// The folder once more below `root`, as it lies below `/`.
    fn copied_to(&self, root: &Path) -> PathBuf {
        let folder = root.join(self.folder.strip_prefix("/").expect("absolute"));
        for (path, (bytes, ..)) in &self.before {
            let to = folder.join(path.strip_prefix(&self.folder).expect("below"));
            fs::create_dir_all(to.parent().expect("a folder")).expect("own folder");
            fs::write(to, bytes).expect("own folder");
        }
        folder
    }
}

fn states(folder: &Path) -> BTreeMap<PathBuf, State> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(states(&path));
            continue;
        }
        let is = fs::metadata(&path).expect("a file");
        let bytes = fs::read(&path).expect("a file");
        let written = is.modified().expect("a time");
        all.insert(path, (bytes, is.ino(), written));
    }
    all
}

/// A study of a user's configuration; its load asks for one of the virtual servers by name.
pub(crate) fn study(proxy: &str, arms: &str) -> String {
    format!(
        "weir: 1\n\
         name: mine\n\
         question: Does it matter in my configuration?\n\
         proxy: {proxy}\n\
         loads:\n\
         - {{name: closed, closed: true, connections: 2, duration: 2s, timeout: 10s,\n   \
            request: {{fields: {{Host: shop.example}}}}}}\n\
         a/a: false\n\
         arms:\n{arms}\
         blocks: {{slice: 50ms, at-least: 6, instances: 1}}\n"
    )
}

/// What an arm was running with.
fn of_arm<'r>(run: &'r Run, arm: &str) -> &'r ProxyRecord {
    proxy_of(run, arm).expect("the arm ran")
}

/// One proxy's part in the tests.
struct Case {
    kind: &'static str,
    /// What the study names: the first of the files, or the folder that they are in.
    main: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// A setting, and what the patch has of it.
    setting: (&'static str, &'static str),
    lines: &'static [&'static str],
    /// What accepts a configuration.
    check: fn(&Path) -> Command,
}

/// A proxy's program, where weir finds it.
fn installed(kind: ProxyKind) -> Command {
    let found = weir_sut::find(kind, None);
    let found = found.expect("these tests need all proxies: make setup-proxies");
    Command::new(found.program())
}

const NGINX: Case = Case {
    kind: "nginx",
    main: "main.conf",
    files: &[
        (
            "main.conf",
            "# The gateway of a shop.\nworker_processes 1;\npid nginx.pid;\nerror_log error.log;\n\
             events { worker_connections 512; }\nhttp {\n    access_log access.log;\n    \
             keepalive_timeout 30s; # clients are near\n    include sites/*.conf;\n}\n",
        ),
        (
            "sites/default.conf",
            "server {\n    listen 18080 default_server;\n    return 404;\n}\n",
        ),
        (
            "sites/shop.conf",
            "upstream app {\n    server 192.0.2.1:8080;\n    server 192.0.2.2:8080 backup;\n}\n\
             # The shop itself.\nserver {\n\tlisten 18080;\n\tserver_name shop.example;\n\
             \tlocation / {\n\t\tproxy_pass http://app;\n\t}\n}\n",
        ),
    ],
    setting: ("origin_keepalive", "16"),
    lines: &["+    keepalive 16;", "+\t\tproxy_http_version 1.1;"],
    check: |main| {
        let mut nginx = installed(ProxyKind::Nginx);
        nginx
            .arg("-t")
            .arg("-p")
            .arg(main.parent().expect("a folder"));
        nginx.arg("-c").arg(main);
        nginx
    },
};

const HAPROXY: Case = Case {
    kind: "haproxy",
    main: "haproxy.cfg",
    files: &[(
        "haproxy.cfg",
        "# The gateway of a shop.\nglobal\n    maxconn 1000\n    daemon\n\ndefaults\n    mode http\n    \
         timeout connect 5s # they are near\n    timeout client 30s\n    timeout server 30s\n\n\
         frontend web\n    bind :18080\n    http-request deny deny_status 404 unless { \
         req.hdr(host) -i shop.example }\n    default_backend app\n\nfrontend other\n    bind :18081\n    \
         default_backend app\n\nbackend app\n    server one 192.0.2.1:8080\n    server two \
         192.0.2.2:8080 backup\n",
    )],
    setting: ("http_reuse", "never"),
    lines: &["http-reuse never"],
    check: |main| {
        let mut haproxy = installed(ProxyKind::Haproxy);
        haproxy.arg("-c").arg("-f").arg(main);
        haproxy
    },
};

const HAPROXY_FOLDER: Case = Case {
    kind: "haproxy",
    main: "conf.d",
    files: &[
        ("conf.d/README", "Read in the order of their names.\n"),
        (
            "conf.d/10-defaults.cfg",
            "defaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n",
        ),
        (
            "conf.d/20-web.cfg",
            "frontend web\n    bind :18080\n    default_backend app\n",
        ),
        (
            "conf.d/30-app.cfg",
            "# The shop itself.\nbackend app\n    http-reuse safe\n    server one 192.0.2.1:8080\n",
        ),
    ],
    setting: ("http_reuse", "never"),
    lines: &[
        "conf.d/30-app.cfg",
        "-    http-reuse safe",
        "+    http-reuse never",
    ],
    check: |main| {
        let mut haproxy = installed(ProxyKind::Haproxy);
        haproxy.arg("-c").arg("-f").arg(main);
        haproxy
    },
};

const ENVOY: Case = Case {
    kind: "envoy",
    main: "envoy.yaml",
    files: &[(
        "envoy.yaml",
        "# The gateway of a shop.\nstatic_resources:\n  listeners:\n  - name: web\n    address:\n      \
         socket_address: {address: 0.0.0.0, port_value: 18080}\n    filter_chains:\n    - filters:\n      \
         - name: http\n        typed_config:\n          \"@type\": type.googleapis.com/envoy.extensions.\
         filters.network.http_connection_manager.v3.HttpConnectionManager\n          stat_prefix: web\n\
         \x20         http_filters:\n          - name: envoy.filters.http.router\n            \
         typed_config:\n              \"@type\": type.googleapis.com/envoy.extensions.filters.http.\
         router.v3.Router\n          route_config:\n            virtual_hosts:\n            - name: shop\n\
         \x20             domains: [shop.example]   # by name\n              routes:\n              \
         - match: {prefix: /}\n                route: {cluster: app}\n            - name: others\n\
         \x20             domains: [\"*\"]\n              routes:\n              - match: {prefix: /}\n\
         \x20               direct_response: {status: 404}\n  clusters:\n  - name: app\n    type: STATIC\n\
         \x20   load_assignment:\n      cluster_name: app\n      endpoints:\n      - lb_endpoints:\n\
         \x20       - endpoint:\n            address:\n              socket_address: {address: 192.0.2.1, \
         port_value: 8080}\n",
    )],
    setting: ("max_requests", "2048"),
    lines: &["+    circuit_breakers:", "2048"],
    check: |main| {
        let mut envoy = installed(ProxyKind::Envoy);
        envoy
            .args(["--mode", "validate", "--config-path"])
            .arg(main);
        envoy
    },
};

const CADDY: Case = Case {
    kind: "caddy",
    main: "caddy.json",
    files: &[(
        "caddy.json",
        "{\n  \"apps\": {\n    \"http\": {\n      \"servers\": {\n        \"web\": {\n          \
         \"listen\": [\":18080\"],\n          \"routes\": [\n            {\"match\": [{\"host\": \
         [\"shop.example\"]}], \"handle\": [{\"handler\": \"reverse_proxy\", \"upstreams\": [{\"dial\": \
         \"192.0.2.1:8080\"}]}]},\n            {\"handle\": [{\"handler\": \"static_response\", \
         \"status_code\": 404}]}\n          ]\n        }\n      }\n    }\n  }\n}\n",
    )],
    setting: ("origin_keepalive_timeout", "7s"),
    lines: &["idle_timeout", "max_idle_conns_per_host\": 32"],
    check: |main| {
        let mut caddy = installed(ProxyKind::Caddy);
        caddy.arg("validate").arg("--config").arg(main);
        caddy.env("HOME", main.parent().expect("a folder"));
        caddy
    },
};

/// Two arms on a user's configuration, their report, their patch, and its revert.
fn runs_and_patches(case: &Case) {
    let place = Place::new();
    let user = User::new(&place, case.files);
    let main = user.path(case.main);
    let (id, level) = case.setting;
    let proxy = format!(
        "{{kind: {}, configuration: {}, port: 18080}}",
        case.kind,
        main.display()
    );
    let arms = format!(
        "- {{name: changed, settings: {{{id}: {level}}}}}\n\
         - {{name: limited, settings: {{rlimit_nofile: 2048}}}}\n"
    );
    let ended = place.run(&study(&proxy, &arms)).end().with_code(0);
    place.assert_clean();
    user.assert_untouched();
    let name = main.display().to_string();
    assert!(ended.stdout.contains(&name), "{}", ended.stdout);

    let run = place.records();
    assert_eq!(of_arm(&run, "changed").effective[id], level);
    assert_ne!(of_arm(&run, "baseline").effective[id], level);
    let report = place.weir(&["report", "a run", "--format", "markdown"]);
    let report = Running::start(&mut { report }).end().with_code(0).stdout;
    assert!(report.contains(&name) && report.contains(id), "{report}");

    let patch = |more: &[&str]| {
        let arguments = [&["patch", "a run"], more].concat();
        Running::start(&mut place.weir(&arguments))
            .end()
            .with_code(0)
    };
    let forward = patch(&["--arm", "changed"]).stdout;
    forward.has_all(case.lines);
    let limited = patch(&["--arm", "limited"]);
    assert_eq!(limited.stdout, "");
    let nothing = "changes nothing in";
    assert!(limited.stderr.contains(nothing), "{}", limited.stderr);
    assert!(limited.stderr.contains("rlimit_nofile = 2048"));

    let root = place.path("root");
    let copy = user.copied_to(&root);
    apply(&root, &forward);
    let mut check = (case.check)(&copy.join(case.main));
    let checked = check
        .stdin(Stdio::null())
        .output()
        .expect("it is installed");
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
    apply(&root, &patch(&["--arm", "changed", "--revert"]).stdout);
    for (name, text) in case.files {
        let back = fs::read_to_string(copy.join(name)).expect("it is there");
        assert_eq!(&back, text, "{name}");
    }
}

/// Applies a diff as docs/patch.md says.
fn apply(root: &Path, diff: &str) {
    let file = root.join("change.diff");
    fs::write(&file, diff).expect("own folder");
    let mut patch = Command::new("patch");
    patch
        .args(["-p1", "--fuzz=0", "-d"])
        .arg(root)
        .arg("-i")
        .arg(&file);
    let applied = patch
        .stdin(Stdio::null())
        .output()
        .expect("patch is installed");
    let said = String::from_utf8_lossy(&applied.stdout);
    assert!(applied.status.success(), "{said}\n{diff}");
}

#[test]
fn nginx_runs_a_user_s_configuration() {
    runs_and_patches(&NGINX);
}

/// The file says what a level is, and where it says nothing the program does: both are read back.
#[test]
fn a_level_that_the_file_has_already_is_inert_and_one_that_it_changes_is_not() {
    let place = Place::new();
    let text = "events {}\nhttp {\n    gzip on;\n    server {\n        listen 18080;\n        \
                location / { proxy_pass http://192.0.2.1; }\n    }\n}\n";
    let user = User::new(&place, &[("nginx.conf", text)]);
    let main = user.path("nginx.conf");
    let proxy = format!("{{kind: nginx, configuration: {}}}", main.display());
    let arms = "- {name: on, settings: {gzip: on}}\n\
                - {name: off, settings: {gzip: off}}\n\
                - {name: nodelay, settings: {tcp_nodelay: on}}\n";
    place.run(&study(&proxy, arms)).end().with_code(0);
    let run = place.records();
    for (arm, expected) in [
        ("on", &["gzip"][..]),
        ("off", &[]),
        ("nodelay", &["tcp_nodelay"]),
    ] {
        let inert: Vec<String> = of_arm(&run, arm)
            .inert
            .iter()
            .map(|it| it.id.clone())
            .collect();
        assert_eq!(inert, expected, "{arm}");
    }
    user.assert_untouched();
}

#[test]
fn haproxy_runs_a_user_s_configuration() {
    runs_and_patches(&HAPROXY);
}

#[test]
fn haproxy_runs_a_folder_of_files() {
    runs_and_patches(&HAPROXY_FOLDER);
}

#[test]
fn envoy_runs_a_user_s_configuration() {
    runs_and_patches(&ENVOY);
}

#[test]
fn caddy_runs_a_user_s_configuration() {
    runs_and_patches(&CADDY);
}

/// With the lab's certificate in the place of the user's, which the client would not trust, and which
/// weir need not be able to read.
#[test]
fn a_load_over_tls_asks_the_user_s_tls_listener() {
    let secure: [(&str, &str, &str); 4] = [
        (
            "nginx",
            "nginx.conf",
            "events {}\nhttp {\n    server {\n        listen 18443 ssl;\n        ssl_certificate \
             /nowhere/shop.pem;\n        ssl_certificate_key /nowhere/shop.key;\n        location / { \
             proxy_pass http://192.0.2.1; }\n    }\n}\n",
        ),
        (
            "haproxy",
            "haproxy.cfg",
            "defaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server \
             30s\nfrontend web\n    bind :18443 ssl crt /nowhere/shop.pem strict-sni\n    \
             default_backend app\nbackend app\n    server one 192.0.2.1:8080\n",
        ),
        (
            "envoy",
            "envoy.json",
            r#"{"static_resources": {"listeners": [{"name": "web",
  "address": {"socket_address": {"address": "0.0.0.0", "port_value": 18443}},
  "listener_filters": [{"name": "tls", "typed_config": {"@type":
    "type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector"}}],
  "filter_chains": [{
    "filter_chain_match": {"server_names": ["shop.example"]},
    "transport_socket": {"name": "tls", "typed_config": {
      "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
      "common_tls_context": {"tls_certificates": [{"certificate_chain": {"filename": "/nowhere/shop.pem"},
        "private_key": {"filename": "/nowhere/shop.key"}}]}}},
    "filters": [{"name": "http", "typed_config": {
      "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
      "stat_prefix": "web",
      "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}],
      "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"],
        "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "app"}}]}]}}}]}]}],
  "clusters": [{"name": "app", "type": "STATIC", "load_assignment": {"cluster_name": "app",
    "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address":
      {"address": "192.0.2.1", "port_value": 8080}}}}]}]}}]}}
"#,
        ),
        (
            "caddy",
            "Caddyfile",
            "shop.example {\n    reverse_proxy 192.0.2.1:8080\n}\nhttp://plain.example {\n    \
             reverse_proxy 192.0.2.1:8080\n}\n",
        ),
    ];
    for (kind, name, text) in secure {
        let place = Place::new();
        let user = User::new(&place, &[(name, text)]);
        let port = if kind == "caddy" { 443 } else { 18443 };
        let main = user.path(name);
        let proxy = format!(
            "{{kind: {kind}, configuration: {}, port: {port}}}",
            main.display()
        );
        let text = study(&proxy, "")
            .replace("arms:\n", "")
            .replace("a/a: false", "a/a: true");
        let text = text
            .replace("timeout: 10s", "timeout: 10s, tls: true")
            .replace("50ms", "250ms")
            .replace("duration: 2s", "duration: 4s");
        place.run(&text).end().with_code(0);
        place.assert_clean();
        user.assert_untouched();
        let run = place.records();
        let answered: u64 = run.trials().map(|trial| trial.status_classes[2]).sum();
        assert!(answered > 0, "{kind} answered nothing over TLS");
        let patch = fs::read_to_string(place.run_folder().join("arms/baseline/patch.diff"));
        assert_eq!(patch.expect("it is there"), "", "{kind}");
    }
}

/// Workers and sockets are then whose weir is, and nothing that the user's file asks for needs root.
#[test]
fn root_is_not_needed() {
    let root = rustix::process::geteuid().is_root();
    for case in [&NGINX, &HAPROXY] {
        let place = Place::new();
        let user = User::new(&place, case.files);
        let (id, level) = case.setting;
        let main = user.path(case.main);
        let proxy = format!("{{kind: {}, configuration: {}}}", case.kind, main.display());
        let text = study(
            &proxy,
            &format!("- {{name: changed, settings: {{{id}: {level}}}}}\n"),
        );
        let study = place.write("study.yaml", &text);
        let mut command = Command::new(place.copy_of_weir());
        command
            .arg("run")
            .args([study.as_os_str(), "--out".as_ref()])
            .arg(place.run_folder())
            .env("TMPDIR", place.temporary());
        if root {
            for folder in [place.path(""), place.temporary()] {
                fs::set_permissions(folder, Permissions::from_mode(0o777)).expect("own folder");
            }
            command.uid(NOBODY).gid(NOBODY);
        }
        Running::start(&mut command).end().with_code(0);
        place.assert_clean();
        user.assert_untouched();
        let run = place.records();
        assert_eq!(of_arm(&run, "changed").effective[id], level);
    }
}
