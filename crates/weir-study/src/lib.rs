//! Study files: parse, check with line and column, expand to arms.
