//! The statement by which a log goes on after it was restored or moved: what
//! its operator compared before it wrote again.
//!
//! `{1: size, 2: root, 3: reason, 4: time, 5: [+ {1: kind, 2: size, 3: root,
//! ? 4: source}]}`, with size and root of the tree before this statement.

use crate::wire::cbor::{self, Value};
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

/// Why a log had to show that it is the newest.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reason {
    /// It has no guard.
    GuardMissing,
    /// It was made from a copy.
    Restored,
}

impl Reason {
    /// The word in the statement.
    pub fn name(self) -> &'static str {
        match self {
            Self::GuardMissing => "guard-missing",
            Self::Restored => "restored",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [Self::GuardMissing, Self::Restored].into_iter().find(|one| one.name() == name)
    }
}

/// Who knew a head of the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// A checkpoint that somebody kept, a witness for instance.
    Checkpoint,
    /// The guard.
    Guard,
    /// The operator, who typed the head in.
    Operator,
    /// Somebody who serves a checkpoint of the log.
    Peer,
}

impl Source {
    const ALL: [Self; 4] = [Self::Checkpoint, Self::Guard, Self::Operator, Self::Peer];

    /// The word in the statement.
    pub fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::Guard => "guard",
            Self::Operator => "operator",
            Self::Peer => "peer",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// A head that was compared with the log's own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Compared {
    /// Who knew it.
    pub source: Source,
    /// Its size.
    pub size: u64,
    /// Its root.
    pub root: Digest,
    /// The address of a peer.
    pub address: Option<String>,
}

/// What a log says when it goes on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resumption {
    /// Leaves before this statement.
    pub size: u64,
    /// The root over them.
    pub root: Digest,
    /// Why it had to be shown.
    pub reason: Reason,
    /// When the heads were compared.
    pub time: UnixSeconds,
    /// The heads; at least one is the log's own.
    pub compared: Vec<Compared>,
}

impl Resumption {
    /// The payload of the statement.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        cbor::map(&mut out, 5);
        cbor::int(&mut out, 1);
        cbor::int(&mut out, self.size);
        cbor::int(&mut out, 2);
        cbor::bytes(&mut out, self.root.as_bytes());
        cbor::int(&mut out, 3);
        cbor::text(&mut out, self.reason.name());
        cbor::int(&mut out, 4);
        cbor::int(&mut out, self.time.seconds());
        cbor::int(&mut out, 5);
        cbor::array(&mut out, self.compared.len());
        for Compared { source, size, root, address } in &self.compared {
            cbor::map(&mut out, 3 + usize::from(address.is_some()));
            cbor::int(&mut out, 1);
            cbor::text(&mut out, source.name());
            cbor::int(&mut out, 2);
            cbor::int(&mut out, *size);
            cbor::int(&mut out, 3);
            cbor::bytes(&mut out, root.as_bytes());
            if let Some(address) = address {
                cbor::int(&mut out, 4);
                cbor::text(&mut out, address);
            }
        }
        out
    }

    /// Reads a payload; the detail says what is wrong with it.
    pub fn read(payload: &[u8]) -> Result<Self, &'static str> {
        let value = Value::read(payload).map_err(|_| "it is not strict CBOR")?;
        let digest = |value: &Value<'_>, label: i64| {
            value.get(label).and_then(Value::bytes).and_then(Digest::from_slice)
        };
        let number = |value: &Value<'_>, label: i64| value.get(label).and_then(Value::int::<u64>);
        let reason = value.get(3).and_then(Value::text).and_then(Reason::from_name);
        let compared = |one: &Value<'_>| {
            Some(Compared {
                source: Source::from_name(one.get(1)?.text()?)?,
                size: number(one, 2)?,
                root: digest(one, 3)?,
                address: one.get(4).map(|at| at.text().map(str::to_owned)).unwrap_or_default(),
            })
        };
        let heads = value.get(5).and_then(Value::array).unwrap_or_default();
        let read = Self {
            size: number(&value, 1).ok_or("it names no size")?,
            root: digest(&value, 2).ok_or("it names no root")?,
            reason: reason.ok_or("it names no reason we know")?,
            time: UnixSeconds::new(number(&value, 4).ok_or("it names no time")?),
            compared: heads
                .iter()
                .map(compared)
                .collect::<Option<_>>()
                .ok_or("a head it names cannot be read")?,
        };
        let own = |head: &Compared| head.size == read.size && head.root == read.root;
        if !read.compared.iter().any(own) {
            return Err("no head it names is the one it goes on from");
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Resumption {
        let root = Digest::of(b"root");
        Resumption {
            size: 7,
            root,
            reason: Reason::Restored,
            time: UnixSeconds::new(1_790_000_000),
            compared: vec![
                Compared { source: Source::Guard, size: 5, root: Digest::of(b"5"), address: None },
                Compared {
                    source: Source::Peer,
                    size: 7,
                    root,
                    address: Some("https://mirror.example".to_owned()),
                },
            ],
        }
    }

    #[test]
    fn a_resumption_is_read_as_it_was_written() {
        for reason in [Reason::GuardMissing, Reason::Restored] {
            for source in Source::ALL {
                let mut resumption = Resumption { reason, ..sample() };
                resumption.compared[1].source = source;
                assert_eq!(Resumption::read(&resumption.encode()), Ok(resumption));
            }
        }
    }

    #[test]
    fn what_shows_nothing_is_no_resumption() {
        let edited = |edit: fn(&mut Resumption)| {
            let mut resumption = sample();
            edit(&mut resumption);
            resumption.encode()
        };
        let rows: [(Vec<u8>, &str); 5] = [
            (vec![0xa0], "size"),
            (b"garbage".to_vec(), "CBOR"),
            (edited(|r| r.compared.truncate(1)), "goes on from"),
            (edited(|r| r.size = 8), "goes on from"),
            (edited(|r| r.root = Digest::of(b"other")), "goes on from"),
        ];
        for (payload, said) in rows {
            let refused = Resumption::read(&payload).unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
    }
}
