//! Studies in which recommendations are tried: the proxy as it is, and an arm for each change.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use weir_model::study::{Metric, ProxyKind, Settings};

/// Half-width of the equivalence band: what is called no effect.
const BAND: &str = "3%";

/// A user's configuration, and what of it is requested.
#[derive(Debug, Clone, Copy)]
pub struct RequestedConfiguration<'a> {
    /// Path of the main file.
    pub file: &'a Path,
    /// Port of the listener; `None`: weir chooses it.
    pub port: Option<u16>,
    /// Name of the server; `None`: any.
    pub host: Option<&'a str>,
    /// Target of the requests; `None`: `/`.
    pub path: Option<&'a str>,
}

/// Changes to try on one proxy under one load.
#[derive(Debug, Clone)]
pub struct AdviceStudy<'a> {
    /// Name of the study.
    pub name: &'a str,
    /// Title of the load.
    pub title: &'a str,
    /// The proxy.
    pub kind: ProxyKind,
    /// The user's configuration; `None`: that of the distribution.
    pub configuration: Option<RequestedConfiguration<'a>>,
    /// Size of the file that the proxy serves; `None` for a reverse proxy.
    pub file: Option<&'a str>,
    /// Settings of all arms on top of the distribution's configuration.
    pub settings: Option<&'a Settings>,
    /// Section `origin`.
    pub origin: Option<&'a Value>,
    /// Keys of the load.
    pub load: &'a Map<String, Value>,
    /// Length of a slice, if the load needs one.
    pub slice: Option<&'a str>,
    /// Metric that decides.
    pub metric: Metric,
    /// Name and recommended levels of each arm.
    pub arms: Vec<(&'a str, &'a Settings)>,
    /// Length of the load.
    pub length: Duration,
}

impl AdviceStudy<'_> {
    /// Writes the study as a file has it. Its values are JSON, which YAML contains.
    pub fn text(&self) -> String {
        let metric = json!(self.metric).as_str().unwrap_or_default().replace('_', "-");
        let mut blocks = json!({"instances": if self.slice.is_some() { 1 } else { 4 }});
        if let Some(slice) = self.slice {
            blocks["slice"] = json!(slice);
            blocks["at-least"] = json!(6);
        }
        let question = format!(
            "What do published recommendations bring {}: {}?",
            self.kind.title(),
            self.title
        );
        let mut sections = vec![
            ("weir", json!(1)),
            ("name", json!(format!("advice-{}", self.name))),
            ("question", json!(question)),
            ("proxy", self.proxy()),
            ("loads", json!([self.load()])),
            ("baseline", json!("unchanged")),
            ("blocks", blocks),
            ("objective", json!({"metric": metric, "band": BAND, "confidence": "95%"})),
        ];
        sections.extend(self.origin.map(|origin| ("origin", origin.clone())));
        let lines = sections.iter().map(|(key, value)| format!("{key}: {value}\n"));
        let arms = self.arms.iter().map(|(name, settings)| {
            format!("  - {}\n", json!({"name": name, "settings": settings}))
        });
        format!("{}arms:\n{}", lines.collect::<String>(), arms.collect::<String>())
    }

    fn proxy(&self) -> Value {
        let mut proxy = json!({"kind": self.kind.name()});
        if let Some(own) = self.configuration {
            proxy["configuration"] = json!(own.file.display().to_string());
            if let Some(port) = own.port {
                proxy["port"] = json!(port);
            }
            return proxy;
        }
        if let Some(size) = self.file {
            proxy["role"] = json!({"static-files": {"size": size}});
        }
        if let Some(settings) = self.settings {
            proxy["settings"] = json!(settings);
        }
        proxy
    }

    fn load(&self) -> Value {
        let mut load = self.load.clone();
        load.insert("name".to_owned(), json!("load"));
        load.insert("duration".to_owned(), json!(format!("{}s", self.length.as_secs())));
        if let Some(own) = self.configuration {
            let named = [("host", own.host), ("path", own.path)];
            load.extend(
                named.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))),
            );
        }
        Value::Object(load)
    }
}
