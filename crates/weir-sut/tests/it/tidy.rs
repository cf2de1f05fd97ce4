//! Rules of the house that no compiler knows.

use std::fs;
use std::path::{Path, PathBuf};

use weir_model::study::ProxyKind;

/// Where code may tell proxies apart by their names: the list of them, each one's module, the readers of
/// their languages, and `weir doctor`, which is about nginx alone.
const KNOWS_PROXIES: [&str; 4] = [
    "weir-model/src/study/proxy.rs",
    "weir-sut/src/NAME/",
    "weir-configuration/src/",
    "weir-doctor/src/",
];

/// What is not a decision: the proxy of a study that names none, and of a table without `--proxy`.
const DEFAULTS: [&str; 2] = [
    "let kind = kind.unwrap_or(ProxyKind::Nginx);",
    "let of_table = proxy.unwrap_or(ProxyKind::Nginx);",
];

/// All sources of all crates, with their paths below `crates/`.
fn sources() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("crates/");
    let mut sources = Vec::new();
    let mut folders: Vec<PathBuf> = fs::read_dir(crates)
        .expect("crates/")
        .map(|entry| entry.expect("a crate").path().join("src"))
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path
                    .strip_prefix(crates)
                    .expect("below it")
                    .display()
                    .to_string();
                sources.push((name, fs::read_to_string(&path).expect("text")));
            }
        }
    }
    sources
}

/// The lines of a source that are neither comments nor its tests.
fn code<'a>(name: &str, text: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    let is_test = name.contains("/tests") || name.contains("fixture");
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    let code = lines
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.filter(move |_| !is_test)
}

/// Whether a line decides something by the name of a proxy: its variant, or its name as a text.
fn tells(line: &str, kind: ProxyKind) -> bool {
    let variant = format!("ProxyKind::{kind:?}");
    let text = format!("\"{}\"", kind.name());
    !DEFAULTS.contains(&line.trim()) && (line.contains(&variant) || line.contains(&text))
}

#[test]
fn a_proxy_is_told_by_its_name_in_its_module_and_in_one_list_alone() {
    let sources = sources();
    assert!(sources.len() > 100, "{}", sources.len());
    let mut found = Vec::new();
    for (name, text) in &sources {
        for kind in ProxyKind::started() {
            let mut allowed = KNOWS_PROXIES.iter();
            if allowed.any(|place| name.starts_with(&place.replace("NAME", kind.name()))) {
                continue;
            }
            let lines = code(name, text).filter(|(_, line)| tells(line, kind));
            found.extend(lines.map(|(at, line)| format!("{name}:{}: {}", at + 1, line.trim())));
        }
    }
    assert!(
        found.is_empty(),
        "docs/proxies.md says where this belongs:\n{}",
        found.join("\n")
    );
}

#[test]
fn a_decision_by_name_is_found() {
    let found = |line| tells(line, ProxyKind::Haproxy);
    assert!(found("        ProxyKind::Haproxy => true,"));
    assert!(found("    if arm.proxy == \"haproxy\" {"));
    assert!(!found("    let title = \"HAProxy\";"));
    assert!(!tells(DEFAULTS[0], ProxyKind::Nginx));
    let text = "//! \"nginx\"\nlet a = 1;\n#[cfg(test)]\nmod tests { \"nginx\" }";
    let lines: Vec<_> = code("weir/src/main.rs", text).collect();
    assert_eq!(lines, [(1, "let a = 1;")]);
}
