//! none
