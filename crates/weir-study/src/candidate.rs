//! Studies of a program or a configuration and its candidate, both of which weir starts.

use std::path::PathBuf;

use weir_model::flow::FlowSpec;
use weir_model::study::{ProxyKind, Study};
use weir_model::tls::TlsSpec;
use weir_parameters::Catalog;

use crate::server::{LENGTH_OF_COMPARISON, SHARE, expecting_success};

/// Parameter of the idle connections to the origin server that a proxy keeps.
const ORIGIN_KEEPALIVE: &str = "origin_keepalive";

/// A proxy's program, and the configuration of which it gets a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramFiles {
    /// Path of the program; `None`: the one found on PATH.
    pub program: Option<PathBuf>,
    /// Path of the configuration's main file; `None`: weir writes one.
    pub configuration: Option<PathBuf>,
}

/// A proxy and its candidate.
#[derive(Debug, Clone)]
pub struct CandidatePair {
    /// Kind of both proxies.
    pub kind: ProxyKind,
    /// Files of the proxy that is known, and of the one that is compared with it.
    pub files: [ProgramFiles; 2],
}

impl CandidatePair {
    /// Writes the study as a file has it. Its loads have the number of connections of `flow`.
    pub fn text(&self, flow: &FlowSpec, rate: Option<f64>, catalog: &Catalog) -> String {
        let [old, new] = &self.files;
        let kind = self.kind.name();
        let stock = catalog.defaults(self.kind);
        let opens_for_each_request = stock.get(ORIGIN_KEEPALIVE).is_some_and(|level| level == "0");
        let rate = match rate {
            Some(rate) => rate.to_string(),
            None => format!("up to {:.0}% of slowest", SHARE * 100.0),
        };
        let load = format!(
            "connections: {}, duration: {}s{}",
            flow.connections,
            LENGTH_OF_COMPARISON.as_secs(),
            if flow.tls.is_some() { ", tls: true" } else { "" },
        );
        format!(
            "weir: 1\n\
             name: compare-{kind}\n\
             question: {}\n\
             proxy: {}\n\
             loads:\n  \
               - {{name: closed, closed: true, {load}}}\n  \
               - {{name: open, rate: {rate}, {load}}}\n\
             a/a: false\n\
             compare: overall\n\
             baseline: old\n\
             arms:\n  \
               - {{name: new, proxy: {}}}\n",
            quoted(&format!("Is {} worse than {}?", describe(new, kind), describe(old, kind))),
            proxy(old, kind, opens_for_each_request),
            proxy(new, kind, opens_for_each_request),
        )
    }

    /// Gives the study that was read from [`CandidatePair::text`] the requests of `flow`.
    pub fn with_flow(study: Study, flow: &FlowSpec) -> Study {
        let (mut study, flow) = (study, expecting_success(flow.clone()));
        for load in &mut study.loads {
            let arrivals = load.arrivals.clone();
            // Proxies that weir starts have the run's certificate, whatever the URL's host is.
            let trust = load.tls.as_ref().map(|tls| tls.trust.clone());
            let tls = flow.tls.clone().zip(trust).map(|(tls, trust)| TlsSpec { trust, ..tls });
            load.main = FlowSpec { arrivals, tls, name: load.main.name.clone(), ..flow.clone() };
        }
        study
    }
}

/// Returns the section of a study about a proxy, which keeps connections to the origin server.
fn proxy(files: &ProgramFiles, kind: &str, opens_for_each_request: bool) -> String {
    let ProgramFiles { program, configuration } = files;
    let mut section = format!("{{kind: {kind}");
    for (key, path) in [("executable", program), ("configuration", configuration)] {
        if let Some(path) = path {
            section += &format!(", {key}: {}", quoted(&path.display().to_string()));
        }
    }
    if configuration.is_none() && opens_for_each_request {
        // Otherwise the ports run out before the proxy's CPU does.
        section += &format!(", settings: {{{ORIGIN_KEEPALIVE}: 64}}");
    }
    section + "}"
}

/// Returns a text in single quotes, as YAML reads it without escapes (YAML 1.2, 7.3.2).
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Names what is compared: the program, the configuration, or both.
fn describe(files: &ProgramFiles, kind: &str) -> String {
    let program = match &files.program {
        Some(program) => program.display().to_string(),
        None => kind.to_owned(),
    };
    match &files.configuration {
        Some(configuration) => format!("{program} with {}", configuration.display()),
        None => program,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weir_model::flow::ArrivalsSpec;

    use super::*;

    #[test]
    fn any_path_is_read_back_from_the_text() {
        let files = ["/opt/it's: a {path}#/nginx", "/etc/nginx/nginx.conf"]
            .map(|path| ProgramFiles { program: Some(path.into()), configuration: None });
        let pair = CandidatePair { kind: ProxyKind::Nginx, files };
        let text = pair.text(&FlowSpec::new(7, ArrivalsSpec::Closed), None, &Catalog::builtin());
        let expected =
            "executable: '/opt/it''s: a {path}#/nginx', settings: {origin_keepalive: 64}";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("rate: up to 60% of slowest, connections: 7"), "{text}");
        let programs = crate::programs(&text);
        let paths: Vec<_> = programs.iter().filter_map(|(_, path)| path.as_deref()).collect();
        assert!(paths.contains(&Path::new("/opt/it's: a {path}#/nginx")), "{paths:?}");
    }
}
