//! Settings of real configurations that no rule may report.

use weir_doctor::{LoadDemand, examine};
use weir_testkit::doctor_host::{DEBIAN_NGINX, Host, SITE, list_lines};

/// Servers that show nginx's own counters, as monitoring tools need them.
const STATUS: &str = "server {
    listen unix:/run/nginx-status.sock;
    keepalive_timeout 0;
    access_log /var/log/nginx/status.log;
    location / { stub_status; }
}
server {
    listen 127.0.0.1:8081;
    location = /status { stub_status; keepalive_timeout 0; access_log /var/log/nginx/status.log; }
    location / { return 404; }
}
";

/// Text added to Debian's site, text in place of its `gzip on`, a rule, and whether the rule must report them.
#[rustfmt::skip]
const ROWS: &[(&str, &str, &str, bool)] = &[
    (STATUS, "", "client-keepalive-off", false),
    (STATUS, "access_log off;", "access-log-unbuffered", false),
    ("server { listen 81; keepalive_timeout 0; }", "", "client-keepalive-off", true),
    ("server { listen 81; location /a { keepalive_timeout 0; proxy_pass http://origin; } }", "",
     "client-keepalive-off", true),
    // A server that only redirects has no clients to keep, and one that says otherwise does.
    ("server { listen 81; keepalive_timeout 0; return 301 https://$host$request_uri; }", "",
     "client-keepalive-off", false),
    ("", "keepalive_timeout 0;", "client-keepalive-off", true),
    ("", "access_log /dev/null;", "access-log-unbuffered", false),
    ("", "access_log /var/log/$host.log;", "access-log-unbuffered", false),
    ("", "access_log /var/log/a.log main buffer=1m;", "access-log-unbuffered", false),
    ("", "access_log /var/log/a.log main;", "access-log-unbuffered", true),
    // Of origin servers' connections.
    ("upstream o { server 10.0.0.3; keepalive 4; keepalive_requests 10; }", "", "keepalive-requests-low", false),
    ("server { listen 81; keepalive_requests 10; }", "", "keepalive-requests-low", true),
    // gzip is on where the types are looked at, or it is not.
    ("server { listen 81; gzip on; gzip_types image/png; }", "", "gzip-of-compressed", true),
    ("server { listen 81; gzip on; }", "gzip_types image/png;", "gzip-of-compressed", true),
    ("server { listen 81; gzip off; gzip_types image/png; }", "gzip on;", "gzip-of-compressed", false),
];

#[test]
fn what_counts_for_no_client_is_not_spoken_of() {
    for (site, http, id, is_said) in ROWS {
        let host = Host::debian();
        let main = DEBIAN_NGINX.replace("gzip on;", http);
        let main = if http.contains("access_log") {
            main.replace("access_log /var/log/nginx/access.log;", "")
        } else {
            main
        };
        host.write("/etc/nginx/nginx.conf", &main);
        host.site(&format!("{SITE}{site}"));
        let is_reported = host.examined().findings.iter().any(|one| one.problem.id() == *id);
        assert_eq!(is_reported, *is_said, "{id}: {http} {site}");
    }
}

/// Unix sockets occupy no ports and have no TIME_WAIT.
#[test]
fn sockets_of_the_file_system_are_no_connections_of_tcp() {
    for (target, is_said) in [("unix:/run/app.sock:/", false), ("10.0.0.2", true)] {
        let host = Host::debian().asking(10, 5000.0);
        let location = format!("location / {{ proxy_pass http://{target}; }}");
        host.site(&format!("server {{ listen 80; {location} }}\n"));
        let findings = host.examined().findings;
        for id in ["origin-ports-run-out", "origin-keepalive-missing"] {
            let is_reported = findings.iter().any(|one| one.problem.id() == id);
            assert_eq!(is_reported, is_said, "{id}: {target}");
        }
    }
}

#[test]
fn a_client_takes_a_second_connection_where_requests_are_passed_on() {
    let php = "location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; }";
    for (location, is_enough) in [
        (php, false),
        ("location / { uwsgi_pass 127.0.0.1:3031; }", false),
        ("location / { root /srv; }", true),
        ("location / { proxy_pass http://10.0.0.2; }", false),
        ("location / { grpc_pass grpc://10.0.0.2; }", false),
    ] {
        // Two workers with 768 connections each.
        let host = Host::debian().asking(1500, 10.0);
        host.site(&format!("server {{ listen 80; {location} }}\n"));
        let finds = host.examined();
        let is_reported =
            finds.findings.iter().any(|one| one.problem.id() == "worker-connections-too-few");
        assert_eq!(is_reported, !is_enough, "{location}");
    }
}

/// `worker_cpu_affinity` gives each worker a CPU of its own, and workers from before a reload linger.
#[test]
fn workers_are_those_that_accept_and_their_cpus_are_the_masters() {
    let host = Host::debian();
    for (pid, cpu) in [(101, "0"), (102, "1")] {
        let status = format!("Name:\tnginx\nPPid:\t100\nCpus_allowed_list:\t{cpu}\n");
        host.write(&format!("/proc/{pid}/status"), &status);
    }
    for pid in [103, 104, 105] {
        let title = "nginx: worker process is shutting down\0";
        host.write(&format!("/proc/{pid}/cmdline"), title);
        host.write(&format!("/proc/{pid}/status"), "Name:\tnginx\nPPid:\t100\n");
    }
    host.is_silent_about("workers-above-cpus");
    let proxy = host.facts().proxy.expect("it runs");
    assert_eq!(proxy.workers.len(), 2);
}

#[test]
fn limits_of_other_users_are_not_meant_for_nginx() {
    let host = Host::debian();
    host.write("/etc/security/limits.conf", "postgres soft nofile 65536\n@audio - nofile 9\n");
    host.is_silent_about("limits-conf-not-for-services");
    host.write("/etc/security/limits.conf", "postgres soft nofile 65536\nwww-data - nofile 9\n");
    let finding = host.finding("limits-conf-not-for-services");
    assert_eq!(list_lines(&finding), ["/etc/security/limits.conf:2: www-data - nofile 9"]);
}

fn commands(facts: &weir_doctor::Facts) -> Vec<String> {
    examine(facts)
        .findings
        .into_iter()
        .flat_map(|one| one.change.into_iter().chain(one.persist))
        .collect()
}

#[test]
fn commands_name_the_configuration_and_the_process() {
    let host = Host::debian().asking(2000, 2000.0);
    host.sysctl("net/core/somaxconn", "128");
    let mut facts = host.facts();
    let all = commands(&facts);
    for expected in [
        "nginx -t -c /etc/nginx/nginx.conf && kill -HUP 100",
        "systemctl restart nginx.service   # a reload leaves queues as they are",
        "sysctl -w net.core.somaxconn=2048",
    ] {
        assert!(all.iter().any(|command| command == expected), "{expected}: {all:#?}");
    }
    assert!(!all.iter().any(|command| command.contains("nginx -s")), "{all:#?}");

    let mut custom = facts.clone();
    if let Some(proxy) = &mut custom.proxy {
        proxy.program = Some("/opt/my nginx/nginx".to_owned());
        proxy.prefix = Some("/srv/web".to_owned());
        proxy.unit = None;
    }
    let all = commands(&custom);
    let expected = "'/opt/my nginx/nginx' -p /srv/web -t -c /etc/nginx/nginx.conf && kill -HUP 100";
    assert!(all.iter().any(|command| command == expected), "{all:#?}");
    assert!(!all.iter().any(|command| command.contains("systemctl")), "{all:#?}");

    // Another file than that of the process: it would not take it over.
    let mut named = facts.clone();
    if let Some(configuration) = &mut named.configuration {
        configuration.file = "/tmp/new.conf".to_owned();
    }
    let all = commands(&named);
    assert!(all.iter().any(|command| command == "nginx -t -c /tmp/new.conf"), "{all:#?}");
    assert!(!all.iter().any(|command| command.contains("HUP")), "{all:#?}");

    // A container's files and sysctls are not this host's.
    if let Some(proxy) = &mut facts.proxy {
        (proxy.own_root, proxy.own_network) = (true, true);
    }
    let all = commands(&facts);
    for command in &all {
        let is_here = command.contains("/etc/nginx") || command.starts_with("echo 'net.");
        assert!(!is_here && !command.starts_with("sysctl -w net.core"), "{all:#?}");
    }
    let inside = "nsenter --net=/proc/100/ns/net sysctl -w net.core.somaxconn=2048";
    assert!(all.iter().any(|command| command == inside), "{all:#?}");
}

/// A shell or sed would misread some of these texts, and sed would not find the others.
#[test]
fn commands_are_words_of_a_shell_or_no_commands() {
    let host = Host::debian();
    let types = "gzip_types text/css image/png 'x/$(touch EVIL)' \"y/it's\";";
    let site = format!(
        "{SITE}server {{ listen 81; gzip on; {types}\n access_log\n   /var/log/a.log; }}\n"
    );
    host.write("/etc/nginx/sites-enabled/it's new", &site.replace("origin", "other"));
    for id in ["gzip-of-compressed", "access-log-unbuffered"] {
        let mut facts = host.facts();
        facts.asked = LoadDemand::default();
        let finding =
            examine(&facts).findings.into_iter().find(|one| one.problem.id() == id).expect(id);
        let change = &finding.change[0];
        match id {
            "gzip-of-compressed" => {
                let status = std::process::Command::new("sh")
                    .current_dir(host.root())
                    .args(["-c", &change.replace(" '/etc", " './etc")])
                    .status();
                assert!(status.is_ok_and(|status| status.success()), "{change}");
                let text = host.read("/etc/nginx/sites-enabled/it's new");
                assert!(text.contains("gzip_types text/css x/$(touch EVIL) y/it's;"), "{text}");
                assert!(!host.root().join("EVIL").exists());
            }
            _ => assert!(change.starts_with("sed ") || change.starts_with("# /"), "{change}"),
        }
    }
    let split = "server { listen 82;\n keepalive_timeout\n 0; }";
    host.site(&format!("{SITE}{split}"));
    let change = host.finding("client-keepalive-off").change;
    let remark = "# /etc/nginx/sites-enabled/default:11: `keepalive_timeout 0` becomes `keepalive_timeout 75s;`";
    assert_eq!(change, [remark]);
}
