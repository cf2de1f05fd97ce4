//! An agent that answers pings but not the request.

use std::os::unix::net::UnixStream;

use super::*;
use crate::message::{Ask, Describe, Incoming, LoadJob};

struct Nobody;

impl Served for Nobody {
    fn end(self: Box<Self>, _: Duration) {}
}

#[test]
fn an_agent_that_lives_and_answers_nothing_is_given_up() {
    let (soon, late) = (Duration::from_millis(200), Duration::from_secs(3600));
    let agent = Agent::AnswersPings;
    for words in [
        given_up(([soon, late], false), Describe, agent),
        given_up(([late, soon], true), Describe, agent),
        given_up(([late, soon], true), LoadJob::default(), agent),
    ] {
        assert!(words.contains("did not answer a request"), "{words}");
    }
}

/// Nor does what nobody has asked for keep it alive.
#[test]
fn an_answer_that_nobody_waits_for_is_an_error() {
    let late = Duration::from_secs(3600);
    let agent = Agent::AnswersOthers;
    let words = given_up(([late, late], false), Describe, agent);
    assert!(words.contains("which waits for no answer"), "{words}");
}

#[test]
fn a_load_is_waited_for_as_long_as_it_takes() {
    let late = Duration::from_secs(3600);
    let longest = LoadJob::default().ask().longest();
    assert!(longest.is_some_and(|longest| longest < Duration::from_secs(60)));
    let longest = [Some(Duration::ZERO), longest, Describe.ask().longest()];
    let limits = longest.map(|longest| {
        let waiting = Waiting::now(Box::new(drop), longest);
        std::thread::sleep(Duration::from_millis(1));
        waiting.overdue(None, [late, Duration::ZERO])
    });
    assert_eq!(limits, [Some(Duration::ZERO), None, None]);
}

/// An agent that does not answer what it is asked.
#[derive(Clone, Copy)]
enum Agent {
    AnswersPings,
    AnswersOthers,
}

/// Returns what is said of the agent in the end.
fn given_up<Q: Question>(
    (patience, is_ending): ([Duration; 2], bool),
    question: Q,
    agent: Agent,
) -> String {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let hello = serde_json::from_str(r#"{"magic":"weir-agent","protocol":5,"weir":"1"}"#);
    let reader = ours.try_clone().unwrap();
    let client = Client::over("web1", hello.unwrap(), reader, ours, Box::new(Nobody))
        .until(&Arc::new(AtomicBool::new(is_ending)))
        .watched(Duration::from_millis(20), patience);
    let mut to = theirs.try_clone().unwrap();
    let talker = std::thread::spawn(move || {
        while let Ok(Some(asked)) = frame::read::<Incoming>(&mut to) {
            let id = match (agent, asked.understand()) {
                (Agent::AnswersOthers, _) => u64::MAX,
                (Agent::AnswersPings, Ok(Ask::Ping(_))) => asked.id,
                _ => continue,
            };
            let reply = serde_json::json!({"id": id, "body": {"done": null}});
            let _ = frame::write(&mut to, &reply);
        }
    });
    let (send, ends) = channel();
    let begun = client.begin(question, move |part: Part<Q>| {
        if let Part::End(Err(error)) = part {
            let _ = send.send(error.to_string());
        }
    });
    begun.unwrap();
    let words = ends.recv_timeout(Duration::from_secs(30)).unwrap();
    theirs.shutdown(std::net::Shutdown::Both).unwrap();
    drop(client);
    talker.join().unwrap();
    words
}
