//! What a section does with a request by itself: its mode, its rules, its statistics, its servers.

use super::conditions::Conditions;
use super::sections::{Section, Statement};
use crate::answer::Answer;
use crate::asked::Request;

/// The first statement of a chain that begins with these words.
pub(super) fn first<'s, 't>(
    chain: &[&'s Section<'t>],
    words: &[&str],
) -> Option<&'s Statement<'t>> {
    let mut all = chain.iter().flat_map(|section| &section.statements);
    all.find(|statement| statement.begins_with(words))
}

/// `http`, or `tcp` where nothing is said.
pub(super) fn mode<'s>(chain: &[&'s Section<'_>]) -> &'s str {
    first(chain, &["mode"]).map_or("tcp", |statement| statement.word(1))
}

/// Whether a section in TCP looks into handshakes, to pass TLS on as it is.
pub(super) fn looks_into_tls(section: &Section<'_>) -> bool {
    let mut words = section.statements.iter().flat_map(|it| &it.words);
    words.any(|word| word.text.contains("ssl_sni") || word.text.contains("ssl_hello_type"))
}

/// What a section answers without any server.
pub(super) fn by_itself(chain: &[&Section<'_>], conditions: &Conditions<'_, '_>) -> Option<Answer> {
    let request = &conditions.request;
    let monitor = first(chain, &["monitor-uri"]);
    if monitor.is_some_and(|monitor| monitor.word(1) == request.path) {
        return Some(Answer::Statistics);
    }
    let said = ["http-request", "redirect"].into_iter().find_map(|kind| {
        // An `allow` ends the rules of its kind, and redirections come behind these.
        let mut may_pass = false;
        for rule in chain[0]
            .statements
            .iter()
            .filter(|rule| rule.word(0) == kind)
        {
            let action = if kind == "redirect" {
                kind
            } else {
                rule.word(1)
            };
            let holds = conditions.holds(rule);
            if action == "allow" {
                match holds {
                    Some(true) => break,
                    Some(false) => {}
                    None => may_pass = true,
                }
            } else if let Some(answer) = answer_of(action, rule)
                && holds == Some(true)
            {
                return Some(if may_pass { Answer::Unknown } else { answer });
            }
        }
        None
    });
    said.or_else(|| statistics(chain, request))
}

/// What a rule answers that is followed; `None`: it lets the request go on.
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

/// The status that a rule says.
fn status_of(rule: &Statement<'_>) -> Option<u16> {
    let mut words = rule.words.iter();
    let at = words.position(|word| matches!(&*word.text, "status" | "deny_status"))?;
    rule.word(at + 1).parse().ok()
}

/// The page of statistics, where a section or its `defaults` have one and the request is for it.
fn statistics(chain: &[&Section<'_>], request: &Request<'_>) -> Option<Answer> {
    let has = |option: &str| first(chain, &["stats", option]);
    let known = [
        "enable",
        "uri",
        "auth",
        "realm",
        "refresh",
        "scope",
        "admin",
        "hide-version",
    ];
    if !known.iter().any(|option| has(option).is_some()) {
        return None;
    }
    let uri = has("uri").map_or("/haproxy?stats", |statement| statement.word(2));
    let names_backend = |it: &Statement<'_>| {
        matches!(
            it.word(0),
            "use_backend" | "server" | "server-template" | "dispatch"
        )
    };
    let is_alone = !chain[0].statements.iter().any(names_backend)
        && first(chain, &["default_backend"]).is_none();
    // Of other pages a section with nothing else answers 503.
    (is_alone || request.target.starts_with(uri)).then_some(Answer::Statistics)
}

/// What becomes of a request in a section that has servers.
pub(super) fn served(chain: &[&Section<'_>]) -> Answer {
    let asks = |it: &Statement<'_>| matches!(it.word(0), "server" | "server-template" | "dispatch");
    let option = |name: &str| first(chain, &["option", name]).is_some();
    match chain[0].statements.iter().any(asks) || option("transparent") || option("http_proxy") {
        true => Answer::Passes,
        false => Answer::Returns(503),
    }
}
