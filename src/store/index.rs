//! The index: where statements are found by what they say.
//!
//! In: the header and the record of a statement. Out: one row for each thing
//! it can be found by, written in the commit that logs it, so that search
//! never lags behind the log. Everything here can be made again from the
//! statements; nothing a receipt proves depends on it.
//!
//! | key                                                | value             |
//! |----------------------------------------------------|-------------------|
//! | term ‖ leaf index of a group's first statement, u64 | the statements of |
//! |                                                    | the group that    |
//! |                                                    | have it, u16 each |
//! | term that is asked for                             | the first         |
//! |                                                    | statement that    |
//! |                                                    | has it, u64       |
//! | term of an issuer's session                        | where it ends     |
//!
//! A term is field ‖ value ‖ 0x00, in the last two rows with the high bit of the
//! field set; numbers are big-endian. A commit is a group, so what a thousand
//! statements have in common costs one row.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::envelope::{Header, SignedStatement};
use crate::profile::exchange::{Part, Request};
use crate::profile::session::{Head, Span};
use crate::profile::{self, Read};
use crate::wire::digest::Digest;
use crate::wire::time::UnixSeconds;

/// Changes whenever the same statement would give other rows.
pub(super) const VERSION: u8 = 4;
/// Those of earlier programs. Each differs from `VERSION` in more than a bit.
pub(super) const EARLIER: [u8; 2] = [2, 3];
/// Where the version stands: no field has this number.
pub(super) const MARKER: [u8; 1] = [0];
/// Longer values are kept as digests, and so are those with a zero byte: their
/// rows would lie among the rows of a shorter value, and whoever logs enough of
/// them would make every search for that one slow. Hex digests of 64 fit as
/// they are.
const VALUE_BYTES_MAX: usize = 64;
/// Marks the field of a row that there is once for a term.
const ALONE: u8 = 0x80;
/// Starts the value of a long one. With 64 hex digits after it, it is longer
/// than any value that stands for itself.
const LONG: u8 = 1;

/// What a statement can be found by.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Field {
    /// `iss`.
    Issuer,
    /// `sub`.
    Subject,
    /// The tenant.
    Operator,
    /// The agent.
    Developer,
    /// Name of the action.
    ActionId,
    /// What ties statements of one decision together.
    DecisionId,
    /// The record's content address.
    RecordId,
    /// The record it refers to.
    ParentId,
    /// Why it ended as it did.
    Verdict,
    /// The kind of effect.
    EffectType,
    /// The profile of the payload.
    Profile,
    /// Registration time: one row for each second, at its first statement.
    Time,
    /// A content address signed without its record.
    BareId,
    /// The record it takes the place of, when its own checks hold.
    Supersedes,
    /// What outcomes and reversals are joined by.
    ExternalRef,
    /// What is known of the effect, as rederived.
    EffectMode,
    /// The session whose events it holds.
    Session,
    /// Issuer and what he may use once.
    Nonce,
    /// Issuer and session: a session is its issuer's own.
    IssuerSession,
    /// Issuer and the name of a part of an exchange.
    Exchange,
}

impl Field {
    /// The fields people search by.
    pub const SEARCHED: [Self; 13] = [
        Self::Issuer,
        Self::Subject,
        Self::Operator,
        Self::Developer,
        Self::ActionId,
        Self::DecisionId,
        Self::RecordId,
        Self::ParentId,
        Self::Verdict,
        Self::EffectType,
        Self::Profile,
        Self::ExternalRef,
        Self::Session,
    ];

    /// Its name in queries.
    pub fn name(self) -> &'static str {
        match self {
            Self::Issuer => "issuer",
            Self::Subject => "subject",
            Self::Operator => "operator",
            Self::Developer => "developer",
            Self::ActionId => "action_id",
            Self::DecisionId => "decision_id",
            Self::RecordId => "record_id",
            Self::ParentId => "parent_id",
            Self::Verdict => "verdict",
            Self::EffectType => "effect_type",
            Self::Profile => "profile",
            Self::Time => "time",
            Self::BareId => "bare_id",
            Self::Supersedes => "supersedes",
            Self::ExternalRef => "external_ref",
            Self::EffectMode => "effect_mode",
            Self::Session => "session",
            Self::Nonce => "nonce",
            Self::IssuerSession => "issuer_session",
            Self::Exchange => "exchange",
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Issuer => 1,
            Self::Subject => 2,
            Self::Operator => 3,
            Self::Developer => 4,
            Self::ActionId => 5,
            Self::DecisionId => 6,
            Self::RecordId => 7,
            Self::ParentId => 8,
            Self::Verdict => 9,
            Self::EffectType => 10,
            Self::Profile => 11,
            Self::Time => 12,
            Self::BareId => 13,
            Self::Supersedes => 14,
            Self::ExternalRef => 15,
            Self::EffectMode => 16,
            Self::Session => 17,
            Self::Nonce => 18,
            Self::IssuerSession => 19,
            Self::Exchange => 20,
        }
    }
}

/// A field and its value: everything of a key but the leaf index.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Term(Vec<u8>);

impl Term {
    /// The term of a value.
    pub fn new(field: Field, value: &str) -> Self {
        let mut key = Vec::with_capacity(value.len().min(VALUE_BYTES_MAX) + 10);
        key.push(field.number());
        if value.len() <= VALUE_BYTES_MAX && !value.contains('\0') {
            key.extend_from_slice(value.as_bytes());
        } else {
            key.push(LONG);
            key.extend_from_slice(Digest::of(value.as_bytes()).to_string().as_bytes());
        }
        key.push(0);
        Self(key)
    }

    /// The term of a nonce. An issuer's nonces are no other issuer's.
    pub fn nonce(issuer: &str, nonce: &str) -> Self {
        Self::new(Field::Nonce, &own(issuer, nonce))
    }

    /// The term of a session. An issuer's sessions are no other issuer's,
    /// whatever they are called.
    pub fn session(issuer: &str, session: &str) -> Self {
        Self::new(Field::IssuerSession, &own(issuer, session))
    }

    /// A request within its session. An issuer's exchanges are no other's.
    pub fn request(issuer: &str, request: &Request) -> Self {
        Self::exchange(issuer, &format!("request {} {}", request.session, request.request))
    }

    /// An execute request, by what its response names.
    pub fn execution(issuer: &str, request: &str) -> Self {
        Self::exchange(issuer, &format!("execution {request}"))
    }

    /// A resolution, by what execute requests name.
    pub fn resolution(issuer: &str, resolution: &str) -> Self {
        Self::exchange(issuer, &format!("resolution {resolution}"))
    }

    fn exchange(issuer: &str, part: &str) -> Self {
        Self::new(Field::Exchange, &own(issuer, part))
    }

    /// The term of a time; they sort as the times do.
    pub(super) fn time(time: UnixSeconds) -> Self {
        let mut key = vec![Field::Time.number()];
        key.extend_from_slice(&time.seconds().to_be_bytes());
        key.push(0);
        Self(key)
    }

    /// The key of a row.
    pub(super) fn at(&self, index: u64) -> Vec<u8> {
        let mut key = Vec::with_capacity(self.0.len() + 8);
        key.extend_from_slice(&self.0);
        key.extend_from_slice(&index.to_be_bytes());
        key
    }

    /// The key of what there is once for a term. No field has its number.
    pub(super) fn alone(&self) -> Vec<u8> {
        let mut key = self.0.clone();
        if let Some(field) = key.first_mut() {
            *field |= ALONE;
        }
        key
    }

    /// Whether a key is one of those.
    pub(super) fn is_alone(key: &[u8]) -> bool {
        key.first().is_some_and(|field| field & ALONE != 0)
    }

    /// Whether its absence is asked for so often that a lookup must be cheap.
    /// The first statement with such a term has a row of its own.
    pub(super) fn has_first_row(&self) -> bool {
        let asked = [Field::RecordId, Field::Supersedes, Field::Nonce, Field::Exchange];
        asked.iter().any(|field| self.is_of(*field))
    }

    fn is_of(&self, field: Field) -> bool {
        self.0.first() == Some(&field.number())
    }

    /// Whether a key is one of a time.
    pub(super) fn is_time(key: &[u8]) -> bool {
        key.first() == Some(&Field::Time.number())
    }

    /// The leaf index in a key of this term.
    pub(super) fn index_in(&self, key: &[u8]) -> Option<u64> {
        let index = key.strip_prefix(self.0.as_slice())?;
        index.try_into().ok().map(u64::from_be_bytes)
    }
}

/// The value of a field whose names are the issuer's own.
pub fn own(issuer: &str, name: &str) -> String {
    format!("{} {name}", Digest::of(issuer.as_bytes()))
}

/// What a statement will be found by.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Terms {
    all: Vec<Term>,
    /// Where the session ends after the statement, if it moves the end.
    session: Option<(Term, Vec<u8>)>,
}

impl Terms {
    /// Of a statement whose payload was read.
    pub fn of(header: &Header, read: &Read) -> Self {
        let (claims, summary) = (&header.claims, &read.summary);
        let named = if summary.is_id_only { Field::BareId } else { Field::RecordId };
        let parent = summary.parent.as_ref();
        let values = [
            (Field::Issuer, claims.issuer.as_deref()),
            (Field::Subject, claims.subject.as_deref()),
            (Field::Profile, Some(read.profile())),
            (Field::Operator, summary.operator.as_deref()),
            (Field::Developer, summary.developer.as_deref()),
            (Field::ActionId, summary.action_id.as_deref()),
            (Field::DecisionId, summary.decision_id.as_deref()),
            (named, summary.record_id.as_deref()),
            (Field::ParentId, parent.map(|p| p.record_id.as_str())),
            (Field::Supersedes, summary.superseded()),
            (Field::Verdict, summary.verdict.as_deref()),
            (Field::EffectType, summary.effect_type.as_deref()),
            (Field::ExternalRef, summary.external_ref.as_deref()),
            (Field::Session, summary.session.as_ref().map(|span| span.session.as_str())),
            (Field::EffectMode, summary.effect_mode.as_deref()),
        ];
        let term = |(field, value): (Field, Option<&str>)| Some(Term::new(field, value?));
        let mut all: Vec<Term> = values.into_iter().filter_map(term).collect();
        all.extend(summary.predecessors.iter().map(|id| Term::new(Field::ParentId, id)));
        let issuer = claims.issuer.as_deref().unwrap_or_default();
        all.extend(summary.nonce.iter().map(|nonce| Term::nonce(issuer, nonce)));
        all.extend(summary.session.iter().map(|span| Term::session(issuer, &span.session)));
        all.extend(summary.exchange.iter().flat_map(|part| Self::of_exchange(issuer, part)));
        Self { all, session: None }
    }

    fn of_exchange(issuer: &str, part: &Part) -> Vec<Term> {
        let own = match part {
            Part::Request(asked) => {
                let execution = asked.execution.as_ref();
                let execution = execution.map(|_| Term::execution(issuer, &asked.request));
                [Some(Term::request(issuer, asked)), execution]
            }
            Part::Resolution(granted) => {
                [Some(Term::resolution(issuer, &granted.resolution)), None]
            }
            Part::Response(_) => [None, None],
        };
        let answered = part.answers().map(|request| Term::new(Field::ParentId, request));
        own.into_iter().flatten().chain(answered).collect()
    }

    /// Says where a session ends once the statement is logged.
    pub fn ending(mut self, session: Term, head: &Head) -> Self {
        self.session = Some((session, Self::end_value(head)));
        self
    }

    /// The end of a session as a row holds it.
    pub(super) fn end_value(head: &Head) -> Vec<u8> {
        [head.last.to_be_bytes().as_slice(), head.hash.as_bytes()].concat()
    }

    /// Of a statement as it lies in the log, and the events it holds with the
    /// term of their session.
    pub fn of_canonical(canonical: &[u8]) -> (Self, Option<(Term, Span)>) {
        // What cannot be read cannot be found; `fsck` says why.
        let Ok(statement) = SignedStatement::parse_any_size(canonical.to_vec()) else {
            return (Self::default(), None);
        };
        let header = statement.header();
        let read = profile::read_payload(header, statement.payload().unwrap_or_default());
        let issuer = header.claims.issuer.as_deref().unwrap_or_default();
        let session = read.summary.session.clone();
        let session = session.map(|span| (Term::session(issuer, &span.session), span));
        (Self::of(header, &read), session)
    }

    /// Those by which it changes what the log says about other records.
    pub fn affecting(&self) -> impl Iterator<Item = &Term> {
        self.all.iter().filter(|term| term.has_first_row() || term.is_of(Field::IssuerSession))
    }

    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = &Term> {
        self.all.iter()
    }
}

/// Statements one group may have, so that its offsets fit.
pub(super) const GROUP_MAX: usize = 4096;

/// The rows of statements that follow one another.
pub(super) struct Group<'a> {
    first: u64,
    /// Terms that are asked for and new, and the first statement with each.
    firsts: HashMap<&'a Term, u64, RandomState>,
    offsets: HashMap<&'a Term, Vec<u8>, RandomState>,
    sessions: HashMap<&'a Term, &'a [u8], RandomState>,
}

impl<'a> Group<'a> {
    /// Of at most `GROUP_MAX` statements, the first at `first`. `is_known`
    /// says whether an earlier statement has a term that is asked for.
    pub(super) fn new<E>(
        first: u64,
        statements: impl Iterator<Item = &'a Terms>,
        is_known: impl Fn(&Term) -> Result<bool, E>,
    ) -> Result<Self, E> {
        let hasher = RandomState::default();
        let room = statements.size_hint().0;
        let offsets = HashMap::with_capacity_and_hasher(room, hasher);
        let (firsts, sessions) = (HashMap::default(), HashMap::default());
        let mut group = Self { first, firsts, offsets, sessions };
        for (offset, terms) in (0_u16..).zip(statements) {
            for term in terms.iter() {
                let is_first =
                    term.has_first_row() && !group.firsts.contains_key(term) && !is_known(term)?;
                if is_first {
                    group.firsts.insert(term, first + u64::from(offset));
                } else {
                    group.offsets.entry(term).or_default().extend(offset.to_be_bytes());
                }
            }
            let ends = terms.session.iter().map(|(term, end)| (term, end.as_slice()));
            group.sessions.extend(ends);
        }
        Ok(group)
    }

    /// The first statements with terms that are asked for.
    pub(super) fn firsts(&self) -> impl Iterator<Item = (Term, u64)> {
        self.firsts.iter().map(|(term, at)| ((*term).clone(), *at))
    }

    /// Keys and values.
    pub(super) fn into_rows(self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
        let first = self.first;
        let firsts = self.firsts.into_iter();
        let firsts = firsts.map(|(term, at)| (term.alone(), at.to_be_bytes().to_vec()));
        let ends = self.sessions.into_iter().map(|(term, end)| (term.alone(), end.to_vec()));
        let rows = self.offsets.into_iter();
        let rows = rows.map(move |(term, offsets)| (term.at(first), offsets));
        firsts.chain(ends).chain(rows)
    }
}

/// The leaf indices a row stands for, ascending.
pub(super) fn statements_in(first: u64, offsets: &[u8]) -> impl DoubleEndedIterator<Item = u64> {
    let (pairs, _) = offsets.as_chunks::<2>();
    pairs.iter().map(move |pair| first + u64::from(u16::from_be_bytes(*pair)))
}
