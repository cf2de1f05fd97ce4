//! Copies that run beside the original.

use std::path::Path;
use std::process::Command;

use weir_configuration::{Pem, Source, Surroundings};
use weir_haproxy::language as haproxy;

use super::{Users, adaptable};
use crate::languages::support::{
    LISTEN, Running, at_port, checked, free_address, has, make_prefix, make_source,
    make_surroundings, must_have, of_a_test, origin, text, with_tls, write,
};

const HAPROXY: &str = "/usr/sbin/haproxy";

fn adapt(source: &Source, surroundings: &Surroundings<'_>) -> Source {
    haproxy::adapt(source, surroundings).unwrap_or_else(|e| panic!("{e}"))
}

/// Checks a copy with HAProxy.
pub(super) fn check(name: &str, copy: &Source, prefix: &Path) {
    let mut command = Command::new(HAPROXY);
    command.args(["-c", "-q", "-L", "lb1", "-f"]).arg(write(copy, prefix));
    checked(name, command.current_dir("/"));
}

#[test]
fn haproxy_accepts_copies_of_all() {
    if !has(HAPROXY) {
        return;
    }
    for name in adaptable() {
        let users = Users::new(name);
        let prefix = make_prefix();
        let surroundings = match name {
            "tls" => with_tls(prefix.path()),
            _ => of_a_test(prefix.path()),
        };
        // Not where it was: relative paths must have become absolute.
        check(name, &adapt(&users.read(), &surroundings), prefix.path());
    }
}

#[test]
fn copies_touch_nothing_of_the_users() {
    for name in adaptable() {
        let prefix = make_prefix();
        let copy = adapt(&Users::new(name).read(), &of_a_test(prefix.path()));
        let tree = haproxy::Tree::parse(&copy).unwrap();
        for section in tree.sections.iter().filter(|section| section.is_proxy()) {
            for statement in &section.statements {
                let address = match statement.word(0) {
                    "bind" => statement.word(1),
                    "server" => statement.word(2),
                    "server-template" => statement.word(3),
                    _ => continue,
                };
                let run = format!("unix@{}/run/", prefix.path().display());
                let ours = address == "127.0.0.1:7001" || address == "127.0.0.1:7002";
                assert!(ours || address.starts_with(&run), "{name}: {address}");
            }
        }
        let words = "daemon chroot master-worker /dev/log /run/haproxy/ 192.0.2.99";
        for word in words.split(' ') {
            // Not as a statement, but in the words of a `.notice`.
            if name == "macros" && word == "master-worker" {
                continue;
            }
            let mut says = copy
                .files
                .iter()
                .flat_map(|file| file.text.lines())
                .filter(|line| !line.trim_start().starts_with('#'));
            assert!(!says.any(|line| line.contains(word)), "{name}: {word}");
        }
    }
}

#[test]
fn a_copy_runs_and_asks_the_origin_server() {
    if !has(HAPROXY) {
        return;
    }
    for name in ["many", "folder", "kubernetes", "peers", "macros"] {
        let prefix = make_prefix();
        let (listen, origin) = (free_address(), origin());
        let users = Users::new(name);
        let copy = adapt(&users.read(), &make_surroundings(prefix.path(), listen, origin));
        let main = write(&copy, prefix.path());
        let mut proxy = Running::start(Command::new(HAPROXY).args(["-db", "-q", "-f"]).arg(main));
        let answer = proxy.ask(listen, "/static/a");
        assert!(answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
        assert!(prefix.path().join("run/admin.sock").exists(), "{name}");
    }
}

fn tls_copy(surroundings: &Surroundings<'_>) -> String {
    let users = Users::new("tls");
    let copy = adapt(&users.read(), surroundings);
    let folder = users.folder.path().display().to_string();
    text(&copy).replace(&folder, "/users")
}

#[test]
fn listeners_and_servers_get_new_addresses() {
    let parts = [
        // It redirects, so no load asks it by itself.
        "    bind unix@/p/run/0.sock accept-proxy\n",
        "    bind unix@/p/run/1.sock v6only\n",
        "    bind 127.0.0.1:7003 ssl crt site.pem alpn h2,http/1.1 ssl-min-ver TLSv1.2 strict-sni\n",
        "    bind unix@/p/run/3.sock ssl crt site.pem ca-file site.pem verify optional\n",
        "    mode tcp\n    bind 127.0.0.1:7001\n",
        // Its own listener moved: what leads there follows, with the PROXY protocol.
        "    server inner unix@/p/run/5.sock send-proxy-v2\n",
        "    bind unix@/p/run/5.sock accept-proxy\n",
        // TLS goes, the protocol that it was to choose stays.
        "    default-server proto h2 inter 5s\n",
        "    server app1 127.0.0.1:7002 check\n",
        "    server app2 127.0.0.1:7002 weight 5\n",
    ];
    must_have(tls_copy(&with_tls(Path::new("/p"))), &parts);
}

/// The origin server answers with content of its own, and speaks no database protocol.
#[test]
fn checks_ask_what_the_origin_server_answers() {
    let conf = "\
frontend a
    mode http
    bind :80
    default_backend b
backend b
    mode http
    option httpchk
    http-check connect port 9200
    http-check send meth GET uri /up
    http-check expect string UP
    server s 192.0.2.1:80 check
listen c
    mode tcp
    bind :3306
    option mysql-check user haproxy
    tcp-check expect string x
    server s 192.0.2.1:3306 check inter 1s
";
    let copy = adapt(&make_source("haproxy.cfg", conf), &of_a_test(Path::new("/p")));
    must_have(
        text(&copy),
        &[
            "    option httpchk\n    http-check connect\n    http-check send meth GET uri /up\n",
            "check inter 1s",
        ],
    );
    for gone in ["expect", "mysql"] {
        assert!(!text(&copy).contains(gone), "{gone}: {}", text(&copy));
    }
}

/// A rule that redirects all ports but one still does so in the copy.
#[test]
fn conditions_about_ports_are_about_the_copys() {
    let conf = "\
frontend a
    mode http
    bind :80
    bind :8000-8010
    acl mine dst_port eq 8003 9
    redirect scheme https if { dst_port 80 } !{ dst_port 8004 } { path /80 }
    default_backend b
backend b
    mode http
    server s 192.0.2.1:80
";
    let surroundings = at_port(of_a_test(Path::new("/p")), 8003);
    let copy = adapt(&make_source("haproxy.cfg", conf), &surroundings);
    must_have(
        text(&copy),
        &[
            "    acl mine dst_port eq 7001 9\n",
            "    redirect scheme https if { dst_port 80 } !{ dst_port 8004 } { path /80 }\n",
        ],
    );
}

#[test]
fn a_port_chooses_the_listener() {
    let mut over_tls = at_port(with_tls(Path::new("/p")), 8443);
    over_tls.asks.remove(0);
    let copy = tls_copy(&over_tls);
    must_have(&copy, &["bind 127.0.0.1:7003 ssl crt site.pem ca-file site.pem"]);
    assert!(!copy.contains(LISTEN), "no clear listener stands beside it");
    must_have(
        tls_copy(&at_port(with_tls(Path::new("/p")), 444)),
        &["    mode tcp\n    bind 127.0.0.1:7001\n"],
    );

    // Over TLS neither: the one that is asked is not just any.
    let tls_on_81 = at_port(with_tls(Path::new("/p")), 81);
    let error = haproxy::adapt(&Users::new("tls").read(), &tls_on_81).unwrap_err();
    let message = "no `bind` line of a frontend is in clear on port 81";
    assert_eq!(error.what, message);
    let many = Users::new("many").read();
    let error = haproxy::adapt(&many, &at_port(of_a_test(Path::new("/p")), 81)).unwrap_err();
    assert_eq!((&*error.what, error.line, error.column), (message, 34, 5));
    let listens = [":80 at ", "haproxy.cfg:34, :8080 at ", ":8081 at ", "10.1.2.3:8404 at "];
    must_have(error.hint.unwrap(), &listens);
    let parts = ["    bind unix@/p/run/0.sock\n    bind 127.0.0.1:7001\n"];
    must_have(text(&adapt(&many, &at_port(of_a_test(Path::new("/p")), 8081))), &parts);
}

#[test]
fn the_process_is_the_trials() {
    let surroundings = Surroundings { user: Some(("www", "web")), ..of_a_test(Path::new("/p")) };
    let copy = adapt(&Users::new("many").read(), &surroundings);
    let global = text(&copy).split("defaults").next().unwrap().to_owned();
    assert_eq!(
        global,
        "# The shop. Ask before touching the rate limits!
global
    log         /p/run/log.sock local2     # rsyslog
    pidfile     /p/run/haproxy.pid
    maxconn     4000
    user        www
    group       web
    nbthread    2
    stats socket /p/run/admin.sock mode 600 level admin
    stats socket /p/run/stats-1.sock level user mode 600
    stats timeout 2m

"
    );
    let copy = adapt(&make_source("a.cfg", &super::text("bare")), &surroundings);
    let global = "global\n  user www\n  group web\n  stats socket /p/run/admin.sock mode 600 level admin\n\n";
    assert!(text(&copy).starts_with(global), "{}", text(&copy));
}

/// The last line of a file may have no line end, and be removed together with the one before.
#[test]
fn lines_go_from_the_end_of_a_file() {
    let cfg = "listen a\n  bind :80\n  server s 10.0.0.1:80\nglobal\n  chroot /x\n  daemon";
    let copy = adapt(&make_source("a.cfg", cfg), &of_a_test(Path::new("/p")));
    let (_, global) = text(&copy).split_once("global\n").unwrap();
    assert_eq!(
        global.trim(),
        "stats socket /p/run/admin.sock mode 600 level admin\n\
         resolvers default\n    nameserver origin 127.0.0.1:7002"
    );
}

#[test]
fn what_is_the_users_alone_is_not_written_to_nor_asked_for() {
    let cfg = "ring r\n  size 1m\n  backing-file /var/log/haproxy/ring\nlisten a\n  bind :80\n  \
               server s 10.0.0.1:80 source 0.0.0.0 usesrc clientip weight 5\n";
    let copy = adapt(&make_source("a.cfg", cfg), &of_a_test(Path::new("/p")));
    let parts = ["ring r\n  size 1m\nlisten a\n", "server s 127.0.0.1:7002 weight 5\n"];
    must_have(text(&copy), &parts);
}

#[test]
fn a_socket_that_cannot_be_bound_is_refused() {
    let long = format!("/{}", "x".repeat(90));
    let surroundings = of_a_test(Path::new(&long));
    let error = haproxy::adapt(&Users::new("many").read(), &surroundings).unwrap_err();
    must_have(error, &["more than 97 bytes"]);
}

/// TLS ends behind the frontend that is asked; the certificate there is the trial's.
#[test]
fn a_frontend_in_tcp_leads_to_the_copy_s_own_tls() {
    let cfg = "defaults\n  mode http\nfrontend in\n  mode tcp\n  bind :443\n  default_backend to_web\n\
               backend to_web\n  mode tcp\n  server web /run/web.sock send-proxy\n\
               frontend web\n  bind unix@/run/web.sock accept-proxy ssl crt-list /etc/list strict-sni mode 666 group web\n  \
               default_backend app\nbackend app\n  server a 192.0.2.1:80\n";
    let pem = Pem { certificate: Path::new("/p/a.pem"), key: Path::new("/p/a.pem.key") };
    let mut surroundings = Surroundings {
        certificate: Some(pem),
        user: Some(("www", "web")),
        ..with_tls(Path::new("/p"))
    };
    surroundings.asks.remove(0);
    let parts = [
        "  mode tcp\n  bind 127.0.0.1:7003\n",
        "  server web unix@/p/run/1.sock send-proxy\n",
        "  bind unix@/p/run/1.sock accept-proxy ssl crt /p/a.pem user www mode 600\n",
    ];
    must_have(text(&adapt(&make_source("a.cfg", cfg), &surroundings)), &parts);
}

/// A copy with its own addresses would hide an address of the user's that HAProxy rejects.
#[test]
fn a_port_that_haproxy_does_not_take_is_refused() {
    for address in ["*:http", ":$1", "127.0.0.1:+80", ":80,:https"] {
        let cfg = format!(
            "listen a\n  mode http\n  timeout client 1s\n  timeout server 1s\n  timeout connect 1s\n  \
             bind {address}\n  server s 192.0.2.1:80\n"
        );
        let source = make_source("a.cfg", &cfg);
        let error = haproxy::adapt(&source, &of_a_test(Path::new("/p"))).unwrap_err();
        assert_eq!((error.line, error.column), (6, 8), "{address}");
        let message = format!("the port of `{address}` is not a number for HAProxy");
        assert_eq!(error.what, message);
        if has(HAPROXY) {
            let prefix = make_prefix();
            let mut check = Command::new(HAPROXY);
            check.args(["-c", "-q", "-f"]).arg(write(&source, prefix.path()));
            let output = check.output().unwrap();
            assert!(!output.status.success(), "HAProxy takes {address}");
        }
    }
}
