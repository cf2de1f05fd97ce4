//! How a load's connections are used: the keys `connection`, `tls`, `hold` and `size` of a load.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use weir_model::load::Lifetime;
use weir_model::study::{TlsOffer, file_target};
use weir_model::tls::{Resumption, TlsVersion};

use crate::arms;
use crate::check::{Checker, Fields, fraction, nearest, short};
use crate::load;
use crate::plan::MAX_CONTENT;
use crate::proxy;
use crate::tree::{Node, Value};

/// Most connections that are held at each arm.
const MOST_HELD: u64 = 1_000_000;
/// Longest time that a connection can be told to be used for.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Cipher suites that the engine can speak and an arm's certificate (RSA) allows, by their OpenSSL
/// names, and the version of TLS that each belongs to.
const CIPHERS: [(&str, TlsVersion); 6] = [
    ("TLS_AES_128_GCM_SHA256", TlsVersion::V1_3),
    ("TLS_AES_256_GCM_SHA384", TlsVersion::V1_3),
    ("TLS_CHACHA20_POLY1305_SHA256", TlsVersion::V1_3),
    ("ECDHE-RSA-AES128-GCM-SHA256", TlsVersion::V1_2),
    ("ECDHE-RSA-AES256-GCM-SHA384", TlsVersion::V1_2),
    ("ECDHE-RSA-CHACHA20-POLY1305", TlsVersion::V1_2),
];

/// `keep-alive`, `per-request`, `{requests: N}`, `{time: 10s}`.
pub(crate) fn lifetime(node: &Node, check: &mut Checker) -> Option<Lifetime> {
    let Value::Mapping(_) = &node.value else {
        return check.choice(
            node,
            &[
                ("keep-alive", Lifetime::Kept),
                ("per-request", Lifetime::Request),
            ],
        );
    };
    let fields = Fields::known(node, "`connection`", &["requests", "time"], check)?;
    match (fields.get("requests"), fields.get("time")) {
        (Some(requests), None) => {
            let number = check.whole(requests, 1..=u64::from(u32::MAX))?;
            Some(match number as u32 {
                // Opening it is then a part of every request, and is measured as one.
                1 => Lifetime::Request,
                number => Lifetime::Requests(number),
            })
        }
        (None, Some(time)) => {
            let time = check.duration(time, Duration::from_millis(1)..=LONGEST)?;
            Some(Lifetime::Time(time.as_nanos() as u64))
        }
        _ => {
            check
                .error(
                    fields.span(),
                    "a connection is used for so many requests or for so long",
                )
                .hint("write `keep-alive`, `per-request`, `{requests: 100}` or `{time: 10s}`");
            None
        }
    }
}

/// `true`, `false`, or what is offered.
pub(crate) fn tls(node: &Node, check: &mut Checker) -> Option<TlsOffer> {
    if !matches!(node.value, Value::Mapping(_)) {
        return check.flag(node)?.then(TlsOffer::default);
    }
    let known = ["version", "ciphers", "resumption"];
    let fields = Fields::known(node, "`tls`", &known, check)?;
    let mut offer = TlsOffer::default();
    if let Some(node) = fields.get("version") {
        let versions = [("1.2", TlsVersion::V1_2), ("1.3", TlsVersion::V1_3)];
        offer.versions.clear();
        offer.versions.extend(check.choice(node, &versions));
    }
    if let Some(node) = fields.get("ciphers") {
        offer.ciphers = ciphers(node, &offer.versions, check);
    }
    if let Some(node) = fields.get("resumption") {
        offer.resumption = resumption(node, check).unwrap_or_default();
    }
    Some(offer)
}

/// A cipher suite or a list of them, each one that can be spoken in one of `versions`.
fn ciphers(node: &Node, versions: &[TlsVersion], check: &mut Checker) -> Vec<String> {
    let nodes = match &node.value {
        Value::List(_) => check.list(node, "a cipher suite").unwrap_or_default(),
        _ => std::slice::from_ref(node),
    };
    let mut ciphers: Vec<String> = Vec::new();
    for node in nodes {
        let Some(name) = check.text(node) else {
            continue;
        };
        let known = CIPHERS.iter().find(|(known, _)| *known == name);
        match known {
            None => report_cipher(node, &name, check),
            // Nothing is left of a version that was refused.
            Some((_, version)) if !versions.is_empty() && !versions.contains(version) => {
                let message = format!("`{name}` is not of the TLS version that is offered");
                check.error(node.span.clone(), message);
            }
            Some(_) if ciphers.contains(&name) => {
                check.error(node.span.clone(), format!("`{name}` is there twice"));
            }
            Some(_) => ciphers.push(name),
        }
    }
    ciphers
}

fn report_cipher(node: &Node, name: &str, check: &mut Checker) {
    let names = CIPHERS.map(|(name, _)| name);
    let upper = name.to_ascii_uppercase();
    let meant = names
        .iter()
        .map(|known| (strsim::damerau_levenshtein(known, &upper), *known))
        .filter(|(distance, known)| *distance <= known.len().div_ceil(4))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known);
    let message = format!(
        "`{}` is no cipher suite that can be spoken here",
        short(name)
    );
    check
        .error(node.span.clone(), message)
        .hint(format!(
            "with the arms' RSA certificate there are {}",
            names.join(", ")
        ))
        .nearest(meant.or_else(|| nearest(name, &names)));
}

/// `off`, `on`, or a share of new connections.
fn resumption(node: &Node, check: &mut Checker) -> Option<Resumption> {
    let text = check.text(node)?;
    match &*text {
        "off" => return Some(Resumption::Off),
        "on" => return Some(Resumption::On),
        _ => {}
    }
    let share = fraction(&text).filter(|share| *share <= 1.0);
    match share {
        Some(0.0) => Some(Resumption::Off),
        Some(1.0) => Some(Resumption::On),
        Some(share) => Some(Resumption::Ratio(share)),
        None => {
            let message = format!("`{}` is not `on`, `off` or a share", short(&text));
            check
                .error(node.span.clone(), message)
                .hint("write `off`, `on`, or the share of new connections that resume, as `80%`")
                .nearest(nearest(&text, &["off", "on"]));
            None
        }
    }
}

/// Connections that are held.
pub(crate) fn held(node: &Node, check: &mut Checker) -> Option<u32> {
    let number = check.whole(node, 0..=MOST_HELD)?;
    Some(number as u32)
}

/// Size and request target of the content that a load asks for.
pub(crate) fn size(node: &Node, fields: &Fields<'_>, check: &mut Checker) -> Option<(u64, String)> {
    let size = check.bytes(node, MAX_CONTENT)?;
    let request = fields.get("request").map(|node| &node.value);
    if let Some(Value::Mapping(entries)) = request
        && let Some(path) = entries.iter().find(|entry| entry.key == "path")
    {
        check
            .error(path.span.clone(), "a load asks for a size or for a path")
            .hint(format!(
                "content of that size is at {}: leave one of the two out",
                file_target(size)
            ));
    }
    Some((size, file_target(size)))
}

/// A proxy that runs already is one address, asked in clear, with content of its own: content of a size
/// is there where weir has put it, and a listener with TLS where weir has made one.
pub(crate) fn check_external(
    loads: &[load::Draft],
    arms: &[arms::Draft],
    of_study: Option<&proxy::Draft>,
    check: &mut Checker,
) {
    let Some(of_study) = of_study else { return };
    let is_started = |arm: &arms::Draft| arm.proxy(&of_study.spec).kind.is_started();
    if arms.iter().all(is_started) {
        return;
    }
    // The cells of a matrix say the same thing once.
    let sizes: BTreeSet<_> = loads.iter().filter_map(|load| place(&load.size)).collect();
    for (start, end) in sizes {
        let message = "what an external proxy answers is not weir's to choose";
        let error = check.error(start..end, message);
        error.hint("leave `size` out, or ask for a `path`");
    }
    let secure: BTreeSet<_> = loads.iter().filter_map(|load| place(&load.tls)).collect();
    for (start, end) in secure {
        let error = check.error(start..end, "an external proxy is asked in clear");
        error.hint("leave `tls` out, or let weir start the proxy");
    }
}

fn place(at: &Option<Range<usize>>) -> Option<(usize, usize)> {
    at.as_ref().map(|at| (at.start, at.end))
}
