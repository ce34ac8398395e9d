//! How one instance follows another (design.md section 1).
