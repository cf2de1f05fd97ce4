//! Reading of a host: the files, their order, and that nothing is written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use weir_doctor::{Facts, GatherError, Request, SysctlLine, Unread, gather};
use weir_testkit::doctor_host::{Host, show};

#[test]
fn sysctl_files_are_taken_in_the_order_of_their_names_and_hide_one_another() {
    let host = Host::debian();
    host.write("/usr/lib/sysctl.d/50-a.conf", "net.core.somaxconn = 1\n");
    host.write("/etc/sysctl.d/50-a.conf", "net.core.somaxconn = 2\n");
    let odd = "-net/core/somaxconn=3\n; no\n# no\nno\n";
    host.write("/run/sysctl.d/40-b.conf", odd);
    host.write("/etc/sysctl.conf", "net.core.somaxconn = 4\n");
    let facts = host.facts();
    let lines = facts.sysctl_lines.iter();
    let all: Vec<String> = lines
        .map(|SysctlLine { file, line, key, value, .. }| format!("{file}:{line}: {key} = {value}"))
        .collect();
    assert_eq!(
        all,
        [
            "/run/sysctl.d/40-b.conf:1: net.core.somaxconn = 3",
            "/etc/sysctl.d/50-a.conf:1: net.core.somaxconn = 2",
            "/etc/sysctl.conf:1: net.core.somaxconn = 4",
        ]
    );
    assert_eq!(facts.winning_line("net.core.somaxconn").unwrap().value, "2");
    host.finding("sysctl-conf-not-read");
}

fn list_listens(facts: &Facts) -> Vec<String> {
    let all = facts.configuration.as_ref().expect("it is read").all(&["listen"]);
    all.iter().map(|placed| show(&placed.statement.place())).collect()
}

#[test]
fn includes_are_followed_as_nginx_does() {
    let host = Host::debian();
    host.write("/etc/nginx/conf.d/b.conf", "server { listen 82; }");
    let more = "server { include /etc/nginx/more; }";
    host.write("/etc/nginx/conf.d/a.conf", more);
    host.write("/etc/nginx/conf.d/.hidden.conf", "broken {");
    host.write("/etc/nginx/more", "listen 81;\nlisten 83;");
    assert_eq!(
        list_listens(&host.facts()),
        [
            "/etc/nginx/more:1: listen 81",
            "/etc/nginx/more:2: listen 83",
            "/etc/nginx/conf.d/b.conf:1: listen 82",
            "/etc/nginx/sites-enabled/default:5: listen 80 default_server",
        ]
    );
}

#[test]
fn patterns_are_those_of_glob() {
    let host = Host::debian();
    let patterns = "include more/[^_]*;\ninclude more/[[:alpha:]]*;";
    host.write("/etc/nginx/conf.d/a.conf", patterns);
    host.write("/etc/nginx/more/_off", "server { listen 81; }");
    host.write("/etc/nginx/more/^on", "server { listen 82; }");
    let facts = host.facts();
    let listens = list_listens(&facts);
    assert_eq!(listens[0], "/etc/nginx/more/^on:1: listen 82");
    assert_eq!(listens.len(), 2, "{listens:?}");
    let line = "what /etc/nginx/conf.d/a.conf:2 includes";
    let unread = facts.unread.iter().find(|one| one.what == line).unwrap();
    assert!(unread.why.contains("[[:alpha:]]*: "), "{}", unread.why);
}

#[test]
fn what_is_missing_is_said() {
    let host = Host::debian();
    host.write("/etc/nginx/conf.d/a.conf", "include nowhere.conf;");
    fs::remove_file(host.root().join("proc/net/netstat")).unwrap();
    let unread = host.facts().unread;
    let include = unread.iter().find(|one| one.what.contains("/etc/nginx/nowhere.conf"));
    let why = &include.unwrap().why;
    assert!(why.contains("/etc/nginx/conf.d/a.conf:1"), "{why}");
    assert!(unread.iter().any(|one| one.what.contains("TcpExt")));
}

#[test]
fn mistakes_are_errors_with_their_place() {
    let host = Host::debian();
    assert!(fail_to_gather(&host, Some(7)).contains("process 7 is not an nginx"));
    host.write("/etc/nginx/conf.d/a.conf", "include conf.d/a.conf;");
    assert!(
        fail_to_gather(&host, None).contains("/etc/nginx/conf.d/a.conf:1: includes are nested")
    );
    host.write("/etc/nginx/conf.d/a.conf", "server {\n");
    assert!(fail_to_gather(&host, None).contains("/etc/nginx/conf.d/a.conf: line 1"));
    let missing =
        gather(&Request { nginx: Some("/nowhere/nginx.conf".into()), ..Request::default() });
    assert!(matches!(missing, Err(GatherError::Unreadable { .. })));
}

fn fail_to_gather(host: &Host, pid: Option<u32>) -> String {
    let request = Request { root: Some(host.root().to_owned()), pid, ..Request::default() };
    gather(&request).expect_err("nothing to gather").to_string()
}

/// The links of a proxy with its own root folder are resolved within that folder.
#[test]
fn links_lead_to_nowhere_else() {
    let host = Host::debian();
    host.write("/etc/nginx/sites-available/shop", "server { listen 8123; }");
    for (target, name) in
        [("/etc/nginx/sites-available/shop", "shop"), ("/../../../../etc/passwd", "out")]
    {
        let path = host.root().join("etc/nginx/sites-enabled").join(name);
        std::os::unix::fs::symlink(target, path).expect("own folder");
    }
    let facts = host.facts();
    let listens = list_listens(&facts);
    assert_eq!(listens[1], "/etc/nginx/sites-enabled/shop:1: listen 8123");
    let unread = facts.unread.iter().find(|one| one.what.ends_with("/out"));
    assert!(unread.is_some_and(|one| one.why.contains("No such file")), "{unread:?}");
}

#[test]
fn what_is_no_regular_file_is_not_opened() {
    let host = Host::debian();
    for path in
        ["etc/nginx/sites-enabled/fifo", "etc/sysctl.d/9.conf", "proc/100/limits", "proc/7/cmdline"]
    {
        let path = host.root().join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("own folder");
        let _ = fs::remove_file(&path);
        let status = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(status.is_ok_and(|status| status.success()), "{}", path.display());
    }
    let socket = host.root().join("etc/nginx/sites-enabled/socket");
    let _listener = std::os::unix::net::UnixListener::bind(socket).expect("own folder");
    let unread = host.facts().unread;
    assert!(
        find_reason(&unread, "/fifo").starts_with("is a FIFO, not a regular file (included at ")
    );
    assert!(find_reason(&unread, "/socket").starts_with("is a socket, not a regular file"));
    assert_eq!(find_reason(&unread, "/9.conf"), "is a FIFO, not a regular file");
}

fn find_reason<'a>(unread: &'a [Unread], end: &str) -> &'a str {
    let subject = unread.iter().find(|one| one.what.ends_with(end));
    subject.map_or_else(|| panic!("{end}: {unread:?}"), |one| &one.why)
}

#[test]
fn includes_have_an_end() {
    let host = Host::debian();
    host.write("/etc/nginx/conf.d/a.conf", &"include b;\n".repeat(300));
    host.write("/etc/nginx/b", &"include c;\n".repeat(300));
    host.write("/etc/nginx/c", "");
    let why = fail_to_gather(&host, None);
    assert!(why.contains("/etc/nginx/b:") && why.contains("50,000 files"), "{why}");
    host.write("/etc/nginx/b", "");
    let line = format!("#{}\n", "x".repeat(1000));
    host.write("/etc/nginx/c", &line.repeat(36 << 10));
    host.write("/etc/nginx/conf.d/a.conf", "include c;\ninclude c;\n");
    let unread = host.facts().unread;
    let large = unread.iter().find(|one| one.what == "/etc/nginx/c");
    assert!(large.is_some_and(|one| one.why.contains("is larger than")), "{unread:?}");
}

#[test]
fn of_several_nginx_one_is_to_be_named() {
    let host = Host::debian();
    let title = "nginx: master process /opt/nginx -c /srv/other.conf\0";
    host.write("/proc/200/cmdline", title);
    host.write("/proc/200/comm", "nginx\n");
    host.write("/proc/200/status", "Name:\tnginx\nPPid:\t1\n");
    host.write("/srv/other.conf", "events { }\nhttp { server { listen 8124; } }\n");
    let error = gather_nginx(&host, None, None).unwrap_err();
    assert_eq!(error.to_string(), "2 nginx are running here; name one");
    let all = "\n  --pid 100: /etc/nginx/nginx.conf, nginx.service\n  --pid 200: /srv/other.conf";
    assert!(error.hint().ends_with(all), "{}", error.hint());
    let facts = gather_nginx(&host, Some(200), None).expect("it is named");
    assert_eq!(list_listens(&facts), ["/srv/other.conf:2: listen 8124"]);
    let file = host.root().join("etc/nginx/nginx.conf");
    assert!(gather_nginx(&host, None, Some(file)).is_ok());
}

fn gather_nginx(
    host: &Host,
    pid: Option<u32>,
    nginx: Option<PathBuf>,
) -> Result<Facts, GatherError> {
    gather(&Request { root: Some(host.root().to_owned()), pid, nginx, ..Request::default() })
}

#[test]
fn nothing_is_written() {
    let host = Host::debian();
    let before = tree(host.root());
    host.examined();
    assert_eq!(tree(host.root()), before);
}

type Tree = BTreeMap<std::path::PathBuf, (std::time::SystemTime, Vec<u8>)>;

fn tree(folder: &Path) -> Tree {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("own folder") {
        let path = entry.expect("own folder").path();
        let changed = fs::symlink_metadata(&path).and_then(|data| data.modified());
        let text = if path.is_dir() { Vec::new() } else { fs::read(&path).expect("own folder") };
        all.extend(path.is_dir().then(|| tree(&path)).into_iter().flatten());
        all.insert(path, (changed.expect("own folder"), text));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Files of the host may hold anything.
    #[test]
    fn no_text_stops_it(text in any::<String>(), numbers in "[0-9 \t.-]{0,40}") {
        let host = Host::debian().asking(100, 100.0);
        for path in ["/etc/sysctl.conf", "/etc/sysctl.d/1.conf", "/etc/security/limits.conf",
            "/proc/net/netstat", "/proc/net/sockstat", "/proc/meminfo", "/proc/100/cgroup"] {
            host.write(path, &text);
        }
        for path in ["net/ipv4/ip_local_port_range", "net/core/somaxconn", "net/ipv4/tcp_mem",
            "net/ipv4/ip_local_reserved_ports", "fs/nr_open", "fs/file-nr"] {
            host.sysctl(path, &numbers);
        }
        host.examined();
    }
}
