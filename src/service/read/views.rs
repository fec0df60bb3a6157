//! What reads return. The API serialises these types, and the command line
//! reads them back from its JSON; members are written in the order of the
//! fields.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::envelope::{Binding, Issuer, StatementId};
use crate::log::{LeafIndex, TreeSize};
use crate::profile::pacr::Compared;
use crate::profile::{self, Parent, Span, Summary};
use crate::story::{self, Correlation, State, Story};
use crate::wire::text;
use crate::wire::time::UnixSeconds;

/// The limits of every read, as each answer states them.
pub const NOT_PROOF: &str = "Search is this server's index, not proof of absence: \
     what is not found here may still be in the log. A receipt proves what is.";

/// Marks a record of something that was only imagined.
const COUNTERFACTUAL: &str = "counterfactual";

/// A statement of the log.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct EntryView {
    /// Its leaf.
    pub index: LeafIndex,
    /// Its id.
    pub id: StatementId,
    /// Claim `iss`.
    pub issuer: String,
    /// Claim `sub`.
    pub subject: String,
    /// When it was registered.
    pub registered_at: UnixSeconds,
    /// The profile of its payload.
    pub profile: Cow<'static, str>,
    /// What its payload says.
    pub record: RecordView,
    /// Path of its receipt.
    pub receipt: String,
    /// Path of the Transparent Statement.
    pub statement: String,
    /// CBOR that an auditor needs besides the statement to authenticate it;
    /// empty in most cases, and where nobody asked for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "base64")]
    pub collateral: Vec<u8>,
}

impl From<&story::Entry> for EntryView {
    fn from(entry: &story::Entry) -> Self {
        Self {
            index: LeafIndex::new(entry.index),
            id: entry.id,
            issuer: entry.issuer.clone(),
            subject: entry.subject.clone(),
            registered_at: entry.time,
            profile: entry.profile.into(),
            record: RecordView::from(&entry.summary),
            receipt: format!("/entries/{}", entry.id),
            statement: format!("/entries/{}/statement", entry.id),
            collateral: Vec::new(),
        }
    }
}

mod base64 {
    use super::{Deserialize, Deserializer, Serializer, text};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&text::base64(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let bytes = text::from_base64(&String::deserialize(from)?);
        bytes.ok_or_else(|| serde::de::Error::custom("not base64"))
    }
}

/// The facts of a record. A member is absent where the record says nothing.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct RecordView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub developer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect_attestation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub irreversibility: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervention: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub human_disposed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<UnixSeconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predecessors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Span>,
    /// False for a counterfactual, absent for everything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub happened: Option<bool>,
    /// True where parts are concealed, absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_concealed: Option<bool>,
}

impl From<&Summary> for RecordView {
    fn from(summary: &Summary) -> Self {
        let summary = summary.clone();
        let is_counterfactual = summary.intervention.as_deref() == Some(COUNTERFACTUAL);
        Self {
            happened: is_counterfactual.then_some(false),
            is_concealed: summary.is_concealed.then_some(true),
            record_id: summary.record_id,
            action_id: summary.action_id,
            decision_id: summary.decision_id,
            operator: summary.operator,
            developer: summary.developer,
            action_type: summary.action_type,
            verdict: summary.verdict,
            decision: summary.decision,
            approver: summary.approver,
            effect_type: summary.effect_type,
            effect_status: summary.effect_status,
            effect_mode: summary.effect_mode,
            effect_attestation: summary.effect_attestation,
            irreversibility: summary.irreversibility,
            external_ref: summary.external_ref,
            intervention: summary.intervention,
            content: summary.content,
            nonce: summary.nonce,
            human_disposed: summary.human_disposed,
            claimed_at: summary.claimed_at,
            ok: summary.ok,
            parent: summary.parent,
            predecessors: summary.predecessors,
            session: summary.session,
        }
    }
}

/// One statement, with what was noticed while reading it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct StatementView {
    #[serde(flatten)]
    pub entry: EntryView,
    /// How its issuer was authenticated, if that can be established.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<Cow<'static, str>>,
    /// The trust anchor that vouched for the issuer, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    pub findings: Vec<FindingView>,
    pub tree_size: TreeSize,
    pub note: Cow<'static, str>,
}

impl StatementView {
    pub(super) fn new(
        entry: EntryView,
        issuer: Option<Issuer>,
        findings: &[profile::Finding],
        tree_size: TreeSize,
    ) -> Self {
        Self {
            entry,
            binding: issuer.as_ref().map(|issuer| issuer.binding.name().into()),
            anchor: issuer.and_then(|issuer| issuer.anchor),
            findings: findings.iter().map(FindingView::from).collect(),
            tree_size,
            note: NOT_PROOF.into(),
        }
    }
}

/// Something noticed about one record.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct FindingView {
    pub code: Cow<'static, str>,
    pub severity: Cow<'static, str>,
    /// The label or JSON pointer it is about.
    pub at: String,
    pub detail: String,
    /// The number of the profile's own check, where it numbers them.
    pub check: Option<u8>,
    /// Whether it counts for the profile's own `ok`.
    pub gating: bool,
}

impl From<&profile::Finding> for FindingView {
    fn from(finding: &profile::Finding) -> Self {
        Self {
            code: finding.code.into(),
            severity: finding.severity.name().into(),
            at: finding.at.clone(),
            detail: finding.detail.clone(),
            check: finding.check,
            gating: finding.gating,
        }
    }
}

/// A page of statements (`EntryView`) or of open items (`ItemView`).
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SearchPage<T> {
    pub statements: Vec<T>,
    /// Where the next page begins; none on the last.
    pub cursor: Option<String>,
    /// Whether the page is shorter than asked for because of its cost.
    #[serde(default)]
    pub is_cut: bool,
    /// What ran out.
    pub limit: Option<Cow<'static, str>>,
    pub tree_size: TreeSize,
    #[serde(default)]
    pub note: Cow<'static, str>,
}

/// A record that can be open.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ItemView {
    #[serde(flatten)]
    pub entry: EntryView,
    /// When a deferral runs out, by what the record itself says.
    pub expires_at_by_its_own_clock: Option<UnixSeconds>,
}

impl From<&story::Entry> for ItemView {
    fn from(entry: &story::Entry) -> Self {
        Self { entry: entry.into(), expires_at_by_its_own_clock: entry.expires_at() }
    }
}

/// Records that belong together.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct StoryView {
    /// `open` or `closed`.
    pub state: Cow<'static, str>,
    /// Every record, in log order.
    pub chain: Vec<StoryRecord>,
    pub forks: Vec<Fork>,
    pub outcomes: Vec<OutcomeView>,
    pub reversals: Vec<ReversalView>,
    pub sessions: Vec<SessionView>,
    pub findings: Vec<StoryFinding>,
    /// What was asked for.
    pub id: String,
    /// Whether something was left out because of its cost.
    pub is_cut: bool,
    /// What ran out.
    pub limit: Option<Cow<'static, str>>,
    /// Names that were not followed.
    pub unexplored: BTreeSet<String>,
    pub tree_size: TreeSize,
    pub note: Cow<'static, str>,
}

/// A record of a story and its state.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct StoryRecord {
    #[serde(flatten)]
    pub item: ItemView,
    /// `final`, `open`, `closed` or `concealed`.
    pub state: Cow<'static, str>,
    /// The record that closed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_by: Option<LeafIndex>,
    /// Who took its effect back.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub reverted: Option<Reverted>,
}

/// The statement that took an effect back.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Reverted {
    pub reverted_by: LeafIndex,
    pub reverted_says: Option<Reporter>,
}

/// Who reports something, and how they were authenticated.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Reporter {
    pub issuer: String,
    /// Null where it was not or cannot be established.
    pub binding: Option<Cow<'static, str>>,
}

/// A record that several others follow.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Fork {
    pub index: LeafIndex,
    pub children: Vec<LeafIndex>,
}

/// An outcome, and the records it is about.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OutcomeView {
    #[serde(flatten)]
    pub entry: EntryView,
    /// `about`, `ambiguous` or `nothing`.
    pub correlation: Cow<'static, str>,
    pub about: Vec<LeafIndex>,
    pub says: Option<Reporter>,
}

/// A statement that takes effects back, and the records it is about.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ReversalView {
    pub index: LeafIndex,
    pub correlation: Cow<'static, str>,
    pub about: Vec<LeafIndex>,
    pub says: Option<Reporter>,
}

/// The logged part of one session's event chain.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SessionView {
    pub session: String,
    pub issuer: String,
    pub statements: Vec<LeafIndex>,
    /// Sequence number of the last event; none if the chain never began.
    pub last: Option<u64>,
    /// Hash of the last event.
    pub head: Option<String>,
    pub is_gap_free: bool,
}

/// Something that does not fit together in a story.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct StoryFinding {
    pub index: LeafIndex,
    pub code: Cow<'static, str>,
    pub severity: Cow<'static, str>,
    pub detail: String,
}

fn leaves(indices: &[u64]) -> Vec<LeafIndex> {
    indices.iter().copied().map(LeafIndex::new).collect()
}

fn reporter(story: &Story, index: u64) -> Option<Reporter> {
    let entry = story.entry(index)?;
    let binding = entry.binding.map(Binding::name).map(Cow::from);
    Some(Reporter { issuer: entry.issuer.clone(), binding })
}

/// How much of the log a story was made from.
pub(super) struct StoryExtent {
    pub(super) id: String,
    pub(super) is_cut: bool,
    pub(super) limit: Option<&'static str>,
    pub(super) unexplored: BTreeSet<String>,
    pub(super) tree_size: TreeSize,
}

impl StoryView {
    pub(super) fn new(story: &Story, extent: StoryExtent) -> Self {
        let record = |(entry, state): &(story::Entry, State)| StoryRecord {
            item: entry.into(),
            state: state.name().into(),
            closed_by: match state {
                State::Closed { by } => Some(LeafIndex::new(*by)),
                _ => None,
            },
            reverted: story.reverted_by(entry.index).map(|by| Reverted {
                reverted_by: LeafIndex::new(by),
                reverted_says: reporter(story, by),
            }),
        };
        let outcome = |(entry, correlation): &(story::Entry, Correlation)| OutcomeView {
            entry: entry.into(),
            correlation: correlation.name().into(),
            about: leaves(correlation.records()),
            says: reporter(story, entry.index),
        };
        let reversal = |(index, correlation): &(u64, Correlation)| ReversalView {
            index: LeafIndex::new(*index),
            correlation: correlation.name().into(),
            about: leaves(correlation.records()),
            says: reporter(story, *index),
        };
        let session = |session: &story::Session| SessionView {
            session: session.session.clone(),
            issuer: session.issuer.clone(),
            statements: leaves(&session.statements),
            last: session.head.as_ref().map(|head| head.last),
            head: session.head.as_ref().map(|head| head.hash.clone()),
            is_gap_free: session.is_gap_free,
        };
        let finding = |odd: &story::Anomaly| StoryFinding {
            index: LeafIndex::new(odd.index),
            code: odd.code.into(),
            severity: odd.severity.name().into(),
            detail: odd.detail.clone(),
        };
        let fork = |(parent, children): &(u64, Vec<u64>)| Fork {
            index: LeafIndex::new(*parent),
            children: leaves(children),
        };
        Self {
            state: if story.is_open() { "open" } else { "closed" }.into(),
            chain: story.records.iter().map(record).collect(),
            forks: story.forks.iter().map(fork).collect(),
            outcomes: story.outcomes.iter().map(outcome).collect(),
            reversals: story.reversals.iter().map(reversal).collect(),
            sessions: story.sessions.iter().map(session).collect(),
            findings: story.anomalies.iter().map(finding).collect(),
            id: extent.id,
            is_cut: extent.is_cut,
            limit: extent.limit.map(Cow::from),
            unexplored: extent.unexplored,
            tree_size: extent.tree_size,
            note: NOT_PROOF.into(),
        }
    }
}

/// The statements that a name can mean, in log order.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct NameMatches {
    pub name: String,
    pub statements: Vec<EntryView>,
    #[serde(default)]
    pub is_cut: bool,
    pub tree_size: TreeSize,
    pub note: Cow<'static, str>,
}

/// The ancestors of a causal record.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LineageView {
    pub id: String,
    /// Nearest first.
    pub ancestors: Vec<String>,
    /// Each effect against each of its causes.
    pub comparisons: Vec<CauseComparison>,
    /// What ran out before every pair was compared.
    pub comparisons_limit: Option<Cow<'static, str>>,
    /// Ancestors that are not logged.
    pub missing: Vec<String>,
    /// What ran out before every ancestor was found.
    pub limit: Option<Cow<'static, str>>,
    /// Records whose causes were not followed.
    pub unexplored: Vec<String>,
    pub tree_size: TreeSize,
    pub note: Cow<'static, str>,
}

/// The Estimates of an effect against those of one of its causes.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CauseComparison {
    pub effect: String,
    pub cause: String,
    /// Null unless both were measured.
    pub estimates: Option<EstimatesView>,
}

/// How two causal records are ordered.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OrderView {
    pub id: String,
    pub other: String,
    pub order: Cow<'static, str>,
    /// Null unless both were measured.
    pub estimates: Option<EstimatesView>,
    /// What ran out before the order was known.
    pub limit: Option<Cow<'static, str>>,
    /// The record that is not logged and could decide the order.
    pub missing: Option<String>,
    pub tree_size: TreeSize,
    pub note: Cow<'static, str>,
}

/// Name of each Estimate, and `above`, `below` or `overlaps`.
#[derive(Clone, Debug)]
pub struct EstimatesView(pub Vec<(Cow<'static, str>, Cow<'static, str>)>);

impl From<Compared> for EstimatesView {
    fn from(compared: Compared) -> Self {
        Self(compared.iter().map(|(name, how)| (name.into(), how.name().into())).collect())
    }
}

impl Serialize for EstimatesView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, how)| (name, how)))
    }
}

impl<'de> Deserialize<'de> for EstimatesView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = EstimatesView;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EstimatesView, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(EstimatesView(members))
            }
        }

        deserializer.deserialize_map(Members)
    }
}
