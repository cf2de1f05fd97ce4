//! While a trial measures, the engine's thread neither allocates nor frees; nor does an open TLS session allocate for a
//! request.
//!
//! A test binary of its own, because the counting allocator is global. It counts only on the engine's thread, from the
//! beginning of the second slice to the beginning of the last: the hook, which is called on that thread, switches the
//! counting on and off.
#![allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait; each method forwards to System")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weir_load::engine::SliceHook;
use weir_load::tls::{Connector, Input, Received};
use weir_load::{Control, Flow, Io, Plan, RequestSet, Slice, run};
use weir_model::load::Arrivals;
use weir_model::tls::TlsVersion;
use weir_origin::{Origin, OriginConfig};
use weir_testkit::tls::{Authority, Key, Pair};

/// Number of slices of a trial: more than fit into the queue of their data before it allocates again.
const SLICES: usize = 50;

/// Length of a slice, nanoseconds.
const SLICE_NS: u64 = 30_000_000;

/// Maximum number of trials. If the thread that merges the slices gets no CPU for long, the engine has to allocate a
/// new one; allocations by requests or slices as such occur in every trial.
const TRIALS: usize = 3;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static FREES: AtomicU64 = AtomicU64::new(0);

/// Backtrace of the first allocation or free.
static FIRST: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    // Initialized at compile time and without a destructor: reading it allocates nothing.
    static COUNTS: Cell<bool> = const { Cell::new(false) };
}

/// Increments a counter if this thread is counted.
fn count(what: &AtomicU64) {
    if !COUNTS.get() {
        return;
    }
    // What is written down about the first allocates itself.
    COUNTS.set(false);
    what.fetch_add(1, Ordering::Relaxed);
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    first.get_or_insert_with(|| Backtrace::force_capture().to_string());
    COUNTS.set(true);
}

// SAFETY: every method passes its arguments on to `System`, unchanged, and gives back what that gives;
// counting touches no memory of the caller's and does not unwind.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(&ALLOCATIONS);
        // SAFETY: the caller keeps the contract of this method, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(&ALLOCATIONS);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(&ALLOCATIONS);
        // SAFETY: as above.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        count(&FREES);
        // SAFETY: as above.
        unsafe { System.dealloc(old, layout) }
    }
}

fn build_plan(address: SocketAddr, arrivals: Arrivals, io: Io) -> Plan {
    let slices = (0..SLICES as u64).map(|number| Slice {
        arm: 0,
        start: number * SLICE_NS,
        measure_from: number * SLICE_NS,
        end: (number + 1) * SLICE_NS,
    });
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    let mut flow = Flow::new(address, RequestSet::plain(request, false), 8, arrivals);
    flow.timeout = Duration::from_secs(10);
    // The hook is the first thread's, and there is one.
    Plan { drain: Duration::from_secs(10), ..Plan::single(flow, slices.collect(), io) }
}

/// Runs a trial; returns how often its thread allocated and freed, and the backtrace of the first time.
fn counted(arrivals: Arrivals, io: Io) -> (u64, u64, Option<String>) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let origin = Origin::start(OriginConfig::new(vec![any])).expect("an origin server");
    let plan = build_plan(origin.addresses()[0], arrivals, io);
    let control = Control::new(1, Arc::new(AtomicBool::new(false)));
    let counted = Arc::new(AtomicU64::new(0));
    let slices = Arc::clone(&counted);
    let hook: SliceHook = Box::new(move |slice, _| {
        let on = (1..SLICES - 1).contains(&slice);
        COUNTS.set(on);
        slices.fetch_add(u64::from(on), Ordering::Relaxed);
    });
    let (mut completed, mut errors) = (0, Vec::new());
    run(&plan, &control, Some(hook), |_, data| {
        completed += data[0].completed_whole;
        errors.extend(data[0].errors.counts());
    })
    .expect("the trial runs");
    assert_eq!(counted.load(Ordering::Relaxed), SLICES as u64 - 2);
    assert_eq!(errors, []);
    assert!(completed > SLICES as u64, "there was no load");
    taken()
}

/// Takes allocations, frees and the first backtrace since the last call.
fn taken() -> (u64, u64, Option<String>) {
    let first = FIRST.lock().unwrap_or_else(PoisonError::into_inner).take();
    let [allocations, frees] = [&ALLOCATIONS, &FREES].map(|count| count.swap(0, Ordering::Relaxed));
    (allocations, frees, first)
}

/// Lock that runs one test at a time, since the counters are shared.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn nothing_is_allocated_or_freed_while_a_trial_measures() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // That the counting counts: what is asked of it is seen.
    COUNTS.set(true);
    drop(std::hint::black_box(Box::new(1)));
    COUNTS.set(false);
    let (allocations, frees, first) = taken();
    assert_eq!((allocations, frees, first.is_some()), (1, 1, true));

    // One after the other: the counters are shared.
    let loads = [Arrivals::Closed, Arrivals::Constant { rate: 2000.0 }];
    let ways = [Io::Epoll, Io::Auto];
    for (arrivals, io) in loads.iter().flat_map(|load| ways.map(|io| (load, io))) {
        let trials = (0..TRIALS).map(|_| counted(arrivals.clone(), io));
        let mut failed = Vec::new();
        for (allocations, frees, first) in trials {
            if (allocations, frees) == (0, 0) {
                failed.clear();
                break;
            }
            let trace = first.unwrap_or_default();
            failed.push(format!("{allocations} allocations, {frees} frees, first in\n{trace}"));
        }
        let report = failed.join("\n");
        assert!(failed.is_empty(), "{arrivals:?} {io:?}: {report}");
    }
}

#[test]
fn small_records_allocate_nothing() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::Rsa));
    let suites = [
        (TlsVersion::V1_2, "ECDHE-RSA-AES256-GCM-SHA384"),
        (TlsVersion::V1_2, "ECDHE-RSA-CHACHA20-POLY1305"),
        (TlsVersion::V1_3, "TLS_AES_128_GCM_SHA256"),
        (TlsVersion::V1_3, "TLS_CHACHA20_POLY1305_SHA256"),
    ];
    for (version, cipher) in suites {
        let mut spec = authority.spec_of(version);
        spec.ciphers = vec![cipher.to_owned()];
        let mut pair = Pair::shaken(&mut Connector::new(&spec, "localhost").unwrap(), &server);
        pair.talk();
        let mut answers: Vec<_> = (0..100).map(|_| pair.said(&[7; 1000])).collect();
        let mut out = Vec::with_capacity(4096);
        let mut received = 0;
        COUNTS.set(true);
        for answer in &mut answers {
            out.clear();
            pair.session.send(&[8; 1000], &mut out).unwrap();
            let mut input = Input::new(answer);
            while let Received::Plaintext(part) = pair.session.next(&mut input, &mut out).unwrap() {
                received += part.len();
            }
        }
        COUNTS.set(false);
        assert_eq!(received, 100_000);
        let (allocations, _, first) = taken();
        assert_eq!(allocations, 0, "{cipher}: {}", first.unwrap_or_default());
    }
}
