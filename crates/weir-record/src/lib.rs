//! Run folders: written record by record, read back years later.
