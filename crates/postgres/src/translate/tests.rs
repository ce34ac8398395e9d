//! What statements become.
