//! Rows about what arms did: while they rested, while nobody was busy, while they changed, and against their settings.

use weir_analysis::findings::{
    FreshArms, IdleLoad, Ineffective, MisreadArm, PhaseChange, PhaseEvidence, RestingActivity,
    RestingArm,
};
use weir_model::study::Metric;
use weir_parameters::{Counter, Hindrance};
use weir_sentences::{
    describe_fresh_arms, describe_idle_load, describe_ineffective, describe_misread,
    describe_phase_evidence, describe_resting_arm, explain_ineffective, explain_inert,
};

use super::Row;
use super::answer::notes::{idle_load, ineffective, inert_arm, inert_level, misread_arm};

pub(super) fn rows() -> Vec<Row> {
    [resting(), idle(), changing(), against_settings()].concat()
}

/// Returns an arm that used CPU time while it rested, as this many others did.
pub(super) fn busy_at_rest(others: u32) -> RestingArm {
    let activity = RestingActivity::UsedCpu { cpus: 0.03 };
    RestingArm { arm: "keepalive".to_owned(), activity, others }
}

/// Returns an arm that closed connections while it rested.
fn closing(connections: u64, timeout: Option<(&str, &str)>) -> RestingArm {
    let activity = RestingActivity::ClosedConnections {
        connections,
        longest_rest_ns: 1_400_000_000,
        timeout: timeout.map(|(id, value)| (id.to_owned(), value.to_owned())),
    };
    RestingArm { arm: "keepalive".to_owned(), activity, others: 0 }
}

fn resting() -> Vec<Row> {
    let timeout = Some(("keepalive_timeout", "1s"));
    vec![
        ("An arm that works while it rests", describe_resting_arm(&busy_at_rest(0))),
        ("Two arms that work while they rest", describe_resting_arm(&busy_at_rest(1))),
        ("Three arms that work while they rest", describe_resting_arm(&busy_at_rest(2))),
        ("An arm that closes connections", describe_resting_arm(&closing(1_337, timeout))),
        (
            "An arm that closes one connection, with an unknown timeout",
            describe_resting_arm(&closing(1, None)),
        ),
    ]
}

fn idle() -> Vec<Row> {
    let uneven = IdleLoad { response_s: (0.0021, 0.0045), ..idle_load() };
    let crowded = IdleLoad { others: Some(0.34), ..idle_load() };
    vec![
        ("Connections that limit the load", describe_idle_load(&idle_load())),
        ("Arms with different response times", describe_idle_load(&uneven)),
        ("Other processes on the proxy's CPUs", describe_idle_load(&crowded)),
    ]
}

/// Returns a change of an arm whose ports ran out.
pub(super) fn phase_change() -> PhaseChange {
    PhaseChange {
        arm: "stock".to_owned(),
        metric: Metric::CpuPerRequest,
        block: 12,
        at_s: 14.4,
        before: 21_300.0,
        after: 53_800.0,
        p: 1e-6,
        evidence: vec![time_wait(Some(28_232))],
        ratios: [None, None],
    }
}

/// Returns a change of an arm's rate, without another difference.
pub(super) fn rate_change() -> PhaseChange {
    PhaseChange {
        metric: Metric::Rate,
        before: 21_300.0,
        after: 84.2,
        evidence: Vec::new(),
        ..phase_change()
    }
}

fn time_wait(local_ports: Option<u64>) -> PhaseEvidence {
    PhaseEvidence::TimeWait { before: 6_400, after: 14_100, local_ports }
}

/// Returns arms that were measured for a short time.
pub(super) fn fresh() -> FreshArms {
    FreshArms { lasted_s: 24.2, arm: "stock".to_owned(), time_wait: 21_700 }
}

fn changing() -> Vec<Row> {
    let all = [
        time_wait(None),
        PhaseEvidence::OriginConnections { before: 0.02, after: 1.0 },
        PhaseEvidence::Reconnections { before: 0.0, after: 0.5 },
    ];
    vec![
        ("An arm whose ports are taken", describe_phase_evidence(&[time_wait(Some(28_232))])),
        ("Taken ports of an unknown number", describe_phase_evidence(&all[..1])),
        ("Another number of connections to the origin", describe_phase_evidence(&all[1..2])),
        ("Another number of reconnections", describe_phase_evidence(&all[2..])),
        ("Several differences", describe_phase_evidence(&all)),
        ("Arms that were seen fresh", describe_fresh_arms(&fresh())),
    ]
}

/// Returns a change with these values of a counter.
fn of_counter(counter: Counter, value: f64, other: f64) -> String {
    describe_ineffective(&Ineffective { counter, value, other, ..ineffective() })
}

fn against_settings() -> Vec<Row> {
    let hindered = Ineffective {
        because: Some(Hindrance {
            id: "http_connection_mode".to_owned(),
            level: "http-server-close".to_owned(),
            because: "no connection to the origin is kept".to_owned(),
        }),
        ..ineffective()
    };
    let mut inert = inert_arm();
    let why = "the proxy may open 1024 files";
    inert.levels.push(inert_level("worker_connections", why));
    let misread = MisreadArm { levels: inert.levels.clone(), ..misread_arm() };
    vec![
        ("Connections that are not kept", describe_ineffective(&ineffective())),
        ("Sessions that are not resumed", of_counter(Counter::ResumedHandshakes, 0.021, 0.02)),
        ("Responses that are not smaller", of_counter(Counter::ReceivedBytes, 1_180.0, 1_181.0)),
        ("A change that another setting hinders", describe_ineffective(&hindered)),
        ("The reason alone, beside a verdict", explain_ineffective(&hindered)),
        ("Reasons why levels are inert", explain_inert(&inert)),
        ("A level that was read as equal and differs", describe_misread(&misread_arm())),
        ("Several levels that were read as equal", describe_misread(&misread)),
    ]
}
