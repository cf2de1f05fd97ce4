use super::*;

#[test]
fn a_target_that_does_not_come_back_is_asked_twice() {
    let mut is_dead = false;
    let (answer, history) = run(goal(), &mut |trial, _| {
        is_dead |= trial.rate > 1700.0;
        let bad = f64::from(u8::from(is_dead));
        Window { completed: trial.rate * (1.0 - bad), ..window(trial, bad) }
    });
    let Ending::Broken(above) = answer.ending else { panic!("{answer:?}") };
    assert!((1500.0..=1700.0).contains(&above), "{answer:?}");
    let mut looks = history.iter().filter(|(trial, ..)| trial.stage == Stage::Look);
    assert_eq!(looks.clone().count(), 2);
    assert!(looks.all(|(trial, ..)| trial.rate < 500.0));
    // One that was dead before anything held.
    let (answer, history) =
        run(goal(), &mut |trial, _| Window { completed: 0.0, ..window(trial, 1.0) });
    assert!(matches!(answer.ending, Ending::Broken(_)) && history.len() <= 12, "{answer:?}");
}

#[test]
fn a_generator_that_is_too_weak_is_never_taken_for_the_target() {
    let (answer, _) = run(goal(), &mut |trial, _| Window {
        sent: (900.0 / trial.rate).min(1.0),
        ..window(trial, cliff(trial, 900.0))
    });
    let held = answer.held.expect("a hold").rate;
    assert!(answer.is_ceiling && held > 700.0 && held <= 900.0, "{answer:?}");
    let (answer, history) = run(goal(), &mut |trial, _| Window { sent: 0.5, ..window(trial, 0.0) });
    assert!(matches!(answer.ending, Ending::NotSent(_)) && history.len() < 50, "{answer:?}");
    // Late in one trial.
    let mut trials = 0;
    let (answer, _) = run(goal(), &mut |trial, _| {
        trials += 1;
        Window { sent: if trials <= 8 { 0.5 } else { 1.0 }, ..window(trial, cliff(trial, 1200.0)) }
    });
    assert!(!answer.is_ceiling && answer.interval.1 >= 1200.0, "{answer:?}");
}

#[test]
fn a_known_ceiling_is_not_exceeded_and_an_answer_near_it_is_marked() {
    for (ceiling, is_ceiling) in [(1000.0, true), (1250.0, true), (1900.0, false)] {
        let goal = Goal { ceiling: Some(ceiling), ..goal() };
        let (answer, history) = run(goal, &mut |trial, _| window(trial, cliff(trial, 1200.0)));
        assert!(history.iter().all(|(trial, ..)| trial.rate <= ceiling));
        assert_eq!(answer.is_ceiling, is_ceiling, "{answer:?}");
        let held = answer.held.expect("a hold").rate;
        assert!(held >= 0.9 * ceiling.min(1200.0), "{answer:?}");
    }
}

/// Verdicts on windows of a hold: `.` good, `x` all bad, `b` slightly bad, `h` spoilt and good, `s` spoilt and all bad,
/// `u` not sent in time. The number is that of windows at the beginning in which the target may recover.
fn judged() -> Vec<(&'static str, String, usize, Verdict)> {
    let held = Verdict::Held { seconds: 65.0 };
    vec![
        ("not over", with_good("G"), 0, Verdict::Open),
        ("over", with_good("G."), 0, held),
        ("too much is bad", with_good("....xxxxxxx"), 0, broke(5.0, 4.0, false)),
        ("may be good again", with_good("....x.x.."), 0, Verdict::Open),
        ("is good again", with_good("....xx..."), 0, broke(5.0, 4.0, true)),
        ("is not for long", with_good("....x..xx.."), 0, broke(5.0, 4.0, false)),
        ("was good but for a moment", with_good("b....xxxxxxx"), 0, broke(6.0, 5.0, false)),
        ("was never good", with_good("x"), 0, broke(1.0, 0.0, false)),
        ("hold-ups are nobody's", with_good("..sG"), 0, held),
        ("nor is the backlog after them", with_good("..sxxG"), 0, held),
        ("but not for ever", with_good("......sxxxxxxxxxx"), 0, broke(11.0, 10.0, false)),
        ("good in spite of hold-ups", "h".repeat(65), 0, held),
        ("held up all the time", "s".repeat(49), 0, broke(1.0, 0.0, false)),
        (
            "most of it spoilt",
            "s".repeat(45) + &"u".repeat(32) + &".".repeat(20),
            0,
            Verdict::Spoilt,
        ),
        ("late now and then", with_good("..uG"), 0, held),
        ("late", "u".repeat(33), 0, Verdict::Unsent(0.7)),
        ("recovers", with_good("xxxG."), 10, held),
        ("recovers once", with_good("xxxGxxxxxxx"), 10, broke(68.0, 67.0, false)),
        ("does not recover", "x".repeat(17), 10, broke(11.0, 10.0, false)),
    ]
}

fn broke(after_s: f64, clean_s: f64, recovers: bool) -> Verdict {
    Verdict::Broke(Break {
        after_s,
        clean_s,
        is_dead: false,
        has_collapsed: false,
        completes: 1.0,
        recovers,
    })
}

fn with_good(text: &str) -> String {
    text.replace('G', &".".repeat(64))
}

/// Share of bad responses in a window with this sign.
fn share(sign: char) -> f64 {
    match sign {
        '.' | 'h' => 0.0,
        'b' => 0.05,
        _ => 1.0,
    }
}

#[test]
fn windows_are_judged() {
    let mut search = Search::new(goal());
    search.keep(&search.hold(500.0), &[window(&search.hold(500.0), 1.0)], Ok(1.0));
    search.spoilt = (0, 200);
    for (name, text, lead, expected) in judged() {
        let trial = Trial { lead, ..search.hold(1000.0) };
        let windows: Vec<Window> = text
            .chars()
            .map(|sign| Window {
                sent: if sign == 'u' { 0.7 } else { 1.0 },
                is_held_up: matches!(sign, 'h' | 's'),
                ..window(&trial, share(sign))
            })
            .collect();
        assert_eq!(search.judge(&trial, &windows), expected, "{name}");
    }
}

/// Exhausted ports cause errors that come at once.
#[test]
fn errors_are_no_answers() {
    let goal = Goal { bounds: vec![Bound::quantile(0.99, 0.03), Bound::errors(0.001)], ..goal() };
    let search = Search::new(goal);
    let trial = search.hold(1000.0);
    for (share, is_dead, has_collapsed) in
        [(1.0, true, true), (0.7, false, true), (0.3, false, false)]
    {
        let windows = [(0.0, 20), (share, 7)]
            .map(|(share, count)| {
                vec![Window { bad: vec![share, share], ..window(&trial, 0.0) }; count]
            })
            .concat();
        let Verdict::Broke(how) = search.judge(&trial, &windows) else {
            panic!("it broke");
        };
        assert_eq!((how.is_dead, how.has_collapsed), (is_dead, has_collapsed), "{share}");
        assert!((how.completes - 1.0 + share).abs() < 1e-9, "{how:?}");
    }
}

#[test]
fn a_machine_that_stands_still_is_not_the_target() {
    // In a third of the windows everything is late, by meters; or in nearly all of them.
    for (every, most) in [(3, 1.1), (1, 1.6)] {
        let mut count = 0;
        let (answer, _) = run(Goal { time_s: 300.0, ..goal() }, &mut |trial, _| {
            count += 1;
            let is_held_up = count % every == 0;
            let bad = cliff(trial, 1200.0).max(if is_held_up { 0.005 } else { 0.0 });
            Window { is_held_up, ..window(trial, bad) }
        });
        let (low, high) = answer.interval;
        assert!(low <= 1200.0 && 1200.0 <= high && high < most * low, "{every}: {answer:?}");
    }
}

#[test]
fn a_target_that_stands_still_for_a_second_is_not_used_up() {
    // It carries 1,200/s for as long as one likes, and once stands still for a second of a hold.
    let mut seconds_of_hold = 0;
    let (answer, history) = run(Goal { time_s: 300.0, ..goal() }, &mut |trial, _| {
        seconds_of_hold += i32::from(trial.stage == Stage::Hold);
        let bad = if seconds_of_hold == 30 { 1.0 } else { 0.0 };
        window(trial, cliff(trial, 1200.0).max(bad))
    });
    let rates: Vec<f64> = history
        .iter()
        .filter(|(trial, ..)| trial.stage == Stage::Hold)
        .map(|(trial, ..)| trial.rate)
        .collect();
    assert!(rates.iter().all(|rate| *rate > 600.0), "{rates:?}");
    let (low, high) = answer.interval;
    assert!(low <= 1200.0 && 1200.0 <= high, "{answer:?}");
    assert!(!answer.is_bracket, "{answer:?}");
}

/// Returns a search after its ramp: dwells of 1,500/s and more held, up to 1,600/s.
fn ramped(goal: Goal) -> Search {
    let mut search = Search::new(goal);
    while let Ok(dwell) = search.propose()
        && dwell.stage == Stage::Ramp
    {
        search.observe(&dwell, &vec![window(&dwell, cliff(&dwell, 1600.0)); dwell.windows]);
    }
    search
}

/// Makes a search observe a hold that is good in the seconds selected by `is_good`, with this many completions in the
/// others.
fn hold(search: &mut Search, trial: &Trial, is_good: fn(i32) -> bool, completed: f64) {
    search.step = Step::Hold(trial.rate);
    let seconds = 0..i32::try_from(trial.windows).expect("some windows");
    let windows = seconds.map(|second| {
        if is_good(second) {
            window(trial, 0.0)
        } else {
            Window { completed, ..window(trial, 1.0) }
        }
    });
    search.observe(trial, &windows.collect::<Vec<_>>());
}

#[test]
fn a_hold_that_collapses_far_below_dwells_that_held_shows_build_up() {
    for (rate, completed, builds_up) in [
        (1400.0, 280.0, true),
        // The threshold may scatter by as much.
        (1550.0, 310.0, false),
        // A queue is a little too short.
        (1400.0, 1390.0, false),
        (1550.0, 0.0, true),
    ] {
        let mut search = ramped(goal());
        let trial = search.hold(rate);
        hold(&mut search, &trial, |second| second < 20, completed);
        assert_eq!(search.builds_up, builds_up, "{rate}, {completed}");
    }
}

#[test]
fn a_hold_may_break_later_than_one_alone_would_last() {
    // The target recovers for 20 s from the trial before, and breaks 70 s after the beginning of the hold.
    let mut search = ramped(Goal { renews: false, time_s: 900.0, ..goal() });
    search.builds_up = true;
    type IsGood = fn(i32) -> bool;
    let holds: [(f64, IsGood); 2] = [
        (1500.0, |second| (20..40).contains(&second)),
        (1400.0, |second| (20..70).contains(&second)),
    ];
    for (rate, is_good) in holds {
        let trial = Trial { lead: 20, ..search.hold(rate) };
        hold(&mut search, &trial, is_good, rate);
    }
    let next = search.propose().expect("another trial");
    assert!(next.rate < 1400.0, "{next:?}");
}
