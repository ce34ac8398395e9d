//! The client as a machine.
