//! `weir studies`: the ready-made ones, by name and as text.

use crate::place::Place;
use crate::program::{Running, run};

const NAMES: [&str; 7] = [
    "stock-reverse-proxy",
    "static-files",
    "requests-by-workers",
    "tls-transactions-by-workers",
    "throughput-by-workers",
    "held-connections",
    "same-twice",
];

#[test]
fn all_are_listed() {
    let text = run("studies").with_code(0).stdout;
    for name in NAMES {
        assert!(
            text.lines().any(|line| line.starts_with(name)),
            "{name}:\n{text}"
        );
    }
}

#[test]
fn their_text_is_a_study_like_any_other() {
    let place = Place::new();
    for name in NAMES {
        let text = run(&format!("studies {name}")).with_code(0).stdout;
        place.write("mine.yaml", &text);
        let check = |study: &str| {
            let mut command = place.weir(&["run", "--check", study]);
            Running::start(&mut command).end().with_code(0).stdout
        };
        assert_eq!(check("mine.yaml"), check(name));
    }
}

#[test]
fn an_unknown_one_is_refused_with_those_that_there_are() {
    let ended = run("studies nothing");
    ended.refused_in_a_line(&["no study called `nothing`", "\nhint: ", NAMES[0], NAMES[6]]);
}
