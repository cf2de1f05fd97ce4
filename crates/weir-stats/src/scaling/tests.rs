use super::*;

/// Numbers of CPUs of a published series.
const CPUS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 24.0];
const HTTP: [f64; 6] = [36_647.0, 74_192.0, 148_936.0, 300_625.0, 342_651.0, 342_785.0];
const HTTPS: [f64; 6] = [28_640.0, 58_041.0, 117_255.0, 236_703.0, 341_232.0, 342_785.0];
const TPS: [f64; 6] = [4_433.0, 8_707.0, 17_433.0, 31_485.0, 54_877.0, 58_126.0];
const TPS_WITH_HYPER_THREADS: [f64; 6] =
    [7_325.0, 14_254.0, 26_950.0, 47_638.0, 56_715.0, 58_811.0];

fn levels(x: &[f64], y: impl IntoIterator<Item = f64>) -> Vec<Level> {
    x.iter().zip(y).map(|(x, y)| Level { x: *x, responses: vec![y], error: None }).collect()
}

fn published(column: [f64; 6]) -> Scaling {
    scale(&levels(&CPUS, column), Factor::Servers, 0.95).expect("a growth")
}

fn is_near(value: f64, wanted: f64, share: f64) -> bool {
    (value / wanted - 1.0).abs() < share
}

#[test]
fn published_requests_grow_in_proportion_up_to_a_shared_ceiling() {
    let scaling = published(HTTP);
    assert_eq!(scaling.answer, Answer::Named(Form::SharedCap));
    let best = scaling.best();
    let knee = best.parameter(Parameter::Knee).expect("a knee");
    let ceiling = best.parameter(Parameter::Ceiling).expect("a ceiling");
    assert!(is_near(knee.value, 9.3, 0.01) && knee.low < 9.3 && 9.3 < knee.high, "{knee:?}");
    assert!(is_near(ceiling.value, 342_800.0, 0.001), "{ceiling:?}");
    let universal = scaling.fit(Form::Universal).expect("a fit");
    assert!(best.rmse < 0.009 && universal.rmse > 0.055, "{} {}", best.rmse, universal.rmse);
    assert_eq!(published(HTTPS).answer, Answer::Named(Form::SharedCap));
}

#[test]
fn published_handshakes_follow_the_universal_scalability_law_more_closely_than_a_ceiling() {
    let scaling = published(TPS);
    let [universal, capped] =
        [Form::Universal, Form::SharedCap].map(|form| scaling.fit(form).expect("a fit"));
    assert!(is_near(universal.rmse, 0.025, 0.03), "{}", universal.rmse);
    assert!(is_near(capped.rmse, 0.042, 0.05), "{}", capped.rmse);
    assert_eq!(scaling.best().form, Form::Universal);
    // Without replicates six levels are too few to be sure, and one more would tell.
    let Answer::Undecided { forms, telling } = &scaling.answer else {
        panic!("{:?}", scaling.answer);
    };
    assert_eq!(forms[..], [Form::Universal, Form::SharedCap]);
    assert_eq!(telling.x, 13.0);
    let twice = scaling.predict(48.0).expect("within twice the highest");
    let ceiling = capped.parameter(Parameter::Ceiling).expect("a ceiling");
    assert!(twice.response.low < ceiling.low * 1.01 && twice.by_form.len() == 2, "{twice:?}");
    assert_eq!(scaling.predict(49.0), Err(Refusal::TooFar { farthest: 48.0 }));
}

#[test]
fn published_hyper_threads_bring_the_peak_forward() {
    let [without, with] = [TPS, TPS_WITH_HYPER_THREADS]
        .map(|column| published(column).fit(Form::Universal).expect("a fit").clone());
    let peaks = [&without, &with].map(|fit| fit.parameter(Parameter::Peak).expect("a peak"));
    assert!(peaks[1].high < peaks[0].low, "{peaks:?}");
    // As published: +65, 64, 55, 51, 3 and 1 %.
    let gains: Vec<f64> = with
        .fitted
        .iter()
        .zip(&without.fitted)
        .map(|(with, without)| with / without - 1.0)
        .collect();
    for (gain, published) in gains.iter().zip([0.65, 0.64, 0.55, 0.51, 0.03, 0.01]) {
        assert!((gain - published).abs() < 0.11, "{gains:?}");
    }
}

#[test]
fn exact_levels_return_their_parameters() {
    use Parameter::{Coherence, Contention, FixedCost, Knee, UnitCost};
    let x = [1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0];
    type Case<'a> = (fn(f64) -> f64, Factor, Form, &'a [(Parameter, f64)]);
    let curves: [Case<'_>; 7] = [
        (|x| 7.0 * x, Factor::Servers, Form::Linear, &[]),
        (|x| 7.0 * x.min(7.0), Factor::Servers, Form::SharedCap, &[(Knee, 7.0)]),
        (|x| x / (1.0 + 0.1 * (x - 1.0)), Factor::Servers, Form::Amdahl, &[(Contention, 0.1)]),
        (
            |x| x / (1.0 + 0.05 * (x - 1.0) + 0.01 * x * (x - 1.0)),
            Factor::Servers,
            Form::Universal,
            &[(Contention, 0.05), (Coherence, 0.01)],
        ),
        (
            |x| 1.0 / (0.2 + 0.1 * x),
            Factor::Work,
            Form::Amortised,
            &[(FixedCost, 0.2), (UnitCost, 0.1)],
        ),
        (
            |x| x / (0.2 + 0.1 * x),
            Factor::Work,
            Form::Amortised,
            &[(FixedCost, 0.2), (UnitCost, 0.1)],
        ),
        (|x| (5.0 / x).min(1.0), Factor::Work, Form::SharedCap, &[(Knee, 5.0)]),
    ];
    for (curve, factor, form, parameters) in curves {
        let scaling = scale(&levels(&x, x.map(curve)), factor, 0.95).expect("a growth");
        let best = scaling.best();
        assert_eq!(best.form, form, "{:?}", scaling.answer);
        assert!(best.rmse < 1e-3, "{form:?} {}", best.rmse);
        for (parameter, value) in parameters {
            let within = best.parameter(*parameter).expect("a parameter");
            assert!(is_near(within.value, *value, 0.01), "{form:?} {within:?}");
            assert!(within.low < *value && *value < within.high, "{form:?} {within:?}");
        }
        let (twice, expected) = (scaling.predict(32.0).expect("not too far"), curve(32.0));
        assert!(
            twice.response.low < expected && expected < twice.response.high,
            "{form:?} {twice:?}"
        );
    }
}

/// Returns the reason why nothing is said about these levels.
fn refusal(x: &[f64], y: &[f64], factor: Factor) -> Option<Refusal> {
    scale(&levels(x, y.iter().copied()), factor, 0.95).err()
}

#[test]
fn nonsense_is_refused_with_its_reason() {
    use Factor::{Servers, Work};
    let x = [1.0, 2.0, 4.0, 8.0];
    for y in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let reason = refusal(&x, &[1.0, y, 4.0, 8.0], Servers);
        assert!(matches!(reason, Some(Refusal::NotPositive { x: 2.0, .. })), "{y} {reason:?}");
    }
    assert_eq!(
        refusal(&[0.0, 1.0, 2.0], &[1.0, 2.0, 3.0], Servers),
        Some(Refusal::NotPositive { x: 0.0, value: 0.0 })
    );
    for (x, y) in [(&x[..0], &[][..]), (&x[..1], &[5.0]), (&x[..2], &[5.0, 9.0])] {
        assert_eq!(refusal(x, y, Servers), Some(Refusal::TooFewLevels { levels: x.len() }));
    }
    assert_eq!(
        refusal(&[1.0, 1.0, 2.0, 2.0], &[1.0, 1.0, 2.0, 2.0], Servers),
        Some(Refusal::TooFewLevels { levels: 2 })
    );
    let flat = refusal(&x, &[100.0, 101.0, 99.0, 100.5], Servers);
    assert!(matches!(flat, Some(Refusal::Flat { spread }) if spread < 0.03), "{flat:?}");
    let falls = refusal(&x, &[100.0, 80.0, 60.0, 40.0], Servers);
    assert!(matches!(falls, Some(Refusal::Falls { ratio }) if is_near(ratio, 0.4, 1e-9)));
    let erratic = refusal(&x, &[100.0, 300.0, 90.0, 500.0], Work);
    assert!(matches!(erratic, Some(Refusal::Erratic { .. })), "{erratic:?}");
}

#[test]
fn few_levels_with_noise_do_not_tell_forms_apart() {
    let scaling = scale(&levels(&[1.0, 2.0, 4.0], [10.0, 18.5, 31.0]), Factor::Servers, 0.95)
        .expect("a growth");
    let Answer::Undecided { forms, telling } = &scaling.answer else {
        panic!("{:?}", scaling.answer);
    };
    assert!(forms.len() > 1 && telling.x <= 8.0 && telling.responses.len() == forms.len());
    let twice = scaling.predict(8.0).expect("twice the highest").response;
    assert!(twice.high > twice.low * 1.3, "{twice:?}");
}

/// Fits levels with four responses each.
fn replicated(curve: fn(f64) -> f64) -> Scaling {
    let measured = [1.0, 2.0, 4.0, 8.0, 16.0].map(|x| {
        let responses = [0.99, 1.01, 0.995, 1.005].map(|noise| noise * curve(x)).to_vec();
        Level { x, responses, error: None }
    });
    scale(&measured, Factor::Servers, 0.95).expect("a growth")
}

fn lack_of_fit(scaling: &Scaling, form: Form) -> f64 {
    scaling.fit(form).and_then(|fit| fit.lack_of_fit).expect("replicates")
}

#[test]
fn levels_that_replicates_do_not_explain_show_as_lack_of_fit() {
    let line = replicated(|x| 5.0 * x);
    assert!(lack_of_fit(&line, Form::Linear) > 0.9);
    let capped = replicated(|x| 5.0 * x.min(6.0));
    assert!(lack_of_fit(&capped, Form::Amdahl) < 1e-4);
    assert!(lack_of_fit(&capped, Form::SharedCap) > 0.5);
    assert!(published(HTTP).fits.iter().all(|fit| fit.lack_of_fit.is_none()));
}
