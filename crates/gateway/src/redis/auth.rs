//! Whether a client may come in: `AUTH` and what is done for strangers.

use super::command;
use super::reply::Reply;
use crate::password::Password;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a client may take to say the password.
const STRANGER_TIME_MAX: Duration = Duration::from_secs(30);

/// Wrong passwords that a connection may say. Behind them it is closed, so that whoever guesses must come again, and
/// takes one of the few places of all connections each time.
const WRONG_MAX: u32 = 3;

/// Where a client stands.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Wrong passwords so far.
    wrong: u32,
    password: Option<Arc<Password>>,
    /// Since when the client has not said the password; `None`: it has, or there is none.
    stranger_since: Option<Instant>,
}

impl Admission {
    /// Of a client that has just come.
    pub(crate) fn new(password: Option<Arc<Password>>) -> Self {
        let stranger_since = password.is_some().then(Instant::now);
        Self { wrong: 0, password, stranger_since }
    }

    /// Whether all commands are carried out for it.
    pub(crate) const fn is_known(&self) -> bool {
        self.stranger_since.is_none()
    }

    /// How long it may still take to say the password.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.stranger_since.map(|since| STRANGER_TIME_MAX.saturating_sub(since.elapsed()))
    }

    /// As if it had just come, but for what it has guessed.
    pub(crate) fn forget(&mut self) {
        *self = Self { wrong: self.wrong, ..Self::new(self.password.take()) };
    }

    /// Wrong passwords so far.
    pub(crate) const fn wrong(&self) -> u32 {
        self.wrong
    }

    /// Whether it has guessed too often.
    pub(crate) const fn has_guessed(&self) -> bool {
        self.wrong >= WRONG_MAX
    }

    /// `AUTH [user] password`. There is one user, `default`, as in a Redis that has only a password.
    pub(crate) fn auth(&mut self, words: &[Bytes]) -> Reply {
        let (user, text) = match words {
            [user, text] => (Some(user), text),
            [text] => (None, text),
            _ => return command::wrong_number("auth"),
        };
        let is_default = user.is_none_or(|user| user == "default");
        let is_right = match &self.password {
            Some(password) => is_default && password.is(text),
            None if user.is_none() => {
                return Reply::error(
                    "AUTH <password> called without any password configured for the default user. Are you sure your \
                     configuration is correct?",
                );
            }
            None => is_default,
        };
        if !is_right {
            self.wrong += 1;
            return Reply::Error("WRONGPASS invalid username-password pair or user is disabled.".into());
        }
        self.stranger_since = None;
        Reply::OK
    }
}
