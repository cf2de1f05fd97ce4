//! How long configurations of 10,000 servers, backends or clusters take to be read, changed, adapted and
//! written: `cargo run --release -p weir-configuration --example large [count]`.

use std::error::Error;
use std::fs;
use std::io::{Write as _, stdout};
use std::path::Path;
use std::time::Instant;

use weir_configuration::document::{self, Dialect, Format};
use weir_configuration::{ConfigurationError, Source, Surroundings, Wanted, diff, haproxy, nginx};
use weir_model::study::ProxyKind::{self, Envoy, Haproxy, Nginx};
use weir_parameters::Catalog;

type Read = Result<Source, ConfigurationError>;

/// A language: what is put into force, the begin of a configuration, one of its many parts, and its end.
struct Language {
    kind: ProxyKind,
    file: &'static str,
    settings: &'static [(&'static str, &'static str)],
    head: &'static str,
    part: fn(usize) -> String,
    end: &'static str,
}

const LANGUAGES: [Language; 3] = [
    Language {
        kind: Nginx,
        file: "nginx.conf",
        // One in `http`, and three in each of the servers and groups.
        settings: &[("gzip", "on"), ("origin_keepalive", "32")],
        head: "events {\n    worker_connections 4096;\n}\nhttp {\n",
        part: |number| {
            format!(
                "\n    upstream app{number} {{\n        server 192.0.2.1:8080;\n    }}\n\n    \
                 server {{\n        listen 80;\n        server_name site{number}.example.com;\n\n        \
                 location / {{\n            proxy_pass http://app{number};\n            \
                 proxy_set_header Host $host;\n        }}\n    }}\n"
            )
        },
        end: "}\n",
    },
    Language {
        kind: Haproxy,
        file: "haproxy.cfg",
        settings: &[
            ("timeout_server", "7s"),
            ("nbthread", "4"),
            ("pool_max_conn", "4"),
        ],
        head: "global\n  maxconn 20000\n\ndefaults base\n  mode http\n  timeout connect 5s\n  timeout \
               client 30s\n  timeout server 30s\n\nfrontend web from base\n  bind :80\n  \
               default_backend b0\n",
        // Each says how long it waits, and has two servers.
        part: |number| {
            format!(
                "\nbackend b{number} from base\n  balance roundrobin\n  timeout server {}s\n  server a \
                 10.0.0.1:80 weight 10\n  server b 10.0.0.2:80 backup\n",
                number % 50 + 1
            )
        },
        end: "",
    },
    Language {
        kind: Envoy,
        file: "envoy.yaml",
        settings: &[("max_connections", "7")],
        head: "static_resources:\n  listeners:\n  - name: web\n    address:\n      socket_address: \
               {address: 0.0.0.0, port_value: 80}\n  clusters:\n",
        part: |number| {
            format!(
                "  - name: c{number}\n    type: STRICT_DNS\n    connect_timeout: {}s\n    \
                 load_assignment:\n      cluster_name: c{number}\n      endpoints:\n      - lb_endpoints:\n\
                 \x20       - endpoint:\n            address:\n              socket_address: {{address: \
                 10.0.0.1, port_value: 80}}\n",
                number % 5 + 1
            )
        },
        end: "",
    },
];

impl Language {
    fn read(&self, main: &Path) -> Read {
        match self.kind {
            Nginx => nginx::read(main, None),
            Haproxy => haproxy::read(main),
            _ => document::read(main, Format::Yaml),
        }
    }

    fn change(&self, source: &Source, wanted: &[Wanted<'_>]) -> Read {
        match self.kind {
            Nginx => nginx::change(source, wanted),
            Haproxy => haproxy::change(source, wanted),
            _ => document::change(source, Dialect::Envoy, wanted),
        }
    }

    fn adapt(&self, source: &Source, surroundings: &Surroundings<'_>) -> Read {
        match self.kind {
            Nginx => nginx::adapt(source, surroundings, ""),
            Haproxy => haproxy::adapt(source, surroundings),
            _ => document::adapt_envoy(source, surroundings),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let count = std::env::args().nth(1);
    let count = count.map_or(Ok(10_000), |it| it.parse())?;
    let catalog = Catalog::builtin();
    for language in LANGUAGES {
        let folder = tempfile::tempdir()?;
        let main = folder.path().join(language.file);
        let parts: String = (0..count).map(language.part).collect();
        fs::write(&main, [language.head, &parts, language.end].concat())?;
        let row = |id: &str| catalog.get(language.kind, id).ok_or("no such row");
        let wanted = language.settings.iter();
        let wanted: Vec<Wanted<'_>> = wanted
            .map(|(id, level)| {
                Ok(Wanted {
                    row: row(id)?,
                    level,
                })
            })
            .collect::<Result<_, &str>>()?;
        let surroundings = Surroundings {
            prefix: folder.path(),
            listen: ([127, 0, 0, 1], 8080).into(),
            tls_listen: None,
            certificate: None,
            port: None,
            origin: ([127, 0, 0, 1], 8081).into(),
            user: None,
        };

        let begin = Instant::now();
        let source = language.read(&main)?;
        let read = begin.elapsed();
        let changed = language.change(&source, &wanted)?;
        let change = begin.elapsed() - read;
        let copy = language.adapt(&changed, &surroundings)?;
        let adapt = begin.elapsed() - change - read;
        copy.write_below(&folder.path().join("copy"))?;
        let all = begin.elapsed();
        let patch = diff(&source, &changed);
        let difference = begin.elapsed() - all;
        writeln!(
            stdout(),
            "{}: {} lines: read {read:.0?}, changed {change:.0?}, adapted {adapt:.0?}, with writing \
             {all:.0?}; diff of {} lines {difference:.0?}",
            language.file,
            source.files[0].text.lines().count(),
            patch.lines().count(),
        )?;
    }
    Ok(())
}
