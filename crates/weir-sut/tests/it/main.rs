//! Real processes: the launcher, and the proxies that are installed on this machine.

mod caddy;
mod envoy;
mod envoy_life;
mod envoy_serving;
mod envoy_tls;
mod haproxy;
mod haproxy_life;
mod haproxy_tls;
mod httpd;
mod httpd_life;
mod httpd_tls;
mod launch;
mod life;
mod nginx;
mod own;
mod secure;
mod support;
mod tls;
