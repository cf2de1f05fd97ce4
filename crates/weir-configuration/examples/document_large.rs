//! How long it takes to read, change and adapt an Envoy bootstrap of 10,000 clusters.
//!
//! `cargo run --release -p weir-configuration --example document_large`

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fmt::Write;
use std::time::Instant;

use weir_configuration::document::{self, Dialect, Format};
use weir_configuration::{Surroundings, Wanted};
use weir_parameters::Parameter;

const ROW: &str = r#"{"id": "connect_timeout", "scope": "proxy_directive",
    "level": {"duration": {"min": "1ms", "max": "24h", "step": "1ms"}},
    "default": {"level": "5s"}, "why": "", "source": "",
    "effective": {"value": {"context": "cluster", "at": "/connect_timeout"}},
    "writes": [{"context": "cluster", "at": "/connect_timeout", "text": "\"{seconds}s\""}]}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let main = folder.path().join("envoy.yaml");
    std::fs::write(&main, configuration(10_000)?)?;
    let row: Parameter = serde_json::from_str(ROW)?;

    let begin = Instant::now();
    let source = document::read(&main, Format::Yaml)?;
    let read = begin.elapsed();
    let wanted = [Wanted {
        row: &row,
        level: "7s",
    }];
    let changed = document::change(&source, Dialect::Envoy, &wanted)?;
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
    let copy = document::adapt_envoy(&changed, &surroundings)?;
    let adapt = begin.elapsed() - change - read;
    std::fs::write(folder.path().join("copy.yaml"), &copy.files[0].text)?;
    println!(
        "{} bytes: read {read:?}, one setting {change:?}, adapted {adapt:?}, in all {:?}",
        source.files[0].text.len(),
        begin.elapsed(),
    );
    Ok(())
}

fn configuration(clusters: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::from(
        "static_resources:\n  listeners:\n  - name: web\n    address:\n      socket_address: {address: \
         0.0.0.0, port_value: 80}\n  clusters:\n",
    );
    for cluster in 0..clusters {
        write!(
            text,
            "  - name: c{cluster}\n    type: STRICT_DNS\n    connect_timeout: {}s\n    \
             load_assignment:\n      cluster_name: c{cluster}\n      endpoints:\n      - lb_endpoints:\n\
             \x20       - endpoint:\n            address:\n              socket_address: {{address: \
             10.0.0.1, port_value: 80}}\n",
            cluster % 5 + 1,
        )?;
    }
    Ok(text)
}
