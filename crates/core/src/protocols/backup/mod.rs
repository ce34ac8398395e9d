//! Backup: any total order as an abortable instance.
