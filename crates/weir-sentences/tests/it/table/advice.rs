//! Sentences about published recommendations.

use weir_advice::{
    AdviceFinding, AdviceFindings, AdviceVerdict, Because, Book, InForce, Obsolete, Standing,
    Untried,
};
use weir_model::record::Inert;
use weir_sentences::advice::{
    describe_advice, describe_advised_changes, describe_in_force, describe_standing, explain_advice,
};

use super::Row;

fn find(id: &str, verdict: AdviceVerdict, because: Because) -> AdviceFinding {
    let book = Book::builtin();
    let advice =
        book.recommendations.iter().find(|advice| advice.id == id).expect("its name").clone();
    let is_measured = !matches!(because, Because::Stock | Because::NoFigures | Because::Untried(_));
    AdviceFinding {
        metric: advice.metric,
        recommendation: advice,
        verdict,
        because,
        ratio: is_measured.then_some(1.05),
        interval: is_measured.then_some((1.02, 1.08)),
        in_force: vec![
            InForce {
                id: "open_file_cache".to_owned(),
                before: Some("off".to_owned()),
                after: Some("max=1024 inactive=10s".to_owned()),
            },
            InForce {
                id: "worker_processes".to_owned(),
                before: Some("1".to_owned()),
                after: Some("1".to_owned()),
            },
        ],
        arm: None,
    }
}

fn answer(verdicts: &[AdviceVerdict]) -> String {
    let findings =
        verdicts.iter().map(|verdict| find("c-open-file-cache", *verdict, Because::Measured));
    describe_advice(&AdviceFindings {
        started_at: String::new(),
        took_s: 60.0,
        cpus: 2,
        kernel: String::new(),
        programs: Default::default(),
        configuration: None,
        complete: true,
        runs: Vec::new(),
        found: findings.collect(),
    })
}

fn because(verdict: AdviceVerdict, because: Because) -> String {
    explain_advice(&find("c-open-file-cache", verdict, because))
}

fn untried(why: Untried) -> String {
    describe_standing(&Standing::Untried(why))
}

pub(super) fn rows() -> Vec<Row> {
    use AdviceVerdict::{
        Confirmed, Harmful, Inert as InertVerdict, NoEffect, NotTried, Obsolete as ObsoleteVerdict,
        Smaller, Undecided,
    };
    let all = [
        Confirmed,
        Smaller,
        NoEffect,
        NoEffect,
        Harmful,
        InertVerdict,
        ObsoleteVerdict,
        NotTried,
        NotTried,
        Undecided,
    ];
    let inert = Inert {
        id: "net.core.somaxconn".to_owned(),
        requested: "32768".to_owned(),
        effective: "listen backlog 511".to_owned(),
        why: "the listener's own backlog is 511".to_owned(),
    };
    let since = Obsolete {
        since: "5.4".to_owned(),
        because: "the default went from 128 to 4096".to_owned(),
    };
    let cache = find("c-open-file-cache", Confirmed, Because::Measured);
    vec![
        ("Verdicts of all kinds", answer(&all)),
        ("One verdict", answer(&[NoEffect])),
        ("What a recommendation changes", describe_advised_changes(&cache.recommendation)),
        ("Levels that were read back", describe_in_force(&cache)),
        ("A verdict by figures", because(Confirmed, Because::Measured)),
        ("A gain that is smaller than published", because(Smaller, Because::BelowPublished)),
        ("Too little time", because(Undecided, Because::TooLittleTime)),
        ("No figures", because(Undecided, Because::NoFigures)),
        ("Levels that were not in force", because(InertVerdict, Because::NotInForce(vec![inert]))),
        ("Levels of the distribution", because(InertVerdict, Because::Stock)),
        ("A reason that is gone", because(ObsoleteVerdict, Because::Since(since))),
        ("A reason not to try it", because(NotTried, Because::Untried(Untried::NotReached))),
        ("It can be tried", describe_standing(&Standing::Applies)),
        ("The distribution has it", describe_standing(&Standing::Stock)),
        ("No proxy", untried(Untried::NotInstalled)),
        ("A setting of the host", untried(Untried::HostSettings)),
        ("A setting of pods", untried(Untried::Kubernetes)),
        ("A setting of the network", untried(Untried::Network)),
        ("A load that a configuration cannot get", untried(Untried::Load)),
        ("A refused study", untried(Untried::Refused("4096 connections need 8192".to_owned()))),
    ]
}
