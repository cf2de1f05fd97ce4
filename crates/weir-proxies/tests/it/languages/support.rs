//! Rows, copies in temporary folders, the proxies' own checkers, and running copies.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weir_configuration::{Ask, Listener, Source, SourceFile, Surroundings};
use weir_model::study::{AskSpec, RequestedSpec};
use weir_parameters::Parameter;

/// Returns a row with only the fields that a writer of configurations reads.
pub(crate) fn row(level: &str, effective: &str, writes: &str) -> Parameter {
    let row = format!(
        r#"{{"id": "row", "scope": "proxy_directive", "level": {level}, "default": {{"level": "1"}},
            "why": "", "source": "", "effective": {effective}, "writes": {writes}}}"#
    );
    serde_json::from_str(&row).unwrap_or_else(|e| panic!("{e}: {row}"))
}

/// Returns a configuration of one file that is not on disk.
pub(crate) fn make_source(name: &str, text: &str) -> Source {
    let path = Path::new("/etc/proxy").join(name);
    Source::new(vec![SourceFile { path, text: text.to_owned() }])
}

pub(crate) fn text(source: &Source) -> &str {
    &source.files[0].text
}

/// Returns a temporary folder for a copy, with the folders that the copy writes to.
pub(crate) fn make_prefix() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("run")).unwrap();
    fs::create_dir(folder.path().join("logs")).unwrap();
    folder
}

/// Addresses of copies that do not run.
pub(crate) const LISTEN: &str = "127.0.0.1:7001";
pub(crate) const ORIGIN: &str = "127.0.0.1:7002";
pub(crate) const TLS_LISTEN: &str = "127.0.0.1:7003";

pub(crate) fn parse_address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Returns surroundings of a copy that does not run.
pub(crate) fn of_a_test(prefix: &Path) -> Surroundings<'_> {
    make_surroundings(prefix, parse_address(LISTEN), parse_address(ORIGIN))
}

/// Returns the surroundings of [`of_a_test`] with an additional listener for TLS.
pub(crate) fn with_tls(prefix: &Path) -> Surroundings<'_> {
    let mut surroundings = of_a_test(prefix);
    surroundings.asks.push(ask(true, parse_address(TLS_LISTEN)));
    surroundings
}

/// Returns the requests of a load that names no host, path or port.
pub(crate) fn ask(tls: bool, at: SocketAddr) -> Ask {
    let requested = RequestedSpec { target: "/".to_owned(), ..RequestedSpec::default() };
    Ask { spec: AskSpec { tls, requests: vec![requested], ..AskSpec::default() }, at }
}

/// Returns the same surroundings with a port of the proxy.
pub(crate) fn at_port(mut surroundings: Surroundings<'_>, port: u16) -> Surroundings<'_> {
    for ask in &mut surroundings.asks {
        ask.spec.proxy_port = Some(port);
    }
    surroundings
}

/// Returns the same surroundings with a host that the loads name.
pub(crate) fn for_host<'p>(mut surroundings: Surroundings<'p>, host: &str) -> Surroundings<'p> {
    for ask in &mut surroundings.asks {
        ask.spec.host = Some(host.to_owned());
    }
    surroundings
}

/// Returns surroundings that contain nothing of the machine except `prefix` and the addresses.
pub(crate) fn make_surroundings(
    prefix: &Path,
    listen: SocketAddr,
    origin: SocketAddr,
) -> Surroundings<'_> {
    Surroundings { prefix, asks: vec![ask(false, listen)], certificate: None, origin, user: None }
}

/// Formats listeners by line, address and port.
pub(crate) fn listed(listeners: &[Listener]) -> String {
    listeners
        .iter()
        .map(|it| {
            let port = it.port.map_or_else(String::new, |port| format!(" {port}"));
            let tls = if it.tls { " TLS" } else { "" };
            format!("{} {}{port}{tls}", it.line, it.address)
        })
        .collect::<Vec<_>>()
        .join(", ")
}

#[track_caller]
pub(crate) fn must_have(text: impl std::fmt::Display, parts: &[&str]) {
    let output = text.to_string();
    for part in parts {
        assert!(output.contains(part), "no {part:?} in {output}");
    }
}

/// Writes a copy; returns the path of its main file, or of its folder if there are several files.
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

/// Returns true if a program is installed; otherwise prints that the test is skipped.
pub(crate) fn has(program: impl AsRef<Path>) -> bool {
    let path = program.as_ref();
    let is_installed = path.exists();
    if !is_installed {
        println!("skipped: {} is not installed", path.display());
    }
    is_installed
}

/// Returns the path of a program on PATH, or in a folder in which weir's set-up installs programs that no package
/// contains. If it is not there, returns its name alone.
pub(crate) fn located(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
    let mut files = std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/local/bin"), home.join(".local/bin")])
        .map(|folder| folder.join(program));
    files.find(|file| file.is_file()).unwrap_or_else(|| PathBuf::from(program))
}

/// Runs a checker to its end and checks that it succeeds.
pub(crate) fn checked(name: &str, command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {command:?}: {}\n{messages}", output.status);
}

/// Returns an address of this host on which nobody listens, and that no other test gets. Its port is below those that
/// the kernel assigns, which the origin server of a parallel test could take first.
pub(crate) fn free_address() -> SocketAddr {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let nth = GIVEN.fetch_add(1, Ordering::Relaxed);
        let port = 12_000 + (std::process::id() * 64 + nth) % 20_000;
        let address = parse_address(&format!("127.0.0.1:{port}"));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// Starts a server that answers every request with 200 and `from the origin`, for as long as the test lasts.
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

/// A running proxy, ended on drop.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        Running(quiet.spawn().unwrap())
    }

    /// Returns the proxy's answer once it listens, waiting at most half a minute.
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
    /// Asks the proxy to end before killing it: a killed proxy would leave its workers behind.
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
    write!(stream, "GET {path} HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Returns a certificate and its key for `example.com`, both in PEM.
pub(crate) fn certificate() -> (String, String) {
    let names = vec!["example.com".to_owned()];
    let certified = rcgen::generate_simple_self_signed(names).unwrap();
    (certified.cert.pem(), certified.signing_key.serialize_pem())
}
