//! An agent that keeps its line and not its word.

use std::os::unix::net::UnixStream;

use super::*;
use crate::message::Describe;

struct Nobody;

impl Served for Nobody {
    fn end(self: Box<Self>) {}
}

#[test]
fn an_agent_that_lives_and_answers_nothing_is_given_up() {
    let (soon, late) = (Duration::from_millis(200), Duration::from_secs(3600));
    must_be_given_up([soon, late], false);
    must_be_given_up([late, soon], true);
}

fn must_be_given_up(patience: [Duration; 2], is_ending: bool) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let hello = serde_json::from_str(r#"{"magic":"weir-agent","protocol":5,"weir":"1"}"#);
    let reader = ours.try_clone().unwrap();
    let client = Client::over("web1", hello.unwrap(), reader, ours, Box::new(Nobody));
    let client = client.until(&Arc::new(AtomicBool::new(is_ending)));
    let client = client.watched(Duration::from_millis(20), patience);
    // It answers what nobody has asked, on and on.
    let mut to = theirs.try_clone().unwrap();
    let talker = std::thread::spawn(move || {
        let reply = serde_json::json!({"id": u64::MAX, "body": {"done": null}});
        while frame::write(&mut to, &reply).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let error = client.ask(Describe).unwrap_err().to_string();
    assert!(error.contains("did not answer a request"), "{error}");
    theirs.shutdown(std::net::Shutdown::Both).unwrap();
    drop(client);
    talker.join().unwrap();
}
