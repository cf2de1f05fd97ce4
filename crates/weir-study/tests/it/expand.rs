//! Tests of the expansion of designs to arms.

use std::time::Duration;

use weir_model::study::{
    ArmRole, BlockSpec, Compare, DelaySpec, Metric, Objective, ProxyKind, ProxyRole, Settings,
    Study, StudyArrivals, Until,
};
use weir_parameters::Catalog;
use weir_study::{StudyErrors, parse, remarks};

use crate::{context, read, with};

fn read_study(rest: &str) -> Study {
    read(&with(rest)).unwrap_or_else(|errors| panic!("{}", errors.render(false)))
}

/// Reads a study of a proxy with a configuration of the user's.
fn read_configured(rest: &str) -> Result<Study, StudyErrors> {
    let started = "{kind: nginx, settings: {worker_processes: 1}}";
    let text = with(&format!("a/a: false\n{rest}"));
    read(&text.replace(started, "{kind: nginx, configuration: /etc/nginx/nginx.conf}"))
}

fn nginx_catalog(program: &str) -> Catalog {
    Catalog::builtin().for_proxy(ProxyKind::Nginx, program)
}

fn names(study: &Study) -> Vec<&str> {
    study.arms.iter().map(|arm| arm.name.as_str()).collect()
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(id, level)| ((*id).to_owned(), (*level).to_owned())).collect()
}

#[test]
fn what_is_left_out_has_the_documented_default() {
    let study = read_study("");
    assert_eq!(study.title, "example");
    assert_eq!(study.proxy.role, ProxyRole::ReverseProxy);
    assert_eq!(study.blocks, BlockSpec::default());
    assert_eq!(study.objective, Objective::default());
    assert_eq!(study.loads[0].timeout, Duration::from_secs(2));
    assert_eq!(study.loads[0].requests[0].request.target, "/");
    assert_eq!(study.cpus, None);
    assert_eq!((study.until, study.budget), (Until::Planned, None));
    assert_eq!(names(&study), ["baseline", "same-as-baseline"]);
    let stock = &study.arms[0].settings;
    assert_eq!(stock["gzip"], "on");
    assert_eq!(stock["worker_processes"], "1", "the study's own comes over Debian's");
}

#[test]
fn arms_are_compared_with_the_baseline_and_hold_only_what_they_change() {
    let study = read_study("arms: [{name: a, settings: {gzip: on, access_log: off}}]\na/a: false");
    assert_eq!(names(&study), ["baseline", "a"]);
    let arm = &study.arms[1];
    assert_eq!(arm.changes, settings(&[("access_log", "off")]));
    assert_eq!((arm.role, arm.against), (ArmRole::Change, 0));
    assert_eq!(arm.settings["gzip"], "on");
    assert_eq!(arm.settings["worker_connections"], "768");
}

#[test]
fn cumulative_steps_are_compared_with_the_step_before() {
    let study = read_study(
        "baseline: stock\ncumulative:\n\
         - {name: one, settings: {gzip: off}}\n\
         - {name: two, settings: {access_log: off}}\n",
    );
    assert_eq!(names(&study), ["stock", "same-as-baseline", "one", "two"]);
    assert_eq!(study.arms[2].against, 0);
    assert_eq!(study.arms[3].against, 2);
    assert_eq!(study.arms[3].changes, settings(&[("access_log", "off")]));
    assert_eq!(study.arms[3].settings["gzip"], "off");
}

#[test]
fn one_at_a_time_makes_an_arm_per_level_but_the_baselines() {
    let study = read_study(
        "a/a: false\none-at-a-time:\n  keepalive_requests: [100, 1000, 10000]\n  \
         multi_accept: on\n  open_file_cache: [max=10 inactive=5s]\n",
    );
    let expected = [
        "baseline",
        "keepalive_requests=100",
        "keepalive_requests=10000",
        "multi_accept=on",
        "open_file_cache=max=10-inactive=5s",
    ];
    assert_eq!(names(&study), expected);
    assert_eq!(study.arms[4].changes["open_file_cache"], "max=10 inactive=5s");
}

/// If the version is not known, no level is left out that was the default of some version.
#[test]
fn a_default_that_depends_on_the_version_is_the_baselines_where_the_version_is_known() {
    let text = with("a/a: false\none-at-a-time: {keepalive_requests: [100, 1000]}");
    let (less, more) = ("keepalive_requests=100", "keepalive_requests=1000");
    for (catalog, arms) in [
        (nginx_catalog("nginx/1.18.0"), &["baseline", more][..]),
        (nginx_catalog("nginx/1.22.1"), &["baseline", less]),
        (Catalog::builtin(), &["baseline", less, more]),
    ] {
        let study = parse(&text, "study.yaml", &catalog, &context()).expect("a study");
        assert_eq!(names(&study), arms);
    }
}

#[test]
fn an_arm_may_be_another_proxy_or_another_configuration() {
    let study = read_study(
        "a/a: false\ncompare: pairs\narms:\n\
         - {name: other, proxy: haproxy}\n\
         - {name: bare, proxy: {kind: nginx, stock: none, executable: /opt/nginx}}\n\
         - name: mine\n  proxy: {kind: nginx, configuration: /etc/nginx/nginx.conf, port: 80}\n  \
           settings: {gzip: off}\n",
    );
    assert_eq!(study.compare, Compare::Pairs);
    let [baseline, other, bare, mine] = &study.arms[..] else {
        panic!("{:?}", names(&study));
    };
    assert_eq!(study.proxy_of(baseline), &study.proxy);
    let proxy = study.proxy_of(other);
    assert_eq!((proxy.kind, &proxy.role), (ProxyKind::Haproxy, &ProxyRole::ReverseProxy));
    assert_eq!(other.settings, Catalog::builtin().stock(ProxyKind::Haproxy));
    assert_eq!(other.changes, settings(&[]));
    assert_eq!(bare.settings, settings(&[]), "neither Debian's nor the study's");
    let configuration = study.proxy_of(mine).configuration.as_ref().expect("its own");
    assert_eq!(
        (configuration.file.to_str(), configuration.port),
        (Some("/etc/nginx/nginx.conf"), Some(80))
    );
    assert_eq!(mine.settings, settings(&[("gzip", "off")]), "and nothing of Debian's");
    assert_eq!(study.proxy_kinds(), [ProxyKind::Nginx, ProxyKind::Haproxy]);
}

/// A user's file may set anything, so no level counts as the program's default.
#[test]
fn a_users_configuration_has_no_defaults_that_anybody_knows() {
    // `gzip on` and the limits may stand anywhere in the file.
    let study = read_configured(
        "arms: [{name: a, settings: {gzip_comp_level: 5, worker_connections: 4096}}]",
    )
    .expect("a study");
    assert_eq!(remarks(&study, &Catalog::builtin(), &context()), []);
    let study = read_configured("arms: [{name: off, settings: {gzip: off}}]").expect("a study");
    assert_eq!(study.arms[1].changes, settings(&[("gzip", "off")]));
    let study = read_configured("one-at-a-time: {gzip: [on, off], transport: [tcp, sockmap]}");
    assert_eq!(
        names(&study.expect("a study")),
        ["baseline", "gzip=on", "gzip=off", "transport=sockmap"]
    );
    let steps = "cumulative:\n\
                 - {name: one, settings: {gzip: off}}\n\
                 - {name: two, settings: {gzip: off, multi_accept: off}}\n";
    let study = read_configured(steps).expect("a study");
    assert_eq!(study.arms[2].changes, settings(&[("multi_accept", "off")]));
    // How it is started and what carries its bytes is weir's to know.
    let errors =
        read_configured("arms: [{name: plain, settings: {transport: tcp}}]").expect_err("nothing");
    let message = &errors.errors()[0].message;
    assert_eq!(message, "arm `plain` has the same settings as the baseline");
    // As for an arm that has a configuration of its own.
    let mine = "a/a: false\narms:\n- name: mine\n  \
                proxy: {kind: nginx, configuration: /etc/nginx/nginx.conf}\n\
                - name: mine-off\n  \
                proxy: {kind: nginx, configuration: /etc/nginx/nginx.conf}\n  \
                settings: {gzip: off}\n";
    assert_eq!(names(&self::read_study(mine)), ["baseline", "mine", "mine-off"]);
}

#[test]
fn within_strata_each_arm_is_compared_with_its_own_stratums() {
    let study = read_study(
        "baseline: plain\na/a: false\n\
         factorial: {transport: [tcp, sockmap], keepalive_requests: [1000, 50]}\n\
         stratify: keepalive_requests\n",
    );
    let against: Vec<(&str, usize, Settings)> =
        study.arms.iter().map(|arm| (&*arm.name, arm.against, arm.changes.clone())).collect();
    let sockmap = settings(&[("transport", "sockmap")]);
    #[rustfmt::skip]
    let expected = [
        ("plain", 0, settings(&[])),
        ("keepalive_requests=50", 0, settings(&[("keepalive_requests", "50")])),
        ("transport=sockmap", 0, sockmap.clone()),
        ("keepalive_requests=50+transport=sockmap", 1, sockmap),
    ];
    assert_eq!(against, expected);
}

#[test]
fn a_factorial_has_every_combination_once() {
    let study =
        read_study("a/a: false\nfactorial: {gzip: [on, off], access_log: [on, buffered, off]}");
    let expected = [
        "baseline",
        "access_log=buffered",
        "access_log=off",
        "gzip=off",
        "access_log=buffered+gzip=off",
        "access_log=off+gzip=off",
    ];
    assert_eq!(names(&study), expected);
    assert_eq!(study.arms[5].changes, settings(&[("access_log", "off"), ("gzip", "off")]));
}

#[test]
fn every_section_is_read() {
    let text = "\
weir: 1
name: all
title: All of it
question: >-
  Is every key
  read?
proxy:
  kind: nginx
  executable: /usr/sbin/nginx
  role: reverse-proxy
  stock: none
  settings: {origin_keepalive: 8}
origin: {size: 2k, status: 404, delay: {uniform: [1ms, 5ms]}, content-type: text/html}
loads:
- {name: closed, closed: true, connections: 5, duration: 90s}
- name: open
  rate: 2.5k
  connections: 5
  duration: 1m
  timeout: 500ms
  request: {method: POST, path: '/a?b=1', fields: {Accept: '*/*', X-Empty: }, content: abc}
one-at-a-time: {origin_keepalive: [0, 32]}
blocks: {slice: 100ms, discard: 0.25, at-least: 20, seed: 7, instances: 6}
objective: {metric: response-p99, band: 5%, confidence: 0.99}
cpus: {proxy: 1, generator: 0, origin: 0-1}
published: {source: a blog, metric: requests per second, figures: {baseline: 100, origin_keepalive=32: 250.5}}
";
    let study = read(text).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    assert_eq!(study.question, "Is every key read?");
    assert_eq!(study.arms[0].settings, settings(&[("origin_keepalive", "8")]));
    assert_eq!(study.origin.size, 2048);
    assert_eq!(study.origin.status, 404);
    let (low, high) = (Duration::from_millis(1), Duration::from_millis(5));
    assert_eq!(study.origin.delay, DelaySpec::Uniform(low, high));
    let open = &study.loads[1];
    assert_eq!(open.arrivals, StudyArrivals::Constant(2500.0));
    assert_eq!(open.timeout, Duration::from_millis(500));
    assert_eq!(open.requests[0].request.method, "POST");
    assert_eq!(open.requests[0].request.target, "/a?b=1");
    assert_eq!(open.requests[0].request.content, b"abc");
    let fields = &open.requests[0].request.fields;
    assert_eq!(fields[0], ("Accept".to_owned(), "*/*".to_owned()));
    assert_eq!(fields[1], ("X-Empty".to_owned(), String::new()));
    let blocks = BlockSpec {
        slice: Some(Duration::from_millis(100)),
        discard: 0.25,
        at_least: 20,
        seed: 7,
        instances: 6,
    };
    assert_eq!(study.blocks, blocks);
    let objective =
        Objective { metric: Metric::ResponseP99, band: 0.05, confidence: 0.99, within: None };
    assert_eq!(study.objective, objective);
    let cpus = study.cpus.expect("they are given");
    assert_eq!(cpus.origin.to_string(), "0-1");
    assert_eq!(study.published.expect("they are given").figures["origin_keepalive=32"], 250.5);
}

#[test]
fn a_study_with_open_loads_only_is_judged_by_response_times() {
    let text = with("").replace("closed: true", "rate: 1000");
    assert_eq!(read(&text).map(|study| study.objective.metric), Ok(Metric::ResponseP99));
}

#[test]
fn keys_that_cannot_have_their_effect_are_remarks() {
    #[rustfmt::skip]
    let cases = [
        ("", "closed: true", "closed: true, spin: 10us", "`spin` of load `closed` has no effect"),
        ("", "connections: 20", "connections: 20, requests: [{path: /, weight: 5}]",
         "the weight of the only request"),
        ("launchers: {slow: {prefix: nice}}", "", "", "launcher `slow` has no effect"),
        ("a/a: false\ncompare: pairs\narms: [{name: a, settings: {gzip: off}}]", "", "",
         "`compare: pairs` has no effect"),
        ("blocks: {instances: 100, slice: 1s}", "", "",
         "`instances: 100` cannot have its effect: load `closed` has "),
        ("blocks: {slice: 1s}\nobjective: {confidence: 99.9999%}", "", "",
         "`confidence: 99.9999%` cannot have its effect: it takes 21 blocks"),
        ("arms: [{name: zipped, settings: {gzip: on}}]", "worker_processes: 1", "worker_processes: 1, gzip: off",
         "arm `zipped`: `gzip: on` has no effect: no request has the header Accept-Encoding"),
        ("origin: {size: 2KiB}", "kind: nginx", "kind: nginx, role: {static-files: {size: 1KiB}}",
         "`origin` has no effect"),
    ];
    for (more, from, to, said) in cases {
        let text = with(more).replace(from, to);
        let study = read(&text).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let study_remarks = remarks(&study, &Catalog::builtin(), &context());
        let [remark] = &study_remarks[..] else {
            panic!("{said}: {study_remarks:?}");
        };
        assert!(remark.text.starts_with(said), "{remark}");
    }
    let study = read(&with("")).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    assert_eq!(remarks(&study, &Catalog::builtin(), &context()), []);
    for (coding, is_told) in [("'gzip, br'", false), ("identity", true)] {
        let fields = format!("connections: 20, request: {{fields: {{accept-encoding: {coding}}}}}");
        let text = with("arms: [{name: zipped, settings: {gzip: on}}]")
            .replace("worker_processes: 1", "worker_processes: 1, gzip: off")
            .replace("connections: 20", &fields);
        let study = read(&text).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let study_remarks = remarks(&study, &Catalog::builtin(), &context());
        assert_eq!(!study_remarks.is_empty(), is_told, "{study_remarks:?}");
    }
}

#[test]
fn settings_without_effect_and_crowded_proxies_are_remarks() {
    let text = with("arms: [{name: level, settings: {gzip: off, gzip_comp_level: 9}}]")
        .replace("connections: 20", "connections: 250")
        .replace("worker_processes: 1", "worker_processes: 1, worker_connections: 400");
    let study = read(&text).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let study_remarks = remarks(&study, &Catalog::builtin(), &context());
    assert_eq!(study_remarks.len(), 3, "{study_remarks:?}");
    assert!(study_remarks[0].text.starts_with("arm `level`: `gzip_comp_level` has no effect"));
    assert!(study_remarks[1].text.starts_with("arm `baseline` has connections for 200 clients"));
}

#[test]
fn when_a_study_ends_is_read() {
    let study = read_study("until: decided\nbudget: 20m");
    assert_eq!(study.until, Until::Decided);
    assert_eq!(study.budget, Some(Duration::from_secs(1200)));
}
