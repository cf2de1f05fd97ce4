//! Tests of studies: accepted, refused with which message, and that no input makes the reader panic.

mod bounded;
mod bursts;
mod controller;
mod expand;
mod flows;
mod gains;
mod kernel;
mod loads;
mod machine;
mod matrix;
mod mutate;
mod ready_made;
mod refuse;
mod requests;

use weir_model::study::{ProxyKind, Study};
use weir_parameters::Catalog;
use weir_study::{CheckContext, StudyErrors, parse};

/// Returns a small machine: two CPUs, and the descriptor limits that systemd gives a login.
fn context() -> CheckContext {
    CheckContext {
        descriptor_limit: 1024,
        most_descriptors: 524_288,
        own_tables: true,
        local_ports: 28_232,
        cpus_available: "0-1".parse().ok(),
        one_machine: true,
        node_sysctls: true,
        engine: weir_study::Engine::default(),
    }
}

fn read(text: &str) -> Result<Study, StudyErrors> {
    // Where the version is known, so are its defaults.
    let catalog = Catalog::builtin().for_proxy(ProxyKind::Nginx, "nginx/1.22.1");
    parse(text, "study.yaml", &catalog, &context())
}

/// Returns the message and the nearest name of each error.
fn messages_of(text: &str) -> Vec<String> {
    let errors = read(text).expect_err(text);
    errors
        .errors()
        .iter()
        .map(|error| match &error.nearest {
            Some(nearest) => format!("{} [{nearest}]", error.message),
            None => error.message.clone(),
        })
        .collect()
}

/// Returns a valid study, with `rest` at its end.
fn with(rest: &str) -> String {
    format!(
        "weir: 1\n\
         name: example\n\
         question: Does it matter?\n\
         proxy: {{kind: nginx, settings: {{worker_processes: 1}}}}\n\
         loads:\n\
         - {{name: closed, closed: true, connections: 20, duration: 1m}}\n\
         {rest}\n"
    )
}
