//! Compositions: schedules of abortable instances.
