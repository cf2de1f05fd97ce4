//! Detection of code that decides by the name of a proxy.

use weir_model::study::ProxyKind;

use super::Source;

/// Paths of code that may decide by name: the list of proxies, each one's module, the readers of their languages, and
/// `weir doctor`, which is about nginx alone.
const KNOWS: [&str; 4] = [
    "crates/weir-model/src/study/proxy.rs",
    "crates/weir-sut/src/NAME/",
    "crates/weir-configuration/src/",
    "crates/weir-doctor/src/",
];

/// Lines that are not decisions: the proxy of a study that names none, and of a table without `--proxy`.
const DEFAULTS: [&str; 2] = [
    "let kind = kind.unwrap_or(ProxyKind::Nginx);",
    "let of_table = proxy.unwrap_or(ProxyKind::Nginx);",
];

/// Returns the numbers of lines that decide by the name of a proxy, its variant or its text, and may not. Tests and
/// comments do not count.
pub(super) fn told(source: &Source) -> Vec<usize> {
    let path = &source.path;
    if !path.contains("/src/") || path.contains("/tests") || path.contains("fixture") {
        return Vec::new();
    }
    let may = |kind: ProxyKind| {
        let mut places = KNOWS.iter();
        places.any(|place| path.starts_with(&place.replace("NAME", kind.name())))
    };
    let names = ProxyKind::started().filter(|kind| !may(*kind)).flat_map(|kind| {
        let name = kind.name();
        [format!("ProxyKind::{kind:?}"), format!("\"{name}\"")]
    });
    let names: Vec<String> = names.collect();
    let tells = |line: &str| {
        let is_code = !line.starts_with("//") && !DEFAULTS.contains(&line);
        is_code && names.iter().any(|name| line.contains(name))
    };
    source
        .text
        .lines()
        .enumerate()
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .filter(|(_, line)| tells(line.trim()))
        .map(|(at, _)| at + 1)
        .collect()
}
