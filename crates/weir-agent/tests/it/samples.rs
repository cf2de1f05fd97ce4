//! Samples of an agent's host, as its client receives them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use weir_agent::message::{SampleEnd, SampleJob};
use weir_agent::{AgentError, Client, Part, local, server};
use weir_model::sample::SampleRow;
use weir_parameters::Catalog;
use weir_sut::Launcher;

/// Starts an agent on a thread of this process.
pub(crate) fn agent() -> Client {
    local::start(server::Options {
        weir: "test".to_owned(),
        launcher: Launcher::new(PathBuf::from("/nowhere/weir")),
        catalog: Catalog::builtin(),
        silence: None,
        stop: Arc::default(),
    })
    .expect("a thread and a pair of sockets")
}

/// Collects the readings of a job and its end. The job is stopped at the first reading.
fn told(agent: &Client, job: SampleJob) -> (Vec<Vec<SampleRow>>, Result<SampleEnd, AgentError>) {
    let (send, parts) = channel();
    let id = agent.begin(job, move |part| drop(send.send(part))).expect("it lives");
    let mut readings = Vec::new();
    loop {
        match parts.recv_timeout(Duration::from_secs(50)).expect("it goes on") {
            Part::Event(rows) => {
                readings.push(rows);
                agent.stop(id);
            }
            Part::End(end) => return (readings, end),
        }
    }
}

fn job(ms: u64) -> SampleJob {
    SampleJob {
        interval: Duration::from_millis(ms),
        generator: true,
        proxies: Vec::new(),
        origin: true,
        external: None,
        requests: false,
    }
}

#[test]
fn samples_are_told_until_they_are_stopped_and_once_more_then() {
    let (readings, end) = told(&agent(), job(60_000));
    assert_eq!(readings.len(), 2);
    let [first, second] =
        [0, 1].map(|index: usize| readings[index].iter().map(|row| row.at_ns).max());
    assert!(first < second);
    for table in ["cpus", "host", "network"] {
        assert!(readings[1].iter().any(|row| row.table == table), "{table}");
    }
    assert!(end.unwrap().cpu_ns > 0);
}

#[test]
fn intervals_and_arms_that_make_no_sense_are_refused() {
    let client = agent();
    let of_arm = SampleJob { proxies: vec![3], ..job(100) };
    let wrong = [(job(0), "samples every"), (job(99), "samples every")];
    for (job, words) in
        wrong.into_iter().chain([(job(60_001), "samples every"), (of_arm, "no arm in slot 3")])
    {
        let (readings, end) = told(&client, job);
        assert_eq!(readings.len(), 0);
        let error = end.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}
