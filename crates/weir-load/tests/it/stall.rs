//! A server that freezes for a second under an open loop: response times are known by theory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use weir_load::{Control, Flow, Io, Plan, RequestSet, SliceData, run};
use weir_model::load::Arrivals;
use weir_origin::{Origin, OriginConfig, Stall};

const SECOND: f64 = 1e9;

/// One freeze of a second begins a second after the first request.
fn freezing() -> Origin {
    let listen: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let mut config = OriginConfig::new(vec![listen]);
    config.stalls = vec![Stall {
        at: Duration::from_secs(1),
        length: Duration::from_secs(1),
    }];
    Origin::start(config).expect("the origin server starts")
}

#[test]
fn the_response_times_of_a_freeze_are_what_theory_says() {
    let origin = freezing();
    let (rate, seconds) = (200.0, 4);
    // As many connections as requests come during the freeze: each can be sent when it is due.
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    let mut flow = Flow::new(
        origin.addresses()[0],
        RequestSet::plain(request, false),
        250,
        Arrivals::Constant { rate },
    );
    flow.timeout = Duration::from_secs(10);
    let plan = Plan {
        flows: vec![flow],
        slices: Plan::seconds(Duration::ZERO, Duration::from_secs(seconds)),
        ramp_up: Duration::ZERO,
        drain: Duration::from_secs(10),
        spin: Duration::ZERO,
        io: Io::Epoll,
        cpus: vec![None],
    };
    let control = Control::new(1, Arc::new(AtomicBool::new(false)));
    let mut all = SliceData::new();
    run(&plan, &control, None, |_, data| all.add(&data[0])).expect("the trial runs");

    assert_eq!(all.due, 800, "4 s at 200/s");
    assert_eq!(
        all.histograms.response.len(),
        800,
        "every request is answered"
    );
    assert_eq!(all.errors.total(), 0);
    assert_eq!(all.censored.in_flight + all.censored.queued, 0);

    follows_theory(&all, rate);
}

#[allow(clippy::print_stdout)]
fn follows_theory(all: &SliceData, rate: f64) {
    // Theory: 200 of 800 requests wait evenly between 0 and 1 s; so above quantile 0.75 the
    // response time at quantile q is (q - 0.75) / 0.25 seconds. What may come on top is measured:
    // the engine's own lateness, and the time that the server takes for the burst after the freeze,
    // which is at most the service time of the very last request of the freeze.
    let lag = all.histograms.dispatch_lag.max() as f64;
    let sorted: Vec<u64> = all
        .histograms
        .response
        .iter_recorded()
        .flat_map(|step| vec![step.value_iterated_to(); step.count_at_value() as usize])
        .collect();
    let calm = sorted[590] as f64;
    assert!(
        calm < 0.2 * SECOND,
        "before and after the freeze answers are quick: {calm} ns"
    );
    println!("dispatch lag: at most {:.3} ms", lag / 1e6);
    let mut worst: f64 = 0.0;
    for quantile in [0.8, 0.85, 0.9, 0.95, 0.99, 1.0] {
        let expected = (quantile - 0.75) / 0.25 * SECOND;
        let actual = all.histograms.response.value_at_quantile(quantile) as f64;
        // One arrival is 1/200 s; the histogram tells three digits.
        let resolution = SECOND / rate + 0.001 * expected;
        let error = actual - expected;
        println!(
            "quantile {quantile}: {:.2} ms, theory {:.2} ms",
            actual / 1e6,
            expected / 1e6
        );
        assert!(
            error >= -resolution && error <= resolution + lag + calm,
            "quantile {quantile}: {actual} ns, theory {expected} ns, resolution {resolution} ns, \
             dispatch lag {lag} ns, service time without freeze {calm} ns"
        );
        worst = worst.max(error.abs());
    }
    println!("largest difference: {:.2} ms", worst / 1e6);
    // A tool that counts from the send, with few connections, would see 1 slow request in 800.
    assert!(all.histograms.response.value_at_quantile(0.8) as f64 > 0.15 * SECOND);
}
