//! Tests of files that are designed to be expensive. They must be refused soon, with their line.

use std::time::{Duration, Instant};

use weir_study::{Engine, StudyErrors, parse_requests};

use crate::read;

/// Returns the errors of both readers, which read their trees alike.
fn refused(text: &str) -> [StudyErrors; 2] {
    let begun = Instant::now();
    let study = read(text).expect_err("a study");
    let requests =
        parse_requests(text, "study.yaml", Engine::default()).expect_err("a set of requests");
    let shown = [study.render(false), requests.render(false)];
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    for shown in shown {
        assert!(shown.len() < 10 << 20, "{} bytes", shown.len());
    }
    [study, requests]
}

#[test]
fn a_file_that_stands_for_very_much_or_is_wrong_everywhere_is_refused_soon() {
    let laughs = "a0: &a0 [lol]\n".to_owned()
        + &(1..10)
            .map(|level| {
                let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
                format!("a{level}: &a{level} [{aliases}]\n")
            })
            .collect::<String>();
    let keys: String = (0..20_000).map(|key| format!("k{key}: 1\n")).collect();
    let alike = "key: 1\n".repeat(20_000);
    let aliases = format!("a: &a 1\nb: [{}]\n", "*a,".repeat(80_000));
    #[rustfmt::skip]
    let rows = [
        ("aliases of aliases", &laughs, 2, "aliases are not used"),
        ("many aliases", &aliases, 2, "aliases are not used"),
        ("many unknown keys", &keys, 1, "has no key"),
        ("many equal keys", &alike, 2, "is given twice"),
    ];
    for (name, text, line, message) in rows {
        for errors in refused(text) {
            let is_reported = errors
                .errors()
                .iter()
                .any(|error| error.line == line && error.message.contains(message));
            let first = &errors.errors()[..errors.errors().len().min(3)];
            assert!(is_reported, "{name}: {first:?}");
            assert!(errors.errors().len() <= 100, "{name}");
        }
    }
    let [many, _] = refused(&keys);
    let summary = many.render(false);
    let last = summary.lines().last().unwrap_or_default();
    assert!(last.contains("errors in study.yaml; these are the first 100"), "{last}");
}

#[test]
fn a_file_of_too_many_values_is_refused_before_it_is_a_tree() {
    let text = format!("requests: [{}\n1]\n", "1,".repeat(1 << 20));
    let errors = parse_requests(&text, "r.yaml", Engine::default()).unwrap_err();
    let [error] = errors.errors() else { panic!("{} errors", errors.errors().len()) };
    assert_eq!((error.line, &*error.message), (1, "the file has too many values"));
}
