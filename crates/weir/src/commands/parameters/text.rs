//! Parameters as text: a table of all, or a description of one.

use weir_model::study::ProxyKind;
use weir_parameters::{Kubernetes, Parameter, Scope, Spelling};

use super::shown::{ParameterFacts, in_words};

/// Sections of the table, in order: scope, title, and the heading of its values.
#[rustfmt::skip]
const SECTIONS: [(Scope, &str, &str); 7] = [
    (Scope::ProxyDirective, "its configuration", "default"),
    (Scope::ProcessLaunch, "How the proxy is started", "here"),
    (Scope::Transport, "What carries its bytes", "default"),
    (Scope::CpuSet, "CPUs of the proxy", "here"),
    (Scope::KernelNetns, "Kernel: for each network namespace", "here (default)"),
    (Scope::KernelHost, "Kernel: for the whole host", "here (default)"),
    (Scope::Workload, "Pods of the proxy, of a study with a controller", "default"),
];

/// Columns of the longest id that shares a line with its levels.
const ID: usize = 36;
/// Columns for the words about what a pod may set.
const PODS: usize = 6;
const GAP: usize = 2;
/// Columns of the label at the start of a description's lines.
const LABEL: usize = 14;
/// Most columns of running text, however wide the terminal is.
const MEASURE: usize = 100;

/// Returns the table of all parameters, `width` columns wide.
pub(super) fn table(all: &[ParameterFacts<'_>], proxy: ProxyKind, width: usize) -> String {
    let mut text = String::new();
    for (scope, title, value) in SECTIONS {
        let rows: Vec<_> = all.iter().filter(|shown| shown.scope == scope).collect();
        if rows.is_empty() {
            continue;
        }
        let kernel = scope.is_kernel();
        let columns = width.saturating_sub(ID + 2 * GAP + if kernel { PODS + GAP } else { 0 });
        let levels = columns / 2;
        let values = columns - levels;
        text += &match scope {
            Scope::ProxyDirective => format!("{}: {title}\n", proxy.title()),
            _ => format!("{title}\n"),
        };
        text += &row(["", "levels", value, if kernel { "pods" } else { "" }], levels, values);
        for shown in rows {
            let mut id = format!("  {}", shown.id);
            if id.len() > ID {
                text += &format!("{id}\n");
                id.clear();
            }
            let on_kubernetes = shown.kubernetes.as_ref().map_or("", word);
            text += &row([&id, &shown.brief, &value_of(shown), on_kubernetes], levels, values);
        }
        text.push('\n');
    }
    text + "safe: pods may set it; unsafe: the kubelet must allow it; none: only the node can.\n\
            `weir parameters NAME` shows one in full: why you would change it, how, and what caps it.\n"
}

fn word(kubernetes: &Kubernetes) -> &'static str {
    match kubernetes {
        Kubernetes::Safe(_) => "safe",
        Kubernetes::Unsafe => "unsafe",
        Kubernetes::None => "none",
    }
}

/// Returns the value in force, followed by the default if that differs. If no value can be read, returns the default
/// alone.
fn value_of(shown: &ParameterFacts<'_>) -> String {
    let default = shown.default.level.as_deref();
    match (&shown.here, default, shown.debian) {
        (Some(here), Some(default), _) if here != default => format!("{here} ({default})"),
        (Some(here), ..) => here.clone(),
        (None, Some(default), Some(debian)) if default != debian => {
            format!("{default} (Debian: {debian})")
        }
        (None, Some(default), _) => default.to_owned(),
        (None, None, _) if shown.needs.is_some() => "not on this host".to_owned(),
        (None, None, _) => shown.default.note.clone().unwrap_or_default(),
    }
}

/// Shortens a text to at most `width` characters.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        text.to_owned()
    } else {
        text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
    }
}

/// Returns a line of the table whose middle columns are `levels` and `values` wide.
fn row(cells: [&str; 4], levels: usize, values: usize) -> String {
    let [id, level, value, kubernetes] = cells;
    let (level, value) = (cut(level, levels), cut(value, values));
    let line = format!("{id:ID$}  {level:levels$}  {value:values$}  {kubernetes}");
    format!("{}\n", line.trim_end())
}

/// Returns the full description of one parameter, at most `most` columns wide.
pub(super) fn description(shown: &ParameterFacts<'_>, most: usize) -> String {
    let width = most.min(MEASURE);
    let mut text = format!("{}\n  {}\n\n", shown.id, &scope(shown.scope, shown.proxy));
    text += &wrapped("  ", shown.why, width);
    text.push('\n');
    let mut say = |label: &str, what: &str| {
        text += &wrapped(&format!("  {label:0$}", LABEL - 2), what, width);
    };
    say("levels", &shown.levels);
    say("default", &defaults(shown));
    if let Some(debian) = shown.debian {
        say("Debian", debian);
    }
    match &shown.here {
        Some(here) if here.is_empty() => say("here", "empty"),
        Some(here) => say("here", &here_in_words(shown.scope, here)),
        None if shown.scope.is_kernel() => say("here", "not on this host"),
        None => {}
    }
    if let Some(needs) = shown.needs {
        say("needs", needs);
    }
    if let Some(kubernetes) = &shown.kubernetes {
        say("Kubernetes", &describe_kubernetes(kubernetes));
    }
    for (index, line) in shown.by_hand.iter().enumerate() {
        say(if index == 0 { "by hand" } else { "" }, line);
    }
    say("read back", &shown.read_back);
    if shown.only_raises {
        say("written", "only if it is above the host's value");
    }
    if let Some(quantity) = shown.quantity {
        say("controls", &format!("{}: {}", quantity.is, quantity.measured));
        if !quantity.smallest_of.is_empty() {
            let members = quantity.smallest_of.join(" and ");
            say("", &format!("{} the smallest of {members}", quantity.by));
        }
    }
    for rule in &shown.constraints {
        let because = rule.because.trim();
        say(rule.severity, &format!("{}: {because}; {}", rule.rule, rule.hint));
    }
    let spelled = shown
        .controllers
        .iter()
        .flat_map(|(name, spelling)| spelling.all().map(move |spelling| (name, spelling)));
    for (index, (controller, spelling)) in spelled.enumerate() {
        let label = if index == 0 { "controllers" } else { "" };
        say(label, &describe_key(controller, spelling));
    }
    say("source", shown.source);
    text
}

/// Returns the line about another proxy's parameter of the same name.
pub(super) fn also((proxy, row): &(ProxyKind, &Parameter)) -> String {
    let (id, title, name) = (&row.id, proxy.title(), proxy.name());
    format!("  {:1$}`weir parameters {id} --proxy {name}`: {title}'s\n", "also", LABEL - 2)
}

fn quoted(spelling: &Spelling, text: &str) -> String {
    if !spelling.json {
        format!("\"{text}\"")
    } else if text == "null" {
        "nothing".to_owned()
    } else {
        text.to_owned()
    }
}

/// Describes the key in a controller's object: `max-worker-connections: "LEVEL" (ingress-nginx; left out: 16384)`.
fn describe_key(controller: &str, spelling: &Spelling) -> String {
    let mut values: Vec<String> = spelling
        .values
        .iter()
        .map(|(level, value)| format!("{} for {level}", quoted(spelling, value)))
        .collect();
    if spelling.values.is_empty() || spelling.text.is_some() {
        let template = spelling.text.as_deref().unwrap_or("{value}");
        values.push(quoted(spelling, &in_words(template)));
    }
    values.extend(spelling.except.iter().map(|level| format!("none for {level}")));
    let object = spelling.object.iter().map(|object| format!(", `{object}`"));
    let file = spelling.file.iter().map(|key| format!(", or `{key}` of `file`"));
    let object: String = object.chain(file).collect();
    let left_out = match &spelling.default {
        Some(default) => format!("; left out: {default}"),
        None => String::new(),
    };
    let key = &spelling.key;
    format!("{key}: {} ({controller}{object}{left_out})", values.join(", "))
}

fn scope(scope: Scope, proxy: ProxyKind) -> String {
    let words = match scope {
        Scope::ProxyDirective => return format!("in the configuration of {}", proxy.title()),
        Scope::ProcessLaunch => "how the proxy is started",
        Scope::Transport => "what carries the proxy's bytes on its host",
        Scope::CpuSet => "the CPUs of the proxy",
        Scope::KernelNetns => "a kernel parameter of each network namespace",
        Scope::KernelHost => "a kernel parameter of the whole host",
        Scope::Workload => "the pods of a controller's proxy in a cluster",
    };
    words.to_owned()
}

fn here_in_words(scope: Scope, here: &str) -> String {
    match scope {
        Scope::KernelNetns => format!("{here}, in this network namespace"),
        Scope::ProcessLaunch | Scope::CpuSet => format!("{here}, for programs started from here"),
        _ => here.to_owned(),
    }
}

fn describe_kubernetes(kubernetes: &Kubernetes) -> String {
    match kubernetes {
        Kubernetes::Safe(safe) => {
            let since = safe.since.as_ref().map(|since| format!(", since Kubernetes {since}"));
            let kernel = safe.kernel.as_ref().map(|kernel| format!(", from Linux {kernel} on"));
            let more = [since, kernel].into_iter().flatten().collect::<String>();
            format!("safe: a pod may set it{more}")
        }
        Kubernetes::Unsafe => {
            "unsafe: the kubelet must allow it (--allowed-unsafe-sysctls)".to_owned()
        }
        Kubernetes::None => "belongs to the node: no pod can set it".to_owned(),
    }
}

/// Lists the defaults by version: `128; 4096 since Linux 5.4`
fn defaults(shown: &ParameterFacts<'_>) -> String {
    let program = if shown.scope.is_kernel() { "Linux " } else { "" };
    let all: Vec<String> = shown
        .defaults
        .all()
        .iter()
        .map(|default| {
            let since = default.since.as_ref().map(|since| format!("since {program}{since}"));
            let first: Vec<String> = default.level.clone().into_iter().chain(since).collect();
            let first = (!first.is_empty()).then(|| first.join(" "));
            let parts: Vec<String> = first.into_iter().chain(default.note.clone()).collect();
            parts.join(", ")
        })
        .collect();
    all.join("; ")
}

/// Wraps `text` to lines of at most `width` columns, the first after `label` and the others indented as far.
fn wrapped(label: &str, text: &str, width: usize) -> String {
    let indent = label.chars().count();
    let mut lines = String::new();
    let mut line = label.to_owned();
    let mut used = indent;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > indent && used + 1 + length > width {
            lines += &format!("{}\n", line.trim_end());
            line = " ".repeat(indent);
            used = indent;
        }
        if used > indent {
            line.push(' ');
            used += 1;
        }
        line += word;
        used += length;
    }
    lines + &format!("{}\n", line.trim_end())
}
