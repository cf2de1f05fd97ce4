//! The section `launchers`: ways to start a proxy's process.

use std::collections::BTreeMap;
use std::path::PathBuf;

use weir_model::study::LauncherSpec;
use weir_parameters::Catalog;

use crate::arms;
use crate::check::{Checker, Fields, nearest, short};
use crate::tree::{Node, Value};

/// Reads all launchers.
pub(crate) fn read(
    node: Option<&Node>,
    catalog: &Catalog,
    check: &mut Checker,
) -> BTreeMap<String, LauncherSpec> {
    // The level that is no launcher cannot be the name of one.
    let none = catalog.launcher().and_then(|row| row.read_back(None));
    let mut launchers = BTreeMap::new();
    let Some(node) = node else { return launchers };
    let wanted = "a launcher such as `onload: {prefix: onload --profile=latency}`";
    for entry in check.entries(node, wanted).unwrap_or_default() {
        if Some(&entry.key) == none.as_ref()
            || !entry.key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        {
            let message = format!("`{}` is not a valid name for a launcher", short(&entry.key));
            check
                .error(entry.span.clone(), message)
                .hint("use lower-case letters, digits and `-`; `none` is reserved");
        }
        let before = check.count();
        let keys = ["prefix", "env", "preload"];
        let Some(fields) = Fields::known(&entry.value, "a launcher", &keys, check) else {
            continue;
        };
        let spec = LauncherSpec {
            prefix: fields.get("prefix").map_or_else(Vec::new, |node| prefix(node, check)),
            env: fields.get("env").map_or_else(BTreeMap::new, |node| env(node, check)),
            preload: fields.get("preload").map_or_else(Vec::new, |node| preload(node, check)),
        };
        if spec == LauncherSpec::default() && check.count() == before {
            check
                .error(entry.span.clone(), format!("the launcher `{}` does nothing", entry.key))
                .hint("give it a `prefix`, an `env` or a `preload`");
        }
        launchers.insert(entry.key.clone(), spec);
    }
    launchers
}

/// Reads a command line, or a list of its words.
fn prefix(node: &Node, check: &mut Checker) -> Vec<String> {
    match &node.value {
        Value::List(_) => texts(node, check),
        _ => {
            let Some(text) = check.text(node) else {
                return Vec::new();
            };
            shlex::split(&text).unwrap_or_else(|| {
                check.error(node.span.clone(), "the quotation mark is not closed");
                Vec::new()
            })
        }
    }
}

fn texts(node: &Node, check: &mut Checker) -> Vec<String> {
    let items = check.list(node, "text").unwrap_or_default();
    items.iter().filter_map(|item| check.text(item)).collect()
}

fn env(node: &Node, check: &mut Checker) -> BTreeMap<String, String> {
    let wanted = "a variable such as `EF_POLL_USEC: 100000`";
    let mut env = BTreeMap::new();
    for entry in check.entries(node, wanted).unwrap_or_default() {
        if entry.key.is_empty() || !entry.key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            let message = format!("`{}` is not a valid name for a variable", short(&entry.key));
            check.error(entry.span.clone(), message);
        } else if let Some(value) = check.scalar(&entry.value, "a value") {
            if value.contains('\0') {
                check.error(entry.value.span.clone(), "a value cannot contain NUL");
            }
            env.insert(entry.key.clone(), value.to_owned());
        }
    }
    env
}

fn preload(node: &Node, check: &mut Checker) -> Vec<PathBuf> {
    let paths = match &node.value {
        Value::List(_) => texts(node, check),
        _ => check.text(node).into_iter().collect(),
    };
    for path in &paths {
        // Proxies are started in folders of their own, and ld.so(8) separates by both.
        if !path.starts_with('/') || path.contains([':', ' ']) {
            let message = format!("`{}` is not a usable path of a library", short(path));
            check
                .error(node.span.clone(), message)
                .hint("give an absolute path without colons and spaces");
        }
    }
    paths.into_iter().map(PathBuf::from).collect()
}

/// Checks that levels of `launcher` are names of launchers in the study.
pub(crate) fn check_used(
    launchers: &BTreeMap<String, LauncherSpec>,
    arms: &[arms::Draft],
    catalog: &Catalog,
    check: &mut Checker,
) {
    let Some(parameter) = catalog.launcher() else {
        return;
    };
    let names: Vec<&str> = launchers.keys().map(String::as_str).collect();
    let mut reported = Vec::new();
    for draft in arms {
        let Some(name) = catalog.started_through(&draft.arm.settings) else {
            continue;
        };
        if launchers.contains_key(name) || reported.contains(&name) {
            continue;
        }
        reported.push(name);
        let message = format!("there is no launcher `{}`", short(name));
        let error = check.error(draft.place_of(&parameter.id), message);
        match nearest(name, &names) {
            Some(near) => error.nearest(Some(near)),
            None => error.hint("define it under `launchers`"),
        };
    }
}
