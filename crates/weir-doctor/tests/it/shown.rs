//! Whole examinations, as displayed.

use weir_doctor::{Listener, examine, text};

use crate::host::Host;

fn shown(host: &Host) -> String {
    text(&host.examined(), 100, false)
}

#[test]
fn debian_as_it_is_installed_without_a_load() {
    insta::assert_snapshot!(shown(&Host::debian()));
}

#[test]
fn debian_as_it_is_installed_under_study_a_s_load() {
    let host = Host::debian().asking(1000, 1000.0);
    let mut facts = host.facts();
    facts.listeners =
        Some(vec![Listener { address: "0.0.0.0:80".parse().unwrap(), waiting: 3, backlog: 511 }]);
    insta::assert_snapshot!(text(&examine(&facts), 100, false));
}

fn tuned() -> Host {
    let host = Host::debian().asking(10_000, 2000.0);
    host.write(
        "/etc/sysctl.d/50-tuning.conf",
        "# copied from somewhere
fs.file-max = 100000
sys.fs.file-max = 1048576
net.core.somaxconn = 32768
net.core.rmem_max = 16777216
net.ipv4.ip_local_port_range = 1024
net.ipv4.tcp_fin_timeout = 15
net.ipv4.tcp_tw_recycle = 1
net.ipv4.tcp_tw_reuse = 1
net.ipv4.tcp_max_syn_backlog = 65536
net.ipv4.tcp_low_latency = 1
",
    );
    host.write("/etc/sysctl.conf", "net.core.somaxconn = 1024\n");
    std::os::unix::fs::symlink("../sysctl.conf", host.root().join("etc/sysctl.d/99-sysctl.conf"))
        .expect("own folder");
    for (name, value) in [
        ("fs/file-max", "100000"),
        ("net/core/somaxconn", "1024"),
        ("net/core/rmem_max", "16777216"),
        ("net/ipv4/ip_local_port_range", "1024\t60999"),
        ("net/ipv4/tcp_fin_timeout", "15"),
        ("net/ipv4/tcp_tw_reuse", "1"),
        ("net/ipv4/tcp_max_syn_backlog", "65536"),
    ] {
        host.sysctl(name, value);
    }
    host.write(
        "/etc/security/limits.conf",
        "# nginx\n* soft nofile 1048576\n* hard nofile 1048576\n",
    );
    host.write(
        "/etc/nginx/nginx.conf",
        &crate::host::DEBIAN_NGINX
            .replace("worker_connections 768", "worker_connections 65535")
            .replace("gzip on;", "gzip on;\n\tgzip_types text/css image/png;"),
    );
    host
}

#[test]
fn a_host_that_was_tuned_by_wrong_advice() {
    insta::assert_snapshot!(shown(&tuned()));
}

#[test]
fn a_container_with_half_a_cpu() {
    let host = Host::debian().asking(200, 100.0);
    for (file, text) in [("cpu.max", "50000 100000\n"), ("memory.max", "134217728\n")] {
        let folder = "/sys/fs/cgroup/system.slice/nginx.service";
        host.write(&format!("{folder}/{file}"), text);
    }
    host.sysctl("net/netfilter/nf_conntrack_count", "61000");
    host.sysctl("net/netfilter/nf_conntrack_max", "65536");
    host.counters("42 42 0");
    insta::assert_snapshot!(shown(&host));
}

#[test]
fn the_json_form() {
    insta::assert_snapshot!(tuned().examined().json().unwrap());
}
