//! What a log holds, told in its own order.
//!
//! In: one summary per statement, in log order. Out: who spoke about what,
//! from first to last. A pure fold, so that any reader of the log gets the
//! same answer.

use std::collections::BTreeMap;

use crate::envelope::SignedStatement;

/// The few facts of a statement that tell a story.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Summary {
    /// Claim 1.
    pub issuer: String,
    /// Claim 2.
    pub subject: String,
}

impl Summary {
    /// What the header of a logged statement says.
    pub fn of(statement: &SignedStatement) -> Self {
        let claims = &statement.header().claims;
        Self {
            issuer: claims.issuer.clone().unwrap_or_default(),
            subject: claims.subject.clone().unwrap_or_default(),
        }
    }
}

/// Who spoke, about how much, how often.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Cast {
    statements: BTreeMap<Summary, u64>,
}

impl Cast {
    /// Takes the next statement of the log.
    pub fn hear(&mut self, summary: Summary) {
        *self.statements.entry(summary).or_default() += 1;
    }

    /// The number of issuers.
    pub fn issuers(&self) -> usize {
        let mut names: Vec<&str> = self.statements.keys().map(|s| s.issuer.as_str()).collect();
        names.dedup();
        names.len()
    }

    /// The number of threads: statements of one issuer about one subject.
    pub fn threads(&self) -> usize {
        self.statements.len()
    }
}
