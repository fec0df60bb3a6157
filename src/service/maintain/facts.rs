//! What a log at rest says about a statement: for those who only ask.

use std::path::Path;

use crate::envelope::Authentic;
use crate::policy::Facts;
use crate::profile::Read;
use crate::service::ControlError;
use crate::store::{DataDir, Store};

/// The facts a policy would decide by if this statement were registered now
/// or, when it is logged already, those at its own turn. Nobody else may have
/// the log open.
pub fn facts(path: &Path, statement: &Authentic, read: &Read) -> Result<Facts, ControlError> {
    let (store, _, _) = Store::open(DataDir::open(path)?)?;
    Ok(store.facts(&statement.issuer().name, &read.summary, &statement.id(), statement.rules())?)
}
