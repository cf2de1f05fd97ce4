//! A small study, its header and its trials for the tests of other crates. Tests that need something else change one of
//! these values, so that a new field has to be added in one place only.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::environment::Environment;
use crate::flow::FlowSpec;
use crate::load::Censored;
use crate::quantity::CpuSet;
use crate::record::{FORMAT, Phase, QuantileSummary, RunHeader, TrialRecord};
use crate::study::{
    Arm, ArmRole, BlockSpec, Compare, CpuRoles, LoadSpec, NetworkSpec, Objective, OriginSpec,
    ProxyKind, ProxyRole, ProxySpec, SearchSpec, Settings, Study, StudyArrivals,
};

/// Creates settings from pairs of an id and a level.
pub fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(id, level)| ((*id).to_owned(), (*level).to_owned())).collect()
}

/// Creates an arm of the study's own proxy with these settings, compared with the first arm.
pub fn arm(name: &str, role: ArmRole, all: &[(&str, &str)]) -> Arm {
    Arm {
        name: name.to_owned(),
        role,
        changes: Settings::new(),
        against: 0,
        settings: settings(all),
        proxy: None,
        cpus: None,
        taken: None,
    }
}

/// Creates a load of 50 kept connections without TLS that request `/`, for 60 s, with a timeout of 2 s.
pub fn load(name: &str, arrivals: StudyArrivals) -> LoadSpec {
    let main = FlowSpec::new(50, arrivals);
    LoadSpec::new(name, main, Duration::from_secs(60))
}

/// Creates a description of nginx as a reverse proxy, with its own defaults.
pub fn proxy() -> ProxySpec {
    ProxySpec {
        kind: ProxyKind::Nginx,
        executable: None,
        role: ProxyRole::ReverseProxy,
        settings: Settings::new(),
        configuration: None,
        external: None,
        controller: None,
    }
}

/// Creates a study of [`proxy`] named `s`, with these arms, no load, and defaults for everything else.
pub fn study(arms: Vec<Arm>) -> Study {
    Study {
        name: "s".to_owned(),
        title: String::new(),
        question: "?".to_owned(),
        proxy: proxy(),
        origin: OriginSpec::default(),
        loads: Vec::new(),
        arms,
        launchers: BTreeMap::new(),
        compare: Compare::Against,
        blocks: BlockSpec::default(),
        until: Default::default(),
        budget: None,
        objective: Objective::default(),
        capacity: Vec::new(),
        search: SearchSpec::default(),
        cpus: None,
        network: NetworkSpec::default(),
        published: None,
        left_out: Vec::new(),
        scale: None,
    }
}

/// Creates the header of a run named `r` on this host: the proxies on CPU 0, the others on CPU 1.
pub fn header(study: Study) -> RunHeader {
    let [first, second] = [0, 1].map(|cpu| CpuSet::new(vec![cpu]).expect("a set with a CPU in it"));
    RunHeader {
        format: FORMAT.to_owned(),
        run: "r".to_owned(),
        weir_version: "0".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        folder: "/".into(),
        study,
        cpus: CpuRoles { proxy: first, generator: second.clone(), origin: second },
        network: Default::default(),
        copies: None,
        places: Default::default(),
        environment: Environment::default(),
        surroundings: None,
        remarks: Vec::new(),
        check_alone: false,
        time: None,
        rows: Vec::new(),
    }
}

/// Creates a valid trial without slices: all counts and times are 0, and there are no errors.
pub fn trial(load: &str, arm: &str, block: u32) -> TrialRecord {
    TrialRecord {
        session: 0,
        load: load.to_owned(),
        arm: arm.to_owned(),
        block,
        phase: Phase::Measurement,
        rate_intended: None,
        slices: Vec::new(),
        errors: Vec::new(),
        status_classes: [0; 6],
        censored: Censored::default(),
        response_time: QuantileSummary::default(),
        service_time: QuantileSummary::default(),
        first_byte: QuantileSummary::default(),
        dispatch_lag: QuantileSummary::default(),
        bad: Vec::new(),
        generators: Vec::new(),
        validity: Vec::new(),
    }
}
