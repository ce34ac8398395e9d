//! The pages that are the simulator's own.

use bezant_core::service::{PAGES_MAX, PageNumber};

/// The last page, which neither service has: the agreed time of the last operation.
pub(super) const TIME_PAGE: PageNumber = PAGES_MAX - 1;

/// The one before: what this replica wrote otherwise.
pub(super) const DISSENT_PAGE: PageNumber = PAGES_MAX - 2;
