//! The fuzz targets without a fuzzer: seeds as they are, and mutated the same way every time.

mod mutate;
mod replay;
mod seeds;
