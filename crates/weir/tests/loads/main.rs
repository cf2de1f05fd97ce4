//! Tests of the program as its users run it: `weir load`, `weir origin` and what they print.

mod fail_if;
mod load;
mod load_calibrate;
mod load_connections;
mod load_endless;
mod load_faults;
mod load_flows;
mod load_peers;
mod load_punctual;
mod load_refused;
mod load_requests;
mod load_second_look;
mod load_tls;
mod load_tls_faults;
mod load_tls_refused;
mod metrics;
mod origin;
mod other_tools;
mod progress;
mod progress_view;
