//! A ledger: accounts with balances, and transfers between them.
//!
//! An account has a number and belongs to the key that opened it: nobody else moves money out of it. What is in all
//! accounts together is what was issued at the beginning, whatever clients ask for.

use bezant_core::digest::{Digest, Domain};
use bezant_core::ids::PublicKey;
use bezant_core::service::{Agreed, Asker, BadState, NotReadOnly, PageNumber, Service};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// All money that there is. The first account that is opened gets it.
pub const ISSUED: u64 = 1_000_000;
/// Neighbouring accounts that share a page.
const ACCOUNTS_PER_PAGE: u16 = 64;
/// An account on a page: its number, its owner and its balance.
const ENTRY_BYTES: usize = 2 + 32 + 8;

/// Names an account. There are no more accounts than such numbers, which bounds the state.
pub type Number = u16;

/// What a client may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Opens an account, for the key of whoever asks.
    Open(Number),
    /// Moves an amount out of an account of whoever asks.
    Transfer {
        /// From here.
        from: Number,
        /// To there.
        to: Number,
        /// So much.
        amount: u64,
    },
    /// Reads a balance.
    Balance(Number),
}

/// What the ledger answers: one byte, and a balance or zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Done: the balance of the account that was asked about, or that it was taken from.
    Balance(u64),
    /// There is not as much in the account: its balance. Nothing was moved.
    Overdraft(u64),
    /// One of the accounts does not exist.
    NoAccount,
    /// The account belongs to another key.
    NotYours,
    /// Somebody has opened an account of this number.
    Taken,
    /// No operation has these bytes.
    Nonsense,
}

impl Operation {
    /// As it is sent.
    pub fn to_bytes(self) -> Bytes {
        match self {
            Self::Open(number) => [&b"o"[..], &number.to_le_bytes()].concat().into(),
            Self::Transfer { from, to, amount } => {
                [&b"t"[..], &from.to_le_bytes(), &to.to_le_bytes(), &amount.to_le_bytes()].concat().into()
            }
            Self::Balance(number) => [&b"b"[..], &number.to_le_bytes()].concat().into(),
        }
    }

    /// What these bytes ask for, if anything.
    fn of(bytes: &[u8]) -> Option<Self> {
        let number = |bytes: &[u8]| Some(Number::from_le_bytes(bytes.try_into().ok()?));
        let (kind, rest) = bytes.split_first()?;
        match kind {
            b'o' => Some(Self::Open(number(rest)?)),
            b'b' => Some(Self::Balance(number(rest)?)),
            b't' => {
                let (from, rest) = rest.split_at_checked(2)?;
                let (to, amount) = rest.split_at_checked(2)?;
                let amount = u64::from_le_bytes(amount.try_into().ok()?);
                Some(Self::Transfer { from: number(from)?, to: number(to)?, amount })
            }
            _ => None,
        }
    }
}

impl Answer {
    /// As it is sent.
    fn to_bytes(self) -> Bytes {
        let (kind, balance) = match self {
            Self::Balance(balance) => (0, balance),
            Self::Overdraft(balance) => (1, balance),
            Self::NoAccount => (2, 0),
            Self::NotYours => (3, 0),
            Self::Taken => (4, 0),
            Self::Nonsense => (5, 0),
        };
        [&[kind][..], &balance.to_le_bytes()].concat().into()
    }

    /// What these bytes say; `None`: no ledger says that.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (kind, balance) = bytes.split_first()?;
        let balance = u64::from_le_bytes(balance.try_into().ok()?);
        Some(match kind {
            0 => Self::Balance(balance),
            1 => Self::Overdraft(balance),
            2 => Self::NoAccount,
            3 => Self::NotYours,
            4 => Self::Taken,
            5 => Self::Nonsense,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    owner: PublicKey,
    balance: u64,
}

/// See the [module](self).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    accounts: BTreeMap<Number, Account>,
    /// Pages that have changed since they were saved.
    dirty: BTreeSet<PageNumber>,
    /// A digest of what was written since it was asked for.
    written: Digest,
}

/// The page of an account.
const fn page_of(number: Number) -> PageNumber {
    (number / ACCOUNTS_PER_PAGE) as PageNumber
}

impl Ledger {
    /// What must always be true: all accounts together hold what was issued.
    ///
    /// # Errors
    /// What they hold instead, in words.
    pub fn invariant(&self) -> Result<(), String> {
        let sum: u128 = self.accounts.values().map(|account| u128::from(account.balance)).sum();
        let issued = if self.accounts.is_empty() { 0 } else { u128::from(ISSUED) };
        if sum == issued { Ok(()) } else { Err(format!("all accounts together hold {sum}, and not {issued}")) }
    }

    /// The one place that writes an account.
    fn set(&mut self, number: Number, account: Account) {
        let Account { owner, balance } = account;
        let entry = [&number.to_le_bytes()[..], &owner.0, &balance.to_le_bytes()];
        self.written = self.written.chain(Digest::of_parts(Domain::Effects, &entry));
        self.dirty.insert(page_of(number));
        self.accounts.insert(number, account);
    }

    fn open(&mut self, number: Number, owner: PublicKey) -> Answer {
        if self.accounts.contains_key(&number) {
            return Answer::Taken;
        }
        let balance = if self.accounts.is_empty() { ISSUED } else { 0 };
        self.set(number, Account { owner, balance });
        Answer::Balance(balance)
    }

    fn transfer(&mut self, asker: PublicKey, from: Number, to: Number, amount: u64) -> Answer {
        let (Some(&payer), Some(&payee)) = (self.accounts.get(&from), self.accounts.get(&to)) else {
            return Answer::NoAccount;
        };
        if payer.owner != asker {
            return Answer::NotYours;
        }
        let Some(rest) = payer.balance.checked_sub(amount) else { return Answer::Overdraft(payer.balance) };
        if from == to {
            // Written below, the second balance would replace the first: money out of nothing.
            return Answer::Balance(payer.balance);
        }
        self.set(from, Account { balance: rest, ..payer });
        self.set(to, Account { balance: payee.balance + amount, ..payee });
        Answer::Balance(rest)
    }

    fn balance(&self, number: Number) -> Answer {
        self.accounts.get(&number).map_or(Answer::NoAccount, |account| Answer::Balance(account.balance))
    }

    fn page(&self, page: PageNumber) -> Vec<u8> {
        let first = page as Number * ACCOUNTS_PER_PAGE;
        let accounts = self.accounts.range(first..=first + (ACCOUNTS_PER_PAGE - 1));
        accounts.flat_map(|(n, a)| [&n.to_le_bytes()[..], &a.owner.0, &a.balance.to_le_bytes()].concat()).collect()
    }
}

impl Service for Ledger {
    fn execute(&mut self, operation: &[u8], agreed: &Agreed) -> Bytes {
        let asker = agreed.asker.public_key;
        let answer = match Operation::of(operation) {
            Some(Operation::Open(number)) => self.open(number, asker),
            Some(Operation::Transfer { from, to, amount }) => self.transfer(asker, from, to, amount),
            Some(Operation::Balance(number)) => self.balance(number),
            None => Answer::Nonsense,
        };
        answer.to_bytes()
    }

    fn take_written(&mut self) -> Digest {
        std::mem::take(&mut self.written)
    }

    fn query(&self, operation: &[u8], _asker: &Asker) -> Result<Bytes, NotReadOnly> {
        match Operation::of(operation) {
            Some(Operation::Balance(number)) => Ok(self.balance(number).to_bytes()),
            _ => Err(NotReadOnly),
        }
    }

    fn save(&mut self, write: &mut dyn FnMut(PageNumber, Option<Bytes>)) {
        for page in std::mem::take(&mut self.dirty) {
            // No account is ever closed: a page that is dirty is not empty.
            write(page, Some(self.page(page).into()));
        }
    }

    fn load(&mut self, pages: &mut dyn Iterator<Item = (PageNumber, Option<Bytes>)>) -> Result<(), BadState> {
        for (page, content) in pages {
            self.accounts.retain(|number, _| page_of(*number) != page);
            let content = content.unwrap_or_default();
            let (entries, rest) = content.as_chunks::<ENTRY_BYTES>();
            for entry in entries {
                let (number, entry) = entry.split_first_chunk().ok_or(BadState)?;
                let (owner, balance) = entry.split_first_chunk().ok_or(BadState)?;
                let number = Number::from_le_bytes(*number);
                let balance = u64::from_le_bytes(balance.try_into().map_err(|_| BadState)?);
                if page_of(number) != page {
                    return Err(BadState);
                }
                self.accounts.insert(number, Account { owner: PublicKey(*owner), balance });
            }
            if !rest.is_empty() {
                return Err(BadState);
            }
        }
        self.dirty.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_by(owner: u8) -> Agreed {
        let asker = Asker { public_key: PublicKey([owner; 32]), ..Asker::default() };
        Agreed { asker, ..Agreed::default() }
    }

    fn ask(ledger: &mut Ledger, owner: u8, operation: Operation) -> Answer {
        Answer::of(&ledger.execute(&operation.to_bytes(), &asked_by(owner))).unwrap()
    }

    /// Account 1 of owner 1, with all money, and account 2 of owner 2.
    fn two() -> Ledger {
        let mut ledger = Ledger::default();
        assert_eq!(ask(&mut ledger, 1, Operation::Open(1)), Answer::Balance(ISSUED));
        assert_eq!(ask(&mut ledger, 2, Operation::Open(2)), Answer::Balance(0));
        ledger
    }

    const fn transfer(from: Number, to: Number, amount: u64) -> Operation {
        Operation::Transfer { from, to, amount }
    }

    #[test]
    fn money_moves_and_is_not_made() {
        let mut ledger = two();
        assert_eq!(ask(&mut ledger, 1, transfer(1, 2, 30)), Answer::Balance(ISSUED - 30));
        assert_eq!(ask(&mut ledger, 3, Operation::Balance(2)), Answer::Balance(30));
        assert_eq!(ask(&mut ledger, 2, transfer(2, 2, 10)), Answer::Balance(30));
        assert_eq!(ledger.invariant(), Ok(()));
    }

    #[test]
    fn what_is_refused_moves_nothing() {
        let mut ledger = two();
        let before = ledger.clone();
        assert_eq!(ask(&mut ledger, 1, transfer(1, 2, ISSUED + 1)), Answer::Overdraft(ISSUED));
        assert_eq!(ask(&mut ledger, 1, transfer(1, 2, u64::MAX)), Answer::Overdraft(ISSUED));
        assert_eq!(ask(&mut ledger, 2, transfer(1, 2, 1)), Answer::NotYours);
        assert_eq!(ask(&mut ledger, 1, transfer(1, 3, 1)), Answer::NoAccount);
        assert_eq!(ask(&mut ledger, 1, transfer(3, 1, 0)), Answer::NoAccount);
        assert_eq!(ask(&mut ledger, 1, Operation::Open(1)), Answer::Taken);
        assert_eq!(ledger, before);
    }

    #[test]
    fn nonsense_is_told_so_and_bad_pages_are_refused() {
        let mut ledger = two();
        for nonsense in [&b""[..], b"o1", b"o123", b"t", b"b", b"xxx", &[b't'; 12], &[b't'; 14]] {
            assert_eq!(Answer::of(&ledger.execute(nonsense, &asked_by(1))), Some(Answer::Nonsense));
            assert_eq!(ledger.query(nonsense, &Asker::default()), Err(NotReadOnly));
        }
        let (last, entry) = (page_of(Number::MAX), Bytes::from_static(&[0xff; ENTRY_BYTES]));
        assert_eq!(ledger.load(&mut [(0, Some(entry.clone()))].into_iter()), Err(BadState));
        assert_eq!(ledger.load(&mut [(last, Some(entry.slice(1..)))].into_iter()), Err(BadState));
        assert_eq!(ledger.load(&mut [(last, Some(entry))].into_iter()), Ok(()));
        assert!(ledger.invariant().is_err());
    }
}
