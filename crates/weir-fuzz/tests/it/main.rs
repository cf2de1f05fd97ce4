//! The fuzz targets without a fuzzer: on the seeds as they are, and on mutations that are the same every time.

mod mutate;
mod replay;
mod seeds;
