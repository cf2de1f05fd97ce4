//! Tests of published gains, accepted and refused.

use weir_model::study::{GainOf, Metric};

use crate::{read, with};

const ARMS: &str = "factorial: {worker_processes: [1, 2], transport: [tcp, sockmap]}";

#[test]
fn gains_are_read_for_arms_and_for_levels() {
    let text = with(&format!(
        "{ARMS}\npublished:\n  source: somebody\n  gains:\n  \
         - {{level: transport=sockmap, load: closed, metric: rate, mean: 280%, peak: +366%}}\n  \
         - {{arms: transport=sockmap, metric: cpu-per-request, mean: -30%}}"
    ));
    let study = read(&text).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let published = study.published.expect("there");
    let [first, second] = &published.gains[..] else {
        panic!("{:?}", published.gains);
    };
    let level = GainOf::Level { id: "transport".to_owned(), level: "sockmap".to_owned() };
    assert_eq!((&first.of, first.metric), (&level, Metric::Rate));
    assert_eq!((first.mean, first.peak), (Some(2.8), Some(3.66)));
    assert_eq!(first.load.as_deref(), Some("closed"));
    let arms = GainOf::Arms(vec!["transport=sockmap".to_owned()]);
    assert_eq!((&second.of, second.mean), (&arms, Some(-0.3)));
    assert_eq!((second.peak, &second.load), (None, &None));
    assert!(published.metric.is_empty() && published.figures.is_empty());
}

#[test]
fn gains_that_say_nothing_or_cannot_be_are_refused() {
    #[rustfmt::skip]
    let cases = [
        ("metric: rate, arms: x, mean: 1%", "no arm is named `x`"),
        ("metric: rate, mean: 1%", "a published gain needs either `arms` or a `level`"),
        ("metric: rate, level: transport=tcp, arms: baseline, mean: 1%",
         "a published gain needs either `arms` or a `level`"),
        ("metric: rate, level: transport", "a published gain needs a `mean` or a `peak`"),
        ("metric: rate, level: transport, mean: 1%", "`transport` is not a level of a parameter"),
        ("metric: rate, level: transport=carrier-pigeon, mean: 1%",
         "no arm has `transport=carrier-pigeon`"),
        ("metric: rate, level: transport=sockmap, mean: 2.8", "`2.8` is not a change in percent"),
        ("metric: rate, level: transport=sockmap, mean: -100%",
         "`-100%` is not a change in percent"),
        ("metric: speed, level: transport=sockmap, mean: 1%",
         "`speed` is not `rate`, `received-bytes`, `cpu-per-request`, `response-p50` or `response-p99`"),
        ("level: transport=sockmap, mean: 1%", "a published gain needs the key `metric`"),
        ("metric: rate, level: transport=sockmap, mean: 1%, load: clsed",
         "no load is named `clsed`"),
    ];
    for (entry, expected) in cases {
        let text = with(&format!("{ARMS}\npublished:\n  source: s\n  gains: [{{{entry}}}]"));
        let errors = read(&text).expect_err(entry);
        assert_eq!(errors.errors()[0].message, expected, "{entry}");
    }
}
