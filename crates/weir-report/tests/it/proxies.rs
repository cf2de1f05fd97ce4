//! Tests of studies with several proxies: every pair, the descriptions of arms, the counters of proxies.

use std::collections::BTreeMap;

use weir_analysis::findings::{Comparison, LoadFindings, Verdict};
use weir_analysis::rankings;
use weir_model::fixture::settings;
use weir_model::record::{Protection, ProxyRecord, Record};
use weir_model::study::ProxyKind::{self, Caddy, Envoy, Haproxy, Httpd, Nginx};
use weir_model::study::{
    Arm, ArmRole, Compare, ExternalSpec, LauncherSpec, Metric, OwnConfiguration,
};
use weir_report::{html, markdown, terminal};
use weir_sentences::describe_ranking;

use crate::fixture::{self, Fixture, comparison};
use crate::markup::{self, has_all, has_none, keep};

/// Name, proxy, program, and ratios to nginx of rate and CPU time.
pub(crate) type Plan = (&'static str, ProxyKind, &'static str, f64, f64);

const FIVE: [Plan; 5] = [
    ("nginx", Nginx, "nginx/1.22.1", 1.0, 1.0),
    ("haproxy", Haproxy, "haproxy/2.6.12", 1.006, 0.98),
    ("envoy", Envoy, "envoy/1.40.0", 0.61, 1.7),
    ("caddy", Caddy, "caddy/2.6.2", 0.303, 3.4),
    ("httpd", Httpd, "Apache/2.4.71", 0.305, 3.1),
];

fn between(metric: Metric, plans: &[Plan], (arm, against): (usize, usize)) -> Comparison {
    let [value, other] = [&plans[arm], &plans[against]].map(|plan| match metric {
        Metric::Rate => plan.3,
        _ => plan.4,
    });
    let ratio = value / other;
    Comparison {
        against: plans[against].0.to_owned(),
        ..comparison(metric, plans[arm].0, ratio, 0.017)
    }
}

/// Returns a run of these proxies under one closed load, with every pair compared. The
/// ranking by rate is the answer.
pub(crate) fn run_of(plans: &[Plan]) -> Fixture {
    let mut run = fixture::run();
    let study = &mut run.header.study;
    let like = study.proxy.clone();
    study.published = None;
    study.compare = Compare::Pairs;
    study.title = "Which proxy carries most".to_owned();
    study.question = "Which proxy would carry my traffic best, on equal terms?".to_owned();
    study.loads.truncate(1);
    study.arms = plans
        .iter()
        .enumerate()
        .map(|(index, plan)| {
            let role = [ArmRole::Baseline, ArmRole::Change][index.min(1)];
            let mut proxy = like.clone();
            proxy.kind = plan.1;
            let settings = [("workers", "1"), ("access_log", "off")];
            Arm {
                proxy: (index > 0).then(|| Box::new(proxy)),
                ..weir_model::fixture::arm(plan.0, role, &settings)
            }
        })
        .collect();
    run.findings.loads.truncate(1);
    let load = &mut run.findings.loads[0];
    let model = load.arms[2].clone();
    load.arms = plans
        .iter()
        .zip(&study.arms)
        .map(|(plan, arm)| {
            let mut findings = model.clone();
            findings.arm.clone_from(&arm.name);
            findings.role = arm.role;
            findings.rate_completed = 11_234.0 * plan.3;
            findings.cpu_per_request_ns = Some(81_300.0 * plan.4);
            findings
        })
        .collect();
    load.comparisons.clear();
    for metric in [Metric::Rate, Metric::CpuPerRequest] {
        for arm in 1..plans.len() {
            load.comparisons.push(between(metric, plans, (arm, 0)));
            let pairs = (0..arm).map(|against| between(metric, plans, (arm, against)));
            load.pairs.extend(pairs);
        }
    }
    load.rankings = rankings(study, &[Metric::Rate], &load.pairs);
    let ranking = describe_ranking(study, load, Metric::Rate).unwrap();
    run.answer = format!("{ranking}.");
    run.records = plans.iter().zip(20_000..).map(record).collect();
    run
}

fn record((plan, port): (&Plan, u32)) -> Record {
    Record::Proxy(ProxyRecord {
        session: 0,
        arm: plan.0.to_owned(),
        address: format!("127.0.0.1:{port}"),
        program: plan.2.to_owned(),
        effective: settings(&[("net.core.somaxconn", "4096")]),
        nofile: 20_000,
        pid: 100,
        inert: Vec::new(),
        asked: Vec::new(),
        objects: Vec::new(),
    })
}

pub(crate) fn five() -> Fixture {
    let mut run = run_of(&FIVE);
    let arms = &mut run.findings.loads[0].arms;
    arms[1].counters = counters(&[("backend.reuse", 90_112), ("frontend.req_tot", 135_002)]);
    arms[2].counters = counters(&[
        ("cluster.origin.upstream_rq_pending_overflow", 1_204),
        ("cluster.origin.upstream_rq_retry", 12),
        ("cluster.origin.upstream_rq_total", 57_120),
    ]);
    run
}

#[test]
fn five_proxies_in_a_terminal_of_80_columns() {
    let text = terminal(&five().input(), false, 80);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    insta::assert_snapshot!(text);
}

#[test]
fn five_proxies_in_markdown() {
    let text = markdown(&five().input());
    let end = text.find("## Environment").unwrap();
    insta::assert_snapshot!(&text[..end]);
    // All programs are listed.
    has_all(&text, &["- haproxy: haproxy/2.6.12", "- httpd: Apache/2.4.71"]);
}

fn counters(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
    pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn five_proxies_in_a_page() {
    let page = html(&five().input());
    keep("five.html", &page);
    markup::check(&page);
    let text = page.replace('\u{a0}', " ");
    let expected = [
        "Pairs: how many times as much the row carries as the column; verdicts are corrected over these 10 pairs",
        "<th scope=\"row\">envoy</th>",
        "envoy against haproxy: worse",
        "▼ 0.606×</span><small>0.596–0.617</small>",
        "Counters of the proxies",
        "<tr class=\"telling\"><th scope=\"row\">cluster.origin.upstream_rq_pending_overflow</th>",
        "envoy itself counted cluster.origin.upstream_rq_pending_overflow 1,204",
        "Envoy (envoy/1.40.0)",
        "Apache httpd (Apache/2.4.71)",
    ];
    has_all(&text, &expected);
}

#[test]
fn a_table_of_pairs_is_antisymmetric() {
    let text = markdown(&five().input());
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip_while(|line| !line.starts_with("Pairs: how many times as much the row carries"))
        .skip(4)
        .take(5)
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let number = |cell: &str| -> f64 { cell.split([' ', '×']).nth(1).unwrap().parse().unwrap() };
    for row in 0..5 {
        assert_eq!(rows[row][row + 1], "·", "{rows:?}");
        for column in 0..row {
            let (ours, theirs) = (rows[row][column + 1], rows[column][row + 1]);
            assert!((number(ours) * number(theirs) - 1.0).abs() < 0.01, "{ours} and {theirs}");
            let signs = [ours, theirs].map(|cell| cell.chars().next().unwrap());
            let mirrored = matches!(signs, ['▲', '▼'] | ['▼', '▲'] | ['■', '■'] | ['○', '○']);
            assert!(mirrored, "{ours} and {theirs}");
        }
    }
}

#[test]
fn twelve_arms_stay_readable() {
    let names = "nginx haproxy envoy caddy httpd nginx-two-workers haproxy-two-threads \
                 envoy-concurrency-two caddy-two httpd-event nginx-reuseport-backlog-4096 x";
    let plans: Vec<Plan> = names
        .split(' ')
        .enumerate()
        .map(|(index, name)| {
            let (_, kind, program, ..) = FIVE[index % 5];
            (name, kind, program, 1.0 - 0.06 * index as f64, 1.0)
        })
        .collect();
    let run = run_of(&plans);
    let page = html(&run.input());
    keep("twelve.html", &page);
    markup::check(&page);
    for width in [60, 80, 120, 200] {
        for line in terminal(&run.input(), false, width).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn pairs_without_valid_figures_show_none() {
    let mut run = five();
    for pair in &mut run.findings.loads[0].pairs {
        if pair.arm == "httpd" || pair.against == "httpd" {
            pair.verdict = Verdict::Invalid;
            pair.ratio = f64::NAN;
            pair.interval = (f64::NAN, f64::NAN);
            pair.n = 0;
        }
    }
    let text = markdown(&run.input());
    assert!(!text.contains("NaN") && text.contains("× –"), "{text}");
}

/// Returns a baseline with the user's own configuration, and an arm of every other kind.
pub(crate) fn everything() -> Fixture {
    let mut run = run_of(&FIVE);
    run.answer = "all carry the same.".to_owned();
    let study = &mut run.header.study;
    study.proxy.configuration =
        Some(OwnConfiguration { file: "/etc/nginx/nginx.conf".into(), port: Some(8080) });
    let launcher = LauncherSpec {
        prefix: vec!["onload".to_owned(), "--profile=latency".to_owned()],
        env: [("EF_POLL_USEC".to_owned(), "100000".to_owned())].into(),
        preload: vec!["/usr/lib/libmine.so".into()],
    };
    study.launchers = [("onload".to_owned(), launcher)].into();
    let base = settings(&[("gzip", "off")]);
    study.arms[0].settings = base.clone();
    let changed_arms = [
        ("launched", settings(&[("launcher", "onload")])),
        ("bypass", settings(&[("transport", "sockmap")])),
        ("smaller", settings(&[("gzip", "on")])),
    ];
    for (index, (name, changes)) in changed_arms.into_iter().enumerate() {
        let arm = &mut study.arms[index + 1];
        arm.proxy = None;
        arm.settings = base.clone();
        arm.settings.extend(changes.clone());
        arm.changes = changes;
        let load = &mut run.findings.loads[0];
        rename(load, &mut run.records, &arm.name, name);
        arm.name = name.to_owned();
    }
    let external = &mut study.arms[4];
    let load = &mut run.findings.loads[0];
    rename(load, &mut run.records, "httpd", "elsewhere");
    external.name = "elsewhere".to_owned();
    external.settings.clear();
    let proxy = external.proxy.as_mut().unwrap();
    proxy.kind = ProxyKind::External;
    proxy.external = Some(ExternalSpec::at("192.0.2.7:80".parse().unwrap()));
    run.findings.loads[0].arms[4].cpu_per_request_ns = None;
    run
}

fn rename(load: &mut LoadFindings, records: &mut [Record], from: &str, to: &str) {
    let set = |name: &mut String| {
        if name == from {
            to.clone_into(name);
        }
    };
    load.arms.iter_mut().for_each(|arm| set(&mut arm.arm));
    load.comparisons.iter_mut().chain(&mut load.pairs).for_each(|pair| {
        set(&mut pair.arm);
        set(&mut pair.against);
    });
    load.rankings.clear();
    for record in records {
        if let Record::Proxy(proxy) = record {
            if proxy.arm == from {
                "nginx/1.22.1".clone_into(&mut proxy.program);
            }
            set(&mut proxy.arm);
        }
    }
}

#[test]
fn what_kept_copies_from_others_is_said_by_every_output() {
    #[rustfmt::skip]
    let rows = [
        (Protection::Checked, "no network namespace separated it from other hosts"),
        (Protection::CheckedWithoutRoute, "in a network namespace without a route to other hosts"),
    ];
    for (copies, words) in rows {
        let mut run = everything();
        run.header.copies = Some(copies);
        let input = run.input();
        for text in [markdown(&input), html(&input), terminal(&input, false, 120)] {
            let text: Vec<&str> = text.split_whitespace().collect();
            has_all(&text.join(" "), &[words]);
        }
    }
}

#[test]
fn configurations_launchers_transports_and_strangers_are_described() {
    let run = everything();
    let text = markdown(&run.input());
    let begin = text.find("| arm | what it is |").unwrap();
    let end = begin + text[begin..].find("## Environment").unwrap();
    insta::assert_snapshot!(&text[begin..end]);
    let expected = [
        "nginx with /etc/nginx/nginx.conf",
        "launcher: onload (EF_POLL_USEC=100000",
        "a server at 192.0.2.7:80 that weir did not start",
        "| elsewhere | a server at",
        "gzip: off → on",
        "weir did not start it and cannot read its settings",
    ];
    has_all(&text.replace('\\', ""), &expected);
    has_none(&text, &["NaN"]);
    let page = html(&run.input());
    keep("everything.html", &page);
    markup::check(&page);
    terminal(&run.input(), false, 80);
}
