//! A folder laid out like the root of a host.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use weir_doctor::{
    Evidence, Examination, Facts, FileEvidence, FileLine, Finding, LoadDemand, Request, examine,
    gather,
};

pub struct Host {
    folder: TempDir,
    pub asked: LoadDemand,
}

/// Debian's nginx.conf, without its comments.
pub const DEBIAN_NGINX: &str = "user www-data;
worker_processes auto;
pid /run/nginx.pid;
events {
\tworker_connections 768;
}
http {
\tsendfile on;
\tinclude /etc/nginx/mime.types;
\taccess_log /var/log/nginx/access.log;
\tgzip on;
\tinclude /etc/nginx/conf.d/*.conf;
\tinclude /etc/nginx/sites-enabled/*;
}
";

/// A site that passes all requests to one origin server.
pub const SITE: &str = "upstream origin {
\tserver 10.0.0.2:8080;
}
server {
\tlisten 80 default_server;
\tlocation / {
\t\tproxy_pass http://origin;
\t}
}
";

impl Host {
    /// Debian as installed, with two CPUs, 4 GiB, and nginx in front of one origin server.
    pub fn debian() -> Host {
        let host =
            Host { folder: tempfile::tempdir().expect("a folder"), asked: LoadDemand::default() };
        for (name, value) in [
            ("fs/file-max", "9223372036854775807"),
            ("fs/file-nr", "1312\t0\t9223372036854775807"),
            ("fs/nr_open", "1048576"),
            ("kernel/osrelease", "6.1.0-28-amd64"),
            ("net/core/somaxconn", "4096"),
            ("net/core/rmem_max", "212992"),
            ("net/ipv4/ip_local_port_range", "32768\t60999"),
            ("net/ipv4/ip_local_reserved_ports", ""),
            ("net/ipv4/ip_unprivileged_port_start", "1024"),
            ("net/ipv4/tcp_abort_on_overflow", "0"),
            ("net/ipv4/tcp_fin_timeout", "60"),
            ("net/ipv4/tcp_low_latency", "0"),
            ("net/ipv4/tcp_max_syn_backlog", "512"),
            ("net/ipv4/tcp_max_tw_buckets", "16384"),
            ("net/ipv4/tcp_mem", "45702\t60939\t91404"),
            ("net/ipv4/tcp_syncookies", "1"),
            ("net/ipv4/tcp_timestamps", "1"),
            ("net/ipv4/tcp_tw_reuse", "2"),
        ] {
            host.sysctl(name, value);
        }
        host.write("/proc/meminfo", "MemTotal:        4194304 kB\n");
        host.write("/sys/devices/system/cpu/online", "0-1\n");
        host.counters("0 0 0");
        let sockets = "TCP: inuse 5 orphan 0 tw 3 alloc 6 mem 1\n";
        host.write("/proc/net/sockstat", sockets);
        host.write("/etc/nginx/mime.types", "types { text/html html; }\n");
        host.write("/etc/nginx/nginx.conf", DEBIAN_NGINX);
        host.site(SITE);
        let unit = "[Service]\nExecStart=/usr/sbin/nginx\n";
        host.write("/lib/systemd/system/nginx.service", unit);
        host.running("0-1", 1024, 524_288);
        host
    }

    /// A host with tuning advice of several sources, for a load.
    pub fn tuned() -> Host {
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
        std::os::unix::fs::symlink(
            "../sysctl.conf",
            host.root().join("etc/sysctl.d/99-sysctl.conf"),
        )
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
            &DEBIAN_NGINX
                .replace("worker_connections 768", "worker_connections 65535")
                .replace("gzip on;", "gzip on;\n\tgzip_types text/css image/png;"),
        );
        host
    }

    /// Adds nginx's processes: a master and two workers, with these CPUs and limits.
    pub fn running(&self, cpus: &str, soft: u64, hard: u64) {
        let master = "nginx: master process /usr/sbin/nginx -g daemon on;";
        for (pid, parent, title) in [
            (100, 1, master),
            (101, 100, "nginx: worker process"),
            (102, 100, "nginx: worker process"),
        ] {
            let limit = format!("Max open files            {soft}  {hard}  files\n");
            let status = format!("Name:\tnginx\nPPid:\t{parent}\nCpus_allowed_list:\t{cpus}\n");
            for (file, text) in [
                ("cmdline", &*format!("{title}\0")),
                ("comm", "nginx\n"),
                ("cgroup", "0::/system.slice/nginx.service\n"),
                ("status", &status),
                ("limits", &limit),
            ] {
                self.write(&format!("/proc/{pid}/{file}"), text);
            }
        }
    }

    /// Sets the counters of accept queue overflows and drops, and of SYN queue drops.
    pub fn counters(&self, numbers: &str) {
        let names = "TcpExt: ListenOverflows ListenDrops TCPReqQFullDrop";
        let text = format!("{names}\nTcpExt: {numbers}\n");
        self.write("/proc/net/netstat", &text);
    }

    pub fn site(&self, text: &str) {
        self.write("/etc/nginx/sites-enabled/default", text);
    }

    pub fn asking(mut self, connections: u64, rate: f64) -> Host {
        self.asked.connections = Some(connections);
        self.asked.rate = Some(rate);
        self
    }

    pub fn sysctl(&self, path: &str, value: &str) {
        self.write(&format!("/proc/sys/{path}"), &format!("{value}\n"));
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("it has one")).expect("own folder");
        fs::write(path, text).expect("own folder");
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path.trim_start_matches('/'))).expect("own folder")
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn facts(&self) -> Facts {
        gather(&Request {
            asked: self.asked,
            root: Some(self.root().to_owned()),
            ..Request::default()
        })
        .expect("a host that can be read")
    }

    pub fn examined(&self) -> Examination {
        examine(&self.facts())
    }

    #[track_caller]
    pub fn finding(&self, id: &str) -> Finding {
        let examination = self.examined();
        let all: Vec<String> = examination.findings.iter().map(|one| one.problem.id()).collect();
        let finding = examination
            .findings
            .iter()
            .find(|one| one.problem.id() == id)
            .unwrap_or_else(|| panic!("no {id} in {all:?}"));
        finding.clone()
    }

    #[track_caller]
    pub fn is_silent_about(&self, id: &str) {
        let examination = self.examined();
        let finding = examination.findings.iter().find(|one| one.problem.id() == id);
        assert!(finding.is_none(), "{finding:#?}");
    }

    /// Runs the `sed` commands of a finding on the folder.
    pub fn obey(&self, finding: &Finding) {
        let commands = finding.change.iter();
        for command in commands.filter(|line| line.starts_with("sed ")) {
            let (script, file) = command.rsplit_once(" /").expect("a path at the end");
            let line = format!("{script} {}/{file}", self.root().display());
            let mut shell = std::process::Command::new("sh");
            let status = shell.args(["-c", &line]).status();
            assert!(status.is_ok_and(|status| status.success()), "{line}");
        }
    }
}

/// Returns `FILE:LINE: TEXT`.
pub fn show(FileLine { file, line, text }: &FileLine) -> String {
    format!("{file}:{line}: {text}")
}

/// Returns the lines of files among a finding's evidence.
pub fn list_lines(finding: &Finding) -> Vec<String> {
    let evidence = finding.evidence.iter();
    evidence
        .filter_map(|one| match one {
            Evidence::File(FileEvidence::Line(line)) => Some(show(line)),
            Evidence::File(
                FileEvidence::SysctlLine(line) | FileEvidence::LineNotLive { line, .. },
            ) => Some(format!("{}:{}: {} = {}", line.file, line.line, line.key, line.value)),
            _ => None,
        })
        .collect()
}
