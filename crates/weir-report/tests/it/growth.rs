//! Tests of the growth of resources with the rate, and of samples for the limiter, in all outputs.

use weir_analysis::findings::{
    Bends, GrowthFindings, LimiterFindings, ResourceGrowth, Shape, Stretch, UnknownGrowth,
};
use weir_limits::{Absent, Answer, Evidence, Judgement, Resource, Series, Worker};
use weir_report::{html, markdown, terminal};

use crate::capacity::one;
use crate::fixture::Fixture;
use crate::markup;

fn resource(resource: Resource, quantity: &str, unit: &str, shape: Shape) -> ResourceGrowth {
    ResourceGrowth {
        resource,
        quantity: quantity.to_owned(),
        unit: unit.to_owned(),
        shape,
        linear: shape.is_linear(),
        slope: None,
        intercept: None,
        bend: None,
        points: Vec::new(),
        why_unknown: None,
    }
}

fn grown() -> GrowthFindings {
    let rates = (1..=8).map(|level| 500.0 * f64::from(level));
    let mut cpu = resource(Resource::Cpu, "proxy_cpus", "CPUs", Shape::Bend);
    cpu.points = rates
        .clone()
        .map(|rate| (rate, 2e-4 * rate + 3e-4 * (rate - 2_500.0_f64).max(0.0)))
        .collect();
    cpu.slope = Some((0.29, (0.27, 0.31)));
    cpu.intercept = Some(-0.1);
    cpu.bend =
        Some(Bends { at: (2_500.0, (2_350.0, 2_640.0)), before: 0.2, after: 0.5, value: 0.5 });
    let mut network = resource(Resource::Network, "bytes", "bytes/s", Shape::Linear);
    network.points = rates.clone().map(|rate| (rate, 1_100.0 * rate)).collect();
    network.slope = Some((1.1e6, (1.09e6, 1.11e6)));
    network.intercept = Some(0.0);
    let mut connections = resource(Resource::Connections, "connections", "", Shape::Constant);
    connections.points = rates.map(|rate| (rate, 50.0)).collect();
    connections.slope = Some((0.0, (0.0, 0.0)));
    connections.intercept = Some(50.0);
    let mut memory = resource(Resource::Memory, "memory", "bytes", Shape::Unknown);
    let column = "processes.resident_bytes".to_owned();
    memory.why_unknown = Some(UnknownGrowth::Absent(Absent::NotSampled(column)));
    GrowthFindings {
        arm: "stock".to_owned(),
        loads: vec!["open".to_owned()],
        windows: 8,
        rates: (500.0, 4_000.0),
        in_turns: false,
        resources: vec![cpu, memory, network, connections],
    }
}

/// Returns a stretch of eight seconds in which one of two workers is at full load.
pub(crate) fn limited() -> LimiterFindings {
    let seconds = (1..=8).map(f64::from);
    let busy = seconds.clone().map(|at| (at, 0.99)).collect();
    let rising = seconds.clone().map(|at| (at, 0.05 * at)).collect();
    let workers = [("nginx 4711", busy), ("nginx 4712", rising)]
        .map(|(name, points)| Worker { name: name.to_owned(), points })
        .into();
    LimiterFindings {
        load: "open".to_owned(),
        arm: "stock".to_owned(),
        pods: None,
        stretch: Stretch {
            from_s: 20.0,
            until_s: 28.5,
            rate: Some(4_200.0),
            saturated: true,
            stage: None,
        },
        low: None,
        judged: (1, 1),
        confirmations: Vec::new(),
        judgement: Judgement {
            answer: Answer::DoNotKnow,
            findings: Vec::new(),
            ruled_out: Vec::new(),
            unknown: Vec::new(),
            seen: Vec::new(),
        },
        evidence: Evidence::default(),
        series: vec![Series {
            quantity: "time_wait".to_owned(),
            unit: String::new(),
            points: seconds.map(|at| (at, 900.0 * at)).collect(),
        }],
        workers,
    }
}

fn make_run() -> Fixture {
    let mut run = one();
    run.findings.growth = vec![grown()];
    run.findings.limiters = vec![limited()];
    run
}

/// Returns the text from the limiter's section to the end of the section on growth.
fn section<'t>(text: &'t str, from: &str) -> &'t str {
    let begin = text.find(from).expect("the section is there");
    let tail = &text[begin..];
    &tail[..tail.find("Environment").unwrap_or(tail.len())]
}

#[test]
fn growth_and_workers_are_told_in_a_terminal_and_in_markdown() {
    let run = make_run();
    let shown = terminal(&run.input(), false, 100);
    insta::assert_snapshot!("growth_terminal", section(&shown, "What limits stock under"));
    let shown = markdown(&run.input());
    insta::assert_snapshot!("growth_markdown", section(&shown, "## What limits"));
}

#[test]
fn each_resource_has_a_chart_with_its_windows_and_its_bend() {
    let page = html(&make_run().input());
    markup::check(&page);
    let begin = page.find("<h2 id=\"growth\"").expect("the section");
    let growth_section = &page[begin..begin + page[begin..].find("</section>").expect("its end")];
    // Of memory nothing is known, so there is nothing to draw.
    assert_eq!(growth_section.matches("<svg").count(), 3, "{growth_section}");
    assert_eq!(growth_section.matches("<circle").count(), 24);
    assert_eq!(growth_section.matches("class=\"band\"").count(), 1);
    assert!(growth_section.contains("8 windows up to 4,000 requests/s; linear: no: it bends"));
    let begin = page.find("<h2 id=\"limiter-1\"").expect("the card");
    let card = &page[begin..];
    assert!(card.contains("aria-hidden=\"true\">████████</span>"), "{card}");
    assert!(card.contains("from 900 to 7,200 within 8.5 s"));
    let mut none = make_run();
    none.findings.growth.clear();
    assert!(!html(&none.input()).contains("id=\"growth\""));
}
