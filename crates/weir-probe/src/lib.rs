//! Samplers of host and process counters.
