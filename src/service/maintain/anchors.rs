//! Whom each trust anchor of a log has spoken for, read from the log itself.

use std::collections::BTreeMap;
use std::path::Path;

use super::ledger::Ledger;
use crate::envelope::SignedStatement;
use crate::log::LeafIndex;
use crate::service::ControlError;
use crate::service::open::identity_of;
use crate::store::{self, Backend, Store};
use crate::trust::x509::Scope;

/// The names under which statements were admitted, by the name of the anchor
/// that vouched for them. Nobody else may have the log open.
pub fn anchors_used(path: &Path) -> Result<BTreeMap<String, Scope>, ControlError> {
    let identity = identity_of(path)?;
    let (store, head) = Store::open_unchecked(Backend::open(path)?)?;
    let mut ledger = Ledger::new(&identity, store.keys()?).ok_or(store::Error::KeysUnreadable)?;
    let mut used: BTreeMap<String, Scope> = BTreeMap::new();
    for index in (0..head.size().get()).map(LeafIndex::new) {
        let stored = store.statement(index)?.ok_or(store::Error::StatementMissing { index })?;
        let statement = SignedStatement::parse_any_size(stored.canonical.clone())?;
        if ledger.control(&statement).is_some() {
            // What is wrong with the log is for `fsck` to say.
            let _wrong = ledger.judge(index, &statement, &stored);
        } else if let Some((anchor, scope)) = ledger.vouched_for(&statement, &stored) {
            used.entry(anchor).or_default().extend(scope);
        }
    }
    Ok(used)
}
