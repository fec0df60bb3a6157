//! The six registries of the profile (section 12), and the closed sets.
//!
//! A value outside a registry is worth a note, never a refusal.

/// One registry-governed member.
pub(super) struct Registry {
    /// Its name in section 12.
    pub(super) name: &'static str,
    /// The block that holds the member.
    pub(super) block: &'static str,
    /// The member.
    pub(super) member: &'static str,
    /// The seeded values; `irreversibility_class` by ascending consequence.
    pub(super) values: &'static [&'static str],
}

/// The registries in the order check 8 reports them.
pub(super) const REGISTRIES: [Registry; 6] = [
    Registry {
        name: "verdict_class",
        block: "disposition",
        member: "verdict_class",
        values: &[
            "executed",
            "blocked",
            "hitl_dispatched",
            "denied",
            "timeout",
            "errored",
            "engine_failure",
            "deferred",
            "needs_decision",
            "expired",
            "escalated",
            "resolved",
        ],
    },
    Registry {
        name: "disposition.decision",
        block: "disposition",
        member: "decision",
        values: &["accept", "reject", "needs_input", "deferred"],
    },
    Registry {
        name: "effect.type",
        block: "effect",
        member: "type",
        values: &["write_order", "send_payment"],
    },
    Registry {
        name: "irreversibility_class",
        block: "effect",
        member: "irreversibility_class",
        values: &["two_way", "one_way_recoverable", "one_way_consequential", "one_way_terminal"],
    },
    Registry {
        name: "effect_attestation",
        block: "effect",
        member: "effect_attestation",
        values: &["gate_executed", "runtime_claimed"],
    },
    Registry {
        name: "chain.relation",
        block: "chain",
        member: "relation",
        values: &["supersedes"],
    },
];

/// Verdicts that by their kind never dispatch (5.4.2).
pub const NEVER_DISPATCH: &[&str] = &[
    "blocked",
    "hitl_dispatched",
    "denied",
    "engine_failure",
    "deferred",
    "needs_decision",
    "expired",
    "escalated",
    "resolved",
];

/// Verdicts that leave an item open (5.4.4).
pub const OPEN: &[&str] =
    &["deferred", "needs_decision", "hitl_dispatched", "escalated", "blocked"];

/// Who may dispose (5.4); closed.
pub const APPROVERS: &[&str] = &["human", "policy"];

/// How far an effect came (5.2); closed.
pub const EFFECT_STATUSES: &[&str] = &["planned", "dispatched", "confirmed", "failed", "reverted"];

/// What a deferral may turn into (5.4); closed.
pub const ON_EXPIRY: &[&str] = &["expired", "escalated"];

/// What a constraint may say (8.1); closed.
pub const RESULTS: &[&str] = &["pass", "fail", "n/a"];

/// Whether a verdict_class is seeded.
pub(super) fn is_known_verdict(verdict: &str) -> bool {
    let [verdicts, ..] = &REGISTRIES;
    verdicts.values.contains(&verdict)
}
