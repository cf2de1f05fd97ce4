//! Studies for tests, put together by hand.

use std::collections::BTreeMap;

use weir_model::study::{
    Arm, ArmRole, BlockSpec, Compare, NetworkSpec, Objective, OriginSpec, ProxyKind, ProxyRole,
    ProxySpec, Settings, Study,
};

/// An arm of the study's own proxy with these settings, compared with the first one.
pub(crate) fn arm(name: &str, role: ArmRole, settings: &[(&str, &str)]) -> Arm {
    Arm {
        name: name.to_owned(),
        role,
        changes: Settings::new(),
        against: 0,
        settings: (settings.iter())
            .map(|(id, level)| ((*id).to_owned(), (*level).to_owned()))
            .collect(),
        proxy: None,
    }
}

/// A study of nginx with these arms and no load.
pub(crate) fn study(arms: Vec<Arm>) -> Study {
    Study {
        name: "s".to_owned(),
        title: String::new(),
        question: "?".to_owned(),
        proxy: ProxySpec {
            kind: ProxyKind::Nginx,
            executable: None,
            role: ProxyRole::ReverseProxy,
            settings: Settings::new(),
            configuration: None,
            external: None,
        },
        origin: OriginSpec::default(),
        loads: Vec::new(),
        arms,
        launchers: BTreeMap::new(),
        compare: Compare::Against,
        blocks: BlockSpec::default(),
        objective: Objective::default(),
        cpus: None,
        published: None,
        left_out: Vec::new(),
        scale: None,
        network: NetworkSpec::default(),
    }
}
