//! Statements by which a log governs itself (RFC 9943, 5.1.1.1: policies and
//! trust anchors are made transparent like everything else).

/// A kind of control statement. Only the log's own key may register one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Control {
    /// The registration policy from here on.
    Policy,
    /// The log goes on after it was restored or moved.
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
    pub fn content_type(self) -> &'static str {
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
