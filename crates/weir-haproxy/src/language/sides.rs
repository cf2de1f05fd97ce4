//! Parts of a section that decide about a request: its mode, its rules, its statistics, its servers.

use weir_configuration::answer::Answer;

use super::conditions::Conditions;
use super::sections::{Section, Statement, first, mode};
use super::servers::servers;

/// Returns true if a section in TCP inspects handshakes, to pass TLS on as it is.
pub(super) fn looks_into_tls(section: &Section<'_>) -> bool {
    let mut words = section.statements.iter().flat_map(|it| &it.words);
    words.any(|word| word.text.contains("ssl_sni") || word.text.contains("ssl_hello_type"))
}

/// Kinds of rules in the order in which a request comes to them, each with the index of its action among the words. The
/// kinds for connections apply only to sections in TCP.
const KINDS: [(&[&str], usize); 5] = [
    (&["tcp-request", "connection"], 2),
    (&["tcp-request", "session"], 2),
    (&["tcp-request", "content"], 2),
    (&["http-request"], 1),
    (&["redirect"], 0),
];

/// Returns true for statements that are evaluated one by one, in order.
pub(super) fn is_in_order(statement: &Statement<'_>) -> bool {
    let mut kinds = KINDS.iter();
    kinds.any(|(words, _)| statement.begins_with(words)) || statement.word(0) == "use_backend"
}

/// Follows the rules of a section up to the choice of a backend. Returns the answer of the section, if it answers
/// without a server.
pub(super) fn by_itself(conditions: &mut Conditions<'_, '_>) -> Option<Answer> {
    let chain = conditions.sections.clone();
    let is_http = mode(&chain) == "http";
    let monitor = first(&chain, &["monitor-uri"]).filter(|_| is_http);
    if monitor.is_some_and(|monitor| monitor.word(1) == conditions.request.path) {
        return Some(Answer::Statistics);
    }
    let kinds = KINDS.iter().take(if is_http { KINDS.len() } else { 3 });
    let rules = chain.iter().rev().flat_map(|section| &section.statements);
    for (kind, action) in kinds {
        // An `allow` ends the rules of its kind alone.
        let mut may_pass = false;
        for rule in rules.clone().filter(|rule| rule.begins_with(kind)) {
            let holds = conditions.meet(rule);
            if holds == Some(false) {
                continue;
            }
            let is_sure = holds == Some(true) && !may_pass;
            if ["allow", "accept"].contains(&rule.word(*action)) {
                if holds == Some(true) {
                    break;
                }
                may_pass = true;
            } else if let Some(answer) = answer_of(rule.word(*action), rule)
                && holds == Some(true)
            {
                return Some(if may_pass { Answer::Unknown } else { answer });
            } else {
                conditions.rewrite(rule, *action, is_sure);
            }
        }
    }
    statistics(conditions).filter(|_| is_http)
}

/// Returns the answer of a rule that is followed; None if the rule lets the request go on.
fn answer_of(action: &str, rule: &Statement<'_>) -> Option<Answer> {
    Some(match action {
        "redirect" => Answer::Redirects,
        "deny" => Answer::of_status(status_of(rule).unwrap_or(403)),
        "tarpit" => Answer::of_status(status_of(rule).unwrap_or(500)),
        "auth" => Answer::Returns(401),
        "reject" | "silent-drop" => Answer::Closes,
        "use-service" => Answer::Statistics,
        "return" => Answer::of_status(status_of(rule).unwrap_or(200)),
        _ => return None,
    })
}

/// Returns the status that a rule sets.
fn status_of(rule: &Statement<'_>) -> Option<u16> {
    let mut words = rule.words.iter();
    let at = words.position(|word| matches!(&*word.text, "status" | "deny_status"))?;
    rule.word(at + 1).parse().ok()
}

/// Returns the page of statistics, if a section or its `defaults` have one and the request is for it.
fn statistics(conditions: &Conditions<'_, '_>) -> Option<Answer> {
    let chain = &conditions.sections;
    let options = ["enable", "uri", "auth", "realm", "refresh", "scope", "admin", "hide-version"];
    if !options.iter().any(|option| first(chain, &["stats", option]).is_some()) {
        return None;
    }
    let uri =
        first(chain, &["stats", "uri"]).map_or("/haproxy?stats", |statement| statement.word(2));
    let is_alone =
        !chain[0].statements.iter().any(|it| {
            matches!(it.word(0), "use_backend" | "server" | "server-template" | "dispatch")
        }) && first(chain, &["default_backend"]).is_none();
    // Of other pages a section with nothing else answers 503.
    let is_shown = is_alone || conditions.target().is_some_and(|target| target.starts_with(uri));
    is_shown.then_some(Answer::Statistics)
}

/// Returns the answer of a section that has servers.
pub(super) fn served(chain: &[&Section<'_>]) -> Answer {
    let forwarding: [&[&str]; 3] =
        [&["dispatch"], &["option", "transparent"], &["option", "http_proxy"]];
    if !servers(chain).is_empty() || forwarding.iter().any(|words| first(chain, words).is_some()) {
        return Answer::Passes;
    }
    Answer::Returns(503)
}
