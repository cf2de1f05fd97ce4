//! Trials in order: arms side by side, slices, blocks, records.
