//! The replicated client table: exactly once.
