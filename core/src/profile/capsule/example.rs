//! Descriptions to begin with. Each is complete: it is sealed as it stands.

/// What an example is of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Example {
    /// A policy let it happen.
    Executed,
    /// A policy kept it from happening.
    Blocked,
    /// It waits for a human.
    Approval,
    /// What became of an action, told later.
    Outcome,
}

impl Example {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Executed, Self::Blocked, Self::Approval, Self::Outcome];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::Blocked => "blocked",
            Self::Approval => "approval",
            Self::Outcome => "outcome",
        }
    }

    /// The one of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|example| example.name() == name)
    }

    /// The text of the file.
    pub fn text(self) -> &'static str {
        match self {
            Self::Executed => include_str!("examples/executed.json"),
            Self::Blocked => include_str!("examples/blocked.json"),
            Self::Approval => include_str!("examples/approval.json"),
            Self::Outcome => include_str!("examples/outcome.json"),
        }
    }
}
