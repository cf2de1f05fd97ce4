//! Findings for rows of the table: those of a run without trials, into which a row writes its own figures.

use std::time::Duration;

use weir_analysis::findings::{
    ArmFindings, Comparison, Findings, LimitFindings, LoadFindings, Verdict,
};
use weir_analysis::fixture::{arm, build_header, run};
use weir_model::record::Validity;
use weir_model::study::{Arm, ArmRole, Metric, ProxyKind, ProxySpec, Study};

/// A study with the findings that a row is about.
pub(super) struct Example {
    pub(super) study: Study,
    pub(super) findings: Findings,
}

impl Example {
    /// Creates an example with these arms under one load. Every arm is equivalent to the one that it is compared with.
    pub(super) fn new(metric: Metric, arms: Vec<Arm>) -> Example {
        let mut header = build_header(arms);
        header.study.objective.metric = metric;
        if metric.response_quantile().is_some() {
            header.study.objective.within = Some(Duration::from_millis(30));
            header.study.loads.swap(0, 1);
        }
        header.study.loads.truncate(1);
        let (_folder, run) = run(&header, Vec::new());
        let mut findings = weir_analysis::analyze(&run);
        findings.complete = true;
        let load = &mut findings.loads[0];
        (load.validity, load.blocks, load.blocks_used) = (Validity::Valid, 30, 30);
        load.comparisons.retain(|comparison| comparison.metric == load.metrics[0]);
        load.metrics = vec![metric];
        load.limits.clear();
        for comparison in &mut load.comparisons {
            comparison.metric = metric;
            set_result(comparison, Verdict::Equivalent, 1.0);
        }
        Example { study: header.study, findings }
    }

    /// Creates an example of stock nginx, stock nginx again, and changes of it with these verdicts and ratios.
    pub(super) fn of_changes(metric: Metric, changes: &[(&str, Verdict, f64)]) -> Example {
        let names = changes.iter().map(|(name, ..)| arm(name, ArmRole::Change, 0));
        let mut example = Example::new(metric, stock().into_iter().chain(names).collect());
        for (name, verdict, ratio) in changes {
            set_result(example.comparison(name), *verdict, *ratio);
        }
        example
    }

    /// Creates an example of nginx and other proxies with these verdicts and ratios.
    pub(super) fn of_proxies(metric: Metric, others: &[(ProxyKind, Verdict, f64)]) -> Example {
        let mut arms = vec![arm("nginx", ArmRole::Baseline, 0)];
        arms.extend(others.iter().map(|(kind, ..)| proxy_arm(*kind)));
        let mut example = Example::new(metric, arms);
        for (kind, verdict, ratio) in others {
            set_result(example.comparison(kind.name()), *verdict, *ratio);
        }
        example
    }

    /// Returns the findings about the first load.
    pub(super) fn load(&mut self) -> &mut LoadFindings {
        &mut self.findings.loads[0]
    }

    /// Returns the comparison of an arm under the first load.
    pub(super) fn comparison(&mut self, name: &str) -> &mut Comparison {
        let mut comparisons = self.load().comparisons.iter_mut();
        comparisons.find(|comparison| comparison.arm == name).expect("a comparison")
    }

    /// Returns the figures of an arm under the first load.
    pub(super) fn arm(&mut self, name: &str) -> &mut ArmFindings {
        self.load().arms.iter_mut().find(|arm| arm.arm == name).expect("the arm")
    }

    /// Adds a load with the findings under the first one, and returns these.
    pub(super) fn add_load(&mut self, name: &str) -> &mut LoadFindings {
        let mut spec = self.study.loads[0].clone();
        name.clone_into(&mut spec.name);
        self.study.loads.push(spec);
        let findings = LoadFindings { load: name.to_owned(), ..self.findings.loads[0].clone() };
        self.findings.loads.push(findings);
        self.findings.loads.last_mut().expect("a load")
    }

    /// Changes the example, and returns the answer.
    pub(super) fn answer_with(mut self, change: impl FnOnce(&mut Example)) -> String {
        change(&mut self);
        self.answer()
    }

    pub(super) fn answer(&self) -> String {
        weir_sentences::answer(&self.study, &self.findings)
    }
}

/// Returns the baseline and the baseline again.
pub(super) fn stock() -> [Arm; 2] {
    [arm("stock", ArmRole::Baseline, 0), arm("stock-again", ArmRole::SameAsBaseline, 0)]
}

/// Returns an arm with a proxy of its own, and with that proxy's name.
fn proxy_arm(kind: ProxyKind) -> Arm {
    let proxy = ProxySpec { kind, ..weir_model::fixture::proxy() };
    Arm { proxy: Some(Box::new(proxy)), ..arm(kind.name(), ArmRole::Change, 0) }
}

/// Sets verdict, ratio and interval of a comparison.
pub(super) fn set_result(comparison: &mut Comparison, verdict: Verdict, ratio: f64) {
    comparison.verdict = verdict;
    (comparison.ratio, comparison.interval) = (ratio, (ratio * 0.98, ratio * 1.02));
    (comparison.n, comparison.minimum_detectable) = (30, 0.012);
}

/// Returns the findings on a limit of 30 ms that one arm has, without any figures.
pub(super) fn limit_without_figures(name: &str) -> LimitFindings {
    let mut header = build_header(vec![arm(name, ArmRole::Baseline, 0)]);
    header.study.objective.metric = Metric::ResponseP99;
    header.study.objective.within = Some(Duration::from_millis(30));
    let (_folder, run) = run(&header, Vec::new());
    weir_analysis::analyze(&run).loads[1].limits.remove(0)
}
