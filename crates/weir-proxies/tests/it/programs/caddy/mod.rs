//! Tests of the real Caddy: the configuration that weir writes for it, what it serves with that, and its start and end.

mod life;
mod serving;
mod settings;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use weir_model::study::ProxyKind;
use weir_sut::Proxy;

use crate::programs::gate::Gate;
use crate::programs::setup::{Arm, Changes, Setup, program};

fn caddy() -> Arc<dyn Proxy> {
    program(ProxyKind::Caddy)
}

fn files(changes: Changes<'_>) -> Setup<'_> {
    Setup::files(ProxyKind::Caddy, changes, 10)
}

fn proxy(changes: Changes<'_>, origin: SocketAddr) -> Setup<'_> {
    Setup::proxy(ProxyKind::Caddy, changes, origin)
}

fn start_proxy(changes: Changes<'_>, origin: &Gate) -> Arm {
    proxy(changes, origin.address).start()
}
