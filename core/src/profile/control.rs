//! Statements by which a log governs itself (RFC 9943, 5.1.1.1: policies and
//! trust anchors are made transparent like everything else).

use strum::{EnumString, IntoStaticStr};

use super::kind::{Record, RecordKind, Role, boxed, media_type};
use super::summary::Summary;
use crate::key::{self, KeyId, PublicKey, SigningKey};
use crate::wire::cbor::{self, Value};
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

/// A kind of control statement. Only the log's own key may register one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Control {
    /// The registration policy from here on.
    Policy,
    /// The log resumes after it was restored or moved.
    Resumption,
    /// A new service key takes over.
    Succession,
    /// The trust anchors from here on.
    Trust,
}

impl Control {
    /// Every kind, in the order of the manifest of a copy: new ones at the end.
    pub const ALL: [Self; 4] = [Self::Policy, Self::Succession, Self::Trust, Self::Resumption];

    /// Its content type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Policy => "application/vnd.capstan.policy+toml",
            Self::Resumption => "application/vnd.capstan.resumption+cbor",
            Self::Succession => "application/vnd.capstan.succession+cbor",
            Self::Trust => "application/vnd.capstan.trust+toml",
        }
    }

    /// Its subject.
    pub fn subject(self) -> &'static str {
        match self {
            Self::Policy => "urn:capstan:policy",
            Self::Resumption => "urn:capstan:resumption",
            Self::Succession => "urn:capstan:succession",
            Self::Trust => "urn:capstan:trust",
        }
    }

    /// The kind with this content type.
    pub fn from_content_type(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.content_type() == name)
    }
}

impl Record for Control {
    fn summary(&self) -> Summary {
        Summary::default()
    }
}

/// Control statements of every sort.
pub(super) static KIND: RecordKind = RecordKind {
    name: "control",
    role: Role::Control,
    content_types: &[
        Control::Policy.content_type(),
        Control::Resumption.content_type(),
        Control::Succession.content_type(),
        Control::Trust.content_type(),
    ],
    read: |header, _| match media_type(header).and_then(Control::from_content_type) {
        Some(control) => boxed((control, Vec::new())),
        None => boxed((super::Opaque, Vec::new())),
    },
    codes: &[],
    later_codes: &[],
    page: "",
};

/// The statement by which a log's key names the next one. The signature inside
/// covers both kids, so neither key can be replaced by another; the old key
/// signs the statement itself.
///
/// ```cddl
/// succession = {
///   1 => COSE_Key,  ; the new key
///   2 => bstr,      ; the kid of the old key
///   3 => bstr,      ; a signature by the new key
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Succession {
    old: [u8; 32],
    /// The key that takes over.
    pub new: PublicKey,
}

mod succession {
    pub(super) const NEW_KEY: i64 = 1;
    pub(super) const OLD_KID: i64 = 2;
    pub(super) const SIGNATURE: i64 = 3;
}

impl Succession {
    /// The payload by which `new` follows `old`.
    pub fn encode(old: KeyId, new: &SigningKey) -> Result<Vec<u8>, key::Error> {
        let mut out = Vec::new();
        cbor::map(&mut out, 3);
        cbor::int(&mut out, succession::NEW_KEY);
        out.extend(new.public().to_cose_key());
        cbor::int(&mut out, succession::OLD_KID);
        cbor::bytes(&mut out, old.as_bytes());
        cbor::int(&mut out, succession::SIGNATURE);
        cbor::bytes(&mut out, &new.sign(&message(old.as_bytes(), new.public().id()))?);
        Ok(out)
    }

    /// Reads a payload; the detail says what is wrong with it.
    pub fn read(payload: &[u8]) -> Result<Self, &'static str> {
        let value = Value::read(payload).map_err(|_| "it is not strict CBOR")?;
        let new = value.get(succession::NEW_KEY).ok_or("it names no key")?;
        let new = PublicKey::from_cose_value(new).map_err(|_| "its key cannot be read")?;
        let bytes = |label: i64| value.get(label).and_then(Value::bytes).unwrap_or_default();
        let old = bytes(succession::OLD_KID).try_into().map_err(|_| "it names no key to follow")?;
        let algorithm = new.default_algorithm().ok_or("its key cannot sign")?;
        let agreed = new.verify(algorithm, &message(&old, new.id()), bytes(succession::SIGNATURE));
        agreed.map_err(|_| "the new key does not agree")?;
        Ok(Self { old, new })
    }

    /// Whether it names this key as the old one.
    pub fn follows(&self, key: &PublicKey) -> bool {
        self.old == *key.id().as_bytes()
    }
}

/// What a new key signs to show that it agrees.
fn message(old: &[u8; 32], new: KeyId) -> Vec<u8> {
    [b"capstan succession v1".as_slice(), old, new.as_bytes()].concat()
}

/// Why a log had to show that it is the newest copy.
#[derive(Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "kebab-case")]
pub enum Reason {
    /// It has no guard.
    GuardMissing,
    /// It was made from a copy.
    Restored,
}

impl Reason {
    /// The word in the statement.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Who knew a head of the log.
#[derive(Clone, Copy, Debug, EnumString, Eq, IntoStaticStr, PartialEq)]
#[strum(serialize_all = "kebab-case")]
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
    /// The word in the statement.
    pub fn name(self) -> &'static str {
        self.into()
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

/// The statement by which a log resumes writing after it was restored or moved:
/// what its operator compared first.
///
/// ```cddl
/// resumption = {
///   1 => uint,     ; the size of the tree before this statement
///   2 => bstr,     ; its root
///   3 => tstr,     ; the reason
///   4 => uint,     ; when the heads were compared
///   5 => [+ head],
/// }
/// head = {
///   1 => tstr,     ; who knew it
///   2 => uint,     ; its size
///   3 => bstr,     ; its root
///   ? 4 => tstr,   ; the address of a peer
/// }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resumption {
    /// Number of leaves before this statement.
    pub size: u64,
    /// Their root.
    pub root: Digest,
    /// Why it had to be shown.
    pub reason: Reason,
    /// When the heads were compared.
    pub time: UnixSeconds,
    /// The heads; at least one is the log's own.
    pub compared: Vec<Compared>,
}

mod resumption {
    pub(super) const SIZE: i64 = 1;
    pub(super) const ROOT: i64 = 2;
    pub(super) const REASON: i64 = 3;
    pub(super) const TIME: i64 = 4;
    pub(super) const HEADS: i64 = 5;
}

mod head {
    pub(super) const SOURCE: i64 = 1;
    pub(super) const SIZE: i64 = 2;
    pub(super) const ROOT: i64 = 3;
    pub(super) const ADDRESS: i64 = 4;
}

impl Resumption {
    /// The payload of the statement.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        cbor::map(&mut out, 5);
        cbor::int(&mut out, resumption::SIZE);
        cbor::int(&mut out, self.size);
        cbor::int(&mut out, resumption::ROOT);
        cbor::bytes(&mut out, self.root.as_bytes());
        cbor::int(&mut out, resumption::REASON);
        cbor::text(&mut out, self.reason.name());
        cbor::int(&mut out, resumption::TIME);
        cbor::int(&mut out, self.time.seconds());
        cbor::int(&mut out, resumption::HEADS);
        cbor::array(&mut out, self.compared.len());
        for Compared { source, size, root, address } in &self.compared {
            cbor::map(&mut out, 3 + usize::from(address.is_some()));
            cbor::int(&mut out, head::SOURCE);
            cbor::text(&mut out, source.name());
            cbor::int(&mut out, head::SIZE);
            cbor::int(&mut out, *size);
            cbor::int(&mut out, head::ROOT);
            cbor::bytes(&mut out, root.as_bytes());
            if let Some(address) = address {
                cbor::int(&mut out, head::ADDRESS);
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
        let reason =
            value.get(resumption::REASON).and_then(Value::text).and_then(|name| name.parse().ok());
        let compared = |one: &Value<'_>| {
            Some(Compared {
                source: one.get(head::SOURCE)?.text()?.parse().ok()?,
                size: number(one, head::SIZE)?,
                root: digest(one, head::ROOT)?,
                address: one
                    .get(head::ADDRESS)
                    .map(|at| at.text().map(str::to_owned))
                    .unwrap_or_default(),
            })
        };
        let heads = value.get(resumption::HEADS).and_then(Value::array).unwrap_or_default();
        let read = Self {
            size: number(&value, resumption::SIZE).ok_or("it names no size")?,
            root: digest(&value, resumption::ROOT).ok_or("it names no root")?,
            reason: reason.ok_or("it names no reason we know")?,
            time: UnixSeconds::new(number(&value, resumption::TIME).ok_or("it names no time")?),
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
    fn resumption_round_trip() {
        for reason in [Reason::GuardMissing, Reason::Restored] {
            for source in [Source::Checkpoint, Source::Guard, Source::Operator, Source::Peer] {
                let mut resumption = Resumption { reason, ..sample() };
                resumption.compared[1].source = source;
                assert_eq!(Resumption::read(&resumption.encode()), Ok(resumption));
            }
        }
    }

    #[test]
    fn resumption_must_match_a_head() {
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
