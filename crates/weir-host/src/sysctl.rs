//! Kernel settings by name, as the calling thread's network namespace has them.
