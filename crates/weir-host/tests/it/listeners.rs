//! Tests of accept queues as the kernel has them.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{fs, thread};

use rustix::net::sockopt::set_socket_reuseport;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use weir_host::listeners::{ListenQueue, listen_queues};
use weir_host::{Network, sysctl};

use crate::support::{eventually, inside, networks_or_skip};

fn listener(address: SocketAddr, backlog: i32) -> (OwnedFd, SocketAddr) {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let fd = socket(family, SocketType::STREAM, None).unwrap();
    set_socket_reuseport(&fd, true).unwrap();
    bind(&fd, &address).unwrap();
    listen(&fd, backlog).unwrap();
    let bound = getsockname(&fd).unwrap().try_into().unwrap();
    (fd, bound)
}

fn queues_at(address: SocketAddr) -> Vec<ListenQueue> {
    let mut queues = listen_queues().unwrap();
    queues.retain(|queue| queue.address == address);
    queues
}

#[test]
fn a_backlog_is_what_listen_was_given() {
    for any in ["127.0.0.1:0", "[::1]:0"] {
        let (_socket, address) = listener(any.parse().unwrap(), 7);
        let queues = queues_at(address);
        assert_eq!(queues.len(), 1);
        assert_eq!((queues[0].waiting, queues[0].backlog), (0, 7));
    }
}

#[test]
fn sockets_that_share_a_port_have_a_queue_each() {
    let (_first, address) = listener("127.0.0.1:0".parse().unwrap(), 7);
    let (_second, _) = listener(address, 9);
    let mut backlogs: Vec<u32> = queues_at(address).iter().map(|queue| queue.backlog).collect();
    backlogs.sort_unstable();
    assert_eq!(backlogs, [7, 9]);
}

#[test]
fn connections_wait_until_they_are_accepted() {
    let (socket, address) = listener("127.0.0.1:0".parse().unwrap(), 2);
    // One more than the backlog is admitted.
    let clients = [(); 3].map(|()| TcpStream::connect(address).unwrap());
    eventually("three connections wait", || count_waiting(address) == 3);
    assert_eq!(queues_at(address)[0].backlog, 2);
    let accepted = rustix::net::accept(&socket).unwrap();
    assert_eq!(count_waiting(address), 2);
    assert_eq!(queues_at(address).len(), 1, "connections are no listeners");
    drop((clients, accepted));
}

fn count_waiting(address: SocketAddr) -> u32 {
    queues_at(address)[0].waiting
}

#[test]
fn somaxconn_caps_a_backlog() {
    inside(|| {
        sysctl::write("net.core.somaxconn", "5").unwrap();
        let (_capped, address) = listener("127.0.0.1:0".parse().unwrap(), 4096);
        assert_eq!(queues_at(address)[0].backlog, 5);
        // What listens keeps what it got.
        sysctl::write("net.core.somaxconn", "6").unwrap();
        assert_eq!(queues_at(address)[0].backlog, 5);
        assert_eq!(listen_queues().unwrap().len(), 1, "nobody else's are here");
    });
}

const NGINX: &str = "/usr/sbin/nginx";

fn nginx(folder: &Path) -> Child {
    let text = "daemon off; master_process off; pid nginx.pid; error_log stderr; events {}\n\
         http { access_log off; server { listen 127.0.0.1:80; listen 127.0.0.1:81 backlog=9; } }\n";
    fs::write(folder.join("nginx.conf"), text).unwrap();
    let mut command = Command::new(NGINX);
    command.arg("-p").arg(folder);
    command.args(["-c", "nginx.conf", "-e", "stderr"]);
    command.stdin(Stdio::null()).spawn().unwrap()
}

/// nginx requests a backlog of 511 by default (ngx_http_core_module, listen).
#[test]
fn nginx_gets_the_lower_of_its_backlog_and_somaxconn() {
    if !networks_or_skip() || !Path::new(NGINX).exists() {
        println!("left out: takes namespaces and {NGINX}");
        return;
    }
    for (somaxconn, expected) in [("4096", 511), ("128", 128)] {
        let folder = tempfile::tempdir().unwrap();
        let network = Network::create().unwrap();
        let started = network.within(|| {
            sysctl::write("net.core.somaxconn", somaxconn).unwrap();
            nginx(folder.path())
        });
        let mut child = started.unwrap();
        let backlogs = thread::scope(|scope| {
            let looking = scope.spawn(|| {
                network.join().unwrap();
                eventually("nginx listens", || listen_queues().unwrap().len() == 2);
                [80, 81].map(|port| queues_at((Ipv4Addr::LOCALHOST, port).into())[0].backlog)
            });
            looking.join()
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(backlogs.unwrap(), [expected, 9]);
    }
}
