//! What must be true of every run. One file a property; each sees every event and says what is wrong at once, or at
//! the end. Only correct replicas are held to anything: a Byzantine one owes us nothing.

mod agreement;
mod all;
mod contradiction;
mod event;
mod holdings;
mod inheritance;
mod lasso;
mod linearizability;
mod memory;
mod needless;
mod roots;
mod sessions;
mod table;
mod validity;

pub use agreement::Agreement;
pub use all::Checks;
pub use contradiction::Contradiction;
pub use event::{Check, Event, Violation};
pub use holdings::{Held, Holdings};
pub use inheritance::Inheritance;
pub use lasso::Lasso;
pub use linearizability::Linearizability;
pub use memory::Memory;
pub use needless::Needless;
pub use roots::Roots;
pub use validity::Validity;
