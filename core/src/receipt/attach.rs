//! A Transparent Statement: a Signed Statement with receipts in label 394.

use super::Error;
use crate::envelope::{SIGN1_TAG, SignedStatement};
use crate::wire::cbor::{self, Value};
use crate::wire::limits::RECEIPTS_MAX;

const RECEIPTS: i64 = 394;

/// The statement with `receipt` put in front of those it carries already.
/// Only the unprotected map changes; what was signed stays as it is.
pub fn attach(statement: &SignedStatement, receipt: &[u8]) -> Result<Vec<u8>, Error> {
    let unprotected = Value::read(statement.unprotected())?;
    let earlier = attached(statement)?;
    let mut receipts = vec![Value::Bytes(receipt)];
    receipts.extend(earlier.iter().filter(|r| r.as_slice() != receipt).map(|r| Value::Bytes(r)));
    let mut entries: Vec<(Value<'_>, Value<'_>)> = match unprotected {
        Value::Map(entries) => {
            entries.into_iter().filter(|(key, _)| *key != Value::Int(RECEIPTS.into())).collect()
        }
        _ => Vec::new(),
    };
    entries.push((Value::Int(RECEIPTS.into()), Value::Array(receipts)));
    let mut out = Vec::with_capacity(statement.bytes().len() + receipt.len() + 16);
    cbor::tag(&mut out, SIGN1_TAG);
    cbor::array(&mut out, 4);
    cbor::bytes(&mut out, statement.protected());
    out.extend(Value::Map(entries).encode());
    match statement.payload() {
        Some(payload) => cbor::bytes(&mut out, payload),
        None => out.push(0xf6),
    }
    cbor::bytes(&mut out, statement.signature());
    Ok(out)
}

/// The receipts a statement carries, first one first; none is fine.
pub fn attached(statement: &SignedStatement) -> Result<Vec<Vec<u8>>, Error> {
    let unprotected = Value::read(statement.unprotected())?;
    let Some(list) = unprotected.get(RECEIPTS) else { return Ok(Vec::new()) };
    let list = list.array().filter(|list| !list.is_empty() && list.len() <= RECEIPTS_MAX);
    list.and_then(|list| list.iter().map(|r| r.bytes().map(<[u8]>::to_vec)).collect())
        .ok_or(Error::ReceiptList { limit: RECEIPTS_MAX })
}
