//! Tests of cells with changing arms on real proxies: an arm leaves nothing for the arm that takes its slot.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use weir_hosts::{Options, PlaceSpec};
use weir_model::record::{Phase, RunHeader};
use weir_parameters::Catalog;
use weir_proposers::{
    ArmId, Cell, CellEnd, History, MeasureError, Outcome, Proposer, Rates, Renewal, Step,
};
use weir_record::Run;
use weir_study::CheckContext;
use weir_sut::Launcher;
use weir_testkit::sandbox::sum;

use crate::run_proxies::of_arms;

const STUDY: &str = "
weir: 1
name: cells
question: Can arms come and go?
proxy: {kind: nginx, settings: {worker_processes: 1}}
arms:
- {name: queue, settings: {net.core.somaxconn: 77}}
- {name: past, settings: {transport: sockmap}}
- {name: past-too, settings: {transport: sockmap, access_log: off}}
loads: [{name: closed, closed: true, connections: 2, duration: 8s}]
blocks: {slice: 50ms}
";

/// Plan that measures the baseline with each of the other arms in turn, of which no others run at the time.
struct InTurn {
    steps: VecDeque<Step>,
    ends: Rc<RefCell<Vec<String>>>,
}

impl InTurn {
    fn new(header: &RunHeader, ends: Rc<RefCell<Vec<String>>>) -> InTurn {
        let study = &header.study;
        let changes = study.arms.iter().enumerate();
        let steps = changes.filter(|(_, arm)| !arm.changes.is_empty()).flat_map(|(arm, _)| {
            let arms: Vec<ArmId> = vec![0, arm];
            let cell = Cell {
                arms: arms.clone(),
                load: study.loads[0].clone(),
                rates: Rates::Closed,
                blocks: 2,
                first_block: 2 * arm as u32,
                planned: 2,
                slice: Duration::from_millis(50),
                discard: 0.2,
                phase: Phase::Measurement,
                renew: Renewal::Instance,
                seed: 1,
            };
            [Step::Arms(arms), Step::Measure(Box::new(cell))]
        });
        InTurn { steps: steps.collect(), ends }
    }
}

impl Proposer for InTurn {
    fn next(&mut self, _: &History) -> Step {
        self.steps.pop_front().unwrap_or(Step::Done)
    }

    fn outcome(&mut self, outcome: Outcome) -> Result<(), MeasureError> {
        let end = match outcome.end {
            CellEnd::Whole => format!("{} whole", outcome.blocks.len()),
            CellEnd::Broken(error) => error.to_string(),
            other => format!("{other:?}"),
        };
        self.ends.borrow_mut().push(end);
        Ok(())
    }
}

#[test]
fn arms_that_follow_each_other_in_a_slot_have_nothing_of_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let (catalog, context) = (Catalog::builtin(), context());
    let study = weir_study::parse(STUDY, "study.yaml", &catalog, &context)
        .unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let options = Options {
        folder: folder.path().join("run"),
        launcher: Launcher::new(env!("CARGO_BIN_EXE_weir").into()),
        weir_version: "0".to_owned(),
        remarks: Vec::new(),
        catalog,
        places: PlaceSpec::default(),
        allow_host_settings: false,
        node_image: None,
        check_alone: false,
        generator_carries: None,
        samples: None,
        where_time_goes: false,
        time: None,
        stop: Arc::default(),
    };
    let ends = Rc::new(RefCell::new(Vec::new()));
    weir_lab::ask(
        (&study, STUDY),
        &options,
        &mut |header: &RunHeader, _| Box::new(InTurn::new(header, Rc::clone(&ends))),
        &mut |_| {},
    )
    .expect("it runs");
    let run = Run::read(&options.folder).expect("a run");
    let changes = run.header.study.arms.iter().filter(|arm| !arm.changes.is_empty());
    assert_eq!(ends.take(), vec!["2 whole"; changes.count()]);
    let started = of_arms(&run);
    for arm in started.keys() {
        // A busy machine may leave a short slice without an answer.
        assert!(sum(&run, "closed", arm, |slice| slice.completed) > 0, "{arm}");
    }
    if weir_host::may_have_networks().is_err() {
        println!("left out: slots have no namespaces here");
        return;
    }
    let [queue, past, baseline] = ["queue", "past", "baseline"]
        .map(|arm| started[arm].effective.get("net.core.somaxconn").map(String::as_str));
    assert_eq!(queue, Some("77"));
    assert_ne!(past.or(baseline), queue);
    if weir_bypass::available().is_ok() {
        for arm in ["past", "past-too"] {
            let transport = started[arm].effective.get("transport");
            assert_eq!(transport.map(String::as_str), Some("sockmap"), "{arm}");
        }
        // One slot after the other.
        assert_eq!(started["past"].address, started["past-too"].address);
    }
}

/// Returns the properties of this machine.
fn context() -> CheckContext {
    CheckContext {
        descriptor_limit: 1024,
        most_descriptors: weir_probe::host::own_nofile().1,
        own_tables: weir_load::descriptors::tables_can_be_own(),
        local_ports: weir_probe::local_ports(),
        cpus_available: weir_probe::allowed_cpus().ok(),
        one_machine: true,
        node_sysctls: true,
        engine: weir_study::Engine::default(),
    }
}
