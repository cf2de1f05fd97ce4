//! How long a configuration of 10,000 servers takes to be read, changed and written:
//! `cargo run --release -p weir-configuration --example large [servers]`.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{Write as _, stdout};
use std::time::Instant;

use weir_configuration::{Wanted, diff, nginx};
use weir_model::study::ProxyKind;
use weir_parameters::Catalog;

fn main() -> Result<(), Box<dyn Error>> {
    let servers = std::env::args()
        .nth(1)
        .map_or(Ok(10_000), |it| it.parse())?;
    let folder = tempfile::tempdir()?;
    let main = folder.path().join("nginx.conf");
    fs::write(&main, configuration(servers)?)?;
    let catalog = Catalog::builtin();
    let wanted = |id, level| {
        let row = catalog.get(ProxyKind::Nginx, id);
        row.map(|row| Wanted { row, level }).ok_or("no such row")
    };

    let begin = Instant::now();
    let source = nginx::read(&main, None)?;
    let read = begin.elapsed();
    // One in `http`, and three in each of the servers and groups.
    let settings = [wanted("gzip", "on")?, wanted("origin_keepalive", "32")?];
    let changed = nginx::change(&source, &settings)?;
    let change = begin.elapsed() - read;
    changed.write_below(&folder.path().join("copy"))?;
    let all = begin.elapsed();
    let patch = diff(&source, &changed);
    let difference = begin.elapsed() - all;
    writeln!(
        stdout(),
        "{servers} servers, {} lines: read {read:.0?}, changed {change:.0?}, with writing {all:.0?}; \
         diff of {} lines {difference:.0?}",
        source.files[0].text.lines().count(),
        patch.lines().count(),
    )?;
    Ok(())
}

fn configuration(servers: usize) -> Result<String, std::fmt::Error> {
    let mut text = String::from("events {\n    worker_connections 4096;\n}\nhttp {\n");
    for number in 0..servers {
        write!(
            text,
            "\n    upstream app{number} {{\n        server 192.0.2.1:8080;\n    }}\n\n    \
             server {{\n        listen 80;\n        server_name site{number}.example.com;\n\n        \
             location / {{\n            proxy_pass http://app{number};\n            \
             proxy_set_header Host $host;\n        }}\n    }}\n"
        )?;
    }
    text += "}\n";
    Ok(text)
}
