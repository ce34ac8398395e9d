//! Transfer.
use crate::wire_enum;
/// placeholder
#[derive(Clone, Debug)]
pub enum TransferMessage {
    /// x
    X(u64),
}
wire_enum!(TransferMessage { 1 => X });
