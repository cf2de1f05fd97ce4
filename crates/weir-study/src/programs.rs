//! Programs of a study's proxies, read before any checks: the defaults of a program depend on its version, and so do
//! the arms.

use std::path::PathBuf;

use weir_model::study::ProxyKind;

use crate::check::Checker;
use crate::tree::{self, Node, Value};

/// Returns the programs that are the proxies of a study, by kind and `executable`, each once. Unreadable parts of the
/// text are ignored; [`crate::parse`] reports them.
pub fn programs(text: &str) -> Vec<(ProxyKind, Option<PathBuf>)> {
    let root = tree::read(text, &tree::STUDY, &mut Checker::default());
    let Some(root) = root else {
        return Vec::new();
    };
    let arms = match get(&root, "arms").map(|arms| &arms.value) {
        Some(Value::List(arms)) => &arms[..],
        _ => &[],
    };
    let proxies = std::iter::once(&root).chain(arms).filter_map(|owner| get(owner, "proxy"));
    let mut programs = Vec::new();
    for program in proxies.filter_map(program) {
        if !programs.contains(&program) {
            programs.push(program);
        }
    }
    programs
}

fn program(proxy: &Node) -> Option<(ProxyKind, Option<PathBuf>)> {
    let kind = text(proxy).or_else(|| text(get(proxy, "kind")?))?;
    let kind = ProxyKind::ALL.into_iter().find(|known| known.name() == kind)?;
    let executable = get(proxy, "executable").and_then(text);
    Some((kind, executable.map(PathBuf::from)))
}

fn get<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let Value::Mapping(entries) = &node.value else {
        return None;
    };
    let entry = entries.iter().find(|entry| entry.key == key)?;
    Some(&entry.value)
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Scalar(text) => Some(text.trim()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(text: &str) -> Vec<String> {
        let words = programs(text).into_iter().map(|(kind, executable)| match executable {
            Some(path) => format!("{} {}", kind.name(), path.display()),
            None => kind.name().to_owned(),
        });
        words.collect()
    }

    #[test]
    fn every_program_is_told_once_and_from_as_much_as_can_be_read() {
        let text = "proxy: {kind: nginx, executable: /opt/nginx}\n\
                    arms:\n\
                    - {name: a, settings: {gzip: off}}\n\
                    - {name: b, proxy: haproxy}\n\
                    - {name: c, proxy: {kind: haproxy, stock: none}}\n\
                    - {name: d, proxy: {kind: nginx}}\n\
                    - {name: e, proxy: ngnix}\n";
        assert_eq!(describe(text), ["nginx /opt/nginx", "haproxy", "nginx"]);
        // A name that holds another's is not that one.
        assert_eq!(describe("proxy: {kind: haproxy}\nname: not-nginx"), ["haproxy"]);
        for other in ["", "- a list", "proxy: [", "arms: {a: b}"] {
            assert_eq!(describe(other), [""; 0], "{other}");
        }
    }
}
