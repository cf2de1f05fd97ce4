//! Delays and stalls. Nothing here depends on speed: times have lower bounds, and upper bounds only if an hour would be
//! as wrong as a minute.

use std::time::{Duration, Instant};

use weir_model::study::DelaySpec;
use weir_origin::Stall;

use crate::client::{Client, any, await_counters, start};

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_response_waits_for_its_delay() {
    let origin = start(|config| config.delay = DelaySpec::Fixed(30 * MS));
    let mut client = Client::new(&origin);
    for _ in 0..3 {
        let begun = Instant::now();
        client.get();
        assert!(begun.elapsed() >= 30 * MS, "{:?}", begun.elapsed());
    }
}

#[test]
fn requests_of_different_connections_wait_side_by_side() {
    let origin = start(|config| config.delay = DelaySpec::Fixed(200 * MS));
    let begun = Instant::now();
    let mut clients: Vec<Client> = (0..100).map(|_| Client::new(&origin)).collect();
    for client in &mut clients {
        client.send(b"GET / HTTP/1.0\r\n\r\n");
    }
    for client in &mut clients {
        client.receive(false);
        assert_eq!(client.until_closed(), b"");
    }
    assert!(begun.elapsed() >= 200 * MS);
    assert!(begun.elapsed() < 100 * 200 * MS, "not one after the other");
}

#[test]
fn delayed_responses_of_one_connection_stay_in_order() {
    let spec = DelaySpec::Uniform(Duration::ZERO, 20 * MS);
    let origin = start(|config| config.delay = spec);
    let mut client = Client::new(&origin);
    // Far more than may wait at once.
    let requests = b"GET / HTTP/1.1\r\n\r\nHEAD / HTTP/1.1\r\n\r\n".repeat(300);
    client.send(&requests);
    for _ in 0..300 {
        assert_eq!(client.receive(false).1.content_bytes, 1024);
        assert_eq!(client.receive(true).1.content_bytes, 0);
    }
    client.send(b"GET / HTTP/1.1\r\n\r\nnonsense\r\n");
    assert_eq!(client.receive(false).1.status, 200);
    assert_eq!(client.receive(false).1.status, 400);
    assert_eq!(client.until_closed(), b"");
    assert_eq!(origin.counters(0).requests, 601);
}

#[test]
fn requests_that_cannot_be_answered_yet_are_left_with_the_kernel() {
    let origin = start(|config| config.delay = DelaySpec::Fixed(Duration::from_secs(3600)));
    let mut client = Client::new(&origin);
    client.send(&b"GET / HTTP/1.1\r\n\r\n".repeat(12_000));
    await_counters(&origin, 0, |counters| counters.requests > 64);
    std::thread::sleep(50 * MS);
    // One read of 64 KiB holds 3640 of them.
    let requests = origin.counters(0).requests;
    assert!(requests < 64 + 3642, "{requests}");
}

#[test]
fn what_follows_a_close_is_not_read() {
    let origin = start(|config| config.delay = DelaySpec::Fixed(20 * MS));
    let mut client = Client::new(&origin);
    client.send(&b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n".repeat(2));
    assert!(!client.receive(false).1.keep_alive);
    assert_eq!(client.until_closed(), b"");
    assert_eq!(origin.counters(0).requests, 1);
}

#[test]
fn exponential_delays_differ() {
    let origin = start(|config| config.delay = DelaySpec::Exponential(2 * MS));
    let mut client = Client::new(&origin);
    let begun = Instant::now();
    for _ in 0..100 {
        client.get();
    }
    // The sum of 100 delays with mean 2 ms; below 100 ms with a probability of 10^-8, and the seed
    // is fixed.
    assert!(begun.elapsed() >= 100 * MS, "{:?}", begun.elapsed());
}

#[test]
fn a_stall_freezes_everything_and_then_goes_on() {
    let stall = |at: u32, length: u32| Stall { at: at * MS, length: length * MS };
    let origin = start(|config| {
        config.listen = vec![any(), any()];
        config.stalls = vec![stall(700, 200), stall(100, 300)];
    });
    let mut first = Client::new(&origin);
    // Nothing is stalled before the first request.
    std::thread::sleep(150 * MS);
    let before = Instant::now();
    first.get();
    let after = Instant::now();

    // One request after the other to both listeners, each over a new connection: whatever is sent
    // while the server is frozen is answered once the stall is over.
    let mut waits = Vec::new();
    while after.elapsed() < 1100 * MS {
        for address in origin.addresses() {
            let sent = Instant::now();
            Client::to(*address).get();
            waits.push((sent, Instant::now()));
        }
    }
    for (begin, end) in [(100, 400), (700, 900)] {
        // The first request was received between `before` and `after`.
        let (surely_frozen, surely_over) = (after + begin * MS, before + end * MS);
        let answered =
            waits.iter().filter(|wait| (surely_frozen..surely_over).contains(&wait.1)).count();
        // An answer that was under way when the freeze began may arrive a little later.
        assert!(answered <= 1, "{answered} answers in the stall at {begin} ms");
        let hit =
            waits.iter().any(|(sent, answered)| *sent < surely_over && *answered >= surely_over);
        assert!(hit, "some request met the stall at {begin} ms");
    }
}
