//! How long it takes to read, change and write a haproxy.cfg of 10,000 backends.
//!
//! `cargo run --release -p weir-configuration --example haproxy_large`

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fmt::Write;
use std::time::Instant;

use weir_configuration::{Surroundings, Wanted, haproxy};
use weir_parameters::Parameter;

const ROWS: [&str; 3] = [
    r#"{"id": "timeout_server", "scope": "proxy_directive",
        "level": {"duration": {"min": "1ms", "max": "24h", "step": "1ms"}},
        "default": {"level": "30s"}, "why": "", "source": "",
        "effective": {"directive": {"name": "timeout server", "context": "defaults"}},
        "writes": [{"context": "defaults", "text": "timeout server {value}"}]}"#,
    r#"{"id": "nbthread", "scope": "proxy_directive", "level": {"integer": {"min": 1, "max": 64}},
        "default": {"level": "1"}, "why": "", "source": "",
        "effective": {"directive": {"name": "nbthread", "context": "global"}},
        "writes": [{"context": "global", "text": "nbthread {value}"}]}"#,
    r#"{"id": "pool_max_conn", "scope": "proxy_directive",
        "level": {"integer": {"min": 0, "max": 1000}},
        "default": {"level": "100"}, "why": "", "source": "",
        "effective": {"listen_flag": {"name": "pool-max-conn"}},
        "writes": [{"context": "server", "text": "pool-max-conn {value}"}]}"#,
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let main = folder.path().join("haproxy.cfg");
    std::fs::write(&main, configuration(10_000)?)?;
    let rows: Vec<Parameter> = ROWS
        .iter()
        .map(|row| serde_json::from_str(row))
        .collect::<Result<_, _>>()?;

    let begin = Instant::now();
    let source = haproxy::read(&main)?;
    let read = begin.elapsed();
    let wanted: Vec<Wanted<'_>> = rows
        .iter()
        .map(|row| Wanted {
            row,
            level: if row.id == "timeout_server" {
                "7s"
            } else {
                "4"
            },
        })
        .collect();
    let changed = haproxy::change(&source, &wanted)?;
    let change = begin.elapsed() - read;
    let surroundings = Surroundings {
        prefix: folder.path(),
        listen: ([127, 0, 0, 1], 8080).into(),
        tls_listen: None,
        certificate: None,
        port: None,
        origin: Some(([127, 0, 0, 1], 8081).into()),
        user: None,
    };
    let copy = haproxy::adapt(&changed, &surroundings)?;
    let adapt = begin.elapsed() - change - read;
    std::fs::write(folder.path().join("copy.cfg"), &copy.files[0].text)?;
    println!(
        "{} bytes: read {read:?}, {} settings {change:?}, adapted {adapt:?}, in all {:?}",
        source.files[0].text.len(),
        wanted.len(),
        begin.elapsed(),
    );
    Ok(())
}

/// Every backend says how long it waits, and has two servers.
fn configuration(backends: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::from(
        "global\n  maxconn 20000\n\ndefaults base\n  mode http\n  timeout connect 5s\n  timeout client \
         30s\n  timeout server 30s\n\nfrontend web from base\n  bind :80\n  default_backend b0\n",
    );
    for backend in 0..backends {
        write!(
            text,
            "\nbackend b{backend} from base\n  balance roundrobin\n  timeout server {}s\n  server a \
             10.0.0.1:80 weight 10\n  server b 10.0.0.2:80 backup\n",
            backend % 50 + 1,
        )?;
    }
    Ok(text)
}
