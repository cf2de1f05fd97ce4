//! No file of the user's is touched, however a run ends.

use rustix::process::Signal;

use crate::place::Place;
use crate::program::Running;
use crate::run_own::{User, study};

const FILES: [(&str, &str); 2] = [
    (
        "nginx.conf",
        "worker_processes 1;\nevents {}\nhttp {\n    include site.conf;\n}\n",
    ),
    (
        "site.conf",
        "server {\n    listen 18080;\n    location / {\n        proxy_pass http://192.0.2.1;\n    }\n}\n",
    ),
];

const ARMS: &str = "- {name: off, settings: {keepalive_requests: 5}}\n";

fn begun(place: &Place) -> (User, Running) {
    let user = User::new(place, &FILES);
    let main = user.path(FILES[0].0);
    let proxy = format!("{{kind: nginx, configuration: {}}}", main.display());
    let text = study(&proxy, ARMS).replace("duration: 2s", "duration: 60s");
    let mut run = place.run(&text);
    run.wait_until("a block", |_| {
        place.records_with(r#""record":"trial""#) >= 2
    });
    (user, run)
}

#[test]
fn when_it_is_interrupted() {
    let place = Place::new();
    let (user, run) = begun(&place);
    run.signal(Signal::INT);
    run.end().with_code(130);
    place.assert_clean();
    user.assert_untouched();
}

#[test]
fn when_weir_is_killed() {
    let place = Place::new();
    let (user, run) = begun(&place);
    let proxies = place.proxies();
    run.signal(Signal::KILL);
    assert_eq!(run.end().code, None);
    place.await_end_of(&proxies);
    user.assert_untouched();
}

#[test]
fn when_a_proxy_is_killed() {
    let place = Place::new();
    let (user, run) = begun(&place);
    let master = place.masters()[0];
    let pid = rustix::process::Pid::from_raw(master.cast_signed()).expect("a number");
    rustix::process::kill_process(pid, Signal::KILL).expect("it lives");
    let stderr = run.end().with_code(1).stderr;
    assert!(stderr.contains("ended during the run"), "{stderr}");
    place.assert_clean();
    user.assert_untouched();
}
