//! An open session allocates nothing per request. A test binary of its own: it counts with its own
//! allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;
use std::sync::Arc;

use weir_load::tls::{Connector, Input, Received};
use weir_model::tls::TlsVersion;

#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "made for the other test binary"
)]
#[path = "it/tls_support.rs"]
mod tls_support;

use tls_support::{Authority, Key, Pair};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends may allocate after its counter is gone.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is handed to the system's allocator as it came; counting touches a
// thread-local that needs no allocation.
#[allow(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promise is handed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn small_records_allocate_nothing() {
    let authority = Authority::new();
    let server = Arc::new(authority.server(Key::Rsa));
    let suites = [
        (TlsVersion::V1_2, "ECDHE-RSA-AES256-GCM-SHA384"),
        (TlsVersion::V1_2, "ECDHE-RSA-CHACHA20-POLY1305"),
        (TlsVersion::V1_3, "TLS_AES_128_GCM_SHA256"),
        (TlsVersion::V1_3, "TLS_CHACHA20_POLY1305_SHA256"),
    ];
    for (version, cipher) in suites {
        let mut spec = authority.spec();
        spec.versions = vec![version];
        spec.ciphers = vec![cipher.to_owned()];
        let mut pair = Pair::shaken(&mut Connector::new(&spec, "localhost").unwrap(), &server);
        pair.talk();
        let mut answers = Vec::new();
        for _ in 0..100 {
            let mut bytes = Vec::new();
            pair.server.writer().write_all(&[7; 1000]).unwrap();
            pair.server.write_tls(&mut bytes).unwrap();
            answers.push(bytes);
        }
        let mut out = Vec::with_capacity(4096);
        let before = ALLOCATIONS.with(Cell::get);
        let mut received = 0;
        for answer in &mut answers {
            out.clear();
            pair.session.send(&[8; 1000], &mut out).unwrap();
            let mut input = Input::new(answer);
            while let Received::Plaintext(part) = pair.session.next(&mut input, &mut out).unwrap() {
                received += part.len();
            }
        }
        let allocations = ALLOCATIONS.with(Cell::get) - before;
        assert_eq!(received, 100_000);
        assert_eq!(allocations, 0, "{cipher}");
    }
}
