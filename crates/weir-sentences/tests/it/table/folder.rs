//! Sentences by which a run folder explains itself, and verdicts in a few words.

use weir_analysis::findings::{Findings, Verdict};
use weir_analysis::fixture::build_header;
use weir_model::limit::Limit;
use weir_model::record::{ChangedSetting, NetworkUsed, Outcome, RunHeader, SettingEnd};
use weir_model::study::Metric;
use weir_sentences::brief::describe_briefly;
use weir_sentences::folder::{
    describe_end, describe_file, describe_outcome, explain_arms, explain_changes, introduce,
};

use super::Row;
use super::example::Example;

fn make_header(arms: usize) -> RunHeader {
    let example = Example::of_changes(Metric::Rate, &[("gzip", Verdict::Better, 1.2)]);
    let mut header = build_header(example.study.arms);
    header.study.arms.truncate(arms);
    header
}

fn setting(end: SettingEnd) -> ChangedSetting {
    ChangedSetting {
        name: "net.core.somaxconn".to_owned(),
        before: Some("4096".to_owned()),
        given: vec!["128".to_owned()],
        end,
    }
}

pub(super) fn rows() -> Vec<Row> {
    let capacity = {
        let mut header = make_header(3);
        header.study.capacity = Limit::parse_all("p99 < 30ms").expect("a limit");
        header
    };
    let in_namespaces =
        RunHeader { network: NetworkUsed::Namespaces { mtu: 1500 }, ..make_header(3) };
    let put_back = setting(SettingEnd::PutBack);
    let left_alone = setting(SettingEnd::LeftAlone { found: "512".to_owned() });
    let failed = SettingEnd::Failed { why: "Operation not permitted".to_owned() };
    let complete = Some(Outcome::Complete);
    vec![
        ("A comparison", introduce(&make_header(3))),
        ("One arm", introduce(&make_header(1))),
        ("A search for capacities", introduce(&capacity)),
        ("Arms on the host's network", explain_arms(&make_header(3))),
        ("Arms in namespaces", explain_arms(&in_namespaces)),
        ("No end", explain_changes(&[], None)),
        ("Nothing changed outside", explain_changes(&[], complete)),
        ("All put back", explain_changes(&[&put_back], complete)),
        ("One left", explain_changes(&[&put_back, &left_alone], complete)),
        ("A setting that was put back", describe_end(&put_back.end)),
        ("A setting that was left alone", describe_end(&left_alone.end)),
        ("A setting that is gone", describe_end(&SettingEnd::Gone)),
        ("A setting that could not be put back", describe_end(&failed)),
        ("A session without an end", describe_outcome(None).to_owned()),
        ("An interrupted session", describe_outcome(Some(Outcome::Interrupted)).to_owned()),
        ("The records", describe_file("records.jsonl").to_owned()),
        ("A configuration", describe_file("arms/stock/nginx.conf").to_owned()),
        ("Samples", describe_file("samples/host.csv").to_owned()),
    ]
}

fn brief(changes: &[(&str, Verdict, f64)]) -> String {
    let example = Example::of_changes(Metric::Rate, changes);
    describe_briefly(&example.study, &example.findings)
}

pub(super) fn brief_rows() -> Vec<Row> {
    use Verdict::{Better, Equivalent, Inconclusive, Worse};
    let mut alone = Example::of_changes(Metric::Rate, &[]);
    alone.study.arms.truncate(1);
    let many = [
        ("keepalive", Better, 1.5),
        ("gzip", Worse, 0.94),
        ("backlog", Equivalent, 1.0),
        ("sendfile", Equivalent, 1.0),
        ("tcp_nodelay", Equivalent, 1.0),
        ("reuseport", Inconclusive, 1.01),
    ];
    vec![
        ("One change", brief(&many[..1])),
        ("Many changes", brief(&many)),
        ("Two equivalent changes", brief(&many[2..4])),
        ("One arm", describe_briefly(&alone.study, &alone.findings)),
        ("Nothing to use", describe_briefly(&alone.study, &Findings::default())),
    ]
}
