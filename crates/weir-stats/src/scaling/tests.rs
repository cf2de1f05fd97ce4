use super::*;

/// Numbers of CPUs of a published series.
const CPUS: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 24.0];
const HTTP: [f64; 6] = [36_647.0, 74_192.0, 148_936.0, 300_625.0, 342_651.0, 342_785.0];
const HTTPS: [f64; 6] = [28_640.0, 58_041.0, 117_255.0, 236_703.0, 341_232.0, 342_785.0];
const TPS: [f64; 6] = [4_433.0, 8_707.0, 17_433.0, 31_485.0, 54_877.0, 58_126.0];

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
    let found = published(HTTP);
    assert_eq!(found.answer, Answer::Named(Form::SharedCap));
    let best = found.best();
    let knee = best.parameter(Parameter::Knee).expect("a knee");
    let ceiling = best.parameter(Parameter::Ceiling).expect("a ceiling");
    assert!(is_near(knee.value, 9.3, 0.01) && knee.low < 9.3 && 9.3 < knee.high, "{knee:?}");
    assert!(is_near(ceiling.value, 342_800.0, 0.001), "{ceiling:?}");
    let universal = found.fit(Form::Universal).expect("a fit");
    assert!(best.rmse < 0.009 && universal.rmse > 0.055, "{} {}", best.rmse, universal.rmse);
    assert_eq!(published(HTTPS).answer, Answer::Named(Form::SharedCap));
}

#[test]
fn published_handshakes_follow_the_universal_scalability_law_more_closely_than_a_ceiling() {
    let found = published(TPS);
    let [universal, capped] =
        [Form::Universal, Form::SharedCap].map(|form| found.fit(form).expect("a fit"));
    assert!(is_near(universal.rmse, 0.025, 0.03), "{}", universal.rmse);
    assert!(is_near(capped.rmse, 0.042, 0.05), "{}", capped.rmse);
    assert_eq!(found.best().form, Form::Universal);
    // Without replicates six levels are too few to be sure, and one more would tell.
    let Answer::Undecided { forms, telling } = &found.answer else {
        panic!("{:?}", found.answer);
    };
    assert_eq!(forms[..], [Form::Universal, Form::SharedCap]);
    assert_eq!(telling.x, 13.0);
    let far = found.predict(48.0).expect("within twice the highest");
    let ceiling = capped.parameter(Parameter::Ceiling).expect("a ceiling");
    assert!(far.response.low < ceiling.low * 1.01 && far.by_form.len() == 2, "{far:?}");
    assert_eq!(found.predict(49.0), Err(Refusal::TooFar { farthest: 48.0 }));
}

#[test]
fn exact_levels_return_their_parameters() {
    use Parameter::{Coherence, Contention, FixedCost, Knee, UnitCost};
    let x = [1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0];
    type Curve = fn(f64) -> f64;
    let curves: [(Curve, Factor, Form, &[(Parameter, f64)]); 7] = [
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
        let found = scale(&levels(&x, x.map(curve)), factor, 0.95).expect("a growth");
        let best = found.best();
        assert_eq!(best.form, form, "{:?}", found.answer);
        assert!(best.rmse < 1e-3, "{form:?} {}", best.rmse);
        for (parameter, value) in parameters {
            let within = best.parameter(*parameter).expect("a parameter");
            assert!(is_near(within.value, *value, 0.01), "{form:?} {within:?}");
            assert!(within.low < *value && *value < within.high, "{form:?} {within:?}");
        }
        let (far, expected) = (found.predict(32.0).expect("not too far"), curve(32.0));
        assert!(far.response.low < expected && expected < far.response.high, "{form:?} {far:?}");
    }
}

#[test]
fn nonsense_is_refused_with_its_reason() {
    use Factor::{Servers, Work};
    let x = [1.0, 2.0, 4.0, 8.0];
    let refusal = |x: &[f64], y: &[f64], factor| {
        scale(&levels(x, y.iter().copied()), factor, 0.95).map(|found| found.answer).err()
    };
    let not_positive = |y: f64| {
        let found = refusal(&x, &[1.0, y, 4.0, 8.0], Servers);
        matches!(found, Some(Refusal::NotPositive { x: 2.0, .. }))
    };
    assert!([0.0, -1.0, f64::NAN, f64::INFINITY].into_iter().all(not_positive));
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
    let found = scale(&levels(&[1.0, 2.0, 4.0], [10.0, 18.5, 31.0]), Factor::Servers, 0.95);
    let found = found.expect("a growth");
    let Answer::Undecided { forms, telling } = &found.answer else {
        panic!("{:?}", found.answer);
    };
    assert!(forms.len() > 1 && telling.x <= 8.0 && telling.responses.len() == forms.len());
    let far = found.predict(8.0).expect("twice the highest");
    assert!(far.response.high > far.response.low * 1.3, "{far:?}");
}

#[test]
fn levels_that_replicates_do_not_explain_show_as_lack_of_fit() {
    let x = [1.0, 2.0, 4.0, 8.0, 16.0];
    let replicated = |curve: fn(f64) -> f64| -> Scaling {
        let measured = x.iter().map(|x| {
            let responses = [0.99, 1.01, 0.995, 1.005].map(|noise| noise * curve(*x)).to_vec();
            Level { x: *x, responses, error: None }
        });
        scale(&measured.collect::<Vec<_>>(), Factor::Servers, 0.95).expect("a growth")
    };
    let p_of = |found: &Scaling, form| found.fit(form).and_then(|fit| fit.lack_of_fit);
    let line = replicated(|x| 5.0 * x);
    assert!(p_of(&line, Form::Linear).is_some_and(|p| p > 0.9));
    let capped = replicated(|x| 5.0 * x.min(6.0));
    assert!(p_of(&capped, Form::Amdahl).is_some_and(|p| p < 1e-4));
    assert!(p_of(&capped, Form::SharedCap).is_some_and(|p| p > 0.5));
    assert!(levels_have_no_test(&published(HTTP)));
}

fn levels_have_no_test(found: &Scaling) -> bool {
    found.fits.iter().all(|fit| fit.lack_of_fit.is_none())
}
