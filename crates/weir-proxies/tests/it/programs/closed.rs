//! Tests that only weir's user can access what is written for a proxy, and that a proxy's workers, often another user,
//! can access no more than they need.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use weir_model::study::ProxyKind;

use crate::programs::life::one_of_each;
use crate::programs::setup::{Arm, Setup};
use crate::programs::support::Origin;

/// Options of setpriv(1) for a user and a group that nobody has.
const STRANGER: [&str; 3] = ["--reuid=54321", "--regid=54321", "--clear-groups"];

/// Returns all paths below a folder except links.
fn all_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = vec![folder.to_owned()];
    let mut at = 0;
    while let Some(path) = all.get(at).cloned() {
        let paths = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        all.extend(paths.filter(|path| !path.is_symlink()));
        at += 1;
    }
    all
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").mode() & 0o777
}

/// Asserts that users other than weir's cannot access an arm's files.
fn must_be_closed(arm: &Arm) {
    let (prefix, kind) = (arm.configuration.prefix(), arm.configuration.kind());
    assert_eq!(mode(prefix) & 0o767, 0o700, "{kind:?}");
    for path in all_below(prefix) {
        let metadata = fs::metadata(&path).expect("it is there");
        let (shown, bits) = (path.display(), mode(&path));
        match path.strip_prefix(prefix.join("conf")) {
            Ok(_) if metadata.is_dir() => assert_eq!(bits, 0o700, "{shown}"),
            Ok(_) => assert_eq!(bits, 0o600, "{shown}"),
            // Proxies give their sockets and process numbers modes of their own; nobody gets there.
            Err(_) if !metadata.is_dir() && path.starts_with(prefix.join("run")) => {}
            Err(_) => assert_eq!(bits & 0o027, 0, "{shown} {bits:o}"),
        }
    }
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut find = Command::new("setpriv");
    find.args(STRANGER).args(["--", "find"]);
    find.args(all_below(arm.folder.path()));
    find.args(["-maxdepth", "0", "(", "-readable", "-o", "-writable", ")"]);
    let output = find.output().expect("setpriv and find are there");
    let open_paths = String::from_utf8_lossy(&output.stdout);
    assert_eq!(open_paths, "", "{kind:?}: a stranger can read or write these");
}

/// Sends content that no proxy keeps in memory; returns the status line.
fn post(address: SocketAddr, bytes: usize) -> String {
    let mut stream = TcpStream::connect(address).expect("the proxy accepts");
    let head = format!(
        "POST / HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: {bytes}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the proxy reads");
    // It may have answered before it has all.
    let _ = stream.write_all(&vec![b'x'; bytes]);
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response);
    response.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_proxy_s_folder_is_closed_to_others_and_its_workers_reach_what_they_need() {
    let origin = Origin::start();
    for subject in one_of_each() {
        let arm = Setup::proxy(subject.kind, &[], origin.address).start_with_tls();
        assert!(arm.get("/").ends_with("hello"), "{:?}", subject.kind);
        arm.effective();
        arm.counters();
        if subject.kind == ProxyKind::Nginx {
            // Its workers put this into a file of their own.
            let status = post(arm.proxy.address(), 2 << 20);
            assert!(!status.contains(" 500 "), "{status}");
            let log = arm.proxy.error_log_tail();
            assert!(!log.contains("ermission denied"), "{log}");
        }
        must_be_closed(&arm);
        if subject.kind.serves_files() {
            let arm = Setup::files(subject.kind, &[], 100_000).start();
            let length = arm.get("/").len();
            assert!(length > 100_000, "{:?}: {length}", subject.kind);
            must_be_closed(&arm);
        }
    }
}

#[test]
fn haproxy_s_sockets_are_weir_s_user_s_alone() {
    let origin = Origin::start();
    let arm = Setup::proxy(ProxyKind::Haproxy, &[], origin.address).start();
    for name in ["run/admin.sock", "run/master.sock"] {
        assert_eq!(mode(&arm.configuration.prefix().join(name)), 0o600, "{name}");
    }
}
