//! Which nonces were used. A nonce is burned only by a certificate that is
//! executed, in one step with asking whether it was: two executors of one
//! memory never both go ahead.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

/// A memory of used nonces.
pub trait NonceMemory {
    /// Why it cannot be asked.
    type Error;

    /// Whether a nonce was used.
    fn is_burned(&self, nonce: &str) -> Result<bool, Self::Error>;

    /// Marks a nonce as used, durably and atomically; false when it already
    /// was.
    fn burn(&self, nonce: &str) -> Result<bool, Self::Error>;
}

/// A memory that lasts as long as the value.
#[derive(Debug, Default)]
pub struct Nonces {
    used: Mutex<HashSet<String>>,
}

impl NonceMemory for Nonces {
    type Error = Infallible;

    fn is_burned(&self, nonce: &str) -> Result<bool, Infallible> {
        Ok(self.used.lock().unwrap_or_else(PoisonError::into_inner).contains(nonce))
    }

    fn burn(&self, nonce: &str) -> Result<bool, Infallible> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(used.insert(nonce.to_owned()))
    }
}
