//! Which location of a server a path meets (ngx_http_core_module), and what it does with a request, after what
//! `return`, `rewrite` and `if` of the rewrite module do before.

use super::view::Node;
use crate::answer::Answer;
use crate::asked::Request;
use crate::names::is_found;
use crate::place::is_among;

/// Directives that pass a request on.
const PASSING: &str = "proxy_pass, grpc_pass, fastcgi_pass, uwsgi_pass, scgi_pass, memcached_pass";

/// Directives that answer with what nginx knows of itself.
const STATISTICS: &str = "stub_status, api, status, vhost_traffic_status_display, check_status";

/// Directives that say where files are.
pub(super) const FILES: &str = "root, alias, try_files, index, autoindex, gzip_static";

/// Directives of other languages, whose answers nobody knows.
const PROGRAMS: &str = "js_content, perl, content_by_lua_file, empty_gif, flv, mp4, dav_methods";

pub(super) fn is_one_of(node: &Node<'_>, names: &str) -> bool {
    is_among(&node.directive.name.text, names)
}

/// How a location is compared with a path.
enum Matching<'a> {
    Exact(&'a str),
    /// And whether regular expressions are not asked any more.
    Prefix(&'a str, bool),
    /// And whether the case of letters does not count.
    Expression(&'a str, bool),
    Named,
}

fn matching<'a>(location: &'a Node<'_>) -> Matching<'a> {
    let directive = location.directive;
    let (first, second) = (
        directive.argument(0).unwrap_or_default(),
        directive.argument(1),
    );
    // The sign may stand right before its word.
    let (sign, word) = match second {
        Some(word) => (first, word),
        None => {
            let signs = ["^~", "~*", "~", "="];
            let sign = signs.iter().find(|sign| first.starts_with(**sign));
            first.split_at(sign.map_or(0, |sign| sign.len()))
        }
    };
    match sign {
        "=" => Matching::Exact(word),
        "^~" => Matching::Prefix(word, true),
        "~" => Matching::Expression(word, false),
        "~*" => Matching::Expression(word, true),
        _ if word.starts_with('@') => Matching::Named,
        _ => Matching::Prefix(word, false),
    }
}

/// The location of a block that takes a path, and whether it was found for good
/// (`ngx_http_core_find_location`): an exact one; else the longest prefix, unless a regular expression in it, or
/// then beside it, is found, the first of which counts.
pub(super) fn find<'n, 't>(block: &'n [Node<'t>], path: &str) -> Option<(&'n Node<'t>, bool)> {
    let locations = || block.iter().filter(|node| node.is_block("location"));
    let exact = |node: &&Node<'_>| matches!(matching(node), Matching::Exact(own) if own == path);
    if let Some(node) = locations().find(exact) {
        return Some((node, true));
    }
    let prefixes = locations().filter_map(|node| match matching(node) {
        Matching::Prefix(own, is_last) if path.starts_with(own) => Some((own.len(), is_last, node)),
        _ => None,
    });
    let prefix = prefixes.max_by_key(|(length, ..)| *length);
    let inner = prefix.and_then(|(.., node)| find(&node.children, path));
    if let Some((node, true)) = inner {
        return Some((node, true));
    }
    let is_last = prefix.is_some_and(|(_, is_last, _)| is_last);
    let fits = |node: &&Node<'_>| match matching(node) {
        Matching::Expression(own, any_case) => is_found(own, any_case, path) == Some(true),
        _ => false,
    };
    if let Some(node) = locations().filter(|_| !is_last).find(fits) {
        let inner = find(&node.children, path).map_or(node, |(inner, _)| inner);
        return Some((inner, true));
    }
    inner.or(prefix.map(|(.., node)| (node, false)))
}

/// What the rewrite module answers in a block, if it does: `return`, and a `rewrite` to elsewhere.
pub(super) fn rewritten(block: &Node<'_>, request: &Request<'_>) -> Option<Answer> {
    for node in &block.children {
        let directive = node.directive;
        let answer = match &*directive.name.text {
            "return" => Some(returned(node)),
            "rewrite" => {
                let goes = directive.argument(1).unwrap_or_default();
                let flag = directive.argument(2).unwrap_or_default();
                let schemes = ["http://", "https://", "$scheme"];
                let leaves = schemes.iter().any(|scheme| goes.starts_with(scheme))
                    || matches!(flag, "redirect" | "permanent");
                let pattern = directive.argument(0).unwrap_or_default();
                (leaves && is_found(pattern, false, request.path) == Some(true))
                    .then_some(Answer::Redirects)
            }
            "if" if is_true(node, request) == Some(true) => rewritten(node, request),
            _ => None,
        };
        if answer.is_some() {
            return answer;
        }
    }
    None
}

fn returned(node: &Node<'_>) -> Answer {
    let first = node.directive.argument(0).unwrap_or_default();
    // A URL alone is 302.
    first.parse().map_or(Answer::Redirects, Answer::of_status)
}

/// Whether an `if` is entered, as far as the request alone decides it.
fn is_true(node: &Node<'_>, request: &Request<'_>) -> Option<bool> {
    let words: Vec<&str> = node.directive.words().collect();
    let condition = words.join(" ");
    let condition = condition
        .trim()
        .strip_prefix('(')?
        .strip_suffix(')')?
        .trim();
    let (variable, rest) = match condition.split_once(char::is_whitespace) {
        Some((variable, rest)) => (variable, rest.trim()),
        None => (condition, ""),
    };
    let value = match variable.strip_prefix('$')? {
        "host" | "http_host" => request.host,
        "scheme" if request.is_tls() => "https",
        "scheme" => "http",
        "https" if request.is_tls() => "on",
        "https" => "",
        "uri" | "document_uri" => request.path,
        "request_uri" => request.target,
        "ssl_client_verify" if !request.is_certified => "NONE",
        _ => return None,
    };
    let (sign, word) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let word = word.trim();
    match sign {
        "" => Some(!value.is_empty() && value != "0"),
        "=" => Some(value == word),
        "!=" => Some(value != word),
        "~" => is_found(word, false, value),
        "~*" => is_found(word, true, value),
        "!~" => is_found(word, false, value).map(|found| !found),
        "!~*" => is_found(word, true, value).map(|found| !found),
        _ => None,
    }
}

/// Where `try_files` goes when no file is there.
pub(super) enum Fallback<'a> {
    Named(&'a str),
    Path(String),
}

pub(super) fn fallback<'a>(location: &'a Node<'_>) -> Option<Fallback<'a>> {
    let mut simple = location.simple();
    let tries = simple.find(|node| node.directive.is("try_files"))?;
    let last = tries.directive.words().last()?;
    if last.starts_with('@') {
        return Some(Fallback::Named(last));
    }
    let path = last.split('?').next().unwrap_or_default();
    let is_path = path.starts_with('/') && !path.contains('$');
    is_path.then(|| Fallback::Path(path.to_owned()))
}

/// What answers in a location that changes nothing any more.
pub(super) fn content(location: &Node<'_>) -> Answer {
    let has = |names: &str| location.simple().any(|node| is_one_of(node, names));
    let is_closed =
        |node: &Node<'_>| node.directive.is("deny") && node.directive.argument(0) == Some("all");
    let is_program = |node: &Node<'_>| {
        is_one_of(node, PROGRAMS) || node.directive.name.text.starts_with("content_by_lua")
    };
    match () {
        () if location.simple().any(is_closed) && !has("allow") => Answer::Returns(403),
        () if has(PASSING) => Answer::Passes,
        () if has(STATISTICS) => Answer::Statistics,
        () if location.children.iter().any(is_program) => Answer::Unknown,
        () => Answer::Files,
    }
}
