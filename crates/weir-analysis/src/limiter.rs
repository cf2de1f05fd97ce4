//! Limiter of each arm: samples of times in which it alone had the load, judged by the rules of weir-limits.
//!
//! `stretches` finds those times in the records, and `trial` collects the generator's figures for them. Side by side a
//! slice is often shorter than the time between two samples, so the host's CPU time cannot be attributed to an arm:
//! such a run has a stretch of each arm after its plan.

use std::collections::{BTreeMap, BTreeSet};

use weir_limits::{
    Absent, Evidence, Figure, Finding, HostSamples, Input, Judgement, Quantities, Role, Rules,
    Trial, Window, judge, over_time, workers,
};
use weir_model::quantity::CpuSet;
use weir_model::record::{ConfirmationRecord, Record, RunHeader, SearchStage};
use weir_model::sample::{Counters, SampleRow};
use weir_model::study::{Arm, ProxyKind, Reduction};
use weir_parameters::Catalog;
use weir_record::{Run, Samples};

use crate::findings::{Capacity, Comparison, LimiterFindings, Verdict};
use hints::HintedArm;
use stretches::Span;

mod growth;
mod hints;
mod load;
mod stretches;
mod trial;
mod unjudged;

pub(crate) use growth::{CarriedWindow, find as grown, windows};

pub use load::find_load_limiter;
pub use unjudged::{Source, Unjudged, find_unjudged};

/// Distance from the edge, as a share, within which a rate of a search counts as being at the edge.
const AT_EDGE: f64 = 0.12;
/// Maximum number of times at the edge that are judged; the nearest ones are taken.
const JUDGED: usize = 5;
/// Maximum rate of a low load, as a share of the rate that is judged.
const LOW: f64 = 0.6;
/// Length of the end of a long time that is judged, nanoseconds, so that a limit that takes effect only after a while
/// shows.
const LAST_NS: u64 = 20_000_000_000;

/// Share of a withdrawn resource that must be missing from the carried rate to prove a limit: half, because time spent
/// on other things is not withdrawn.
const LEAST_MISSING_SHARE: f64 = 0.5;

/// Returns true if a comparison proves a limit: an arm that got more of the resource carries more, or an arm that lacks
/// a part of it carries about as much less.
pub fn is_proof(taken: Option<Reduction>, found: &Comparison) -> bool {
    match taken {
        None => found.verdict == Verdict::Better,
        Some(taken) => {
            found.verdict == Verdict::Worse
                && found.ratio <= 1.0 - LEAST_MISSING_SHARE * taken.share()
        }
    }
}

/// Finds the limiter of each arm under each load; leaves out arms of which no time was sampled.
pub(crate) fn find(run: &Run, capacities: &[Capacity]) -> Vec<LimiterFindings> {
    if run.samples.rows.is_empty() {
        return Vec::new();
    }
    let study = &run.header.study;
    study
        .loads
        .iter()
        .flat_map(|load| study.arms.iter().map(move |arm| (load, arm)))
        .filter_map(|(load, arm)| {
            let capacity = capacities.iter().find(|capacity| capacity.answer.arm == arm.name);
            let spans = stretches::of(run, load, &arm.name);
            let edge = match capacity {
                Some(capacity) => edge_of_search(&spans, capacity),
                None => most_load(&spans),
            };
            Judge::of(run, arm).most(edge, &spans)
        })
        .collect()
}

/// Returns the times that show the edge of a capacity, the most telling first: the times that broke nearest to it; if
/// there are none, closed loops, which always have more to do than they can; else the longest hold.
fn edge_of_search<'a, 'r>(spans: &'a [Span<'r>], found: &Capacity) -> Vec<&'a Span<'r>> {
    let edge = if found.claimed {
        found.answer.high
    } else {
        spans
            .iter()
            .filter(|span| span.saturated)
            .filter_map(|span| span.rate)
            .fold(f64::INFINITY, f64::min)
    };
    let mut broke: Vec<&Span<'_>> = spans
        .iter()
        .filter(|span| !matches!(span.stage, Some(SearchStage::Burst)))
        .filter(|span| span.saturated && distance(span, edge) <= AT_EDGE)
        .collect();
    broke.sort_by(|a, b| distance(a, edge).total_cmp(&distance(b, edge)));
    broke.truncate(JUDGED);
    let fallbacks = [
        spans.iter().filter(|span| span.rate.is_none()).collect(),
        spans
            .iter()
            .max_by_key(|span| (span.stage == Some(SearchStage::Hold), span.length_ns()))
            .into_iter()
            .collect(),
    ];
    [broke]
        .into_iter()
        .chain(fallbacks)
        .find(|some: &Vec<&Span<'_>>| !some.is_empty())
        .unwrap_or_default()
}

/// Returns the distance of a time's rate from the edge, as a logarithm; infinite without a rate.
fn distance(span: &Span<'_>, edge: f64) -> f64 {
    span.rate.map_or(f64::INFINITY, |rate| (rate / edge).ln().abs())
}

/// Returns the time with the highest rate, the latest of equal ones.
fn most_load<'a, 'r>(spans: &'a [Span<'r>]) -> Vec<&'a Span<'r>> {
    let most = spans.iter().max_by(|a, b| {
        let [a, b] = [a, b].map(|span| span.rate.unwrap_or(f64::INFINITY));
        a.total_cmp(&b)
    });
    most.into_iter().collect()
}

/// Judge of the times of an arm.
struct Judge<'r> {
    run: &'r Run,
    arm: &'r Arm,
    kind: Option<ProxyKind>,
    /// True if weir started the proxy, so that it has the CPUs of the run.
    is_started: bool,
    settings: BTreeMap<String, String>,
}

impl<'r> Judge<'r> {
    fn of(run: &'r Run, arm: &'r Arm) -> Judge<'r> {
        let proxy = run.header.study.proxy_of(arm);
        let kind = proxy.kind;
        Judge {
            run,
            arm,
            is_started: proxy.is_started(),
            kind: Some(kind)
                .filter(|kind| *kind != ProxyKind::External)
                .or_else(|| kind_by_name(&run.samples, &arm.name)),
            settings: trial::settings(run, arm),
        }
    }

    /// Judges several times and returns the first of those with the most frequent result.
    fn most(&self, edge: Vec<&Span<'r>>, all: &[Span<'r>]) -> Option<LimiterFindings> {
        let results: Vec<LimiterFindings> =
            edge.into_iter().filter_map(|span| self.judge_span(span, all)).collect();
        let limiters: Vec<Option<&str>> = results
            .iter()
            .map(|result| result.judgement.findings.first().map(|first| &*first.limiter))
            .collect();
        let votes: Vec<usize> = limiters
            .iter()
            .map(|limiter| limiters.iter().filter(|other| *other == limiter).count())
            .collect();
        let most = *votes.iter().max()?;
        let judged = (results.len() as u32, most as u32);
        let first = votes.iter().position(|count| *count == most)?;
        let mut result = results.into_iter().nth(first)?;
        result.judged = judged;
        Some(result)
    }

    /// Judges one time; `None` if it has no samples.
    fn judge_span(&self, span: &Span<'r>, all: &[Span<'r>]) -> Option<LimiterFindings> {
        let low = self.low(span, all);
        let hosts = [Some(span), low].map(|span| span.map(|span| self.hosts(span)));
        let [Some(hosts), low_hosts] = hosts else {
            return None;
        };
        if hosts.iter().all(|host| host.rows.is_empty()) {
            return None;
        }
        let crossing = crosses_link(&hosts);
        let trials = [Some(span), low].map(|span| {
            span.map(|span| {
                let mut trial = trial::of(self.run, span, &self.settings);
                trial.figures.extend(crossing);
                trial
            })
        });
        let low_window = match (low, &low_hosts, &trials[1]) {
            (Some(span), Some(hosts), Some(trial)) => Some(self.window(span, hosts, trial)),
            _ => None,
        };
        let own_window = self.window(span, &hosts, trials[0].as_ref()?);
        let quantities = Quantities::builtin();
        let mut evidence =
            Evidence::of(quantities, Counters::builtin(), &own_window, low_window.as_ref());
        if !self.is_started {
            leave_out_cpu(&mut evidence);
        }
        let mut judgement: Judgement = judge(&evidence, Rules::builtin(), self.kind);
        if let Some(kind) = self.kind {
            let arm = HintedArm {
                kind,
                role: &self.run.header.study.proxy_of(self.arm).role,
                settings: &self.settings,
            };
            for finding in &mut judgement.findings {
                arm.leave_out_misfits(finding, &evidence);
            }
        }
        let pods = self.run.header.places.proxy_pods.clone();
        place_turns(&mut judgement.findings, pods.is_some());
        Some(LimiterFindings {
            load: span.load.to_owned(),
            arm: self.arm.name.clone(),
            pods,
            stretch: span.to_stretch(),
            low: low.map(Span::to_stretch),
            judged: (1, 1),
            confirmations: self.confirmations(span.load),
            judgement,
            evidence,
            series: over_time(quantities, Counters::builtin(), &own_window),
            workers: workers(Counters::builtin(), &own_window),
        })
    }

    fn window<'w>(
        &'w self,
        span: &Span<'_>,
        hosts: &'w [HostSamples],
        trial: &'w Trial,
    ) -> Window<'w> {
        Window { hosts, from_ns: span.from_ns, until_ns: span.until_ns, arm: &self.arm.name, trial }
    }

    fn confirmations(&self, load: &str) -> Vec<ConfirmationRecord> {
        let records = self.run.records.iter().filter_map(|record| match record {
            Record::Confirmation(confirmation)
                if confirmation.arm == self.arm.name && confirmation.load == load =>
            {
                Some(confirmation)
            }
            _ => None,
        });
        records.cloned().collect()
    }

    /// Returns the longest time at a low load.
    fn low<'a>(&self, span: &Span<'r>, all: &'a [Span<'r>]) -> Option<&'a Span<'r>> {
        all.iter()
            .filter(|other| {
                let rates = other.rate.zip(span.rate.or(span.completed));
                !other.saturated && rates.is_some_and(|(low, rate)| low <= LOW * rate)
            })
            .max_by_key(|span| span.length_ns())
    }

    /// Returns the samples of a time, by host.
    fn hosts(&self, span: &Span<'_>) -> Vec<HostSamples> {
        // Nobody has told a server that weir did not start which ones to use.
        by_host(&self.run.samples, (span.from_ns, span.until_ns), &|role| {
            let is_free = role == Role::Proxy && !self.is_started;
            (!is_free).then(|| self.cpus(role))
        })
    }

    fn cpus(&self, role: Role) -> Vec<u64> {
        let header: &RunHeader = &self.run.header;
        let cpus: &CpuSet = match role {
            Role::Generator => &header.cpus.generator,
            Role::Proxy => self.arm.cpus(&header.cpus),
            Role::Origin => &header.cpus.origin,
        };
        cpus.cpus().iter().map(|cpu| *cpu as u64).collect()
    }
}

/// Returns true if a parameter belongs to pods.
pub fn is_of_pods(parameter: &str) -> bool {
    let catalog = Catalog::builtin();
    let mut all = catalog.workload_parameters();
    all.any(|row| row.id == parameter)
}

/// Moves the parameters of pods to the front if the proxy runs in pods; removes them if it does not.
fn place_turns(findings: &mut [Finding], is_in_pods: bool) {
    for finding in findings {
        let (of_pods, remaining): (Vec<_>, Vec<_>) = finding
            .turn
            .drain(..)
            .zip(finding.ways.drain(..))
            .partition(|(parameter, _)| is_of_pods(parameter));
        (finding.turn, finding.ways) =
            of_pods.into_iter().filter(|_| is_in_pods).chain(remaining).collect();
    }
}

/// Removes the CPU use of a server that weir did not start, unless the use by other processes is known: its own share
/// is then unknown.
fn leave_out_cpu(evidence: &mut Evidence) {
    if evidence.value("cpu_others").is_none() && evidence.quantities.remove("cpu").is_some() {
        let unknown = Absent::NotGiven(Input::Quantity("cpu_others".to_owned()));
        evidence.absent.insert("cpu".to_owned(), unknown);
    }
}

/// Returns 1 if the load came from another host than the proxy's, else 0; `None` if no proxy was sampled.
fn crosses_link(hosts: &[HostSamples]) -> Option<(Figure, f64)> {
    let mut proxies = hosts.iter().filter(|host| host.roles.contains(&Role::Proxy)).peekable();
    proxies.peek()?;
    let is_here = proxies.any(|host| host.roles.contains(&Role::Generator));
    Some((Figure::CrossesLink, if is_here { 0.0 } else { 1.0 }))
}

/// Determines the kind of a proxy that weir did not start from the names of its processes; `None` if they are of
/// another program, or of several.
fn kind_by_name(samples: &Samples, arm: &str) -> Option<ProxyKind> {
    let mut kinds = samples
        .rows
        .iter()
        .map(|sample| &sample.row)
        .filter(|row| {
            let role = row.keys.first();
            row.table == "processes"
                && role.is_some_and(|role| role == Role::Proxy.name())
                && (row.arm.is_empty() || row.arm == arm)
        })
        .map(|row| ProxyKind::of_process(row.keys.last()?));
    let first = kinds.next()??;
    kinds.all(|kind| kind == Some(first)).then_some(first)
}

/// Collects the samples between two moments, by host. `cpus` returns the CPUs that a role may use, or `None` for all.
fn by_host(
    samples: &Samples,
    (from_ns, until_ns): (u64, u64),
    cpus: &dyn Fn(Role) -> Option<Vec<u64>>,
) -> Vec<HostSamples> {
    let mut hosts: BTreeMap<&str, HostSamples> = BTreeMap::new();
    let mut read = BTreeSet::new();
    for sample in &samples.rows {
        let host = hosts.entry(&sample.host).or_default();
        read.insert(&*sample.host);
        note_role(host, &sample.row);
        if (from_ns..=until_ns).contains(&sample.row.at_ns) {
            host.rows.push(sample.row.clone());
        }
    }
    // A pod that was there at another time is no part of this one; of one that was never read it is known why.
    hosts.retain(|_, host| !host.rows.is_empty());
    for (name, missing) in &samples.missing {
        if !read.contains(&**name) && missing.role == Role::Proxy.name() {
            hosts.entry(name).or_default().roles = vec![Role::Proxy];
        }
    }
    for (name, host) in &mut hosts {
        let missing = samples.missing.iter().filter(|(of, _)| of == name);
        host.missing = missing.map(|(_, missing)| missing.clone()).collect();
        let roles = host.roles.iter();
        host.cpus = roles.filter_map(|role| Some((*role, cpus(*role)?))).collect();
    }
    hosts.into_values().collect()
}

/// Adds the role to a host whose processes were sampled there.
fn note_role(host: &mut HostSamples, row: &SampleRow) {
    let role_index = Counters::builtin()
        .table("processes")
        .and_then(|table| table.keys().position(|key| key == "role"));
    if row.table != "processes" {
        return;
    }
    let name = role_index.and_then(|role_index| row.keys.get(role_index));
    let roles = [Role::Generator, Role::Proxy, Role::Origin];
    if let Some(role) = roles.into_iter().find(|role| name.is_some_and(|name| name == role.name()))
        && !host.roles.contains(&role)
    {
        host.roles.push(role);
    }
}

#[cfg(test)]
mod tests {
    use weir_record::Sample;

    use super::*;

    #[test]
    fn a_proxy_that_weir_did_not_start_is_known_by_its_processes() {
        for (processes, kind) in [
            (&["nginx", "nginx"][..], Some("nginx")),
            (&["apache2"], Some("httpd")),
            (&["nginx", "haproxy"], None),
            (&["node"], None),
            (&[], None),
        ] {
            let rows = processes.iter().map(|name| Sample {
                host: "here".to_owned(),
                row: SampleRow {
                    table: "processes".to_owned(),
                    keys: ["proxy", "7", name].map(str::to_owned).to_vec(),
                    ..SampleRow::default()
                },
            });
            let samples = Samples { rows: rows.collect(), ..Samples::default() };
            let kind_name = kind_by_name(&samples, "shop").map(ProxyKind::name);
            assert_eq!(kind_name, kind, "{processes:?}");
        }
    }
}
