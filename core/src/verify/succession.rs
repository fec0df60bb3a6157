//! Follows key successions from the trusted keys of a log to its current one.
//!
//! In: trusted keys, and succession statements from any source. Out: the new
//! keys. Each succession must be signed by the old key, contain a signature of
//! the new key, and be logged under one of the keys found.

use super::receipt::{Memo, inclusion};
use crate::envelope::{ContentType, SignedStatement, sig_structure};
use crate::key::PublicKey;
use crate::profile::{Control, Succession};
use crate::receipt::{Receipt, attached};

/// Successions examined: one a day for over a year.
const SUCCESSIONS_MAX: usize = 400;

/// The successors of the `trusted` keys, in order; empty if the statements prove
/// none.
pub fn successors(
    log: &str,
    trusted: &[PublicKey],
    statements: &[SignedStatement],
) -> Vec<PublicKey> {
    let mut unused: Vec<(&SignedStatement, Succession)> = statements
        .iter()
        .take(SUCCESSIONS_MAX)
        .filter_map(|statement| Some((statement, read(log, statement)?)))
        .collect();
    let mut keys = trusted.to_vec();
    let mut followed: Vec<&SignedStatement> = Vec::new();
    while let Some(next) = unused.iter().position(|(statement, succession)| {
        keys.iter().any(|key| succession.follows(key) && has_signed(key, statement))
    }) {
        let (statement, succession) = unused.swap_remove(next);
        if !keys.contains(&succession.new) {
            keys.push(succession.new);
            followed.push(statement);
        }
    }
    if !followed.iter().all(|statement| is_logged(log, statement, &keys)) {
        return Vec::new();
    }
    keys.split_off(trusted.len())
}

fn read(log: &str, statement: &SignedStatement) -> Option<Succession> {
    let header = statement.header();
    let kind = ContentType::Media(Control::Succession.content_type().to_owned());
    let is_own = header.claims.issuer.as_deref() == Some(log);
    let is_succession = is_own && header.content_type.as_ref() == Some(&kind);
    Succession::read(statement.payload().filter(|_| is_succession)?).ok()
}

fn has_signed(key: &PublicKey, statement: &SignedStatement) -> bool {
    let message = sig_structure(statement.protected(), statement.payload().unwrap_or_default());
    let algorithm = statement.algorithm().ok();
    algorithm.is_some_and(|alg| key.verify(alg, &message, statement.signature()).is_ok())
}

fn is_logged(log: &str, statement: &SignedStatement, keys: &[PublicKey]) -> bool {
    let receipts = attached(statement).unwrap_or_default();
    receipts.into_iter().filter_map(|bytes| Receipt::parse(bytes).ok()).any(|receipt| {
        receipt.envelope().header().claims.issuer.as_deref() == Some(log)
            && inclusion(&receipt, &statement.canonical(), keys, &mut Memo::default()).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::{Draft, seal};
    use crate::key::{Algorithm, SigningKey};
    use crate::log::{Frontier, LeafIndex, leaf_hash};
    use crate::receipt::{Head, SignedHead, attach};
    use crate::wire::digest::Digest;
    use crate::wire::time::UnixSeconds;

    const LOG: &str = "https://log.example";

    fn key() -> SigningKey {
        SigningKey::generate(Algorithm::Es256).unwrap()
    }

    /// What a succession is made of: who names whom, who signs the statement
    /// and the receipt, and under which name.
    struct Sample<'a> {
        old: &'a SigningKey,
        new: &'a SigningKey,
        signer: &'a SigningKey,
        logged: Option<&'a SigningKey>,
        issuer: &'a str,
    }

    impl Sample<'_> {
        fn statement(&self) -> SignedStatement {
            let draft = Draft {
                content_type: Control::Succession.content_type(),
                issuer: self.issuer,
                subject: Control::Succession.subject(),
                issued_at: None,
                payload: &Succession::encode(self.old.public().id(), self.new).unwrap(),
            };
            let statement = SignedStatement::parse(seal(&draft, self.signer).unwrap()).unwrap();
            let Some(logged) = self.logged else { return statement };
            let first = leaf_hash(&Digest::of(b"first"));
            let id = crate::envelope::StatementId::of(&statement);
            let mut frontier = Frontier::empty();
            frontier.append(first);
            frontier.append(leaf_hash(id.entry()));
            let (size, root) = (frontier.size(), frontier.root());
            let head = Head { size, root, time: UnixSeconds::default() };
            let signed = SignedHead::sign(head, LOG, logged).unwrap();
            let receipt = signed.receipt(LeafIndex::new(1), &[first]);
            SignedStatement::parse(attach(&statement, &receipt).unwrap()).unwrap()
        }
    }

    #[test]
    fn chain_is_followed_in_any_order() {
        let [a, b, c] = [key(), key(), key()];
        let step = |old, new| Sample { old, new, signer: old, logged: Some(&c), issuer: LOG };
        let chain = [step(&b, &c).statement(), step(&a, &b).statement()];
        let ids = |keys: Vec<PublicKey>| keys.iter().map(PublicKey::id).collect::<Vec<_>>();
        let [pa, pb, pc] = [&a, &b, &c].map(|key| key.public().clone());
        let follow = |trusted: &[PublicKey]| ids(successors(LOG, trusted, &chain));
        assert_eq!(follow(std::slice::from_ref(&pa)), [pb.id(), pc.id()]);
        assert_eq!(follow(std::slice::from_ref(&pb)), [pc.id()]);
        assert_eq!(follow(std::slice::from_ref(&pc)), []);
        assert_eq!(follow(&[pa.clone(), pb.clone()]), [pc.id()]);
        assert_eq!(follow(&[]), []);
        assert_eq!(successors(LOG, &[pa], &chain[..1]), [], "a link is missing");
    }

    #[test]
    fn forged_successions_are_refused() {
        let [a, b, thief] = [key(), key(), key()];
        let good = || Sample { old: &a, new: &b, signer: &a, logged: Some(&b), issuer: LOG };
        let rows = [
            ("sound", good(), 1),
            ("not signed by the old key", Sample { signer: &thief, ..good() }, 0),
            ("after a key nobody trusts", Sample { old: &thief, signer: &thief, ..good() }, 0),
            ("names another old key", Sample { old: &thief, ..good() }, 0),
            ("of another log", Sample { issuer: "https://other.example", ..good() }, 0),
            ("not logged", Sample { logged: None, ..good() }, 0),
            ("logged by somebody else", Sample { logged: Some(&thief), ..good() }, 0),
        ];
        for (what, sample, expected) in rows {
            let trusted = [a.public().clone()];
            let found = successors(LOG, &trusted, &[sample.statement()]);
            assert_eq!(found.len(), expected, "{what}");
        }
        let mut forged = Succession::encode(a.public().id(), &b).unwrap();
        *forged.last_mut().unwrap() ^= 1;
        assert_eq!(Succession::read(&forged), Err("the new key does not agree"));
    }
}
