//! Tests with real processes: the launcher, and the proxies that are installed on this machine.

mod alike;
mod caddy;
mod closed;
mod configured;
mod envoy;
mod envoy_serving;
mod gate;
mod haproxy;
mod httpd;
mod killed;
mod launch;
mod life;
mod nginx;
mod origins;
mod own;
mod secure;
mod setup;
mod support;
mod tls;
