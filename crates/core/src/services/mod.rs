//! Services that ship.
