//! Checks every byte through real proxies, with both hops bypassed and without.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;

use crate::bypass_at;
use crate::peers::{Client, Place, Proxy, content};

const SIZES: [usize; 8] = [0, 1, 100, 1_024, 4_096, 10_000, 100_000, 1 << 20];

/// Checks a proxy by TCP and with both hops bypassed, in every place.
fn through(uploads: bool, start: impl Fn(&Place, &Path) -> Option<Proxy>) {
    by_hops(|place| vec![place.inbound, place.outbound], uploads, start);
}

/// Checks a proxy by TCP and with these hops bypassed, in every place.
fn by_hops(
    hops: fn(&Place) -> Vec<SocketAddr>,
    uploads: bool,
    start: impl Fn(&Place, &Path) -> Option<Proxy>,
) {
    for place in Place::all() {
        place.serve();
        let folder = tempfile::tempdir().unwrap();
        for bypassed in [false, true] {
            let bypass = bypassed.then(|| bypass_at(&place, &hops(&place)));
            if let Some(None) = bypass {
                return;
            }
            let Some(proxy) = start(&place, folder.path()) else {
                return;
            };
            put_to_proof(&place, uploads, bypassed);
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

fn put_to_proof(place: &Place, uploads: bool, bypassed: bool) {
    thread::scope(|scope| {
        let client = |number| {
            scope.spawn(move || {
                place.client.join().unwrap();
                one_client(place, uploads, number * 1_000).map_err(|e| format!("{number}: {e}"))
            })
        };
        for client in (0..8_u64).map(client).collect::<Vec<_>>() {
            let wrong = client.join().unwrap();
            assert_eq!(wrong, Ok(0), "wrong bytes, bypassed: {bypassed}");
        }
    });
}

/// Sends requests on kept connections, on one connection each, pipelined, as uploads, and as a slow reader; returns the
/// number of wrong bytes.
fn one_client(place: &Place, uploads: bool, first: u64) -> io::Result<usize> {
    let mut wrong = 0;
    let mut client = Client::connect(place.inbound)?;
    for (number, size) in (first..).zip(SIZES.into_iter().cycle().take(24)) {
        wrong += client.get(number, size)?;
        if uploads {
            client.send_post(number, size)?;
            wrong += client.answer(number, size, false)?;
        }
        if size < 100_000 {
            wrong += Client::connect(place.inbound)?.get(number, size)?;
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
    through(true, |place, folder| Proxy::nginx(place, folder, "", true));
}

#[test]
fn nginx_that_opens_a_connection_for_each_request() {
    through(true, |place, folder| Proxy::nginx(place, folder, "", false));
}

#[test]
fn nginx_that_buffers_nothing() {
    let lines = "proxy_buffering off; proxy_request_buffering off;";
    through(true, |place, folder| Proxy::nginx(place, folder, lines, true));
}

#[test]
fn haproxy() {
    through(true, |place, folder| Proxy::haproxy(place, folder, ""));
}

/// HAProxy sends content from a certain length on to a bypassed socket by splice(2). From a bypassed socket, splice
/// would never return the content, since it reads only bytes that came by TCP.
#[test]
fn haproxy_that_splices_to_its_clients() {
    by_hops(
        |place| vec![place.inbound],
        true,
        |place, folder| Proxy::haproxy(place, folder, " option splice-response\n"),
    );
}

/// Runs without uploads: for some, Caddy 2.6.2 closes its connection to the origin server while it reads the answer, by
/// TCP as well as bypassed, and logs `aborting with incomplete response`.
#[test]
fn caddy() {
    through(false, Proxy::caddy);
}

#[test]
fn envoy() {
    through(true, Proxy::envoy);
}

/// Checks nginx serving a file of SIZE bytes for `GET /files/SIZE`.
fn files_through(sendfile: &str) {
    for place in Place::all() {
        let Some(bypass) = bypass_at(&place, &[place.inbound]) else {
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
        let Some(_proxy) = Proxy::nginx(&place, folder.path(), &lines, true) else {
            return;
        };
        let inbound = place.inbound;
        let ask = || {
            let mut client = Client::connect(inbound)?;
            let mut sizes = SIZES.into_iter().cycle().take(40);
            sizes.try_fold(0, |wrong, size| {
                client.send_path(&format!("/files/{size}"))?;
                Ok::<_, io::Error>(wrong + client.answer(7, size, size > 100_000)?)
            })
        };
        assert_eq!(place.client.within(ask).unwrap().unwrap(), 0, "wrong bytes");
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
