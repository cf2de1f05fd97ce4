//! Tests every level of every row, in every configuration.

use weir_configuration::WantedSetting;
use weir_model::study::ProxyKind;
use weir_nginx::language as nginx;
use weir_nginx::language::Plain;
use weir_parameters::{EffectiveFrom, LevelKind, Parameter};

use super::{Copy, User, checkable, load_catalog};

/// Returns some levels of a row.
pub(crate) fn list_levels(row: &Parameter) -> Vec<String> {
    let candidates = "on,off,auto,buffered,0,1,7,64,100,2048,1s,90s,1k,64k,1m,text/html,\
                      text/css application/json,none,TLSv1.2,TLSv1.2 TLSv1.3,HIGH:!aNULL,\
                      ECDHE-RSA-AES128-GCM-SHA256,max=10,max=20 inactive=5s";
    let levels = candidates.split(',').filter_map(|level| row.check(level).ok());
    let mut levels: Vec<String> = levels.collect();
    if row.level == LevelKind::CipherList {
        // The grammar takes any names; OpenSSL takes those that it knows.
        levels.retain(|level| level.contains(['!', '-']));
    }
    levels.sort();
    levels.dedup();
    levels
}

/// Returns the rows that cannot be put into force in a configuration at any level that writes something.
fn without_a_place(name: &str) -> &'static [&'static str] {
    match name {
        "beside" | "cache" | "conditions" | "minified" | "nested" | "proxy" | "websocket" => &[],
        // A server there listens without saying so.
        "endless" | "listeners" => {
            &["backlog", "origin_keepalive", "origin_keepalive_requests", "reuseport"]
        }
        // A group is made where connections are kept.
        "limits" | "tls" => &["origin_keepalive_requests"],
        _ => &["origin_keepalive", "origin_keepalive_requests"],
    }
}

/// Returns everything that a configuration sets for a row, in the row's own words.
fn collect_words(row: &Parameter, tree: &[Plain]) -> Vec<String> {
    let mut nodes = Vec::new();
    match &row.effective {
        EffectiveFrom::Directive { name, context } => match context.name() {
            "main" => directives(name, tree, &[], &mut nodes),
            "events" => directives(name, block_of(tree, "events"), &[], &mut nodes),
            "upstream" => {
                let mut passes = Vec::new();
                directives("proxy_pass", block_of(tree, "http"), &INNER, &mut passes);
                let used = block_of(tree, "http").iter().filter(|group| {
                    group.name == "upstream"
                        && passes.iter().any(|pass| {
                            let target = pass.arguments[0].split("://").nth(1);
                            target.is_some_and(|target| target.starts_with(&*group.arguments[0]))
                        })
                });
                for group in used {
                    directives(name, group.block.as_deref().unwrap(), &[], &mut nodes);
                }
            }
            _ => directives(name, block_of(tree, "http"), &INNER, &mut nodes),
        },
        EffectiveFrom::ListenFlag { name } => {
            let mut listens = Vec::new();
            directives("listen", block_of(tree, "http"), &INNER, &mut listens);
            let flags = listens.into_iter().flat_map(|it| &it.arguments);
            return flags.filter(|flag| flag.split('=').next() == Some(name)).cloned().collect();
        }
        EffectiveFrom::ProcessLimit { .. } => {
            directives(&row.id, tree, &[], &mut nodes);
            return nodes.into_iter().map(|it| it.arguments.join(" ")).collect();
        }
        other => panic!("{other:?} is nothing of nginx's"),
    }
    nodes.into_iter().map(own_words).collect()
}

fn block_of<'t>(tree: &'t [Plain], name: &str) -> &'t [Plain] {
    let block = tree.iter().find(|it| it.name == name);
    block.and_then(|it| it.block.as_deref()).unwrap_or_default()
}

/// Blocks that can override directives of the blocks around them.
const INNER: [&str; 4] = ["server", "location", "if", "limit_except"];

fn directives<'t>(name: &str, block: &'t [Plain], inner: &[&str], found: &mut Vec<&'t Plain>) {
    for it in block {
        match &it.block {
            None if it.name == name => found.push(it),
            Some(block) if inner.contains(&&*it.name) => directives(name, block, inner, found),
            _ => {}
        }
    }
}

/// Returns a directive's words, without those that stay the user's.
fn own_words(directive: &Plain) -> String {
    let words = directive.arguments.iter().map(String::as_str);
    let words: Vec<&str> = match &*directive.name {
        "keepalive_timeout" => words.take(1).collect(),
        _ => words.collect(),
    };
    let text = format!("{} {}", directive.name, words.join(" "));
    text.replace("shared:SSL:", "shared:weir:")
}

/// Checks that a configuration sets a row to this level in every place where it sets the row.
fn check_said(name: &str, row: &Parameter, level: &str, tree: &[Plain]) {
    // Logs keep their files, formats and conditions; `logs_keep_…` has those.
    if row.id == "access_log" && level != "off" {
        return;
    }
    let words = collect_words(row, tree);
    let read: Vec<Option<String>> = words.iter().map(|it| row.read_back(Some(it))).collect();
    let expected = Some(level.to_owned());
    assert!(
        read.iter().all(|it| *it == expected),
        "{name}: {} is to be {level}: {words:?}",
        row.id
    );
    let is_written = !row.directives(level).is_empty();
    assert_eq!(read.is_empty(), !is_written, "{name}: {} {level}", row.id);
}

/// Puts all rows and levels into force in every configuration that nginx can check: nginx accepts each result, the
/// level is in force everywhere, and a second change finds nothing to do.
#[test]
fn every_level_is_accepted_by_nginx() {
    let catalog = load_catalog();
    let rows: Vec<&Parameter> = catalog.parameters(ProxyKind::Nginx).collect();
    let mut checked = 0;
    for name in checkable() {
        let user = User::of(name);
        let source = user.read();
        // One level of every row at once, and another in the next round.
        for round in 0..3 {
            let all: Vec<(&Parameter, String)> = rows
                .iter()
                .map(|row| {
                    let levels = list_levels(row);
                    (*row, levels[round % levels.len()].clone())
                })
                .collect();
            let (wanted, refused): (Vec<WantedSetting<'_>>, Vec<WantedSetting<'_>>) = all
                .iter()
                .map(|(row, level)| WantedSetting { row, level })
                .partition(|it| nginx::change(&source, &[*it]).is_ok());
            let refused: Vec<&str> = refused.iter().map(|it| &*it.row.id).collect();
            let mut expected: Vec<&str> = (all.iter())
                .filter(|(row, level)| !row.directives(level).is_empty())
                .map(|(row, _)| &*row.id)
                .collect();
            expected.retain(|id| without_a_place(name).contains(id));
            assert_eq!(refused, expected, "{name}");
            let after = nginx::change(&source, &wanted).unwrap();
            assert_eq!(nginx::change(&after, &wanted).unwrap(), after, "{name}");
            let tree = nginx::expanded(&after).unwrap();
            for it in &wanted {
                check_said(name, it.row, it.level, &tree);
            }
            let levels: Vec<&str> = wanted.iter().map(|it| it.level).collect();
            Copy::of(&after).accepted(&format!("{name}: {levels:?}"));
            checked += 1;
        }
    }
    assert!(checked >= 40);
}
