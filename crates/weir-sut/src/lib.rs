//! Proxies under test: configuration, processes, effective settings.
