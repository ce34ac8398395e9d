//! Calls that give something back, for callers with so much room: what does not fit stays for the next call.

use super::inbox::{Inbox, Number, Ordered, Problem};
use super::{Call, GroupHandle};
use bezant_core::ids::ReplicaId;
use bezant_core::protocols::ritas::group::Taken;
use bytes::Bytes;

impl GroupHandle {
    /// As [`reliable_receive`](Self::reliable_receive), if the value has at most `room` bytes.
    ///
    /// # Errors
    /// [`Problem::TooShort`] if it has more: it can be received yet.
    pub fn reliable_receive_within(&self, from: ReplicaId, number: u64, room: usize) -> Result<Bytes, Problem> {
        self.check_member(from)?;
        let at = (from, number);
        let size = |inbox: &Inbox| inbox.reliable.get(&at).map(Bytes::len);
        self.take(Taken::Reliable(from, number), room, size, |inbox| inbox.reliable.remove(&at))
    }

    /// As [`echo_receive`](Self::echo_receive), if the value has at most `room` bytes.
    ///
    /// # Errors
    /// [`Problem::TooShort`] if it has more: it can be received yet.
    pub fn echo_receive_within(&self, from: ReplicaId, number: u64, room: usize) -> Result<Bytes, Problem> {
        self.check_member(from)?;
        let at = (from, number);
        let size = |inbox: &Inbox| inbox.echo.get(&at).map(Bytes::len);
        self.take(Taken::Echo(from, number), room, size, |inbox| inbox.echo.remove(&at))
    }

    pub(super) fn bit(&self, number: u64, proposal: bool) -> Result<bool, Problem> {
        self.result(Number::Bit(number), Call::Bit(number, proposal), || {
            let size = |inbox: &Inbox| inbox.bits.get(&number).map(|_| 1);
            self.take(Taken::Bit(number), 1, size, |inbox| inbox.bits.remove(&number))
        })
    }

    /// As [`agree`](Self::agree), if the value has at most `room` bytes.
    ///
    /// # Errors
    /// [`Problem::TooShort`] if it has more: the next call of this number gets it.
    pub fn agree_within(&self, number: u64, proposal: Bytes, room: usize) -> Result<Option<Bytes>, Problem> {
        self.result(Number::Value(number), Call::Value(number, proposal), || {
            let size = |inbox: &Inbox| inbox.values.get(&number).map(|value| value.as_ref().map_or(0, Bytes::len));
            self.take(Taken::Value(number), room, size, |inbox| inbox.values.remove(&number))
        })
    }

    /// As [`agree_on_vector`](Self::agree_on_vector), if the vector needs at most `room` bytes as the caller counts.
    ///
    /// # Errors
    /// [`Problem::TooShort`] if it needs more: the next call of this number gets it.
    pub fn agree_on_vector_within(
        &self,
        number: u64,
        proposal: Bytes,
        room: usize,
        needs: impl Fn(&[Option<Bytes>]) -> usize,
    ) -> Result<Vec<Option<Bytes>>, Problem> {
        self.result(Number::Vector(number), Call::Vector(number, proposal), || {
            let size = |inbox: &Inbox| inbox.vectors.get(&number).map(|vector| needs(vector));
            self.take(Taken::Vector(number), room, size, |inbox| inbox.vectors.remove(&number))
        })
    }

    /// As [`next_ordered`](Self::next_ordered), if the message has at most `room` bytes.
    ///
    /// # Errors
    /// [`Problem::TooShort`] if it has more: it is next yet.
    pub fn next_ordered_within(&self, room: usize) -> Result<Ordered, Problem> {
        let (ordered, has_room_again) = self.shared.wait(|inbox| {
            let needed = inbox.ordered.front()?.message.len();
            if needed > room {
                return Some(Err(Problem::TooShort(needed)));
            }
            let was_full = inbox.is_full();
            inbox.ordered_bytes -= needed;
            let ordered = inbox.ordered.pop_front()?;
            Some(Ok((ordered, was_full && !inbox.is_full())))
        })??;
        if has_room_again {
            self.shared.wake();
        }
        Ok(ordered)
    }

    /// Proposes, unless that was done before and the result was not taken, and waits for the result.
    fn result<T>(&self, number: Number, call: Call, take: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
        let was_proposed = self.shared.lock().unanswered.remove(&number);
        if !was_proposed {
            self.call(Some(number), call)?;
        }
        let result = take();
        if matches!(result, Err(Problem::TimedOut(_) | Problem::TooShort(_))) {
            self.shared.lock().unanswered.insert(number);
        }
        result
    }

    fn take<T>(
        &self,
        taken: Taken,
        room: usize,
        size: impl Fn(&Inbox) -> Option<usize>,
        take: impl Fn(&mut Inbox) -> Option<T>,
    ) -> Result<T, Problem> {
        let result = self.shared.wait(|inbox| {
            if inbox.is_received(taken) {
                return Some(Err(Problem::Used));
            }
            let needed = size(inbox)?;
            if needed > room {
                return Some(Err(Problem::TooShort(needed)));
            }
            inbox.taken(taken);
            take(inbox).map(Ok)
        })??;
        self.shared.wake();
        Ok(result)
    }
}
