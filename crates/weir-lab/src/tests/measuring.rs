//! Tests of cells that a proposer other than the study's plan proposes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weir_analysis::findings::Verdict;
use weir_model::record::{
    DecisionRecord, HeldUp, Outcome as RunOutcome, Phase, Record, SliceRecord,
};
use weir_model::study::{Metric, StudyArrivals};
use weir_proposers::{
    Block, Cell, CellEnd, History, MeasureError, Outcome, Proposer, Rates, Renewal, Step,
    StepBlock, Steps,
};
use weir_sentences::explain_verdict;
use weir_simulation::{ArmModel, Distribution, Fault, Model, SICK, TimeWait};

use super::bench::{Bench, arm, load, reports};

/// Blocks and end of each cell, as reported to a proposer.
type CellOutcomes = Rc<RefCell<Vec<(Vec<Block>, String)>>>;

/// Proposer that follows a list of steps and records the outcomes.
struct Script {
    steps: VecDeque<Step>,
    /// Number of blocks after which a cell ends.
    enough: usize,
    blocks: usize,
    heard: CellOutcomes,
}

impl Proposer for Script {
    fn next(&mut self, _: &History) -> Step {
        self.blocks = 0;
        self.steps.pop_front().unwrap_or(Step::Done)
    }

    fn go_on(&mut self, _: &Block) -> bool {
        self.blocks += 1;
        self.blocks < self.enough
    }

    fn outcome(&mut self, outcome: Outcome) -> Result<(), MeasureError> {
        let end = match outcome.end {
            CellEnd::Whole => "whole".to_owned(),
            CellEnd::Decided => "decided".to_owned(),
            CellEnd::Interrupted => "interrupted".to_owned(),
            CellEnd::Broken(error) => format!("broken: {error}"),
            CellEnd::Unreachable(error) => format!("unreachable: {error}"),
        };
        self.heard.borrow_mut().push((outcome.blocks, end));
        Ok(())
    }
}

fn cell(arms: &[usize]) -> Cell {
    Cell {
        arms: arms.to_vec(),
        load: load("closed", StudyArrivals::Closed, 12),
        rates: Rates::Closed,
        blocks: 10,
        first_block: 0,
        planned: 10,
        slice: Duration::from_millis(100),
        discard: 0.2,
        phase: Phase::Measurement,
        renew: Renewal::Nothing,
        seed: 1,
    }
}

fn measure(cell: Cell) -> Step {
    Step::Measure(Box::new(cell))
}

/// Runs steps on a study of four arms; returns the outcomes and the bench.
fn script(model: Model, steps: Vec<Step>, enough: usize) -> (Vec<(Vec<Block>, String)>, Bench) {
    let bench = Bench::new(&["stock", "same", SICK, "other"], 12, model);
    let heard = CellOutcomes::default();
    let mut script =
        Some(Script { steps: steps.into(), enough, blocks: 0, heard: Rc::clone(&heard) });
    let mut proposer =
        |_: &_, _| Box::new(script.take().expect("one session")) as Box<dyn Proposer>;
    let study = (&bench.study, "");
    let summary = crate::ask(study, &bench.options(), &mut proposer, &mut |_| {}).unwrap();
    assert_eq!(summary.outcome, RunOutcome::Complete);
    (heard.take(), bench)
}

fn names(block: &Block) -> Vec<&str> {
    block.iter().map(|trial| trial.arm.as_str()).collect()
}

fn rate_of(blocks: &[Block], place: usize) -> f64 {
    let slices: Vec<_> =
        blocks.iter().map(|block| &block[place]).flat_map(|trial| &trial.slices).collect();
    let completed: u64 = slices.iter().map(|slice| slice.completed).sum();
    let ns: u64 = slices.iter().map(|slice| slice.measured_ns).sum();
    completed as f64 / (ns as f64 / 1e9)
}

#[test]
fn any_set_of_arms_is_measured_and_no_other_runs() {
    let steps = vec![
        Step::Arms(vec![3, 1]),
        measure(cell(&[3, 1])),
        Step::Arms(vec![0]),
        measure(Cell { first_block: 10, ..cell(&[0, 2]) }),
    ];
    let (heard, bench) = script(Model::default(), steps, usize::MAX);
    let arms: Vec<_> = heard.iter().map(|(blocks, _)| names(&blocks[0])).collect();
    assert_eq!(arms, [["other", "same"], ["stock", SICK]]);
    let run = bench.read();
    let started = run.records.iter().filter_map(|record| match record {
        Record::Proxy(proxy) => Some((proxy.arm.as_str(), proxy.address.as_str())),
        _ => None,
    });
    let started: Vec<_> = started.collect();
    let (first, second) = ("10.213.0.254:8080", "10.213.1.254:8080");
    // The second pair has the slots of the first, which has ended.
    assert_eq!(started, [("other", first), ("same", second), ("stock", first), (SICK, second)]);
}

#[test]
fn a_decision_ends_a_cell_and_is_recorded_and_no_wish_of_the_user() {
    let decision = DecisionRecord {
        session: 0,
        load: "closed".to_owned(),
        phase: Phase::Screening,
        decision: "stop".to_owned(),
        because: "four blocks are enough".to_owned(),
    };
    let screening = Cell { phase: Phase::Screening, ..cell(&[0, 1]) };
    let steps = vec![
        measure(screening),
        Step::Record(Box::new(Record::Decision(decision.clone()))),
        measure(Cell { phase: Phase::Confirmation, first_block: 10, blocks: 3, ..cell(&[0, 1]) }),
    ];
    let (heard, bench) = script(Model::default(), steps, 4);
    let ends: Vec<_> = heard.iter().map(|(blocks, end)| (blocks.len(), &**end)).collect();
    assert_eq!(ends, [(4, "decided"), (3, "whole")]);
    assert!(!bench.options().stop.load(Ordering::Relaxed));
    let run = bench.read();
    assert_eq!(History::of(&run).decisions, [decision]);
    // Screening is not what figures rest on, confirmation is.
    assert_eq!(run.blocks("closed").len(), 3);
}

#[test]
fn a_broken_arm_is_an_outcome_and_the_others_go_on() {
    let mut model = Model::default();
    model.arms.insert(
        SICK.to_owned(),
        ArmModel { faults: vec![Fault::Crash { at_s: 2.0 }], ..ArmModel::default() },
    );
    let second = Cell { first_block: 10, ..cell(&[0, 1]) };
    let steps = vec![measure(cell(&[0, 2])), Step::Arms(vec![0, 1]), measure(second)];
    let (heard, _) = script(model, steps, usize::MAX);
    let ends: Vec<&str> = heard.iter().map(|(_, end)| end.as_str()).collect();
    let broken = format!("broken: arm `{SICK}`: it has ended by itself");
    assert_eq!(ends, [broken.as_str(), "whole"]);
    assert!((1..10).contains(&heard[0].0.len()), "{}", heard[0].0.len());
    assert_eq!(heard[1].0.len(), 10);
}

#[test]
fn arms_are_added_renewed_and_have_cpus_of_their_own() {
    let steps = vec![
        measure(cell(&[0, 1])),
        Step::Add(Box::new(arm("added")), Some("3".parse().unwrap())),
        measure(Cell { renew: Renewal::Instance, first_block: 10, ..cell(&[0, 4]) }),
    ];
    let mut model = Model::default();
    let slower = ArmModel::default().slower(2.0);
    model.arms.insert("added".to_owned(), slower);
    let (heard, bench) = script(model, steps, usize::MAX);
    let (blocks, _) = &heard[1];
    assert_eq!(names(&blocks[0]), ["stock", "added"]);
    let ratio = rate_of(blocks, 1) / rate_of(blocks, 0);
    assert!((ratio - 0.5).abs() < 0.02, "{ratio}");
    let run = bench.read();
    let added = History::of(&run).added;
    assert_eq!(added.len(), 1);
    assert_eq!(added[0].cpus, Some("3".parse().unwrap()));
    let pids = run.records.iter().filter_map(|record| match record {
        Record::Proxy(proxy) if proxy.arm == "stock" => Some(proxy.pid),
        _ => None,
    });
    let pids: Vec<u32> = pids.collect();
    assert!(pids.len() == 2 && pids[0] != pids[1], "{pids:?}");
}

#[test]
fn cells_that_differ_in_rate_alone_share_a_trial() {
    let ladder: Vec<[f64; 2]> =
        (1..=5).map(|step| [f64::from(step) * 200.0, f64::from(step) * 100.0]).collect();
    let blocks = ladder.iter().map(|rates| StepBlock {
        rates: rates.to_vec(),
        pause: Duration::from_millis(20),
        settle: Duration::from_millis(20),
        measure: Duration::from_millis(160),
    });
    let open = Cell {
        load: load("open", StudyArrivals::Constant(1.0), 12),
        rates: Rates::Steps(Steps { blocks: blocks.collect(), ..Steps::default() }),
        blocks: 5,
        ..cell(&[0, 1])
    };
    let (heard, bench) = script(Model::default(), vec![measure(open)], usize::MAX);
    let (blocks, _) = &heard[0];
    for (block, rates) in blocks.iter().zip(&ladder) {
        for (trial, rate) in block.iter().zip(rates) {
            assert_eq!(trial.rate_intended, Some(*rate));
            let offered: u64 = trial.slices.iter().map(|slice| slice.offered).sum();
            let wanted = rate * 0.16;
            assert!((offered as f64 - wanted).abs() <= 2.0, "{offered} for {wanted}");
        }
    }
    assert_eq!(bench.read().parts("open").count(), 1, "one continuous trial");
}

#[test]
fn overload_builds_a_queue_that_ends_with_the_slice() {
    // 2,000/s is what the arm carries.
    for (rate, is_overload) in [(1000.0, false), (3000.0, true)] {
        let open = Cell {
            load: load("open", StudyArrivals::Constant(rate), 12),
            rates: Rates::Same(rate),
            ..cell(&[0, 1])
        };
        let (heard, _) = script(Model::default(), vec![measure(open)], usize::MAX);
        let trials: Vec<_> = heard[0].0.iter().flatten().collect();
        let queued: u64 = trials.iter().map(|trial| trial.censored.queued).sum();
        let slowest = trials.iter().map(|trial| trial.response_time.p99).max();
        assert_eq!(queued > 0, is_overload, "{rate}: {queued}");
        assert_eq!(slowest > Some(20_000_000), is_overload, "{rate}: {slowest:?}");
    }
}

/// Makes an arm whose 6,000 places are full after 6 s at half of 2,000/s, if each request takes one.
fn with_time_wait(per_request: f64) -> ArmModel {
    ArmModel {
        time_wait: Some(TimeWait { per_request, lasts_s: 1000.0, room: 6_000.0, factor: 2.5 }),
        ..ArmModel::default()
    }
}

#[test]
fn an_arm_that_becomes_another_is_found_out_with_the_reason() {
    let mut bench = Bench::new(&["stock", "same", "other"], 40, Model::default());
    bench.study.arms.remove(1);
    // Warm-ups of more instances would fill them before the first block.
    bench.study.blocks.instances = 4;
    bench.model.arms.insert("stock".to_owned(), with_time_wait(1.0));
    bench.model.arms.insert("other".to_owned(), with_time_wait(0.0));
    let findings = bench.findings();
    let load = &findings.loads[0];
    let [change] = &load.phases[..] else {
        panic!("{:?}", load.phases);
    };
    assert_eq!((&*change.arm, change.metric), ("stock", Metric::CpuPerRequest));
    let grown = change.after / change.before;
    assert!((2.4..2.6).contains(&grown), "{change:?}");
    let evidence = weir_sentences::describe_phase_evidence(&change.evidence);
    assert!(evidence.contains("in TIME_WAIT"), "{change:?}");
    let answer = weir_sentences::answer(&bench.study, &findings);
    assert!(answer.contains("stock changed at second"), "{answer}");
    let fresh = load.fresh.as_ref().map(weir_sentences::describe_fresh_arms).unwrap();
    assert!(fresh.starts_with("Arms were seen fresh") && fresh.ends_with("later."), "{fresh}");
    let run = bench.read();
    for text in reports(&run, &findings) {
        assert!(text.contains("Arms that changed during the run"), "{text}");
    }
    // Nothing is thrown away for it.
    assert_eq!(load.blocks_used, load.blocks);
}

/// Two blocks in ten on another level are too few for a test of before and after.
#[test]
fn an_arm_that_becomes_another_for_a_while_is_found_out() {
    let mut bench = Bench::new(&["stock", "same", "other"], 40, Model::default());
    let mut changing = ArmModel::default();
    changing.noise.steps = vec![(14.0, 12.0), (20.0, 1.0 / 12.0)];
    bench.model.arms.insert("other".to_owned(), changing);
    let findings = bench.findings();
    let [up, down] = &findings.loads[0].phases[..] else {
        panic!("{:?}", findings.loads[0].phases);
    };
    for (change, at_s, factor) in [(up, 14.0, 12.0), (down, 20.0, 1.0 / 12.0)] {
        assert_eq!(change.arm, "other");
        assert!((change.at_s - at_s).abs() < 3.0, "{change:?}");
        let ratio: f64 = change.after / change.before / factor;
        assert!((0.8..1.25).contains(&ratio), "{change:?}");
    }
}

#[test]
fn what_happens_to_the_machine_makes_no_arm_another() {
    for scenario in ["drift", "step", "correlated noise", "leak", "instances that differ"] {
        let model = weir_simulation::scenarios(3).into_iter().find(|(name, _)| *name == scenario);
        let bench = Bench::new(&["stock", "same", weir_simulation::SICK], 20, model.unwrap().1);
        let phases = &bench.findings().loads[0].phases;
        assert_eq!(phases.len(), 0, "{scenario}: {phases:?}");
    }
}

/// Attributes the idle time of the proxy's CPUs to another process.
fn taken_by_others(slice: &mut SliceRecord) {
    slice.held_up.proxy = Some(HeldUp { others_ns: slice.proxy_cpus_idle_ns, ..HeldUp::default() });
    slice.proxy_cpus_idle_ns = 0;
}

#[test]
fn arms_that_their_connections_limit_are_not_equivalent() {
    // Whether other processes have the CPUs that the proxy leaves: nobody of the run is busy with that.
    for (cpu_share, others, is_idle) in
        [(0.005, false, true), (0.005, true, true), (0.2, false, false)]
    {
        let mut bench = Bench::new(&["stock", "other"], 12, Model::default());
        // 8 connections × 10 ms for a response allow 800/s; a worker for each, and next to no CPU time.
        bench.model.others = ArmModel {
            service: Distribution::Fixed(10e6),
            workers: 64,
            cpu_share,
            ..ArmModel::default()
        };
        bench.findings();
        let mut run = bench.read();
        for record in &mut run.records {
            if let (true, Record::Trial(trial)) = (others, record) {
                trial.slices.iter_mut().for_each(taken_by_others);
            }
        }
        let findings = weir_analysis::analyze(&run);
        let load = &findings.loads[0];
        let comparison = load.comparison("other", Metric::Rate).expect("a comparison");
        assert_eq!(comparison.verdict == Verdict::Inconclusive, is_idle, "{comparison:?}");
        let reason = explain_verdict(comparison, &run.header.study.objective);
        assert_eq!(reason == "the connections were the limit", is_idle, "{comparison:?}");
        // Its figures stand once, with the load.
        let answer = weir_sentences::answer(&run.header.study, &findings);
        let idle = load.idle.as_ref().map(weir_sentences::describe_idle_load).unwrap_or_default();
        let limit = "The connections were the limit: 8 connections × ";
        for (words, is_said) in [
            (limit, is_idle),
            ("allow 800/s", is_idle),
            ("have waited for other processes, which had", others),
        ] {
            assert_eq!(idle.contains(words), is_said, "{words}: {idle}");
            assert!(!reason.contains("allow 800/s"), "{comparison:?}");
            assert!(!answer.contains("allow 800/s"), "{answer}");
        }
        let unknown =
            "The connections were the limit, so this does not show how much the proxy carries";
        assert_eq!(answer.contains(unknown), is_idle, "{answer}");
        let cpu = load.comparison("other", Metric::CpuPerRequest).expect("another");
        assert_eq!(cpu.verdict, Verdict::Equivalent, "what a request costs is known: {cpu:?}");
    }
}
