//! The files of `limits/` are consistent with each other and with the catalog; errors are reported with their position.

use std::fs;
use std::path::Path;

use weir_limits::{Quantities, Rules};
use weir_model::sample::Counters;
use weir_model::study::ProxyKind;
use weir_parameters::Catalog;

#[test]
fn every_parameter_to_turn_is_in_the_catalog_of_its_proxy() {
    let (rules, catalog) = (Rules::builtin(), Catalog::builtin());
    let real: Vec<ProxyKind> =
        ProxyKind::ALL.into_iter().filter(|kind| *kind != ProxyKind::External).collect();
    let mut turns = 0;
    for rule in rules.all() {
        for &proxy in
            real.iter().filter(|proxy| rule.proxies.is_empty() || rule.proxies.contains(proxy))
        {
            for turn in rule.turns(Some(proxy)) {
                turns += 1;
                let (limiter, id) = (&rule.limiter.value, &turn.parameter);
                assert!(catalog.get(proxy, id).is_some(), "{limiter}: {proxy:?} has no `{id}`");
                if let weir_limits::TurnDirection::To(level) = &turn.way {
                    let row = catalog.get(proxy, id).expect("seen above");
                    assert!(
                        row.check(level).is_ok(),
                        "{limiter}: {proxy:?} {id} cannot be {level}"
                    );
                }
            }
        }
    }
    assert!(turns > 150, "{turns}");
}

#[test]
fn every_limiter_of_a_proxy_has_something_to_turn() {
    let rules = Rules::builtin();
    let beyond = ["generator", "origin", "reload", "steal", "crowded", "rate_limit"];
    for rule in rules.all() {
        let limiter = rule.limiter.value.as_str();
        assert_eq!(rule.turn.is_empty(), beyond.contains(&limiter), "{limiter}");
    }
}

#[test]
fn every_finding_of_the_doctor_is_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let schema = fs::read_to_string(folder.join("weir-doctor-2.json")).expect("a schema");
    let mut named = 0;
    for rule in Rules::builtin().all() {
        for id in &rule.doctor {
            named += 1;
            let limiter = &rule.limiter.value;
            assert!(
                schema.contains(&format!("\"const\": \"{id}\"")),
                "{limiter}: weir doctor has no finding `{id}`"
            );
        }
    }
    assert!(named > 20, "{named}");
}

#[test]
fn every_quantity_is_of_use() {
    let (rules, quantities) = (Rules::builtin(), Quantities::builtin());
    let text = format!("{rules:?}{quantities:?}");
    for quantity in quantities.all() {
        let name = format!("\"{}\"", quantity.name.value);
        let is_used = text.matches(&name).count() > 1;
        let is_told = quantity.resource.is_some() || quantity.full.is_some();
        assert!(is_used || is_told, "{name} is used by nothing");
    }
}

#[test]
fn what_is_wrong_in_a_file_is_named_with_its_line() {
    let quantities = Quantities::builtin();
    let symptoms = "    symptoms: [{quantity: cpu, above: 1}]";
    for (text, place) in [
        (
            format_rules("    symptoms:\n      - {quantity: cpus, above: 1}"),
            "f:8: there is no quantity `cpus`",
        ),
        (format_rules("    symptoms: [{quantity: cpu}]"), "f:7: a condition has one of"),
        (
            format_rules("    symptoms: [{quantity: cpu, above: 1, below: 2}]"),
            "f:7: a condition has one of",
        ),
        (format_rules("    symptoms: []"), "f:4: a rule has symptoms"),
        (format_rules(&format!("{symptoms}\n    explains: [b]")), "f:8: there is no limiter `b`"),
        (format_rules(&format!("{symptoms}\n    yields_to: [a]")), "f:4: `a` is explained by"),
        (
            format_rules(&format!("{symptoms}\n    turn: {{ngnix: [x up]}}")),
            "f:4: `ngnix` is no proxy",
        ),
        (format_rules(&format!("{symptoms}\n    whatever: 1")), "f:8: "),
        (format_rules(symptoms).replace("says: x", "says: '{rate}'"), "f:4: it says `rate`"),
        ("rules: {".to_owned(), "f:1: "),
    ] {
        let error = Rules::parse("f", &text, quantities).expect_err(place).to_string();
        assert!(error.starts_with(place), "{place}: {error}");
    }
}

fn format_rules(lines: &str) -> String {
    format!(
        "shrink: 1\nshown_from: 0.5\nrules:\n  - limiter: a\n    role: proxy\n    prior: 0\n{lines}\n    \
         says: x\n    do: y\n    source: z\n"
    )
}

#[test]
fn a_quantity_that_cannot_be_derived_is_named_with_its_line() {
    for (text, place) in [
        (format_quantity("cpu, columns: [user_ns], take: rate"), "q:2: there is no table `cpu`"),
        (format_quantity("cpus, columns: [used_ns], take: rate"), "q:2: table `cpus` has no column `used_ns`"),
        (format_quantity("cpus, columns: [user_ns], take: last"), "q:2: `cpus.user_ns` is a Counter"),
        (format_quantity("host, columns: [files], take: rate"), "q:2: `host.files` is a Gauge"),
        (format_quantity("proxy, columns: [value], take: rate, where: {counter: acepts}"), "q:2: no proxy has a counter"),
        (format_quantity("cpus, columns: [user_ns], take: rate, where: {port: '1'}"), "q:2: table `cpus` has no key `port`"),
        (format_quantity("cpus, columns: [user_ns], take: speed"), "q:2: "),
        (
            "quantities:\n  - {name: a, means: b, from: {ratio: {of: a, by: a}}}".to_owned(),
            "q:2: no quantity above this one",
        ),
        (
            "quantities:\n  - {name: a, means: b, from: {trial: saturated}}\n  - {name: a, means: b, from: {trial: saturated}}"
                .to_owned(),
            "q:3: quantity `a` is there twice",
        ),
    ] {
        let error = Quantities::parse("q", &text, Counters::builtin()).expect_err(place);
        assert!(error.to_string().starts_with(place), "{place}: {error}");
    }
}

fn format_quantity(samples: &str) -> String {
    format!("quantities:\n  - {{name: a, means: b, from: {{samples: {{table: {samples}}}}}}}\n")
}
