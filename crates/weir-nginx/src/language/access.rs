//! Access rules, as far as they treat every client of a load alike.

use weir_configuration::asked::Request;

use super::view::Node;

/// Returns the status with which access rules refuse a request. `in_force` returns the directives of some names that
/// are in force; `is_first` is true if nothing has sent the request on yet.
pub(super) fn refusal<'n>(
    location: Option<&Node<'_>>,
    in_force: impl Fn(&str) -> Vec<&'n Node<'n>>,
    request: &Request<'_>,
    is_first: bool,
) -> Option<u16> {
    if is_first
        && location
            .is_some_and(|location| location.simple().any(|node| node.directive.is("internal")))
    {
        return Some(404);
    }
    let argument = |name| in_force(name).first().and_then(|it| it.directive.argument(0));
    let is_either = argument("satisfy") == Some("any");
    let is_limited = location.is_some_and(|location| is_limited(location, request.method));
    if is_limited || !is_either && is_closed(&in_force("allow, deny")) {
        return Some(403);
    }
    let asks = argument("auth_basic").is_some_and(|realm| realm != "off");
    (asks && !is_either && request.field("authorization") == Some("")).then_some(401)
}

/// Returns true for access rules that let nobody in.
fn is_closed(rules: &[&Node<'_>]) -> bool {
    let denies_all =
        |node: &Node<'_>| node.directive.is("deny") && node.directive.argument(0) == Some("all");
    rules.iter().any(|rule| denies_all(rule))
        && !rules.iter().any(|rule| rule.directive.is("allow"))
}

/// Returns true if `limit_except` lets nobody in whose method is not among those that it names.
fn is_limited(location: &Node<'_>, method: &str) -> bool {
    let mut limits =
        location.children.iter().filter(|it| it.is_block("limit_except") && !is_for(it, method));
    limits.any(|limit| is_closed(&limit.simple().collect::<Vec<_>>()))
}

/// Returns true for a `limit_except` that names a method, in letters of any case; HEAD goes with GET.
pub(super) fn is_for(limit: &Node<'_>, method: &str) -> bool {
    let mut methods = limit.directive.words();
    methods.any(|named| {
        named.eq_ignore_ascii_case(method)
            || (named.eq_ignore_ascii_case("GET") && method == "HEAD")
    })
}
