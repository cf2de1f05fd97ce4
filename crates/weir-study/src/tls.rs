//! The key `tls` of a load: the client's offer in TLS handshakes.

use weir_model::flow::words::Key;
use weir_model::tls::{TlsVersion, names};

use crate::check::{Checker, Fields, nearest};
use crate::tree::{Node, Value};
use crate::words::Words;

/// Reads `true`, `false`, or a mapping with the offer.
pub(crate) fn read(node: &Node, words: &mut Words, check: &mut Checker) {
    if !matches!(node.value, Value::Mapping(_)) {
        if check.flag(node) == Some(true) {
            words.say(Key::Secure, "", node);
        }
        return;
    }
    #[rustfmt::skip]
    let keys = [
        "version", "ciphers", "groups", "alpn", "resumption", "early-data", "cert", "key", "ca", "insecure",
    ];
    let Some(fields) = Fields::known(node, "`tls`", &keys, check) else {
        return;
    };
    words.say(Key::Secure, "", node);
    for key in ["version", "groups", "alpn", "resumption", "cert", "key", "ca"] {
        if let (Some(node), Some(about)) = (fields.get(key), Key::of_word(key)) {
            let texts = read_texts(node, check);
            if !texts.is_empty() {
                words.say(about, texts.join(","), node);
            }
        }
    }
    for key in [Key::EarlyData, Key::Insecure] {
        if let Some(node) = fields.get(key.word())
            && check.flag(node) == Some(true)
        {
            words.say(key, "", node);
        }
    }
    let pair = [fields.entry("cert"), fields.entry("key")];
    if let [Some(alone), None] | [None, Some(alone)] = pair {
        let message = "a client certificate needs both `cert` and `key`";
        check.error(alone.span.clone(), message).hint("give `cert` and `key`");
    }
    if let Some(node) = fields.get("ciphers") {
        let version = fields.get("version").map(|node| read_texts(node, &mut Checker::default()));
        ciphers(node, &version.unwrap_or_default(), words, check);
    }
}

/// Reads a text or a list of texts.
fn read_texts(node: &Node, check: &mut Checker) -> Vec<String> {
    let nodes = match &node.value {
        Value::List(_) => check.list(node, "a list of names").unwrap_or_default(),
        _ => std::slice::from_ref(node),
    };
    nodes.iter().filter_map(|node| check.text(node)).collect()
}

/// Reads a cipher suite or a list of them. Each must belong to one of `versions`.
fn ciphers(node: &Node, versions: &[String], words: &mut Words, check: &mut Checker) {
    let nodes = match &node.value {
        Value::List(_) => check.list(node, "a cipher suite").unwrap_or_default(),
        _ => std::slice::from_ref(node),
    };
    let mut ciphers: Vec<&str> = Vec::new();
    for node in nodes {
        let Some(name) = check.text(node) else {
            continue;
        };
        let cipher = match names::cipher(&name) {
            Ok(index) => names::CIPHERS[index].usual,
            Err(error) => {
                let text = error.to_string();
                let message = text.split("; did you mean").next().unwrap_or_default();
                let usual_names = names::CIPHERS.each_ref().map(|names| names.usual);
                let suggestion = nearest(&name, &usual_names).or_else(|| error.nearest());
                check.error(node.span.clone(), message).hint(error.hint()).nearest(suggestion);
                continue;
            }
        };
        let version = if cipher.starts_with("TLS_") { TlsVersion::V1_3 } else { TlsVersion::V1_2 };
        let offered =
            versions.is_empty() || versions.iter().any(|own| own.contains(version.name()));
        if !offered {
            let message = format!("`{name}` does not belong to a TLS version that is offered");
            check.error(node.span.clone(), message);
        } else if ciphers.contains(&cipher) {
            check.error(node.span.clone(), format!("`{name}` is listed twice"));
        } else {
            ciphers.push(cipher);
        }
    }
    if !ciphers.is_empty() {
        words.say(Key::Ciphers, ciphers.join(","), node);
    }
}
