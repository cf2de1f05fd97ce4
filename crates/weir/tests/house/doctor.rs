//! Tests of `weir doctor` on this machine, with a real nginx.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use weir_sut::free_port;
use weir_testkit::program::{Ended, HasAll, Running, flat, run, wait_until};
use weir_testkit::sandbox::Sandbox;

/// An nginx that listens at a free port and passes requests on to nobody.
pub(crate) struct Proxy {
    pub(crate) nginx: Running,
    prefix: PathBuf,
    port: u16,
}

impl Proxy {
    /// Starts nginx by a shell that first runs `before`, and then becomes nginx.
    pub(crate) fn start(sandbox: &Sandbox, shell: &[&str], before: &str) -> Proxy {
        let port = free_port(Ipv4Addr::LOCALHOST.into()).expect("a free port");
        let prefix = sandbox.path("proxy");
        for folder in ["logs", "tmp"] {
            fs::create_dir_all(prefix.join(folder)).expect("own folder");
        }
        sandbox.write("proxy/nginx.conf", &configuration(&prefix, port));
        let line = format!(
            "{before} PATH=$PATH:/usr/sbin:/sbin exec nginx -p {0} -c {0}/nginx.conf -e {0}/logs/error.log",
            prefix.display()
        );
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).args(["sh", "-c", &line]);
        let mut nginx = Running::start(&mut command);
        nginx.wait_until("workers", |nginx| {
            weir_probe::process::children(nginx.pid()).is_ok_and(|children| children.len() == 2)
        });
        Proxy { nginx, prefix, port }
    }

    pub(crate) fn doctor(&self, options: &str) -> Ended {
        run(&format!("doctor --pid {} {options}", self.nginx.pid()))
    }
}

impl Drop for Proxy {
    /// Ends nginx by a signal that it can handle: a killed master would leave its workers behind.
    fn drop(&mut self) {
        if self.nginx.is_alive() {
            self.nginx.signal(Signal::TERM);
            wait_until("the end of nginx", || !self.nginx.is_alive());
        }
    }
}

fn configuration(prefix: &Path, port: u16) -> String {
    let folder = prefix.display();
    format!(
        "daemon off;
worker_processes 2;
pid {folder}/pid;
error_log {folder}/logs/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/tmp/body;
    proxy_temp_path {folder}/tmp/proxy;
    fastcgi_temp_path {folder}/tmp/fastcgi;
    uwsgi_temp_path {folder}/tmp/uwsgi;
    scgi_temp_path {folder}/tmp/scgi;
    include {folder}/site*.conf;
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://192.0.2.1:80; }}
    }}
}}
"
    )
}

/// Command that runs another one unchanged.
pub(crate) const HERE: &[&str] = &["env"];

#[test]
fn a_load_that_fits_and_one_that_does_not() {
    let sandbox = Sandbox::new();
    let proxy = Proxy::start(&sandbox, HERE, "");
    let fits = proxy.doctor("--connections 20 --rate 1").with_code(0);
    let load = "load      20 connections, 1.0 requests/s\n";
    assert!(fits.stdout.starts_with(load), "{}", fits.stdout);
    // Queues that other tests have filled are told instead: the kernel counts them for the whole namespace.
    if !fits.stdout.contains("[listen-overflows]") {
        fits.stdout.has("512 clients at once: 2 workers × 512");
    }

    let overload = proxy.doctor("--connections 5000 --rate 100k");
    let prefix = proxy.prefix.display();
    flat(&overload.with_code(1).stdout).has_all(&[
        "these settings cannot carry it",
        "[worker-connections-too-few]",
        "[origin-ports-run-out]",
        &format!("{prefix}/nginx.conf:5: worker_connections 512"),
        "nothing was changed",
    ]);
}

/// Follows the advice without a restart, which is then the only remaining finding. A process of a shell must not be
/// attributed to a unit.
#[test]
fn a_backlog_that_a_restart_would_bring_into_force() {
    let sandbox = Sandbox::new();
    let proxy = Proxy::start(&sandbox, HERE, "");
    let listen = format!("listen 127.0.0.1:{}", proxy.port);
    let text = configuration(&proxy.prefix, proxy.port);
    let longer = format!("{listen} backlog=900");
    sandbox.write("proxy/nginx.conf", &text.replace(&listen, &longer));
    let findings = flat(&proxy.doctor("--connections 800").stdout);
    findings.has("the running nginx still has room for 511 connections, and its settings now say 900: restart it");
    findings.has("# stop and start nginx (process");
    findings.has_none(&["[backlog-short]", "systemctl"]);
    let line = format!("doctor {}/nginx.conf", proxy.prefix.display());
    run(&line).with_code(0).stdout.has_none(&["nginx.service"]);
}

/// Runs the printed commands, and checks that nginx accepts the files that they wrote.
#[test]
fn its_commands_put_right_what_it_found() {
    let sandbox = Sandbox::new();
    let mut proxy = Proxy::start(&sandbox, HERE, "");
    let before = proxy.doctor("-c 1000 --format json").with_code(1);
    let json: serde_json::Value = before.document();
    assert_eq!(json["format"], "weir-doctor/2");
    let findings = json["findings"].as_array().expect("findings");
    let mut obeyed = 0;
    for finding in findings.iter().filter(|finding| finding["severity"] == "error") {
        let commands = finding["change"].as_array().expect("commands");
        let texts = commands.iter().filter_map(serde_json::Value::as_str);
        for command in texts.filter(|text| text.starts_with("sed ")) {
            let status = Command::new("sh").args(["-c", command]).status();
            assert!(status.expect("sh").success(), "{command}");
            obeyed += 1;
        }
    }
    assert!(obeyed > 0, "{}", before.stdout);
    proxy.nginx.signal(Signal::HUP);
    wait_until("a configuration that carries the load", || {
        let ended = proxy.doctor("-c 1000");
        assert!(proxy.nginx.is_alive(), "{}", proxy.nginx.stderr());
        ended.code == Some(0)
    });
}

#[test]
fn nothing_is_written_and_nothing_opened_for_it() {
    let sandbox = Sandbox::new();
    let proxy = Proxy::start(&sandbox, HERE, "");
    let before = list_files(&proxy.prefix);
    let traced = sandbox.path("trace");
    let calls = "trace=open,openat,creat,mkdir,unlink,rename,bind,listen";
    let mut command = Command::new("strace");
    command.args(["-f", "-e", calls, "-o"]).arg(&traced);
    command.arg(env!("CARGO_BIN_EXE_weir"));
    let options = format!("doctor -c 10 -R 10 --pid {}", proxy.nginx.pid());
    command.args(options.split(' '));
    match command.output() {
        Ok(output) => {
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let trace = fs::read_to_string(&traced).expect("strace's file");
            assert!(trace.contains("/proc/sys/net/core/somaxconn"), "{trace}");
        }
        Err(error) => {
            eprintln!("skipped: no strace: {error}");
            proxy.doctor("-c 10 -R 10").with_code(0);
        }
    }
    assert_eq!(list_files(&proxy.prefix), before);
    let trace = fs::read_to_string(&traced).unwrap_or_default();
    let opens = "O_WRONLY O_RDWR O_CREAT mkdir( unlink( rename( listen(";
    // nginx -V looks whether it has standard streams.
    for line in trace.lines().filter(|line| !line.contains("\"/dev/null\"")) {
        line.has_none(&opens.split(' ').collect::<Vec<_>>());
    }
}

fn list_files(folder: &Path) -> String {
    let output = Command::new("find").arg(folder).args(["-printf", "%p %T@ %s\n"]).output();
    String::from_utf8(output.expect("find").stdout).expect("paths")
}

/// Checks that settings are read from the proxy's own network namespace, and the queue from the kernel.
#[test]
fn a_backlog_that_the_kernel_has_capped() {
    let probe = Command::new("unshare").args(["--net", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no network namespaces may be made here");
        return;
    }
    let sandbox = Sandbox::new();
    let shell = ["unshare", "--net"];
    let before = "echo 128 > /proc/sys/net/core/somaxconn && ip link set lo up &&";
    let proxy = Proxy::start(&sandbox, &shell, before);
    let text = proxy.doctor("-c 10").with_code(0).stdout;
    flat(&text).has_all(&[
        "[backlog-capped]",
        "a backlog of 511 is capped at 128",
        "net.core.somaxconn = 128",
        "the proxy's own network namespace",
    ]);
    if flat(&text).contains("not known: listeners") {
        eprintln!("skipped: the kernel does not tell of listeners here");
        return;
    }
    let measured = "now: 0 waiting, room for 128 (sock_diag)";
    text.has(&format!("127.0.0.1:{} {measured}", proxy.port));
}

#[test]
fn a_user_who_is_not_root_is_told_what_was_not_seen() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: not root, so nobody else's nginx is there to be looked at");
        return;
    }
    let sandbox = Sandbox::new();
    let proxy = Proxy::start(&sandbox, HERE, "");
    let pid = proxy.nginx.pid().to_string();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(sandbox.copy_of_weir()).args(["doctor", "--pid", &pid, "-c", "10"]);
    let text = Running::start(&mut command).end().with_code(0).stdout;
    flat(&text).has("not known: the proxy's network namespace");
    text.has("looked at: ");
}

#[test]
fn this_machine_as_it_is() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("nginx.conf", &configuration(&sandbox.path("x"), 18_080));
    let line = format!("doctor --nginx {}", file.display());
    let text = run(&line).with_code(0).stdout;
    text.has("no load given");
    flat(&text).has("TcpExt counters since boot");
}

#[test]
fn bad_input_is_refused() {
    run("doctor --nginx /nowhere/nginx.conf").refused_in_a_line(&["/nowhere/nginx.conf", "hint: "]);
    run("doctor --rate fast").refused_in_a_line(&["--rate"]);
    run("doctor --config /nowhere/nginx.conf").refused_in_a_line(&["/nowhere/nginx.conf"]);
    run("doctor --connections 0").refused(&["--connections"]);
    run("doctor --pid 4194305").refused_in_a_line(&["process 4194305 is not an nginx", "hint: "]);
    let this_process = std::process::id();
    run(&format!("doctor --pid {this_process}")).refused_in_a_line(&["is not an nginx: it is `"]);
    let sandbox = Sandbox::new();
    let broken = sandbox.write("broken.conf", "events {\n");
    let line = format!("doctor --nginx {}", broken.display());
    run(&line).refused_in_a_line(&["broken.conf: line 1: the `}` of this block is missing"]);
}
