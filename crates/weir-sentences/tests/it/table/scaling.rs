//! Sentences about the growth of a metric with a factor.

use weir_analysis::findings::{
    ApartBy, Ceiling, CeilingCause, CeilingEvidence, LevelApart, ScalingAnswer, ScalingCurve,
    ScalingFactor, ScalingFindings, ScalingForm, ScalingLevel, ScalingParameter, ScalingPrediction,
    ScalingResponse,
};
use weir_analysis::scaling::NoFactor;
use weir_limits::Role;
use weir_model::study::{Metric, Settings};
use weir_sentences::scaling::{
    describe, describe_parameters, describe_published, explain_no_factor,
};
use weir_stats::scaling::{Factor, Form, Parameter, Refusal};

use super::Row;

fn level(x: f64, value: f64) -> ScalingLevel {
    ScalingLevel {
        x,
        name: format!("worker_processes={x}"),
        responses: vec![value],
        error: None,
        value,
        interval: None,
        fitted: None,
    }
}

fn within(parameter: Parameter, value: f64, low: f64, high: f64) -> ScalingParameter {
    let [value, low, high] = [value, low, high].map(|value| value.is_finite().then_some(value));
    ScalingParameter { parameter, value, low, high }
}

fn form(form: Form, parameters: Vec<ScalingParameter>) -> ScalingForm {
    ScalingForm { form, delta_aicc: Some(0.0), rmse: 0.01, lack_of_fit: None, parameters }
}

fn linear() -> ScalingForm {
    form(Form::Linear, vec![within(Parameter::PerUnit, 10_020.0, 9_900.0, 10_140.0)])
}

fn capped(knee_high: f64) -> ScalingForm {
    form(
        Form::SharedCap,
        vec![
            within(Parameter::PerUnit, 37_137.0, 36_479.0, 37_807.0),
            within(Parameter::Knee, 9.23, 8.95, knee_high),
            within(Parameter::Ceiling, 342_718.0, 334_160.0, 351_494.0),
        ],
    )
}

fn universal() -> ScalingForm {
    form(
        Form::Universal,
        vec![
            within(Parameter::PerUnit, 7_333.0, 6_966.0, 7_723.0),
            within(Parameter::Contention, 0.015, 0.0, 0.037),
            within(Parameter::Coherence, 0.0031, 0.0022, 0.004),
            within(Parameter::Peak, 17.8, 15.8, 21.0),
        ],
    )
}

fn found(form: ScalingForm) -> ScalingFindings {
    ScalingFindings {
        factor: ScalingFactor::Parameter { id: "worker_processes".to_owned() },
        kind: Factor::Servers,
        load: "http".to_owned(),
        stratum: Settings::new(),
        apart: Vec::new(),
        response: ScalingResponse::Metric(Metric::Rate),
        confidence: 0.95,
        measured: ScalingCurve {
            levels: vec![level(1.0, 36_647.0), level(24.0, 342_785.0)],
            answer: ScalingAnswer::Named(form.form),
            forms: vec![form],
        },
        published: None,
        twice: None,
        ceiling: None,
    }
}

fn with_answer(answer: ScalingAnswer) -> ScalingFindings {
    let mut findings = found(capped(9.52));
    findings.measured.answer = answer;
    findings
}

fn refused(refusal: Refusal) -> String {
    describe(&with_answer(ScalingAnswer::Refused(refusal)))
}

fn held_back(cause: CeilingCause) -> String {
    let names = vec!["worker_processes=16".to_owned(), "worker_processes=24".to_owned()];
    describe(&ScalingFindings { ceiling: Some(Ceiling { names, cause }), ..found(capped(9.52)) })
}

fn shared(limiter: &str, role: Role) -> String {
    held_back(CeilingCause::Shared(evidence(limiter, role)))
}

fn evidence(limiter: &str, role: Role) -> CeilingEvidence {
    CeilingEvidence { limiter: limiter.to_owned(), role, evidence: Vec::new() }
}

/// A factor that is more work for each request, whose response falls.
fn falling(form: ScalingForm) -> ScalingFindings {
    let mut findings = found(form);
    findings.factor = ScalingFactor::Parameter { id: "header_bytes".to_owned() };
    findings.kind = Factor::Work;
    findings.measured.levels.reverse();
    findings
}

fn twice(may_meet_ceiling: bool) -> Option<ScalingPrediction> {
    let interval = (450_000.0, 490_000.0);
    Some(ScalingPrediction { x: 48.0, value: 480_960.0, interval, may_meet_ceiling })
}

fn forms() -> Vec<Row> {
    let amdahl = form(
        Form::Amdahl,
        vec![
            within(Parameter::PerUnit, 4_628.0, 4_283.0, 5_008.0),
            within(Parameter::Contention, 0.032, 0.022, 0.044),
            within(Parameter::Ceiling, 143_928.0, 111_982.0, 197_517.0),
        ],
    );
    let amortised = form(
        Form::Amortised,
        vec![
            within(Parameter::FixedCost, 2.1e-5, 2.0e-5, 2.2e-5),
            within(Parameter::UnitCost, 1.2e-9, 1.1e-9, 1.3e-9),
        ],
    );
    let unbounded = capped(f64::INFINITY);
    vec![
        ("In proportion", describe(&ScalingFindings { twice: twice(true), ..found(linear()) })),
        (
            "In proportion up to a ceiling",
            describe(&ScalingFindings { twice: twice(false), ..found(capped(9.52)) }),
        ),
        ("A ceiling whose knee may be above all levels", describe(&found(unbounded))),
        ("Unchanged up to a knee, then in inverse proportion", describe(&falling(capped(9.52)))),
        ("Waiting for something shared", describe(&found(amdahl))),
        ("Waiting, and keeping each other up to date", describe(&found(universal()))),
        ("A fixed cost and a cost per unit", describe(&falling(amortised))),
    ]
}

fn ceilings() -> Vec<Row> {
    use Role::{Generator, Origin, Proxy};
    let different = vec![
        ("worker_processes=16".to_owned(), "cpu".to_owned()),
        ("worker_processes=24".to_owned(), "network".to_owned()),
    ];
    vec![
        ("A ceiling of the origin server", shared("origin", Origin)),
        ("A ceiling of the generator", shared("generator", Generator)),
        ("A ceiling of the network", shared("network", Proxy)),
        ("A ceiling of the proxy", held_back(CeilingCause::Proxy(evidence("cpu", Proxy)))),
        ("Different limits beyond the knee", held_back(CeilingCause::Different(different))),
        ("A ceiling of which the samples say nothing", held_back(CeilingCause::Unknown)),
    ]
}

pub(super) fn rows() -> Vec<Row> {
    let undecided = ScalingAnswer::Undecided {
        forms: vec![Form::Universal, Form::SharedCap],
        level: 13.0,
        responses: vec![(Form::Universal, 46_825.0), (Form::SharedCap, 55_451.0)],
    };
    let published =
        ScalingFindings { published: Some(found(capped(9.52)).measured), ..found(linear()) };
    let connections = ScalingFindings {
        factor: ScalingFactor::Connections { arm: "stock".to_owned() },
        load: String::new(),
        response: ScalingResponse::Metric(Metric::ReceivedBytes),
        ..found(linear())
    };
    let stratum = Settings::from([("gzip".to_owned(), "on".to_owned())]);
    let capacity =
        ScalingFindings { response: ScalingResponse::Capacity, stratum, ..found(linear()) };
    let cpus = ScalingFindings {
        factor: ScalingFactor::Parameter { id: "cpus".to_owned() },
        apart: [("8", ApartBy::Nodes), ("16", ApartBy::Threads), ("32", ApartBy::Threads)]
            .map(|(count, by)| LevelApart { arm: format!("cpus={count}"), by })
            .to_vec(),
        ..found(linear())
    };
    let levels = vec![("gzip".to_owned(), 0), ("worker_processes".to_owned(), 2)];
    let more = vec![
        ("Throughput by connections", describe(&connections)),
        ("Capacity, with other settings", describe(&capacity)),
        ("CPUs that are more than cores of one node", describe(&cpus)),
        ("Forms that cannot be told apart", describe(&with_answer(undecided))),
        ("What was published", describe_published(&published).unwrap_or_default()),
        ("Parameters in a table", describe_parameters(&published, &universal(), true)),
        (
            "A response that is not a number",
            refused(Refusal::NotPositive { x: 2.0, value: f64::NAN }),
        ),
        ("A response that is 0", refused(Refusal::NotPositive { x: 2.0, value: 0.0 })),
        ("Too few levels", refused(Refusal::TooFewLevels { levels: 2 })),
        ("No change", refused(Refusal::Flat { spread: 0.012 })),
        ("Negative scaling", refused(Refusal::Falls { ratio: 0.41 })),
        ("No curve", refused(Refusal::Erratic { rmse: 0.34 })),
        ("Too far", refused(Refusal::TooFar { farthest: 48.0 })),
        ("A study that varies nothing", explain_no_factor(&NoFactor::NothingVaried)),
        ("A study with too few levels", explain_no_factor(&NoFactor::TooFewLevels(levels))),
    ];
    forms().into_iter().chain(ceilings()).chain(more).collect()
}
