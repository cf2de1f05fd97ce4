//! Detection of code that decides by the name of a proxy.

use weir_model::study::ProxyKind;

use super::Source;

/// Paths of code that may decide by name: the list of proxies, each one's crate, and `weir doctor`, which is about nginx
/// alone.
const KNOWS: [&str; 3] =
    ["crates/weir-model/src/study/proxy.rs", "crates/weir-NAME/", "crates/weir-doctor/src/"];

/// Lines that are not decisions: the proxy of a study that names none, and of a table without `--proxy`.
const DEFAULTS: [&str; 2] = [
    "let kind = kind_node.and_then(|node| read_kind(node, check)).unwrap_or(ProxyKind::Nginx);",
    "let of_table = proxy.unwrap_or(ProxyKind::Nginx);",
];

/// Returns the numbers of lines that decide by the name of a proxy, its variant or its text, and may not. Tests and
/// comments do not count.
pub(super) fn find_names(source: &Source) -> Vec<usize> {
    let path = &source.path;
    let is_of_tests = ["/tests", "fixture", "weir-testkit"].iter().any(|part| path.contains(part));
    if !path.contains("/src/") || is_of_tests {
        return Vec::new();
    }
    let names: Vec<String> = ProxyKind::started()
        .filter(|kind| {
            let mut knowing = KNOWS.iter();
            !knowing.any(|prefix| path.starts_with(&prefix.replace("NAME", kind.name())))
        })
        .flat_map(|kind| [format!("ProxyKind::{kind:?}"), format!("\"{}\"", kind.name())])
        .collect();
    source
        .text
        .lines()
        .enumerate()
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .map(|(at, line)| (at, line.trim()))
        .filter(|(_, line)| !line.starts_with("//") && !DEFAULTS.contains(line))
        .filter(|(_, line)| names.iter().any(|name| line.contains(name)))
        .map(|(at, _)| at + 1)
        .collect()
}
