//! Settings of connections and content in nginx's configuration.

use std::net::IpAddr;

use weir_parameters::DefaultLevel;

use super::numbers::KEPT;
use super::ports::{keep, not_closing, speak_1_1};
use super::shape::{Keepalive, Pass, Shape, field, is_upgrade, parse_host};
use super::sources::{ACCESS_LOG, CLIENT_REQUESTS, CLIENT_TIMEOUT, GZIP, ORIGIN_KEEPALIVE};
use crate::configuration::{Configuration, Statement};
use crate::evidence::FileEvidence;
use crate::finding::Finding;
use crate::problem::HttpProblem;

pub(super) fn rules(shape: &Shape<'_>, found: &mut Vec<Finding>) {
    found.extend(inert_keepalive(shape));
    found.extend(no_keepalive(shape));
    found.extend(few_requests(shape));
    found.extend(no_clients_kept(shape));
    found.extend(gzip(shape));
    found.extend(access_log(shape));
}

fn inert_keepalive(shape: &Shape<'_>) -> Option<Finding> {
    let mut places = shape.passes.iter().filter_map(|pass| match &pass.keepalive {
        Keepalive::Inert { keepalive, because } => Some((pass, keepalive, because)),
        _ => None,
    });
    let (pass, keepalive, because) = places.next()?;
    let further = places.count();
    let is_version_known = shape.facts.nginx_version.is_some();
    let problem = HttpProblem::OriginKeepaliveInert {
        is_set: keepalive.is_some(),
        is_map: pass.closes.is_some(),
    };
    Some(
        Finding::warning(problem, ORIGIN_KEEPALIVE)
            .evidence_all(*keepalive)
            .evidence(pass.placed.statement)
            .evidence_all(because.iter().cloned())
            .evidence_all((further > 0).then_some(FileEvidence::FurtherPlaces { places: further }))
            .evidence_all((!is_version_known).then_some(FileEvidence::UnknownVersion))
            .change_nginx(keep(&[pass]).unwrap_or_default()),
    )
}

fn no_keepalive(shape: &Shape<'_>) -> Option<Finding> {
    // To a socket of the file system no port is held, and no packet goes around.
    let places: Vec<&Pass<'_>> = shape
        .passes
        .iter()
        .filter(|pass| matches!(pass.keepalive, Keepalive::Missing) && !pass.origins.is_empty())
        .collect();
    places.first()?;
    let finding = Finding::note(HttpProblem::OriginKeepaliveMissing, ORIGIN_KEEPALIVE)
        .evidence_all(places.iter().map(|pass| pass.placed.statement));
    // Without an upstream block there is no place for `keepalive`.
    let (grouped, direct): (Vec<&Pass<'_>>, Vec<&Pass<'_>>) =
        places.into_iter().partition(|pass| pass.upstream.is_some());
    let name = free_name(shape);
    let first_direct = direct.first().and_then(|pass| Some((*pass, group(pass, &name)?)));
    let mut commands = keep(&grouped).unwrap_or_default();
    let finding = match first_direct {
        Some((pass, group)) => {
            commands.extend(settled(pass));
            group.into_iter().fold(finding, Finding::change)
        }
        None => finding,
    };
    Some(if commands.is_empty() { finding } else { finding.change_nginx(commands) })
}

/// Returns edits that move an origin server named by its address into an upstream block: the block, and the new
/// `proxy_pass`. A name that nginx resolves for each request because of a variable is still resolved at run time.
fn group(pass: &Pass<'_>, group: &str) -> Option<[String; 2]> {
    let origin = pass.origins.first()?;
    let (scheme, rest) = pass.target.split_once("://")?;
    let uri = &rest[parse_host(&pass.target).len()..];
    // A group's server is at port 80 where nothing is said, whatever the scheme.
    let (name, port) = name_and_port(origin);
    let port = match port {
        "" if scheme == "https" => ":443",
        _ => "",
    };
    let statement = pass.placed.statement;
    let by_variable = statement.argument().is_some_and(|it| it.contains('$'));
    // The URI behind a variable is what is asked for, and behind a name it takes the place of the location's.
    if by_variable && uri.starts_with('/') {
        return None;
    }
    let is_looked_up = by_variable && name.parse::<IpAddr>().is_err();
    let resolver =
        pass.placed.inherited("resolver").first().map(|set| format!("{}; ", set.words()));
    let (since, zone, resolve) = if is_looked_up {
        let zone = format!("zone {group} 64k; {}", resolver.unwrap_or_default());
        (" of nginx 1.27.3 or later", zone, " resolve")
    } else {
        ("", String::new(), "")
    };
    Some([
        format!(
            "# in http{since}: upstream {group} {{ {zone}server {origin}{port}{resolve}; {KEPT}; }}"
        ),
        format!(
            "# {}:{}: `{};` becomes `proxy_pass {scheme}://{group}{uri};`",
            statement.file,
            statement.line,
            statement.words()
        ),
    ])
}

/// Returns an unused name for an upstream block.
fn free_name(shape: &Shape<'_>) -> String {
    let upstreams = shape.configuration.map(Configuration::upstreams).unwrap_or_default();
    let numbered = (2..).map(|number| format!("origin_{number}"));
    let mut names = std::iter::once("origin".to_owned()).chain(numbered);
    names.find(|name| !upstreams.contains_key(&**name)).unwrap_or_default()
}

/// Splits `a.example:80` into `a.example` and `:80`; an IPv6 address loses its brackets.
fn name_and_port(origin: &str) -> (&str, &str) {
    let at = origin.rfind(':').filter(|&at| !origin[at..].contains(']'));
    let (name, port) = origin.split_at(at.unwrap_or(origin.len()));
    (name.trim_start_matches('[').trim_end_matches(']'), port)
}

/// Returns edits that make a location speak HTTP/1.1 with an upstream block, without a `Connection` header of its own,
/// and keep what nginx derives from the address in `proxy_pass` by default: the Host header, the name in a handshake if
/// one is sent or verified, and rewritten redirects.
fn settled(pass: &Pass<'_>) -> Vec<String> {
    let placed = &pass.placed;
    let (Some(origin), Some(location)) =
        (pass.origins.first(), placed.within.iter().rfind(|block| block.name == "location"))
    else {
        return Vec::new();
    };
    let mut here = Vec::new();
    let is_named = ["proxy_ssl_server_name", "proxy_ssl_verify"]
        .iter()
        .any(|name| placed.inherited(name).first().and_then(|set| set.argument()) == Some("on"));
    if is_named && placed.inherited("proxy_ssl_name").is_empty() {
        here.push(format!("proxy_ssl_name {}", name_and_port(origin).0));
    }
    here.extend(redirected(pass, location));
    let fields = placed.inherited("proxy_set_header");
    let are_own = fields.first().is_none_or(|first| {
        Configuration::inside(location, "proxy_set_header").any(|one| std::ptr::eq(one, *first))
    });
    let has_host = field(placed, "host").is_some();
    let mut commands = Vec::new();
    if has_host || are_own {
        commands = speak_1_1(pass);
    } else {
        // A field that is set in a location hides all that its server sets.
        let connection = field(placed, "connection");
        let value = connection.and_then(|set| set.arguments.get(1));
        let stays = pass.closes.is_some()
            || value.is_some_and(|value| value.is_empty() || is_upgrade(value));
        let is_replaced =
            |set: &&Statement| !stays && connection.is_some_and(|it| std::ptr::eq(it, *set));
        let unreplaced = fields.into_iter().filter(|set| !is_replaced(set));
        here.extend(unreplaced.map(Statement::written));
        if !stays {
            here.push("proxy_set_header Connection \"\"".to_owned());
        }
        let version = placed.inherited("proxy_http_version");
        if version.first().and_then(|set| set.argument()) != Some("1.1") {
            here.push("proxy_http_version 1.1".to_owned());
        }
        commands.extend(not_closing(pass));
    }
    if !has_host {
        here.push(format!("proxy_set_header Host {origin}"));
    }
    if !here.is_empty() {
        commands.push(placed.in_location().precede_with(&here.join("; ")));
    }
    commands
}

/// Returns the directive that states what `proxy_redirect` did by default with the former address
/// (ngx_http_proxy_module).
fn redirected(pass: &Pass<'_>, location: &Statement) -> Option<String> {
    let statement = pass.placed.statement;
    let by_variable = statement.argument()?.contains('$');
    let prefix = match &location.arguments[..] {
        [prefix] => prefix,
        [sign, prefix] if sign == "=" || sign == "^~" => prefix,
        _ => return None,
    };
    if by_variable || !prefix.starts_with('/') {
        return None;
    }
    let (_, rest) = pass.target.split_once("://")?;
    let usual = if rest.contains('/') {
        format!("proxy_redirect {} {prefix}", pass.target)
    } else {
        format!("proxy_redirect {}/ /", pass.target)
    };
    let redirects = pass.placed.inherited("proxy_redirect");
    let is_said = redirects.iter().any(|set| set.words() == usual);
    let is_default =
        redirects.is_empty() || redirects.iter().any(|set| set.argument() == Some("default"));
    (is_default && !is_said).then_some(usual)
}

fn few_requests(shape: &Shape<'_>) -> Option<Finding> {
    const NAME: &str = "keepalive_requests";
    let here = shape.nginx_default(NAME)?;
    let newest = shape.newest_nginx_default(NAME)?;
    let (of_here, usual) = (parse_level(here)?, parse_level(newest)?);
    shape.configuration?;
    let all = shape.in_force(NAME);
    let low: Vec<&Statement> = all
        .iter()
        .map(|(_, set)| *set)
        .filter(|set| set.number().is_some_and(|n| n < usual))
        .collect();
    if low.is_empty() && !(of_here < usual && all.is_empty()) {
        return None;
    }
    let unset = FileEvidence::RequestsUnset {
        default: of_here,
        until: newest.since.clone().unwrap_or_default(),
    };
    Some(
        Finding::note(HttpProblem::KeepaliveRequestsLow { default: usual }, CLIENT_REQUESTS)
            .evidence_all(low.iter().copied())
            .evidence_all(low.is_empty().then_some(unset))
            .change_nginx(low.iter().map(|set| set.replace_with(&format!("{NAME} {usual}")))),
    )
}

fn parse_level(default: &DefaultLevel) -> Option<u64> {
    default.level.as_ref()?.parse().ok()
}

fn no_clients_kept(shape: &Shape<'_>) -> Option<Finding> {
    let set = shape.keeps_no_clients()?;
    let usual = shape.nginx_default("keepalive_timeout")?.level.as_deref();
    Some(
        Finding::warning(HttpProblem::ClientKeepaliveOff, CLIENT_TIMEOUT)
            .evidence(set)
            .change_nginx(
                usual.map(|level| set.replace_with(&format!("keepalive_timeout {level}"))),
            ),
    )
}

fn gzip(shape: &Shape<'_>) -> Option<Finding> {
    let mut all = shape
        .places
        .iter()
        .filter(|place| place.in_force("gzip").first().and_then(|set| set.argument()) == Some("on"))
        .flat_map(|place| place.in_force("gzip_types").into_iter().map(move |set| (place, set)));
    let (place, set, compressed) = all.find_map(|(place, set)| {
        let types = set.arguments.iter().map(String::as_str);
        let types: Vec<&str> = types.filter(|media_type| is_compressed(media_type)).collect();
        (!types.is_empty()).then_some((place, set, types))
    })?;
    let compressible: Vec<&str> = set
        .arguments
        .iter()
        .map(String::as_str)
        .filter(|media_type| !is_compressed(media_type))
        .collect();
    // text/html is always compressed and must not be the only one left out.
    let text = if compressible.is_empty() {
        "gzip_types text/css application/javascript application/json".to_owned()
    } else {
        format!("gzip_types {}", compressible.join(" "))
    };
    let types = compressed.into_iter().map(str::to_owned).collect();
    Some(
        Finding::warning(HttpProblem::GzipOfCompressed { types }, GZIP)
            .evidence(set)
            .evidence_all(place.in_force("gzip").first().copied())
            .change_nginx([set.replace_with(&text)]),
    )
}

fn is_compressed(media_type: &str) -> bool {
    let names = ["*", "application/zip", "application/gzip", "application/x-gzip"];
    let begins = ["video/", "audio/", "font/woff"];
    let images = ["image/jpeg", "image/jpg", "image/png", "image/gif", "image/webp", "image/avif"];
    names.contains(&media_type)
        || images.contains(&media_type)
        || begins.iter().any(|begin| media_type.starts_with(begin))
        || media_type.contains("font-woff")
}

fn access_log(shape: &Shape<'_>) -> Option<Finding> {
    let set = shape
        .in_force("access_log")
        .into_iter()
        .map(|(_, set)| set)
        .find(|set| is_unbuffered(set))?;
    // buffer= must stand behind the name of a format.
    let buffer = match set.arguments.len() {
        1 => "combined buffer=64k flush=1s",
        _ => "buffer=64k flush=1s",
    };
    Some(
        Finding::note(HttpProblem::AccessLogUnbuffered, ACCESS_LOG)
            .evidence(set)
            .change_nginx([set.extend_with(buffer)]),
    )
}

fn is_unbuffered(log: &Statement) -> bool {
    let target = log.argument().unwrap_or_default();
    // A log whose name has variables can have no buffer.
    let can_buffer = !target.starts_with("syslog:") && !target.contains('$');
    target != "off"
        && target != "/dev/null"
        && can_buffer
        && !log.arguments.iter().any(|word| word.starts_with("buffer=") || word.starts_with("gzip"))
}
