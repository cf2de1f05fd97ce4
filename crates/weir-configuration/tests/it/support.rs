//! Rows, copies in temporary folders, the proxies' own checkers, and running copies.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weir_configuration::{Listener, Source, SourceFile, Surroundings};
use weir_parameters::Parameter;

/// A row with only what a writer of configurations reads.
pub(crate) fn row(level: &str, effective: &str, writes: &str) -> Parameter {
    let row = format!(
        r#"{{"id": "row", "scope": "proxy_directive", "level": {level}, "default": {{"level": "1"}},
            "why": "", "source": "", "effective": {effective}, "writes": {writes}}}"#
    );
    serde_json::from_str(&row).unwrap_or_else(|e| panic!("{e}: {row}"))
}

/// A configuration of one file that is nowhere.
pub(crate) fn source(name: &str, text: &str) -> Source {
    let path = Path::new("/etc/proxy").join(name);
    let text = text.to_owned();
    Source::new(vec![SourceFile { path, text }])
}

/// The text of a configuration of one file.
pub(crate) fn text(source: &Source) -> &str {
    &source.files[0].text
}

/// A folder for a copy, with what the copy may use.
pub(crate) fn prefix() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("run")).unwrap();
    fs::create_dir(folder.path().join("logs")).unwrap();
    folder
}

/// Where copies are that do not run.
pub(crate) const LISTEN: &str = "127.0.0.1:7001";
pub(crate) const ORIGIN: &str = "127.0.0.1:7002";
pub(crate) const TLS_LISTEN: &str = "127.0.0.1:7003";

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Surroundings of a copy that does not run.
pub(crate) fn of_a_test(prefix: &Path) -> Surroundings<'_> {
    surroundings(prefix, address(LISTEN), address(ORIGIN))
}

/// The same with a listener for TLS.
pub(crate) fn with_tls(prefix: &Path) -> Surroundings<'_> {
    Surroundings {
        tls_listen: Some(address(TLS_LISTEN)),
        ..of_a_test(prefix)
    }
}

/// Surroundings in `prefix` that nothing of the machine's stands in.
pub(crate) fn surroundings(
    prefix: &Path,
    listen: SocketAddr,
    origin: SocketAddr,
) -> Surroundings<'_> {
    Surroundings {
        prefix,
        listen,
        tls_listen: None,
        certificate: None,
        port: None,
        origin,
        user: None,
    }
}

/// Listeners by line, address and port.
pub(crate) fn listed(listeners: &[Listener]) -> String {
    let one = |it: &Listener| {
        let port = it.port.map_or_else(String::new, |port| format!(" {port}"));
        let tls = if it.tls { " TLS" } else { "" };
        format!("{} {}{port}{tls}", it.line, it.address)
    };
    listeners.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Looks whether a text has all these parts.
#[track_caller]
pub(crate) fn must_have(text: impl std::fmt::Display, parts: &[&str]) {
    let text = text.to_string();
    for part in parts {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

/// Writes a copy; the path of its main file, or of its folder where there are several.
pub(crate) fn write(source: &Source, prefix: &Path) -> PathBuf {
    let folder = prefix.join("copy");
    fs::create_dir_all(&folder).unwrap();
    for file in &source.files {
        fs::write(folder.join(file.path.file_name().unwrap()), &file.text).unwrap();
    }
    match &source.files[..] {
        [file] => folder.join(file.path.file_name().unwrap()),
        _ => folder,
    }
}

/// Whether a program is there; a test that needs it says so and ends.
pub(crate) fn has(program: impl AsRef<Path>) -> bool {
    let program = program.as_ref();
    let found = program.exists();
    if !found {
        println!("skipped: {} is not installed", program.display());
    }
    found
}

/// Where a program is: on PATH, or where weir's set-up puts what no package brings. Its name alone where it
/// is not.
pub(crate) fn located(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let mut files = std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/local/bin"), home.join(".local/bin")])
        .map(|folder| folder.join(program));
    let found = files.find(|file| file.is_file());
    found.unwrap_or_else(|| PathBuf::from(program))
}

/// Runs a checker to its end.
pub(crate) fn checked(name: &str, command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{name}: {command:?}: {}\n{said}",
        output.status
    );
}

/// An address of this host where nobody listens, and that no other test gets: it lies below the ports that
/// the kernel deals out, where the origin server of a test beside this one could take it first.
pub(crate) fn free_address() -> SocketAddr {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let nth = GIVEN.fetch_add(1, Ordering::Relaxed);
        let port = 12_000 + (std::process::id() * 64 + nth) % 20_000;
        let address = address(&format!("127.0.0.1:{port}"));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// A server that answers everything with 200 and `from the origin`, for as long as the test lasts.
pub(crate) fn origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                // A health check of a connection alone sends nothing.
                if stream.read(&mut request).is_ok_and(|n| n > 0) {
                    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\
                                  Connection: close\r\n\r\nfrom the origin";
                    let _ = stream.write_all(answer.as_bytes());
                }
            });
        }
    });
    address
}

/// A proxy that runs as long as this lives.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        Running(quiet.spawn().unwrap())
    }

    /// What the proxy answers, once it listens; it has half a minute.
    pub(crate) fn ask(&mut self, address: SocketAddr, path: &str) -> String {
        let until = Instant::now() + Duration::from_secs(30);
        loop {
            let answer = get(address, path).unwrap_or_default();
            if answer.contains("from the origin") || Instant::now() > until {
                return answer;
            }
            assert_eq!(self.0.try_wait().unwrap(), None, "the proxy has ended");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Running {
    /// One that is killed would leave its workers behind, so it is asked first.
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            if self.0.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A certificate and its key for `example.com`, in PEM one after the other.
pub(crate) fn certificate() -> (String, String) {
    let names = vec!["example.com".to_owned()];
    let certified = rcgen::generate_simple_self_signed(names).unwrap();
    (certified.cert.pem(), certified.signing_key.serialize_pem())
}
