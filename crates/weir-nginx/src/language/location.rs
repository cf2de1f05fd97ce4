//! Finds the location of a server for a path (ngx_http_core_module), and its answer.

use weir_configuration::answer::Answer;
use weir_configuration::names::is_found;
use weir_configuration::place::is_among;

use super::view::Node;

/// Directives that pass a request on.
const PASSING: &str = "proxy_pass, grpc_pass, fastcgi_pass, uwsgi_pass, scgi_pass, memcached_pass";

/// Directives that answer with nginx's own status.
const STATISTICS: &str = "stub_status, api, status, vhost_traffic_status_display, check_status";

/// Directives that set where files are.
pub(super) const FILES: &str = "root, alias, try_files, index, autoindex, gzip_static";

/// Directives of other languages, whose answers are not known.
const PROGRAMS: &str = "js_content, perl, content_by_lua_file, empty_gif, flv, mp4, dav_methods";

pub(super) fn is_one_of(node: &Node<'_>, names: &str) -> bool {
    is_among(&node.directive.name.text, names)
}

/// Comparison of a location with a path.
enum Matching<'a> {
    Exact(&'a str),
    /// Prefix; true if regular expressions are not tried after it.
    Prefix(&'a str, bool),
    /// Regular expression; true if the case of letters does not matter.
    Expression(&'a str, bool),
    Named,
}

fn matching<'a>(location: &'a Node<'_>) -> Matching<'a> {
    let directive = location.directive;
    let (first, second) = (directive.argument(0).unwrap_or_default(), directive.argument(1));
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

/// Returns the location of a block that takes a path, and true if the search ends with it
/// (`ngx_http_core_find_location`): an exact location; else the longest prefix, unless a regular expression in it, or
/// else beside it, matches, of which the first counts.
pub(super) fn find<'n, 't>(block: &'n [Node<'t>], path: &str) -> Option<(&'n Node<'t>, bool)> {
    let locations = block.iter().filter(|node| node.is_block("location"));
    let mut exact = locations.clone();
    if let Some(node) =
        exact.find(|node| matches!(matching(node), Matching::Exact(exact) if exact == path))
    {
        return Some((node, true));
    }
    let prefixes = locations.clone().filter_map(|node| match matching(node) {
        Matching::Prefix(own, is_last) if path.starts_with(own) => Some((own.len(), is_last, node)),
        _ => None,
    });
    let prefix = prefixes.max_by_key(|(length, ..)| *length);
    let inner = prefix.and_then(|(.., node)| find(&node.children, path));
    if let Some((node, true)) = inner {
        return Some((node, true));
    }
    let is_last = prefix.is_some_and(|(_, is_last, _)| is_last);
    let mut expressions = locations.filter(|_| !is_last);
    if let Some(node) = expressions.find(|node| match matching(node) {
        Matching::Expression(expression, any_case) => {
            is_found(expression, any_case, path) == Some(true)
        }
        _ => false,
    }) {
        let inner = find(&node.children, path).map_or(node, |(inner, _)| inner);
        return Some((inner, true));
    }
    inner.or(prefix.map(|(.., node)| (node, false)))
}

/// Returns the answer of a location that does not change the request any more.
pub(super) fn content(location: &Node<'_>) -> Answer {
    let has = |names: &str| location.simple().any(|node| is_one_of(node, names));
    match () {
        () if has(PASSING) => Answer::Passes,
        // Whether that is so, files may say.
        () if passes_if(location) => Answer::Unknown,
        () if has(STATISTICS) => Answer::Statistics,
        () if location.children.iter().any(is_program) => Answer::Unknown,
        () => Answer::Files,
    }
}

/// Returns true for a location that passes requests on under a condition.
fn passes_if(location: &Node<'_>) -> bool {
    let mut inner = location.children.iter().filter(|it| it.is_block("if")).flat_map(Node::simple);
    inner.any(|node| is_one_of(node, PASSING))
}

/// Returns the blocks from the one at a place outwards, up to the server.
pub(super) fn way_out<'n, 't>(
    from: &'n Node<'t>,
    place: (usize, usize),
) -> Option<Vec<&'n Node<'t>>> {
    if from.place() == place {
        return Some(vec![from]);
    }
    let mut locations = from.children.iter().filter(|it| it.is_block("location"));
    let mut blocks = locations.find_map(|inner| way_out(inner, place))?;
    blocks.push(from);
    Some(blocks)
}

/// Returns the location of a server with a name.
pub(super) fn named_location<'n>(server: &'n Node<'n>, name: &str) -> Option<&'n Node<'n>> {
    let mut locations = server.children.iter().filter(|it| it.is_block("location"));
    locations.find(|node| node.directive.argument(0) == Some(name))
}

/// Returns true if a directive has a program answer.
fn is_program(node: &Node<'_>) -> bool {
    is_one_of(node, PROGRAMS) || node.directive.name.text.starts_with("content_by_lua")
}
