//! Checks every byte through real proxies, with both hops bypassed and without.

use std::net::SocketAddr;
use std::path::Path;
use std::{fs, io, thread};

use weir_testkit::peers::{Client, Proxy, Topology, content};

use crate::bypass_at;

const SIZES: [usize; 8] = [0, 1, 100, 1_024, 4_096, 10_000, 100_000, 1 << 20];

/// Checks a proxy by TCP and with both hops bypassed, in every topology.
fn check_proxy(uploads: bool, start: impl Fn(&Topology, &Path) -> Option<Proxy>) {
    by_hops(|topology| vec![topology.inbound, topology.outbound], uploads, start);
}

/// Checks a proxy by TCP and with these hops bypassed, in every topology.
fn by_hops(
    hops: fn(&Topology) -> Vec<SocketAddr>,
    uploads: bool,
    start: impl Fn(&Topology, &Path) -> Option<Proxy>,
) {
    for topology in Topology::all() {
        topology.serve();
        let folder = tempfile::tempdir().unwrap();
        for bypassed in [false, true] {
            let bypass = bypassed.then(|| bypass_at(&topology, &hops(&topology)));
            if let Some(None) = bypass {
                return;
            }
            let Some(proxy) = start(&topology, folder.path()) else {
                return;
            };
            put_to_proof(&topology, uploads, bypassed);
            drop(proxy);
            let Some(bypass) = bypass.flatten() else {
                continue;
            };
            for (server, counts) in bypass.counters().unwrap().hops {
                let share = counts.redirected_share().unwrap_or(0.0);
                assert!(share > 0.1, "{server}: {counts:?}");
            }
        }
    }
}

fn put_to_proof(topology: &Topology, uploads: bool, bypassed: bool) {
    thread::scope(|scope| {
        let clients: Vec<_> = (0..8_u64)
            .map(|number| {
                scope.spawn(move || {
                    topology.client.join().unwrap();
                    one_client(topology, uploads, number * 1_000)
                        .map_err(|e| format!("{number}: {e}"))
                })
            })
            .collect();
        for client in clients {
            let wrong = client.join().unwrap();
            assert_eq!(wrong, Ok(0), "wrong bytes, bypassed: {bypassed}");
        }
    });
}

/// Sends requests on kept connections, on one connection each, pipelined, as uploads, and as a slow reader; returns the
/// number of wrong bytes.
fn one_client(topology: &Topology, uploads: bool, first: u64) -> io::Result<usize> {
    let mut wrong = 0;
    let mut client = Client::connect(topology.inbound)?;
    for (number, size) in (first..).zip(SIZES.into_iter().cycle().take(24)) {
        wrong += client.get(number, size)?;
        if uploads {
            client.send_post(number, size)?;
            wrong += client.answer(number, size, false)?;
        }
        if size < 100_000 {
            wrong += Client::connect(topology.inbound)?.get(number, size)?;
        }
    }
    for number in first..first + 20 {
        client.send_get(number, 500)?;
    }
    for number in first..first + 20 {
        wrong += client.answer(number, 500, false)?;
    }
    client.send_get(first, 1 << 20)?;
    wrong += client.answer(first, 1 << 20, true)?;
    if uploads {
        client.send_post(first, 1 << 20)?;
        wrong += client.answer(first, 1 << 20, true)?;
    }
    Ok(wrong)
}

#[test]
fn nginx_that_keeps_connections() {
    check_proxy(true, |topology, folder| Proxy::nginx(topology, folder, "", true));
}

#[test]
fn nginx_that_opens_a_connection_for_each_request() {
    check_proxy(true, |topology, folder| Proxy::nginx(topology, folder, "", false));
}

#[test]
fn nginx_that_buffers_nothing() {
    let lines = "proxy_buffering off; proxy_request_buffering off;";
    check_proxy(true, |topology, folder| Proxy::nginx(topology, folder, lines, true));
}

#[test]
fn haproxy() {
    check_proxy(true, |topology, folder| Proxy::haproxy(topology, folder, ""));
}

/// HAProxy sends content from a certain length on to a bypassed socket by splice(2). From a bypassed socket, splice
/// would never return the content, since it reads only bytes that came by TCP.
#[test]
fn haproxy_that_splices_to_its_clients() {
    by_hops(
        |topology| vec![topology.inbound],
        true,
        |topology, folder| Proxy::haproxy(topology, folder, " option splice-response\n"),
    );
}

/// Runs without uploads: for some, Caddy 2.6.2 closes its connection to the origin server while it reads the answer, by
/// TCP as well as bypassed, and logs `aborting with incomplete response`.
#[test]
fn caddy() {
    check_proxy(false, Proxy::caddy);
}

#[test]
fn envoy() {
    check_proxy(true, Proxy::envoy);
}

/// Checks nginx serving a file of SIZE bytes for `GET /files/SIZE`.
fn files_through(sendfile: &str) {
    for topology in Topology::all() {
        let Some(bypass) = bypass_at(&topology, &[topology.inbound]) else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("root/files");
        fs::create_dir_all(&files).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.path(), open).unwrap();
        for size in SIZES {
            fs::write(files.join(size.to_string()), content(7, size)).unwrap();
        }
        let lines = format!("sendfile {sendfile}; tcp_nopush on;");
        let Some(_proxy) = Proxy::nginx(&topology, folder.path(), &lines, true) else {
            return;
        };
        let inbound = topology.inbound;
        let wrong = topology.client.within(|| {
            let mut client = Client::connect(inbound)?;
            let mut sizes = SIZES.into_iter().cycle().take(40);
            sizes.try_fold(0, |wrong, size| {
                client.send_path(&format!("/files/{size}"))?;
                Ok::<_, io::Error>(wrong + client.answer(7, size, size > 100_000)?)
            })
        });
        assert_eq!(wrong.unwrap().unwrap(), 0, "wrong bytes");
        let total = bypass.counters().unwrap().total;
        assert!(total.redirected_share() > Some(0.1), "{total:?}");
    }
}

#[test]
fn nginx_that_sends_files_by_sendfile() {
    files_through("on");
}

#[test]
fn nginx_that_reads_files() {
    files_through("off");
}
