//! Pictures of the view, on terminals of different widths.

use std::path::PathBuf;
use std::time::Duration;

use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use weir_lab::Event as LabEvent;
use weir_model::load::{ErrorCount, ErrorKind};
use weir_model::progress::LoadInterval;
use weir_model::record::{BracketRecord, Observation, ObservedRecord, SearchStage, ValidityReason};
use weir_model::study::Until;
use weir_proposers::Announcement;

use super::*;
use crate::progress::{Consumer, Event};

/// Returns the view after these events, on a terminal of `width` columns.
fn picture(events: &[Event], width: u16) -> String {
    let (mut state, mut lines) = (State::default(), Lines::silent(false));
    for event in events {
        state.take(event);
        lines.take(event);
    }
    let backend = TestBackend::new(width, 22);
    let mut terminal = Terminal::new(backend).unwrap();
    terminal.draw(|frame| page(&state, &lines, true, frame.buffer_mut())).unwrap();
    let text = terminal.backend().to_string();
    let lines = text.lines().map(|line| line.trim_matches('"').trim_end());
    let lines: Vec<&str> = lines.collect();
    lines.join("\n").trim_end().to_owned()
}

fn pictures(name: &str, events: &[Event]) {
    for width in [40, 80, 120] {
        insta::assert_snapshot!(format!("{name}_{width}"), picture(events, width));
    }
}

fn quantiles(us: u64) -> Quantiles {
    Quantiles { p50: us * 1000, p90: us * 1300, p99: us * 2000, p99_9: us * 9000, max: us * 40_000 }
}

fn figures(seconds: f64, us: u64, timeouts: u64) -> LoadFigures {
    let error = ErrorCount {
        kind: ErrorKind::Timeout,
        words: "no response within the timeout \x1b[2J".to_owned(),
        errno: None,
        count: timeouts,
    };
    LoadFigures {
        seconds,
        rate: 2000.0,
        completed: (2000.0 * seconds) as u64,
        errors: (timeouts > 0).then_some(error).into_iter().collect(),
        never_ended: timeouts,
        response_time: quantiles(us),
        ..LoadFigures::default()
    }
}

fn load(phase: LoadPhase, elapsed: f64) -> Event {
    Event::LoadState(LoadState {
        phase,
        elapsed,
        left: 30.0 - elapsed,
        length: 30.0,
        requests: None,
        completed: (2000.0 * elapsed) as u64,
        errors: 0,
        in_flight: 3,
        open: 50,
    })
}

fn interval(at: f64, timeouts: u64) -> Event {
    let reason = ValidityReason {
        validity: Validity::Suspect,
        subject: None,
        observation: Observation::DispatchLag {
            quantile: 0.99,
            lag_ns: 58_000,
            response_ns: 92_000,
        },
    };
    Event::Interval(Box::new(LoadInterval {
        at,
        interval: figures(1.0, 90 + at as u64, timeouts),
        so_far: figures(at + 1.0, 95, timeouts),
        validity: match timeouts {
            0 => Validity::Valid,
            _ => Validity::Suspect,
        },
        reasons: (timeouts > 0).then_some(reason).into_iter().collect(),
    }))
}

fn load_begun() -> Event {
    Event::LoadBegun {
        url: "http://127.0.0.1:8080/index.html".to_owned(),
        connections: 50,
        length: 30.0,
        rate: Some(2000.0),
    }
}

#[test]
fn a_load() {
    let mut events = vec![load_begun(), load(LoadPhase::Connecting, 0.0)];
    events.extend((0..12).map(|at| interval(f64::from(at), 0)));
    events.push(load(LoadPhase::Measuring, 12.0));
    pictures("load", &events);
    events.push(interval(12.0, 7));
    pictures("load_with_errors", &events);
}

fn run_begun(name: &str) -> Event {
    Event::Lab(LabEvent::Begun {
        folder: PathBuf::from("runs").join(name),
        is_resumed: false,
        remarks: Vec::new(),
        takes: Duration::from_secs(1000),
        cpus: None,
    })
}

fn verdict(arm: &str, verdict: &str, ratio: f64, interval: (f64, f64)) -> Verdict {
    Verdict {
        load: "read-heavy".to_owned(),
        metric: "rate/s".to_owned(),
        arm: arm.to_owned(),
        against: "stock".to_owned(),
        verdict: verdict.to_owned(),
        ratio: Some(ratio),
        interval: Some(interval),
        blocks: 12,
    }
}

fn announced(announcement: Announcement) -> Event {
    Event::Lab(LabEvent::Announced(announcement))
}

#[test]
fn a_run() {
    let mut events = vec![
        run_begun("keepalive-20261121T101500Z"),
        Event::Lab(LabEvent::Takes { takes: Duration::from_secs(1000), until: Until::Planned }),
        announced(Announcement::TrialBegun {
            loads: vec!["read-heavy".to_owned()],
            blocks: 40,
            length: Duration::from_secs(600),
            rate: None,
            looks: Vec::new(),
        }),
    ];
    events.extend((1..=12).map(|done| {
        Event::Lab(LabEvent::Block {
            loads: vec!["read-heavy".to_owned()],
            done,
            of: 40,
            baseline_rate: 12_000.0 + 300.0 * f64::from(done % 4),
        })
    }));
    events.push(Event::Verdicts {
        verdicts: vec![
            verdict("keepalive-64", "better", 1.12, (1.08, 1.17)),
            verdict("worker-connections-16384", "inconclusive", 1.01, (0.7, 1.05)),
            verdict("stock-again", "equivalent", 1.0, (0.99, 1.01)),
        ],
    });
    pictures("run", &events);
}

fn search_step(arm: &str, between: Option<(f64, f64)>, held: Option<ObservedRecord>) -> Event {
    let bracket = BracketRecord {
        arm: arm.to_owned(),
        load: "closed".to_owned(),
        stage: SearchStage::Dwell,
        first_block: 0,
        blocks: 4,
        seconds: 10.0,
        between,
        held,
        passed_s: None,
    };
    announced(Announcement::Bracket { bracket, left: Duration::from_secs(400) })
}

#[test]
fn a_search() {
    let held = ObservedRecord { rate: 9000.0, seconds: 65.0 };
    let events = [
        run_begun("127.0.0.1-8080"),
        search_step("server", Some((4000.0, 16_000.0)), None),
        search_step("other", None, None),
        search_step("server", Some((9000.0, 10_200.0)), Some(held)),
    ];
    pictures("search", &events);
}

#[test]
fn an_interval_is_drawn_around_its_estimate_and_cut_at_the_edges() {
    for (interval, ratio, drawn) in [
        ((0.95, 1.05), 1.0, "     ├────●────┤     "),
        ((1.02, 1.06), 1.04, "          │ ├─●─┤    "),
        ((0.5, 1.5), 1.02, "‹───────────●───────›"),
        ((0.9, f64::INFINITY), 1.1, "├───────────────────●"),
    ] {
        assert_eq!(forest(interval, ratio, 0.1, 21), drawn, "{interval:?}");
    }
}
