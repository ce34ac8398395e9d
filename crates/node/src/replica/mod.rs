//! One replica: its machine, its log and its sockets on one thread.

pub mod durability;
