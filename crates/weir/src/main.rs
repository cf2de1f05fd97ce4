//! weir: an ingress performance lab in one binary.

fn main() {}
