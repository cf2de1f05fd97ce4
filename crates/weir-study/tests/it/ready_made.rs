//! Tests of the studies that come with weir: they are valid, and have the documented properties.

use std::time::Duration;

use weir_model::load::Lifetime;
use weir_model::study::{ArmRole, Compare, LoadSpec, ProxyKind, Study, StudyArrivals};
use weir_model::tls::{Resumption, TlsVersion};
use weir_parameters::Catalog;
use weir_study::{CheckContext, StudyErrors, parse, remarks, studies};

use crate::context;

fn ready_made(name: &str) -> Study {
    let study = studies().iter().find(|study| study.name == name).expect(name);
    let file = format!("studies/{name}.yaml");
    parse(study.text, &file, &Catalog::builtin(), &context()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn all_are_right_even_on_a_small_machine_and_named_as_they_say() {
    assert_eq!(studies().len(), 19);
    for study in studies() {
        assert_eq!(ready_made(study.name).name, study.name);
    }
}

#[test]
fn all_are_right_whatever_the_number_of_cpus_but_for_those_that_say_which_they_take() {
    for ready in studies() {
        for cpus in ["0", "0-1", "0-7", "0-23"] {
            let read = read_on_a_machine(ready.name, cpus, 524_288);
            let takes_two = ready.text.contains("\ncpus: {proxy: 1,");
            match read {
                Ok(_) => assert!(!takes_two || cpus != "0", "{} on {cpus}", ready.name),
                Err(errors) => {
                    assert!(takes_two && cpus == "0", "{}", errors.render(false));
                    assert_eq!(errors.errors().len(), 1, "{errors}");
                    assert_eq!(errors.errors()[0].text, "1", "{errors}");
                }
            }
        }
    }
}

/// Returns the sorted names of the arms of the study of workers.
fn arm_names(cpus: &str) -> Vec<String> {
    let study = on_a_machine("worker-count", cpus, 524_288);
    assert_eq!(study.compare, Compare::Pairs);
    let mut names: Vec<String> = study.arms.into_iter().map(|arm| arm.name).collect();
    names.sort();
    names
}

#[test]
fn workers_are_counted_as_far_as_the_machine_has_cpus_and_once_more_by_nginx() {
    let few = [
        "one-worker",
        "same-as-baseline",
        "reuseport=on",
        "worker_processes=auto",
        "reuseport=on+worker_processes=auto",
    ];
    let mut expected = few;
    expected.sort_unstable();
    assert_eq!(arm_names("0"), expected);
    for (cpus, levels) in [("0-1", &[2][..]), ("0-7", &[2, 4, 8]), ("0-23", &[2, 4, 8, 16, 24])] {
        let names = arm_names(cpus);
        assert_eq!(names.len(), few.len() + 2 * levels.len(), "{names:?}");
        for level in levels {
            let name = format!("worker_processes={level}");
            assert!(names.contains(&name), "{names:?}");
            assert!(names.contains(&format!("reuseport=on+{name}")), "{names:?}");
        }
    }
}

#[test]
fn every_file_in_the_folder_is_ready_made() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
    let names = std::fs::read_dir(folder)
        .expect("the folder is in the repository")
        .map(|file| file.expect("a readable folder").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    let mut expected: Vec<String> = studies().iter().map(|s| format!("{}.yaml", s.name)).collect();
    names.sort();
    expected.sort();
    assert_eq!(names, expected);
}

#[test]
fn the_demo_is_short_and_has_few_arms() {
    let study = ready_made("stock-reverse-proxy");
    let pilot = Duration::from_secs(15);
    let duration: Duration = study.loads.iter().map(|load| load.duration).sum::<Duration>() + pilot;
    assert!(duration <= Duration::from_secs(270), "{duration:?}");
    assert_eq!(study.arms.len(), 8);
    assert_eq!(study.arms[0].name, "baseline");
    assert_eq!(study.arms[1].role, ArmRole::SameAsBaseline);
    assert_eq!(study.arms[2].changes["origin_keepalive"], "64");
    assert_eq!(study.loads[1].arrivals, StudyArrivals::ShareOfSlowest(0.6));
    let stock = &study.arms[0].settings;
    assert_eq!(stock["worker_connections"], "768");
    assert_eq!(stock["worker_processes"], "1");
    assert_eq!(remarks(&study, &Catalog::builtin(), &context()), []);
}

#[test]
fn the_published_steps_build_on_each_other() {
    let study = ready_made("static-files");
    let against: Vec<usize> = study.arms.iter().map(|arm| arm.against).collect();
    assert_eq!(against, [0, 0, 0, 2, 3]);
    let last = study.arms.last().expect("five arms");
    assert_eq!(last.settings["worker_connections"], "4096");
    assert_eq!(last.changes.len(), 2);
    let published = study.published.expect("the source is named");
    assert_eq!(published.figures["stock"], 2957.93);
    assert_eq!(published.figures.len(), 4);
}

/// Reads a study on a machine with these CPUs and this hard limit of descriptors.
fn on_a_machine(name: &str, cpus: &str, most_descriptors: u64) -> Study {
    read_on_a_machine(name, cpus, most_descriptors).unwrap_or_else(|e| panic!("{e}"))
}

fn read_on_a_machine(name: &str, cpus: &str, most_descriptors: u64) -> Result<Study, StudyErrors> {
    let study = studies().iter().find(|study| study.name == name);
    let context = CheckContext { cpus_available: cpus.parse().ok(), most_descriptors, ..context() };
    let text = study.expect(name).text;
    parse(text, name, &Catalog::builtin(), &context)
}

#[test]
fn studies_by_workers_have_the_published_arms_on_the_published_machine_and_fewer_on_a_small_one() {
    for name in ["requests-by-workers", "tls-transactions-by-workers", "throughput-by-workers"] {
        let large = on_a_machine(name, "0-23", 524_288);
        let published = large.published.expect(name);
        for load in &large.loads {
            let figures = published.of_load(&load.name);
            let arms = large.arms.iter().filter(|arm| arm.role != ArmRole::SameAsBaseline);
            let arms: Vec<&String> = arms.map(|arm| &arm.name).collect();
            let mut of_figures: Vec<&String> = figures.keys().collect();
            of_figures.sort_by_key(|name| name.len());
            assert_eq!(arms, of_figures, "{name}");
        }
        for (cpus, arms) in [("0", 2), ("0-1", 3), ("0-5", 5)] {
            let small = on_a_machine(name, cpus, 20_000);
            assert_eq!(small.arms.len(), arms, "{name} on {cpus}");
            assert_eq!(small.left_out.is_empty(), arms > 2);
        }
    }
    let study = ready_made("tls-transactions-by-workers");
    assert_eq!(study.loads[0].lifetime, Lifetime::Request);
    let tls = study.loads[0].tls.as_ref().expect("it is about TLS");
    assert_eq!(tls.versions, [TlsVersion::V1_2]);
    assert_eq!(tls.ciphers, ["ECDHE-RSA-AES256-GCM-SHA384"]);
    assert_eq!(tls.resumption, Resumption::Off);
}

#[test]
fn a_study_of_cpus_has_as_many_workers_and_leaves_cpus_to_the_other_roles() {
    for (cpus, counts) in [("0-1", "1 2"), ("0-7", "1 2 4"), ("0-23", "1 2 4 8 12")] {
        let study = on_a_machine("cpus", cpus, 20_000);
        let arms = study.arms.iter().filter(|arm| arm.role != ArmRole::SameAsBaseline);
        let levels: Vec<String> = arms
            .map(|arm| {
                assert_eq!(arm.settings["worker_processes"], arm.settings["cpus"]);
                arm.settings["cpus"].clone()
            })
            .collect();
        assert_eq!(levels.join(" "), counts, "{cpus}");
    }
}

/// Compares the settings that have different names in each proxy, but must be the same for all.
#[test]
fn five_proxies_are_compared_on_equal_terms() {
    for name in ["which-proxy", "tls-termination"] {
        let study = ready_made(name);
        assert_eq!(study.compare, Compare::Pairs, "{name}");
        let kinds: Vec<ProxyKind> = study
            .arms
            .iter()
            .filter(|arm| arm.role != ArmRole::SameAsBaseline)
            .map(|arm| study.proxy_of(arm).kind)
            .collect();
        assert_eq!(kinds, &ProxyKind::ALL[..5], "{name}");
        for arm in &study.arms {
            assert_eq!(arm.settings["access_log"], "off", "{name}: {}", arm.name);
            let workers = match study.proxy_of(arm).kind {
                ProxyKind::Nginx => "worker_processes",
                ProxyKind::Haproxy => "nbthread",
                ProxyKind::Envoy => "concurrency",
                ProxyKind::Caddy => "gomaxprocs",
                // A pool of threads, on the same CPUs.
                _ => continue,
            };
            assert_eq!(arm.settings[workers], "1", "{name}: {}", arm.name);
        }
        assert_eq!(remarks(&study, &Catalog::builtin(), &context()), []);
    }
    let study = ready_made("tls-termination");
    for load in &study.loads {
        let tls = load.tls.as_ref().expect("it is about TLS");
        assert_eq!(tls.versions, [TlsVersion::V1_3]);
        assert_eq!(tls.ciphers, ["TLS_AES_256_GCM_SHA384"]);
    }
    let resumptions: Vec<_> =
        study.loads.iter().map(|load| load.tls.as_ref().map(|tls| tls.resumption)).collect();
    assert_eq!(resumptions[..2], [Some(Resumption::Off), Some(Resumption::On)]);
}

#[test]
fn connections_are_held_as_far_as_the_machine_has_room() {
    for (descriptors, most) in [(524_288, 100_000), (20_000, 100_000), (8_192, 50_000)] {
        let study = on_a_machine("held-connections", "0-1", descriptors);
        let held: Vec<u64> = study.loads.iter().map(LoadSpec::held).collect();
        assert_eq!(held.last(), Some(&most), "{held:?}");
        assert_eq!(held.len() + study.left_out.len(), 5);
        let remarks: Vec<String> = remarks(&study, &Catalog::builtin(), &context())
            .into_iter()
            .map(|remark| remark.text)
            .collect();
        assert_eq!(remarks, study.left_out);
        assert_eq!(study.arms.len(), 1);
        let within = study.objective.within;
        assert_eq!(within, Some(Duration::from_millis(30)));
    }
}

#[test]
fn studies_of_a_bypass_have_an_arm_of_tcp_for_each_of_theirs_and_gains_that_are_measured() {
    for (name, levels) in [("kernel-bypass", 3), ("kernel-bypass-direct", 2)] {
        for (cpus, workers) in [("0", 1), ("0-1", 2), ("0-3", 3)] {
            let study = on_a_machine(name, cpus, 524_288);
            let arms = study.arms.iter();
            let arms: Vec<_> = arms.filter(|arm| arm.role != ArmRole::SameAsBaseline).collect();
            assert_eq!(arms.len(), workers * levels, "{name} on {cpus}");
            for arm in arms {
                let against = &study.arms[arm.against];
                let transport = against.settings.get("transport");
                assert!(transport.is_none_or(|level| level == "tcp"), "{}", arm.name);
            }
            let published = study.published.expect("the source is named");
            assert_eq!(published.gains.len(), 5);
            let rates = study.loads.iter().filter_map(|load| match load.arrivals {
                StudyArrivals::ShareOfSlowest(share) => Some((&*load.name, share)),
                _ => None,
            });
            let rates: Vec<_> = rates.collect();
            let tails = [("tail-20", 0.2), ("tail-40", 0.4), ("tail-60", 0.6), ("tail-80", 0.8)];
            assert_eq!(rates, tails, "{name}");
            for load in &study.loads {
                let gains = published
                    .gains
                    .iter()
                    .filter(|gain| gain.load.as_ref() == Some(&load.name))
                    .count();
                let is_one = load.arrivals == StudyArrivals::Closed || load.name == "tail-60";
                assert_eq!(gains, usize::from(is_one), "{}", load.name);
            }
        }
    }
}

#[test]
fn none_takes_longer_than_a_quarter_of_an_hour_but_for_the_whole_matrix() {
    for ready in studies() {
        let study = ready_made(ready.name);
        if ready.name == "ingress-matrix" {
            let loads: Duration = study.loads.iter().map(|load| load.duration).sum();
            assert_eq!(study.loads.len(), 100);
            assert!(loads <= Duration::from_secs(28 * 60), "{loads:?}");
            continue;
        }
        let loads: Duration = study.loads.iter().map(|load| load.duration).sum();
        assert!(loads <= Duration::from_secs(15 * 60), "{}", ready.name);
    }
}

#[test]
fn the_studies_in_the_documentation_are_right() {
    let text = include_str!("../../../../docs/study.md");
    let examples: Vec<&str> =
        text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 7);
    for example in examples {
        let read = parse(example, "docs/study.md", &Catalog::builtin(), &context());
        assert!(read.is_ok(), "{}", read.expect_err("it is not right").render(false));
    }
}
