//! Which kinds of statements, and how many of each.

use std::str::FromStr;

use capstan::wire::text::did_you_mean;
use fastrand::Rng;

/// The most one kind can weigh.
const WEIGHT_MAX: u32 = 10_000;

/// What a statement is about.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Kind {
    Capsules,
    Opaque,
    Pacr,
    Pca,
    Trace,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Capsules, Self::Opaque, Self::Pacr, Self::Pca, Self::Trace];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Capsules => "capsules",
            Self::Opaque => "opaque",
            Self::Pacr => "pacr",
            Self::Pca => "pca",
            Self::Trace => "trace",
        }
    }
}

/// `capsules=4,pacr=2,...`
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Mix(Vec<(Kind, u32)>);

impl Mix {
    /// Nothing but bytes no profile looks at.
    pub(super) fn opaque() -> Self {
        Self(vec![(Kind::Opaque, 1)])
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.0.iter().any(|(own, _)| *own == kind)
    }

    pub(super) fn pick(&self, random: &mut Rng) -> Kind {
        let total: u64 = self.0.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let mut left = random.u64(..total);
        for (kind, weight) in &self.0 {
            match left.checked_sub(u64::from(*weight)) {
                Some(rest) => left = rest,
                None => return *kind,
            }
        }
        Kind::Opaque
    }
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut mix = Vec::new();
        for part in text.split(',') {
            let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
            let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
            let kind = kind.ok_or_else(|| unknown(name))?;
            let weight = weight.parse().ok().filter(|weight| *weight <= WEIGHT_MAX);
            let weight = weight.ok_or_else(|| format!("{part}: a weight is 0 to {WEIGHT_MAX}"))?;
            if mix.iter().any(|(own, _)| *own == kind) {
                return Err(format!("{name} is there twice"));
            }
            mix.push((kind, weight));
        }
        mix.retain(|(_, weight)| *weight > 0);
        if mix.is_empty() { Err("nothing is left to send".to_owned()) } else { Ok(Self(mix)) }
    }
}

fn unknown(name: &str) -> String {
    let known = Kind::ALL.map(Kind::name);
    match did_you_mean(name, known) {
        Some(near) => format!("there is no {name}; {near} is meant?"),
        None => format!("there is no {name}; there are {}", known.join(", ")),
    }
}
