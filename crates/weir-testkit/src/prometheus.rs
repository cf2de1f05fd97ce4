//! A real Prometheus: it scrapes, is asked by PromQL, and takes remote write.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::wait_until;

/// Time for one answer of Prometheus.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns an address of loopback that nothing listens on.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address")
}

/// A Prometheus that ends with its value.
pub struct Prometheus {
    child: Child,
    address: SocketAddr,
    folder: TempDir,
}

impl Prometheus {
    /// Starts Prometheus, which scrapes `target` every 500 ms. With `is_native` it knows native histograms and scrapes
    /// protobuf, without it OpenMetrics text.
    pub fn start(target: SocketAddr, is_native: bool) -> Prometheus {
        let folder = tempfile::tempdir().expect("a folder");
        let configuration = format!(
            "global: {{scrape_interval: 500ms}}\n\
             scrape_configs: [{{job_name: weir, static_configs: [{{targets: ['{target}']}}]}}]\n"
        );
        std::fs::write(folder.path().join("prometheus.yml"), configuration).expect("own folder");
        let address = free_address();
        let mut prometheus =
            Prometheus { child: launch(folder.path(), address, is_native), address, folder };
        prometheus.await_ready();
        // Targets are tried some seconds after the start.
        wait_until("Prometheus scrapes", || prometheus.number("count(up)") == Some(1.0));
        prometheus
    }

    /// Ends the process and starts another one with the same data.
    pub fn restart(&mut self) {
        self.end();
        self.child = launch(self.folder.path(), self.address, true);
        self.await_ready();
    }

    /// Returns the address of its API.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the folder of its data.
    pub fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("data")
    }

    /// Kills the process.
    pub fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn await_ready(&mut self) {
        wait_until("Prometheus is ready", || {
            let ended = self.child.try_wait().expect("a child of ours");
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(ended.is_none(), "Prometheus ended: {log}");
            get(self.address, "/-/ready").is_some_and(|answer| answer.contains("200 OK"))
        });
    }

    /// Returns the result of an instant query now.
    pub fn query(&self, query: &str) -> Vec<Value> {
        self.query_with(query, "")
    }

    /// Returns the result of an instant query at a time, seconds since 1970.
    pub fn query_at(&self, query: &str, at: f64) -> Vec<Value> {
        self.query_with(query, &format!("&time={at}"))
    }

    fn query_with(&self, query: &str, more: &str) -> Vec<Value> {
        let path = format!("/api/v1/query?query={}{more}", encoded(query));
        let answer = get(self.address, &path).unwrap_or_default();
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let document: Value = serde_json::from_str(body).unwrap_or_default();
        assert_eq!(document["status"], "success", "{query}: {answer}");
        document["data"]["result"].as_array().cloned().unwrap_or_default()
    }

    /// Returns the value that a query had when weir was scraped last.
    pub fn last(&self, query: &str) -> Option<f64> {
        match &self.results_at_last(query)[..] {
            [only] => only["value"][1].as_str()?.parse().ok(),
            _ => None,
        }
    }

    /// Returns the results that a query had when weir was scraped last; none if it never was.
    pub fn results_at_last(&self, query: &str) -> Vec<Value> {
        let at = self.number("max(max_over_time(timestamp(weir_run)[10m:100ms]))");
        at.map_or(Vec::new(), |at| self.query_at(query, at))
    }

    /// Returns the value of a query with one result; `None` if it has another number of results.
    pub fn number(&self, query: &str) -> Option<f64> {
        match &self.query(query)[..] {
            [only] => only["value"][1].as_str()?.parse().ok(),
            _ => None,
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.end();
    }
}

fn launch(folder: &Path, address: SocketAddr, is_native: bool) -> Child {
    let log =
        File::options().append(true).create(true).open(folder.join("log")).expect("own folder");
    let mut command = Command::new("prometheus");
    command
        .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        .args(["--web.enable-remote-write-receiver", "--storage.tsdb.retention.time=100y"])
        .args(is_native.then_some("--enable-feature=native-histograms"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    command.spawn().expect("these tests need Prometheus: apt-get install prometheus")
}

/// Returns the answer to a GET request, with its head; `None` if nobody answers.
pub fn get(address: SocketAddr, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: {address}\r\nAccept: application/openmetrics-text\r\n\r\n"
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn encoded(query: &str) -> String {
    query
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}
