//! All facts about one parameter, on this host.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;
use weir_model::study::ProxyKind;
use weir_parameters::{
    Catalog, DefaultLevel, Defaults, EffectiveFrom, Kubernetes, Parameter, Quantity, Scope,
    Severity, Spelling, Write,
};

/// Path of the pod template in a workload.
const TEMPLATE: &str = "/spec/template";

/// Name and version of the JSON output's format.
pub(crate) const FORMAT: &str = "weir-parameters/1";

/// Parameters in the JSON output.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Listed<'a> {
    /// `weir-parameters/1`.
    format: &'static str,
    /// All parameters of the proxy, the kernel and the process, or only the one that was named.
    parameters: Vec<ParameterFacts<'a>>,
}

impl<'a> Listed<'a> {
    pub(super) fn new(parameters: Vec<ParameterFacts<'a>>) -> Listed<'a> {
        let format = FORMAT;
        Listed { format, parameters }
    }
}

/// A parameter with its facts, for printing and as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Shown"))]
pub(super) struct ParameterFacts<'a> {
    pub(super) id: &'a str,
    pub(super) scope: Scope,
    /// Proxy of the parameter.
    pub(super) proxy: ProxyKind,
    /// Levels, short enough for a column of a table; not in JSON.
    #[serde(skip)]
    pub(super) brief: String,
    pub(super) levels: String,
    /// Default of the running kernel, or of the newest version of a proxy.
    pub(super) default: &'a DefaultLevel,
    pub(super) defaults: &'a Defaults,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) debian: Option<&'a str>,
    /// Value in force for weir's own process; `None` if it cannot be read.
    pub(super) here: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kubernetes: Option<Kubernetes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) needs: Option<&'a str>,
    pub(super) only_raises: bool,
    pub(super) why: &'a str,
    /// Commands, or lines of the configuration, that set it without weir.
    pub(super) by_hand: Vec<String>,
    pub(super) read_back: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) quantity: Option<&'a Quantity>,
    pub(super) constraints: Vec<Shows<'a>>,
    /// Keys in the ConfigMaps of Kubernetes controllers, by the controller's name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) controllers: &'a BTreeMap<String, Spelling>,
    pub(super) source: &'a str,
}

/// A constraint, for printing.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(super) struct Shows<'a> {
    pub(super) severity: &'static str,
    pub(super) rule: String,
    pub(super) because: &'a str,
    pub(super) hint: &'a str,
}

impl<'a> ParameterFacts<'a> {
    pub(super) fn new(
        row: &'a Parameter,
        catalog: &'a Catalog,
        proxy: ProxyKind,
    ) -> ParameterFacts<'a> {
        let here = read_here(row);
        let default =
            if row.scope.is_kernel() { row.default.at(&release()) } else { row.default.newest() };
        let example = here.as_deref().or(default.level.as_deref());
        let constraints = row.constraints.iter().map(|constraint| Shows {
            severity: match constraint.severity {
                Severity::Warning => "warning",
                Severity::Error => "error",
            },
            rule: constraint.words(),
            because: &constraint.because,
            hint: &constraint.hint,
        });
        ParameterFacts {
            id: &row.id,
            scope: row.scope,
            proxy,
            brief: row.level.brief(),
            levels: row.level.allowed(),
            default,
            defaults: &row.default,
            debian: row.debian.as_deref(),
            kubernetes: row.kubernetes(),
            needs: row.needs.as_deref(),
            only_raises: row.only_raises,
            why: row.why.trim(),
            by_hand: list_commands(row, example, catalog, proxy),
            read_back: describe_read_back(row, catalog, proxy),
            quantity: row.quantity.as_ref().and_then(|name| catalog.quantity(name)),
            constraints: constraints.collect(),
            controllers: &row.controllers,
            source: &row.source,
            here,
        }
    }
}

fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Returns the value in force for weir itself: a sysctl of its namespace, or a limit of its process.
fn read_here(row: &Parameter) -> Option<String> {
    let value = match &row.effective {
        EffectiveFrom::Sysctl { name } => {
            let path = format!("/proc/sys/{}", name.replace('.', "/"));
            fs::read_to_string(path).ok()?
        }
        // The only limit that a row may have (see the checks of `weir-parameters`).
        EffectiveFrom::ProcessLimit { .. } if row.scope == Scope::ProcessLaunch => {
            weir_probe::host::own_nofile().0.to_string()
        }
        EffectiveFrom::CpuSet => weir_probe::allowed_cpus().ok()?.cpus().len().to_string(),
        _ => return None,
    };
    let words: Vec<&str> = value.split_whitespace().collect();
    row.read_back(Some(&value)).or(Some(words.join(" ")))
}

/// Returns commands or configuration lines that set it without weir. `level` is the value in them; `None` means the
/// word LEVEL.
fn list_commands(
    row: &Parameter,
    example: Option<&str>,
    catalog: &Catalog,
    proxy: ProxyKind,
) -> Vec<String> {
    let level = example.filter(|level| !level.is_empty()).unwrap_or("LEVEL");
    match (&row.effective, row.scope) {
        (EffectiveFrom::Sysctl { name }, _) if level.contains(' ') => {
            vec![format!("sysctl -w {name}=\"{level}\"")]
        }
        (EffectiveFrom::Sysctl { name }, _) => vec![format!("sysctl -w {name}={level}")],
        (EffectiveFrom::ProcessLimit { name }, Scope::ProcessLaunch) => {
            vec![format!("prlimit --{}={level}: PROGRAM", name.name())]
        }
        (EffectiveFrom::CpuSet, _) => vec!["taskset --cpu-list LIST PROGRAM".to_owned()],
        (EffectiveFrom::Workload(place), _) => {
            vec![format!("kubectl edit deployment NAME: {}", place.at)]
        }
        _ => row.writes.iter().map(|write| line(write, catalog, proxy)).collect(),
    }
}

/// Returns a template with words in place of its placeholders.
pub(super) fn in_words(template: &str) -> String {
    template
        .replace("{value}", "LEVEL")
        .replace("{seconds}", "SECONDS")
        .replace("{milliseconds}", "MILLISECONDS")
        .replace("{bytes}", "BYTES")
        .replace("{logs}", "LOGS")
}

/// Returns a configuration line such as `http { gzip LEVEL; }`, and the levels to which it applies.
fn line(write: &Write, catalog: &Catalog, proxy: ProxyKind) -> String {
    let text = in_words(&write.text);
    let line = match &write.at {
        Some(at) => format!("{}{at}: {text}", write.context.name()),
        None => catalog.line(proxy, &write.context, &text),
    };
    match (write.only.is_empty(), write.except.is_empty()) {
        (false, _) => format!("{line}  for {}", write.only.join(", ")),
        (_, false) => format!("{line}  not for {}", write.except.join(", ")),
        _ => line,
    }
}

fn describe_read_back(row: &Parameter, catalog: &Catalog, proxy: ProxyKind) -> String {
    let source = catalog.asked(proxy);
    match &row.effective {
        EffectiveFrom::Launcher => {
            "/proc/PID/environ and /proc/PID/maps of the proxy's first process".to_owned()
        }
        EffectiveFrom::CpuSet => {
            "the number of CPUs in Cpus_allowed_list of /proc/PID/status".to_owned()
        }
        EffectiveFrom::Transport { .. } => {
            "the program's own counters of what it redirected".to_owned()
        }
        EffectiveFrom::Value { context, at } => {
            format!("`{}{at}` in {source}; the default where it is not there", context.name())
        }
        EffectiveFrom::Sysctl { name } if row.scope == Scope::KernelNetns => {
            format!("sysctl -n {name}, in the network namespace of the proxy")
        }
        EffectiveFrom::Sysctl { name } => format!("sysctl -n {name}"),
        EffectiveFrom::Workload(place) => match (&place.group, place.at.strip_prefix(TEMPLATE)) {
            (Some(_), _) => "the control group of each pod's container".to_owned(),
            (None, Some(at)) => format!("{at} of each pod that runs"),
            (None, None) => "the number of pods that run".to_owned(),
        },
        EffectiveFrom::ProcessLimit { name } => {
            format!("/proc/PID/limits of a worker: the soft limit {}", name.name())
        }
        EffectiveFrom::Directive { name, .. } => {
            format!("`{name}` in {source}; the default where it is not there")
        }
        EffectiveFrom::ListenFlag { name } => {
            format!("the flag `{name}` of listen in {source}; the default where it is not there")
        }
    }
}
