//! Registers a statement and polls for its receipt, as each SCRAPI version does:
//! 201, 202 with 204 (-11), 303 with 302 (-04 to -10), 202 with an operation
//! (-03 and older services).

use std::time::{Duration, Instant};

use reqwest::Url;

use super::{Client, Reply, pause};
use crate::cli::CliError;
use crate::envelope::SignedStatement;
use crate::receipt::attached;
use crate::wire::cbor::Value;

const RECEIPT: &str = "application/cose, application/scitt-receipt+cose, application/cbor;q=0.5";
/// How long to poll for a receipt before giving up.
const TIMEOUT: Duration = Duration::from_secs(300);

/// The log refused the statement.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(in crate::cli) struct Refused(pub(in crate::cli) CliError);

/// The log reports success without a receipt.
#[derive(Debug, thiserror::Error)]
#[error("{place} gives no receipt")]
pub(in crate::cli) struct NoReceipt {
    place: String,
    pub(in crate::cli) body: Vec<u8>,
}

/// Sends a statement and waits for its receipt.
pub(in crate::cli) async fn register(client: &Client, statement: &[u8]) -> anyhow::Result<Vec<u8>> {
    let url = client.url("entries")?;
    let reply = client.send(url, RECEIPT, Some(statement)).await?;
    match reply.status {
        200 | 201 => match receipt_in(&reply.body) {
            Some(receipt) => Ok(receipt),
            None if reply.location.is_none() => {
                Err(NoReceipt { place: reply.url.to_string(), body: reply.body }.into())
            }
            None => poll(client, next_place(client, &reply)?).await,
        },
        202 | 302 | 303 => {
            let place = next_place(client, &reply)?;
            pause(0, reply.retry_after).await;
            poll(client, place).await
        }
        _ if reply.is_refusal() => Err(Refused(reply.problem()).into()),
        _ => Err(reply.problem().into()),
    }
}

/// A receipt of a statement that was sent before.
pub(in crate::cli) async fn receipt(client: &Client, id: &str) -> anyhow::Result<Vec<u8>> {
    poll(client, client.url(&format!("entries/{id}"))?).await
}

async fn poll(client: &Client, mut place: Url) -> anyhow::Result<Vec<u8>> {
    let started = Instant::now();
    for tries in 0.. {
        let reply = client.send(place.clone(), RECEIPT, None).await?;
        match (reply.status, Operation::read(&reply.body)) {
            (200 | 202, Some(Operation::Failed(why))) => {
                return Err(Refused(CliError::no("registration-failed", why)).into());
            }
            (200 | 202, Some(Operation::Done(entry))) => {
                place = client.url(&format!("entries/{entry}"))?;
                continue;
            }
            (200 | 201, None) => {
                let none = NoReceipt { place: place.to_string(), body: reply.body.clone() };
                return Ok(receipt_in(&reply.body).ok_or(none)?);
            }
            (200 | 202 | 204, _) => {}
            (302 | 303 | 307, _) => place = next_place(client, &reply)?,
            _ => return Err(reply.problem().into()),
        }
        if started.elapsed() > TIMEOUT {
            break;
        }
        pause(tries, reply.retry_after).await;
    }
    let what = format!("{place} gave no receipt within {} s", TIMEOUT.as_secs());
    Err(CliError::cannot_tell("pending", what).next("the same command later").into())
}

/// Where the log says the receipt will be.
fn next_place(client: &Client, reply: &Reply) -> anyhow::Result<Url> {
    let missing = || CliError::failed("no-location", format!("{} names no Location", reply.url));
    let location = reply.location.as_deref().ok_or_else(missing)?;
    client.url(location)
}

/// The receipt in an answer: alone, or attached to the statement.
pub fn receipt_in(body: &[u8]) -> Option<Vec<u8>> {
    let envelope = SignedStatement::parse_any_size(body.to_vec()).ok()?;
    if envelope.header().vds.is_some() {
        return Some(body.to_vec());
    }
    attached(&envelope).ok()?.into_iter().next()
}

/// The state of a registration, as older services report it.
#[derive(Debug, Eq, PartialEq)]
enum Operation {
    Done(String),
    Failed(String),
    Running,
}

impl Operation {
    fn read(body: &[u8]) -> Option<Self> {
        let fields = fields(body)?;
        let field = |names: [&str; 2]| {
            fields.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, v)| v.clone())
        };
        let entry = field(["entryId", "EntryID"]);
        Some(match field(["status", "Status"])?.as_str() {
            "succeeded" => entry.map_or(Self::Running, Self::Done),
            "failed" => Self::Failed("the log reports that the registration failed".to_owned()),
            _ => Self::Running,
        })
    }
}

/// The text fields of a CBOR or JSON object.
fn fields(body: &[u8]) -> Option<Vec<(String, String)>> {
    if let Ok(Value::Map(entries)) = Value::read(body) {
        let pair =
            |(k, v): &(Value<'_>, Value<'_>)| Some((k.text()?.to_owned(), v.text()?.to_owned()));
        return Some(entries.iter().filter_map(pair).collect());
    }
    let json: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(body).ok()?;
    Some(json.iter().filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned()))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_state_parses_from_cbor_and_json() {
        let mut done = Vec::new();
        crate::wire::cbor::map(&mut done, 2);
        for word in ["Status", "succeeded", "EntryID", "2.14"] {
            crate::wire::cbor::text(&mut done, word);
        }
        let rows: [(&[u8], Option<Operation>); 5] = [
            (&done, Some(Operation::Done("2.14".to_owned()))),
            (br#"{"status":"succeeded","entryId":"2.14"}"#, Some(Operation::Done("2.14".into()))),
            (br#"{"status":"running"}"#, Some(Operation::Running)),
            (br#"{"other":"running"}"#, None),
            (b"\xd2\x84", None),
        ];
        for (body, expected) in rows {
            assert_eq!(Operation::read(body), expected, "{body:?}");
        }
    }
}
