//! The journal of what weir changes on a host.
