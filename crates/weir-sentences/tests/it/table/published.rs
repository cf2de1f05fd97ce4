//! Reasons for verdicts on published results.

use weir_analysis::analyze;
use weir_analysis::findings::{
    Basis, EffectReason, FigureFindings, FiguresFindings, Findings, GainFindings, GainReason,
    InertArm, PublishedVerdict, TimeFindings, Verdict,
};
use weir_analysis::fixture::{build_header, build_trials, run, three_arms};
use weir_model::record::Inert;
use weir_model::study::{GainOf, Metric, Study};
use weir_sentences::{explain_published_figure, explain_published_gain, explain_published_time};

use super::Row;
use super::comparison::compared;

/// Returns findings in which keepalive has a median without figures and an inert level.
fn measure() -> (Study, Findings) {
    let header = build_header(three_arms());
    let (_folder, run) = run(&header, build_trials(&header, "open", 12, |_| 10_000.0));
    let mut findings = analyze(&run);
    for found in &mut findings.loads[1].comparisons {
        (found.verdict, found.because) = (Verdict::Invalid, Basis::FewAnswers.into());
    }
    let level = Inert {
        id: "backlog".to_owned(),
        requested: "32768".to_owned(),
        effective: "128".to_owned(),
        why: "net.core.somaxconn is 128".to_owned(),
    };
    findings.inert =
        vec![InertArm { arm: "keepalive".to_owned(), levels: vec![level], whole: true }];
    (header.study, findings)
}

/// Describes the reason for the verdict on the rate that was published for keepalive.
fn of_figure(because: EffectReason) -> String {
    let (study, findings) = measure();
    let row = FigureFindings {
        arm: "keepalive".to_owned(),
        against: Some("stock".to_owned()),
        figure: 20_000.0,
        ratio: Some(2.0),
        measured: None,
        verdict: Some(PublishedVerdict::NotMeasured),
        because: Some(because),
    };
    let load = Some("open".to_owned());
    let figures = FiguresFindings { load, metric: Some(Metric::ResponseP50), rows: Vec::new() };
    explain_published_figure(&study, &findings, (&figures, &row))
}

/// Describes the reason for the verdict on a quantile that was published for keepalive.
fn of_time(quantile: f64, because: EffectReason) -> String {
    let (study, findings) = measure();
    let time = TimeFindings {
        arm: "keepalive".to_owned(),
        published_load: None,
        connections: None,
        rate: None,
        load: Some("open".to_owned()),
        quantile,
        published_ns: None,
        measured_ns: None,
        ratio: Some((1.0, 1.0)),
        measured: None,
        verdict: Some(PublishedVerdict::NotMeasured),
        because: Some(because),
    };
    explain_published_time(&study, &findings, &time)
}

/// Describes the reason for the verdict on a gain of three arms.
fn of_gain(because: GainReason) -> String {
    explain_published_gain(&GainFindings {
        of: GainOf::Arms(Vec::new()),
        metric: Metric::Rate,
        load: None,
        mean: Some(0.3),
        peak: None,
        mean_here: None,
        peak_here: None,
        arms: ["a", "b", "c"]
            .map(|name| compared(Metric::Rate, [name, "stock"], 1.3, Verdict::Better))
            .into(),
        verdict: PublishedVerdict::Confirmed,
        because: Some(because),
    })
}

pub(super) fn rows() -> Vec<Row> {
    let since = EffectReason::Since("nginx 1.29.7 keeps connections by default".to_owned());
    let both = GainReason::Both { confirmed: 2, opposite: 1 };
    vec![
        ("A figure of an arm without figures here", of_figure(EffectReason::Comparison)),
        ("A figure of an inert arm", of_figure(EffectReason::Inert)),
        ("A figure that no longer applies", of_figure(since)),
        ("A median of an arm without figures here", of_time(0.5, EffectReason::Comparison)),
        ("A p99 that the interval rules out", of_time(0.99, EffectReason::RuledOut)),
        ("A gain by a metric that no load gives", of_gain(GainReason::NoLoad)),
        ("A gain by a metric that its load does not give", of_gain(GainReason::NoMetric)),
        ("A gain of a level that no arm differs in alone", of_gain(GainReason::NoArms)),
        ("A gain of a level without a valid pair", of_gain(GainReason::NoPairs)),
        ("A gain of arms without figures", of_gain(GainReason::NoFigures)),
        ("A gain that some arms confirm", of_gain(GainReason::SomeArms { arms: 2 })),
        ("A gain that arms disagree on", of_gain(both)),
    ]
}
