//! A synthetic run: a stock nginx and seven other arms, one closed and one open loop, with realistic figures.
//! Everything is computed, so every test gets the same bytes.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_analysis::conclude;
use weir_analysis::findings::{
    ArmFindings, Basis, Comparison, CountedReason, Findings, HoldUpFindings, LoadFindings, Verdict,
};
use weir_model::environment::Environment;
use weir_model::fixture::{self, settings};
use weir_model::record::{
    EndRecord, Observation, Outcome, ProxyRecord, Record, Remark, RunHeader, Surroundings,
    Validity, ValidityReason,
};
use weir_model::study::{
    Arm, ArmRole, LoadSpec, Metric, ProxySpec, Published, Settings, Study, StudyArrivals,
};
use weir_report::ReportInput;

#[derive(Clone)]
pub(crate) struct Fixture {
    pub(crate) header: RunHeader,
    pub(crate) study_text: String,
    pub(crate) records: Vec<Record>,
    pub(crate) findings: Findings,
    pub(crate) answer: String,
}

impl Fixture {
    /// Returns the run as input of a report, with conclusions drawn from the findings as the test changed them. The
    /// findings are leaked, because the input borrows them.
    pub(crate) fn input(&self) -> ReportInput<'_> {
        let mut findings = self.findings.clone();
        conclude(&self.header.study, &self.records, &mut findings);
        ReportInput {
            header: &self.header,
            study_text: &self.study_text,
            records: &self.records,
            findings: Box::leak(Box::new(findings)),
            answer: self.answer.clone(),
        }
    }
}

const STUDY_TEXT: &str = "\
version: 1
name: stock-reverse-proxy
question: Which well-known settings make a stock nginx reverse proxy carry more?
proxy: nginx
loads:
  - name: closed
    connections: 50
  - name: open
    connections: 200
    rate: 60 % of slowest
arms:
  one_at_a_time:
    keepalive: 64
    access_log: [buffered, \"off\"]
    gzip: \"on\"
    worker_connections: 4096
    proxy_buffering: \"off\"
";

/// Name, changed parameter, its level, and ratios of rate, CPU per request and response time.
type Plan = (&'static str, &'static str, &'static str, [f64; 3]);

#[rustfmt::skip]
const ARMS: [Plan; 8] = [
    ("stock", "", "", [1.0, 1.0, 1.0]),
    ("stock again (A/A)", "", "", [1.004, 0.998, 1.006]),
    ("keepalive to the origin", "upstream_keepalive", "64", [2.612, 0.391, 0.44]),
    ("access_log buffered", "access_log", "buffered", [1.031, 0.968, 0.97]),
    ("access_log off", "access_log", "off", [1.049, 0.951, 0.955]),
    ("gzip", "gzip", "on", [0.942, 1.063, 1.09]),
    ("worker_connections", "worker_connections", "4096", [1.001, 1.002, 0.998]),
    ("proxy_buffering off", "proxy_buffering", "off", [1.012, 0.985, 1.035]),
];

pub(crate) fn run() -> Fixture {
    let study = make_study();
    let findings = Findings {
        loads: vec![closed(&study), open(&study)],
        complete: true,
        ..Findings::default()
    };
    Fixture {
        records: records(&study),
        header: RunHeader {
            run: "stock-reverse-proxy-20261121-061745".to_owned(),
            weir_version: "0.1.0 (d878f56)".to_owned(),
            started_at: "2026-11-21T06:17:45Z".to_owned(),
            folder: "/".into(),
            environment: environment(),
            surroundings: Some(surroundings()),
            remarks: vec![Remark::of_run("generator and origin share CPU 1: there are only two")],
            ..fixture::header(study)
        },
        study_text: STUDY_TEXT.to_owned(),
        findings,
        answer: "Keepalive to the origin carries 2.61 times as much (2.55 to 2.67); of the other \
                 changes only access_log off is a gain above 2 %, and gzip costs 5.8 %."
            .to_owned(),
    }
}

fn make_study() -> Study {
    let base = settings(&[
        ("access_log", "on"),
        ("gzip", "off"),
        ("proxy_buffering", "on"),
        ("upstream_keepalive", "0"),
        ("worker_connections", "768"),
    ]);
    let arms = ARMS.iter().enumerate().map(|(index, (name, id, level, _))| {
        let changes = match *id {
            "" => Settings::new(),
            id => settings(&[(id, level)]),
        };
        let mut all = base.clone();
        all.extend(changes.clone());
        let role = [ArmRole::Baseline, ArmRole::SameAsBaseline, ArmRole::Change][index.min(2)];
        Arm { changes, settings: all, ..fixture::arm(name, role, &[]) }
    });
    let figures = [("stock", 2957.93), ("worker_connections", 6068.41)];
    Study {
        name: "stock-reverse-proxy".to_owned(),
        title: "Stock Debian nginx as a reverse proxy, one change at a time".to_owned(),
        question: "Which well-known settings make a stock nginx reverse proxy carry more?"
            .to_owned(),
        proxy: ProxySpec { settings: base.clone(), ..fixture::proxy() },
        loads: vec![load("closed", StudyArrivals::Closed, 50), {
            load("open", StudyArrivals::ShareOfSlowest(0.6), 200)
        }],
        published: Some(Published {
            source: "a tuning article, stock Ubuntu nginx with static files".to_owned(),
            metric: "mean requests per second of ab -c 40".to_owned(),
            figures: figures.map(|(k, v)| (k.to_owned(), v)).into(),
            by_load: BTreeMap::new(),
            times: Vec::new(),
            gains: Vec::new(),
            dated: BTreeMap::new(),
        }),
        ..fixture::study(arms.collect())
    }
}

fn load(name: &str, arrivals: StudyArrivals, connections: u32) -> LoadSpec {
    let mut load = fixture::load(name, arrivals);
    load.connections = connections;
    load.duration = Duration::from_secs(120);
    load
}

fn environment() -> Environment {
    Environment {
        kernel: "6.12.57+deb13-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.12.57-1".to_owned(),
        distribution: "Debian GNU/Linux 13 (trixie)".to_owned(),
        cpu_model: "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz".to_owned(),
        cpus: "0-1".to_owned(),
        memory_bytes: 8_330_000_000,
        virtualization: "KVM".to_owned(),
        nofile: (20_000, u64::MAX),
        sysctls: settings(&[
            ("net.core.somaxconn", "4096"),
            ("net.ipv4.ip_local_port_range", "32768\t60999"),
            ("net.ipv4.tcp_max_syn_backlog", "512"),
            ("net.ipv4.tcp_tw_reuse", "2"),
        ]),
        versions: settings(&[("nginx", "nginx/1.26.3"), ("weir", "0.1.0 (d878f56)")]),
        program_sums: Vec::new(),
        privileges: "unprivileged".to_owned(),
    }
}

fn surroundings() -> Surroundings {
    let links = [("generator", "proxy"), ("proxy", "origin")].map(|(from, to)| {
        format!(
            r#"{{"from": "{from}", "to": "{to}", "peer": "10.213.0.254:41235", "mtu": 1500,
                "trips": {{"by": "echo", "count": 1000, "p50_ns": 31200, "p99_ns": 88000}},
                "forth": {{"bytes_per_s": 1.47e9, "cpus": 1.71}}, "back": {{"bytes_per_s": 1.52e9, "cpus": 1.68}}}}"#
        )
    });
    let host = r#"{"host": "this host", "roles": ["generator", "proxy", "origin"], "clock": [-1200000, 45000],
        "facts": {"governors": {"powersave": "0-1"}, "siblings": ["0-1"], "nodes": {"0": "0-1"},
            "cards": [{"name": "eth0", "queues": [1, 1], "interrupts": "1", "spreads": true, "node": 0}],
            "held_up": {"proxy": {"times": 1, "late_ns": 300000},
                "generator": {"times": 0, "late_ns": 0, "others_ns": 1200000}},
            "watched_ns": 200000000}}"#;
    let missing = r#"{"what": "links to 2 more addresses", "why": "3 are looked at"}"#;
    let all = format!(
        r#"{{"links": [{}], "hosts": [{host}], "unmeasured": [{missing}]}}"#,
        links.join(", ")
    );
    serde_json::from_str(&all).expect("surroundings")
}

fn records(study: &Study) -> Vec<Record> {
    let proxies = study.arms.iter().zip(20_000..).map(|(arm, port)| {
        let mut effective = arm.settings.clone();
        // One arm that does not have what it asks for: the report must say so.
        if arm.name == "proxy_buffering off" {
            effective.insert("proxy_buffering".to_owned(), "on".to_owned());
        }
        Record::Proxy(ProxyRecord {
            pid: 0,
            session: 0,
            program: String::new(),
            arm: arm.name.clone(),
            address: format!("127.0.0.1:{port}"),
            effective,
            nofile: 20_000,
            inert: Vec::new(),
            asked: Vec::new(),
            objects: Vec::new(),
        })
    });
    let mut records: Vec<Record> = proxies.collect();
    records.push(Record::End(EndRecord::new("2026-11-21T06:22:31Z", Outcome::Complete)));
    records
}

/// A small pseudo-random generator of numbers 0..1 (Numerical Recipes' LCG).
pub(crate) struct Noise(pub(crate) u32);

impl Noise {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0 >> 8) / f64::from(1_u32 << 24)
    }

    /// Returns a roughly normal number, mean 0, standard deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// Returns a time with a body that grows slowly and a tail that grows with the logarithm of `x`, 1/(1-q).
fn response_ns(p50: f64, x: f64) -> f64 {
    p50 * (0.55 + 0.45 * x.log2().min(2.0)) + p50 * 0.35 * x.ln().powf(1.7) / 3.0
}

/// Returns the findings of a plan's arm with this rate, median response time and CPU time per request.
fn arm(plan: &Plan, role: ArmRole, [rate, p50, cpu]: [f64; 3], seed: u32) -> ArmFindings {
    let mut noise = Noise(seed);
    let keeps = plan.1 == "upstream_keepalive";
    let curve: Vec<(f64, u64)> = (0..=68)
        .map(|step| 2_f64.powf(f64::from(step) / 4.0))
        .map(|x| (x, (response_ns(p50, x) * (1.0 + 0.01 * noise.normal())) as u64))
        .scan(0, |largest, (x, ns)| {
            *largest = ns.max(*largest);
            Some((x, *largest))
        })
        .collect();
    let over_time = (0..118).map(|block| {
        let slow = if block == 70 { 3.2 } else { 1.0 };
        let wave = 1.0 + 0.05 * (f64::from(block) / 17.0).sin() + 0.03 * noise.normal();
        let second = f64::from(block) * 1.02;
        (second, rate * wave / slow, Some((p50 * slow / wave) as u64))
    });
    let quantiles = [2.0, 10.0, 100.0, 1000.0, 131_072.0].map(|x| response_ns(p50, x) as u64);
    ArmFindings {
        unanswered: 0.0,
        arm: plan.0.to_owned(),
        role,
        rate_completed: rate,
        rate_offered: rate * 1.0001,
        received_per_second: Some(rate * 1240.0),
        cpu_per_request_ns: Some(cpu),
        response_ns: quantiles,
        tails: Vec::new(),
        service_ns: quantiles.map(|ns| ns * 9 / 10),
        dispatch_lag_ns: [4_100, 9_800, 31_000, 88_000, 412_000],
        samples: (rate * 12.0) as u64,
        connections: None,
        origin_connects_per_request: Some(if keeps { 0.0004 } else { 1.0 }),
        counters: BTreeMap::new(),
        interrupts: None,
        failures: u64::from(keeps) * 2,
        censored: 0,
        percentile_curve: curve,
        over_time: over_time.collect(),
    }
}

/// Returns a comparison as the analysis would judge it, with a band of 2 %.
pub(crate) fn comparison(metric: Metric, arm: &str, ratio: f64, half: f64) -> Comparison {
    let (low, high) = (ratio * (1.0 - half), ratio * (1.0 + half));
    let inside = low > 1.0 / 1.02 && high < 1.02;
    let (verdict, basis) = match (inside, low > 1.0, high < 1.0) {
        (true, ..) => (Verdict::Equivalent, Basis::WithinBand),
        (_, false, false) => (Verdict::Inconclusive, Basis::ContainsOne),
        (_, up, _) if up == metric.higher_is_better() => (Verdict::Better, Basis::ExcludesOne),
        _ => (Verdict::Worse, Basis::ExcludesOne),
    };
    let p = match verdict {
        Verdict::Better | Verdict::Worse => 0.000_03,
        _ => 0.31,
    };
    Comparison {
        metric,
        arm: arm.to_owned(),
        against: "stock".to_owned(),
        n: 118,
        merged: 1,
        requests: None,
        family: 1,
        autocorrelation: 0.08,
        ratio,
        pooled: ratio,
        interval: (low, high),
        confidence: 0.9503,
        p,
        p_holm: (p * 6.0).min(1.0),
        look: None,
        minimum_detectable: half * 1.43,
        verdict,
        because: basis.into(),
    }
}

fn comparisons(metrics: &[Metric]) -> Vec<Comparison> {
    let mut all = Vec::new();
    for &metric in metrics {
        for (name, _, _, [rate, cpu, response]) in &ARMS[1..] {
            let (ratio, half) = match metric {
                Metric::Rate | Metric::ReceivedBytes => (*rate, 0.0131),
                Metric::CpuPerRequest => (*cpu, 0.0112),
                Metric::ResponseP50 => (*response, 0.019),
                Metric::ResponseP99 => (response.powf(1.2), 0.094),
            };
            all.push(comparison(metric, name, ratio, half));
        }
    }
    all
}

/// Returns the findings under a load. `figures` converts an arm's ratios to rate, median response time and CPU time.
fn found(
    study: &Study,
    metrics: &[Metric],
    figures: fn([f64; 3]) -> [f64; 3],
    seed: u32,
) -> LoadFindings {
    let arms = ARMS
        .iter()
        .zip(&study.arms)
        .zip(seed..)
        .map(|((plan, own), seed)| arm(plan, own.role, figures(plan.3), seed));
    LoadFindings {
        phases: Vec::new(),
        fresh: None,
        hold_ups: None,
        idle: None,
        rests: Vec::new(),
        ineffective: Vec::new(),
        left_out: Vec::new(),
        load: "closed".to_owned(),
        rate_intended: None,
        slice_ns: 100_000_000,
        blocks: 120,
        blocks_used: 118,
        arms: arms.collect(),
        comparisons: comparisons(metrics),
        metrics: metrics.to_vec(),
        limits: Vec::new(),
        pairs: Vec::new(),
        rankings: Vec::new(),
        looks: Vec::new(),
        validity: Validity::Valid,
        reasons: Vec::new(),
    }
}

fn closed(study: &Study) -> LoadFindings {
    found(
        study,
        &[Metric::Rate, Metric::CpuPerRequest],
        |[rate, cpu, _]| [11_234.0 * rate, 4.2e6 / rate, 81_300.0 * cpu],
        1,
    )
}

fn open(study: &Study) -> LoadFindings {
    use Metric::{CpuPerRequest, ResponseP50, ResponseP99};
    let figures = |[_, cpu, response]: [f64; 3]| [6_350.0, 640_000.0 * response, 92_800.0 * cpu];
    let steal = Observation::ProxySteal { share: 0.251 };
    let busy = Observation::GeneratorBusy { share: 0.97, is_open: true };
    LoadFindings {
        load: "open".to_owned(),
        rate_intended: Some(6_350.0),
        slice_ns: 250_000_000,
        blocks: 60,
        blocks_used: 57,
        hold_ups: Some(HoldUpFindings { slices: 44, of: 480, left_out: true, more_often_of: None }),
        validity: Validity::Suspect,
        reasons: vec![
            reason(Validity::Invalid, steal, &["gzip", "stock"], 3),
            reason(Validity::Suspect, busy, &["keepalive to the origin"], 41),
        ],
        ..found(study, &[ResponseP99, ResponseP50, CpuPerRequest], figures, 101)
    }
}

fn reason(
    validity: Validity,
    observation: Observation,
    arms: &[&str],
    trials: u32,
) -> CountedReason {
    CountedReason {
        reason: ValidityReason { validity, subject: None, observation },
        arms: arms.iter().map(|arm| (*arm).to_owned()).collect(),
        trials,
        of: 480,
    }
}
