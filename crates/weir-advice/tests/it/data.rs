//! The recommendations as data: real parameters and levels, and a source for each.

use weir_advice::{Book, Installed, Recommendation, Standing, Untried, standing, trials};
use weir_model::study::ProxyKind;
use weir_parameters::Catalog;

#[test]
fn each_recommendation_has_a_source_and_levels_of_the_catalog() {
    let (book, catalog) = (Book::builtin(), Catalog::builtin());
    assert!(book.recommendations.len() >= 40, "{}", book.recommendations.len());
    for source in book.sources.values() {
        assert!(source.link.starts_with("https://"), "{}", source.link);
        let is_named = book.recommendations.iter().any(|advice| advice.source == *source);
        assert!(is_named, "nothing is recommended by {}", source.title);
    }
    for advice in &book.recommendations {
        let id = &advice.id;
        for (parameter, (from, to)) in &advice.changes {
            let row = catalog
                .get(advice.proxy, parameter)
                .unwrap_or_else(|| panic!("{id}: there is no {parameter}"));
            let levels = [from, to].into_iter().filter(|level| *level != "stock");
            for level in levels {
                assert!(row.check(level).is_ok(), "{id}: {parameter} {level}");
            }
            assert_ne!(to, "stock", "{id}");
        }
        assert!(!advice.changes.is_empty(), "{id}");
        assert!(advice.claim.ends_with('.') && advice.mechanism.ends_with('.'), "{id}");
        assert!(advice.figure.is_none() || advice.says.is_some(), "{id}: whose figure?");
        let is_direction_right = advice.figure.is_none_or(|(low, high)| {
            low <= high && if advice.metric.higher_is_better() { low > 1.0 } else { high < 1.0 }
        });
        assert!(is_direction_right, "{id}");
    }
    for letter in 'A'..='E' {
        let has_some = book.recommendations.iter().any(|advice| advice.study == Some(letter));
        assert!(has_some, "nothing of study {letter}");
    }
    for kind in ProxyKind::started() {
        assert!(book.recommendations.iter().any(|advice| advice.proxy == kind), "{kind:?}");
    }
}

fn row(source: &str, load: &str) -> String {
    format!(
        "about: kernel\nwith: nginx\nrecommendations:\n- {{id: a, source: {source}, claim: c, written_for: w, \
         changes: {{gzip: [stock, on]}}, load: {load}, mechanism: m}}\n"
    )
}

#[test]
fn data_that_names_nothing_is_refused() {
    let sources = ("sources", "s: {author: a, title: t, link: l}");
    let loads = ("loads", "l: {title: t, metric: rate, load: {closed: true}}");
    let twice = row("s", "l") + row("s", "l").split_once("recommendations:\n").expect("a list").1;
    for (text, expected) in [
        (row("s", "l"), None),
        (row("x", "l"), Some("there is no source x")),
        (row("s", "x"), Some("there is no load x")),
        (twice, Some("a is there twice")),
        (row("s", "l").replace("claim", "clam"), Some("clam")),
    ] {
        let read = Book::read(sources, loads, &[("file", &text)]);
        match (read, expected) {
            (Ok(book), None) => assert_eq!(book.recommendations.len(), 1),
            (Err(error), Some(words)) => assert!(error.to_string().contains(words), "{error}"),
            (read, expected) => panic!("{read:?} and not {expected:?}"),
        }
    }
}

fn find(id: &str) -> &'static Recommendation {
    Book::builtin().recommendations.iter().find(|advice| advice.id == id).expect("its name")
}

fn host() -> Installed {
    let programs =
        ProxyKind::started().map(|kind| (kind, format!("{}/99.0", kind.name()))).collect();
    Installed { programs, kernel: "6.18.4".to_owned(), ..Installed::default() }
}

#[test]
fn what_can_be_tried_depends_on_the_host() {
    let catalog = Catalog::builtin();
    let untried = Standing::Untried;
    let none = Installed { kernel: "6.18.4".to_owned(), ..Installed::default() };
    let on_own = Installed { is_own: true, ..host() };
    let allowed = Installed { allows_host_settings: true, ..host() };
    for (id, installed, expected) in [
        ("b-access-log", &host(), Standing::Applies),
        ("b-access-log", &none, untried(Untried::NotInstalled)),
        // Debian's file has it already; of a user's own nothing is known.
        ("b-sendfile", &host(), Standing::Stock),
        ("a-worker-processes", &on_own, Standing::Applies),
        ("a-upstream-keepalive-requests", &host(), Standing::Stock),
        ("a-file-max", &host(), untried(Untried::HostSettings)),
        ("a-file-max", &allowed, Standing::Applies),
        ("b-host-network", &host(), untried(Untried::Kubernetes)),
        ("busy-poll", &host(), untried(Untried::Network)),
        ("c-open-file-cache", &on_own, untried(Untried::Load)),
        ("https-session-cache", &on_own, untried(Untried::Load)),
    ] {
        assert_eq!(standing(find(id), &catalog, installed), expected, "{id}");
    }
    // The default changed with Linux 5.4.
    let old = Installed { kernel: "4.19.0-25-amd64".to_owned(), ..host() };
    assert!(host().is_obsolete(find("a-somaxconn")) && !old.is_obsolete(find("a-somaxconn")));
}

#[test]
fn equal_changes_share_an_arm_and_a_load_shares_a_run() {
    let (book, catalog) = (Book::builtin(), Catalog::builtin());
    let all: Vec<_> = book.recommendations.iter().collect();
    let planned = trials(&all, &catalog);
    let tried: usize = planned.iter().flat_map(|trial| &trial.arms).map(|arm| arm.ids.len()).sum();
    assert_eq!(tried, all.len());
    let mut names: Vec<&str> = planned.iter().map(|trial| &*trial.name).collect();
    names.dedup();
    assert_eq!(names.len(), planned.len());
    assert!(planned.iter().all(|trial| trial.arms.len() <= 12));
}
