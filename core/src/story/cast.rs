//! Who spoke, and about how much.

use std::collections::BTreeMap;

use crate::envelope::SignedStatement;

/// Who speaks about what.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Speaker {
    /// Claim 1.
    pub issuer: String,
    /// Claim 2.
    pub subject: String,
}

impl Speaker {
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
    statements: BTreeMap<Speaker, u64>,
}

impl Cast {
    /// Takes the next statement of the log.
    pub fn hear(&mut self, speaker: Speaker) {
        *self.statements.entry(speaker).or_default() += 1;
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
