//! Tests of constraints between settings, and of files of rows that contradict themselves.

use weir_model::study::ProxyKind::{Haproxy, Nginx};
use weir_model::study::{ProxyRole, Settings};
use weir_parameters::{Catalog, ClientLimits, Conflict, DescriptorLimits, Means, Severity, Unsaid};

const LIMITS: DescriptorLimits = DescriptorLimits { soft: 1024, hard: 524_288 };

fn means(cpus_online: u64, held: u64) -> Means {
    Means { descriptors: LIMITS, cpus_online, held }
}

const UNSAID: Unsaid = Unsaid::Defaults { descriptor_limit: 1024 };

const FILES: ProxyRole = ProxyRole::StaticFiles { size: 1024 };

fn stock_with(settings: &[(&str, &str)]) -> Settings {
    let mut all = Catalog::builtin().stock(Nginx);
    all.extend(owned(settings));
    all
}

fn owned(settings: &[(&str, &str)]) -> Settings {
    settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn limits(connections: u64, descriptors: u64) -> Option<ClientLimits> {
    Some(ClientLimits { connections, descriptors })
}

fn conflicts(settings: &[(&str, &str)], role: &ProxyRole) -> Vec<Conflict> {
    Catalog::builtin().conflicts(Nginx, &stock_with(settings), role, UNSAID)
}

#[test]
fn stock_settings_conflict_with_nothing() {
    assert_eq!(conflicts(&[], &ProxyRole::ReverseProxy), []);
    assert_eq!(conflicts(&[], &FILES), []);
}

#[test]
fn more_connections_than_descriptors_is_an_error_until_the_limit_is_raised() {
    let broken = conflicts(&[("worker_connections", "4096")], &ProxyRole::ReverseProxy);
    assert_eq!(broken.len(), 1);
    assert_eq!(broken[0].severity, Severity::Error);
    assert_eq!(broken[0].ids, ["worker_connections"]);
    assert!(
        broken[0]
            .message
            .starts_with("`worker_connections` 4096 is above the descriptor limit 1024:")
    );

    let raised = [("worker_connections", "4096"), ("worker_rlimit_nofile", "4096")];
    assert_eq!(conflicts(&raised, &ProxyRole::ReverseProxy), []);
    let lowered = conflicts(&[("worker_rlimit_nofile", "512")], &ProxyRole::ReverseProxy);
    assert_eq!(lowered[0].ids, ["worker_connections", "worker_rlimit_nofile"]);
}

#[test]
fn a_setting_without_effect_is_a_warning() {
    let cases: [&[(&str, &str)]; 3] = [
        &[("sendfile", "off")],
        &[("gzip", "off"), ("gzip_comp_level", "5")],
        &[("origin_keepalive_requests", "100")],
    ];
    for settings in cases {
        let broken = conflicts(settings, &ProxyRole::ReverseProxy);
        assert_eq!(broken.len(), 1, "{settings:?}");
        assert_eq!(broken[0].severity, Severity::Warning);
    }
    assert_eq!(conflicts(&[("open_file_cache", "max=10")], &FILES), []);
    let proxied = conflicts(&[("open_file_cache", "max=10")], &ProxyRole::ReverseProxy);
    assert_eq!(proxied[0].severity, Severity::Warning);
}

/// A user's configuration may have `gzip on` in any block, and a descriptor limit too.
#[test]
fn nothing_is_taken_for_granted_of_a_configuration_of_the_users() {
    for silent in [
        &[("gzip_comp_level", "5")][..],
        &[("worker_connections", "4096")],
        &[("origin_keepalive_requests", "100")],
    ] {
        assert_eq!(conflicts_of_users(silent), [], "{silent:?}");
    }
    for said in [
        &[("gzip_comp_level", "5"), ("gzip", "off")][..],
        &[("worker_connections", "4096"), ("worker_rlimit_nofile", "512")],
        &[("open_file_cache", "max=10")],
    ] {
        assert_eq!(conflicts_of_users(said).len(), 1, "{said:?}");
    }
}

fn conflicts_of_users(settings: &[(&str, &str)]) -> Vec<Conflict> {
    let (settings, role) = (owned(settings), ProxyRole::ReverseProxy);
    Catalog::builtin().conflicts(Nginx, &settings, &role, Unsaid::Users)
}

#[test]
fn a_rule_may_be_about_some_of_its_row_s_levels() {
    let broken = haproxy_conflicts("sockmap", "splice_response", "on");
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert_eq!(broken[0].severity, Severity::Error);
    let begins = "`splice_response` does not work while `transport` is `sockmap`: ";
    assert!(broken[0].message.starts_with(begins), "{broken:?}");
    assert_eq!(haproxy_conflicts("sockmap-inbound", "splice_auto", "on").len(), 1);

    assert_eq!(haproxy_conflicts("sockmap", "splice_response", "off"), []);
    assert_eq!(haproxy_conflicts("sockmap-inbound", "splice_response", "on"), []);
    assert_eq!(haproxy_conflicts("tcp", "splice_auto", "on"), []);

    let catalog = Catalog::builtin();
    let row = catalog.get(Haproxy, "splice_response").unwrap();
    assert_eq!(
        row.constraints[0].words(),
        "`on` not while `transport` is sockmap or sockmap-outbound"
    );
}

fn haproxy_conflicts(transport: &str, id: &str, level: &str) -> Vec<Conflict> {
    let settings = owned(&[("transport", transport), (id, level)]);
    Catalog::builtin().conflicts(Haproxy, &settings, &ProxyRole::ReverseProxy, UNSAID)
}

#[test]
fn a_proxy_that_serves_files_has_no_origin_to_keep() {
    let broken = conflicts(&[("origin_keepalive", "32")], &FILES);
    assert_eq!(broken[0].severity, Severity::Error);
}

#[test]
fn a_gateway_takes_two_of_everything_per_client() {
    let catalog = Catalog::builtin();
    let single_worker = stock_with(&[("worker_processes", "1")]);
    assert_eq!(client_limits(&single_worker, &ProxyRole::ReverseProxy), limits(384, 512));
    assert_eq!(client_limits(&single_worker, &FILES), limits(768, 512));
    let auto = catalog.stock(Nginx);
    let proxy = ProxyRole::ReverseProxy;
    assert_eq!(client_limits(&auto, &proxy), limits(4 * 384, 4 * 512));
    assert_eq!(client_limits(&Settings::new(), &proxy), limits(256, 512));
}

fn client_limits(settings: &Settings, role: &ProxyRole) -> Option<ClientLimits> {
    Catalog::builtin().client_limits(Nginx, settings, role, means(4, 0))
}

#[test]
fn connections_that_ask_nothing_take_one_of_everything_in_every_role() {
    let catalog = Catalog::builtin();
    let single_worker = stock_with(&[("worker_processes", "1")]);
    for (role, held, connections, descriptors) in
        [(&ProxyRole::ReverseProxy, 700, 34, 162), (&FILES, 700, 68, 162), (&FILES, 5000, 0, 0)]
    {
        let limits = catalog.client_limits(Nginx, &single_worker, role, means(4, held));
        assert_eq!(limits, self::limits(connections, descriptors), "{held} held");
    }
}

#[test]
fn complete_settings_tell_equal_configurations() {
    let catalog = Catalog::builtin().for_proxy(Nginx, "nginx/1.22.1");
    let stock = catalog.complete(Nginx, &catalog.stock(Nginx));
    let said_again = stock_with(&[("multi_accept", "off"), ("keepalive_requests", "1000")]);
    assert_eq!(catalog.complete(Nginx, &said_again), stock);
    assert!(!stock.contains_key("worker_rlimit_nofile"));
}

/// Changes one thing in the built-in file, which must then be refused.
#[test]
fn rows_that_contradict_themselves_are_refused() {
    let text = include_str!("../../../../parameters/nginx.yaml");
    #[rustfmt::skip]
    let cases = [
        ("id: multi_accept", "id: reuseport", "the id is there twice"),
        ("id: multi_accept", "id: Multi-Accept", "lower-case letters"),
        ("id: multi_accept", "id: fs.file-max", "the id is there twice"),
        ("descriptors: [worker_rlimit_nofile", "descriptors: [nofiles", "`clients` names it"),
        ("quantity: listen-backlog", "quantity: backlogs",
         "controls `backlogs`, which is no quantity"),
        ("or: rlimit_nofile", "or: rlimit_nofiles", "names `rlimit_nofiles`"),
        ("debian: \"768\"", "debian: \"0768\"", "must be written `768`"),
        ("default: {level: 75s}", "default: {level: often}", "is not a duration"),
        ("{logs}/access.log\"", "{log}/access.log\"", "`{log}` is no placeholder"),
        ("text: access_log off", "text: access_log off; user root", "more than one directive"),
        ("{setting: sendfile, levels", "{setting: sendfil, levels", "names `sendfil`"),
        ("workers: worker_processes", "workers: threads", "`clients` names it"),
        ("scope: proxy_directive", "scope: moon", "moon"),
        ("level: switch", "levle: switch", "levle"),
    ];
    let kernel = include_str!("../../../../parameters/kernel.yaml");
    let parse = |text: &str| Catalog::parse(&[("nginx.yaml", text), ("kernel.yaml", kernel)]);
    assert!(parse(text).is_ok());
    for (right, wrong, said) in cases {
        assert!(text.contains(right), "{right} is no longer in the file");
        let error = parse(&text.replacen(right, wrong, 1)).expect_err(wrong).to_string();
        assert!(error.contains(said), "{wrong}: {error}");
        let file = if wrong.contains("fs.file-max") { "kernel.yaml: " } else { "nginx.yaml: " };
        assert!(error.starts_with(file), "{error}");
    }
}

#[test]
fn workers_are_known_where_they_are_a_number() {
    let catalog = Catalog::builtin();
    let [fixed, auto] = ["3", "auto"]
        .map(|level| catalog.workers(Nginx, &stock_with(&[("worker_processes", level)])));
    assert_eq!((fixed, auto), (Some(3), None));
}

#[test]
fn kernel_settings_are_judged_with_those_of_the_proxy() {
    let (severity, ids, message) = &list_warnings(&[("net.core.somaxconn", "32768")])[0];
    assert_eq!(*severity, Severity::Warning);
    assert_eq!(ids, &["net.core.somaxconn", "backlog"]);
    let begins = "`net.core.somaxconn` 32768 is above `backlog` 511: ";
    assert!(message.starts_with(begins), "{message}");

    let (_, ids, message) = &list_warnings(&[("backlog", "32768")])[0];
    assert_eq!(ids, &["backlog", "net.core.somaxconn"]);
    let begins = "`backlog` 32768 is above the kernel's default of `net.core.somaxconn` 4096: ";
    assert!(message.starts_with(begins), "{message}");

    let both = [("backlog", "32768"), ("net.core.somaxconn", "32768")];
    assert_eq!(list_warnings(&both), []);
    let old = Catalog::builtin().for_kernel("4.19.0-25-amd64");
    let settings = stock_with(&[("backlog", "1024")]);
    let broken = old.conflicts(Nginx, &settings, &ProxyRole::ReverseProxy, UNSAID);
    assert!(broken[0].message.contains("`net.core.somaxconn` 128"));

    let syn = [("net.ipv4.tcp_max_syn_backlog", "4096"), ("net.ipv4.tcp_syncookies", "0")];
    let (_, _, message) = &list_warnings(&syn[..1])[0];
    let no_effect = "has no effect while `net.ipv4.tcp_syncookies` is `1`";
    assert!(message.contains(no_effect), "{message}");
    assert_eq!(list_warnings(&syn), []);
}

fn list_warnings(settings: &[(&str, &str)]) -> Vec<(Severity, Vec<String>, String)> {
    let broken = conflicts(settings, &ProxyRole::ReverseProxy);
    broken.into_iter().map(|c| (c.severity, c.ids, c.message)).collect()
}

#[test]
fn what_the_kernel_would_refuse_is_an_error() {
    for (settings, begins) in [
        (
            &[("net.ipv4.ip_local_port_range", "1000 65000")][..],
            "`net.ipv4.ip_local_port_range` 1000 is below the kernel's default of \
             `net.ipv4.ip_unprivileged_port_start` 1024: ",
        ),
        (
            &[
                ("net.ipv4.ip_local_port_range", "1024 65000"),
                ("net.ipv4.ip_unprivileged_port_start", "2000"),
            ],
            "`net.ipv4.ip_local_port_range` 1024 is below `net.ipv4.ip_unprivileged_port_start` 2000: ",
        ),
        (
            &[("rlimit_nofile", "1048576"), ("fs.nr_open", "65536")],
            "`rlimit_nofile` 1048576 is above `fs.nr_open` 65536: ",
        ),
    ] {
        let conflicting = conflicts(settings, &ProxyRole::ReverseProxy);
        let broken = conflicting
            .iter()
            .find(|c| c.message.starts_with(begins))
            .unwrap_or_else(|| panic!("{begins}: {conflicting:?}"));
        assert_eq!(broken.severity, Severity::Error);
    }
    let lower = [
        ("net.ipv4.ip_local_port_range", "500 65000"),
        ("net.ipv4.ip_unprivileged_port_start", "500"),
    ];
    assert_eq!(conflicts(&lower, &ProxyRole::ReverseProxy), []);
}

#[test]
fn the_limit_that_the_proxy_is_started_with_is_a_limit_of_its_connections() {
    let raised = [("worker_connections", "4096"), ("rlimit_nofile", "4096")];
    assert_eq!(conflicts(&raised, &ProxyRole::ReverseProxy), []);
    let too_low = [("worker_connections", "4096"), ("rlimit_nofile", "2048")];
    let broken = conflicts(&too_low, &ProxyRole::ReverseProxy);
    assert_eq!(broken[0].ids, ["worker_connections", "rlimit_nofile"]);
    // The proxy's own directive comes after what it was started with.
    let directive = [
        ("worker_connections", "4096"),
        ("rlimit_nofile", "2048"),
        ("worker_rlimit_nofile", "8192"),
    ];
    assert_eq!(conflicts(&directive, &ProxyRole::ReverseProxy), []);
    let single_worker = stock_with(&[("worker_processes", "1"), ("rlimit_nofile", "400")]);
    let limits = Catalog::builtin().client_limits(
        Nginx,
        &single_worker,
        &ProxyRole::ReverseProxy,
        means(4, 0),
    );
    assert_eq!(limits.map(|limits| limits.descriptors), Some(200));
}

/// HAProxy's threads share one process, which raises its descriptor limit to the hard one by itself.
#[test]
fn threads_of_one_process_share_its_connections() {
    let threads = ("nbthread", "8");
    let (maxconn, ulimit) = (("maxconn", "2000"), ("ulimit_n", "4100"));
    assert_eq!(haproxy_limits(&[maxconn, threads]), limits(1900, 262_094));
    assert_eq!(haproxy_limits(&[maxconn, ulimit]), limits(1900, 2000));
    assert_eq!(haproxy_limits(&[threads]), None, "HAProxy computes its maxconn");
}

fn haproxy_limits(settings: &[(&str, &str)]) -> Option<ClientLimits> {
    let (settings, role) = (owned(settings), ProxyRole::ReverseProxy);
    Catalog::builtin().client_limits(Haproxy, &settings, &role, means(8, 100))
}
