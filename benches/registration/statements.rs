//! Signed statements in numbers, as agents would send them.

use capstan::envelope::{Draft, seal, seal_with_claims};
use capstan::key::{Algorithm, SigningKey};
use capstan::profile::capsule::{
    Action, ActionKind, Attested, CONTENT_TYPE, Disposer, Disposition, Effect, EffectState,
};
use capstan::wire::jcs::Suite;
use capstan::wire::json::Json;
use capstan::wire::time::UnixSeconds;

const ISSUER: &str = "https://agent.example";
const NOW: UnixSeconds = UnixSeconds::new(1_780_000_000);

/// What the statements say. All kinds are of about the same size.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Bytes the log does not interpret.
    Opaque,
    /// Agent Action Capsules.
    Capsule,
}

/// An agent with a key of its own.
pub(crate) struct Agent {
    key: SigningKey,
}

impl Agent {
    /// A new agent.
    pub(crate) fn new() -> Self {
        Self { key: SigningKey::generate(Algorithm::Es256).expect("a key") }
    }

    /// The trust file that pins the agent's key.
    pub(crate) fn trust(&self) -> String {
        let pem = self.key.public().to_pem().expect("PEM");
        format!("[[issuer]]\nname = \"{ISSUER}\"\nkeys = ['''\n{pem}''']\n")
    }

    /// `count` different statements with a payload of about 600 bytes,
    /// signed on all cores.
    pub(crate) fn sign(&self, kind: Kind, first: usize, count: usize) -> Vec<Vec<u8>> {
        let half = count / 2;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| self.sign_here(kind, first + half, count - half));
            let mut all = self.sign_here(kind, first, half);
            all.extend(other.join().expect("signed"));
            all
        })
    }

    fn sign_here(&self, kind: Kind, first: usize, count: usize) -> Vec<Vec<u8>> {
        let one = |n| match kind {
            Kind::Opaque => self.opaque(n),
            Kind::Capsule => self.capsule(n),
        };
        (first..first + count).map(one).collect()
    }

    fn opaque(&self, n: usize) -> Vec<u8> {
        let filler = "x".repeat(520);
        let payload =
            format!(r#"{{"action":"pay","order":{n},"verdict":"executed","filler":"{filler}"}}"#);
        let subject = format!("urn:example:order:{n}");
        let draft = Draft {
            content_type: "application/json",
            issuer: ISSUER,
            subject: &subject,
            issued_at: Some(NOW),
            payload: payload.as_bytes(),
        };
        seal(&draft, &self.key).expect("sealed")
    }

    fn capsule(&self, n: usize) -> Vec<u8> {
        let seen = Suite::JcsN.digest(&Json::Text(format!("response {n}"))).expect("a digest");
        let action = Action {
            action_id: format!("pay-{n}"),
            kind: ActionKind::Decide,
            operator: "example-shop".to_owned(),
            developer: ISSUER.to_owned(),
            timestamp: NOW,
            disposition: Some(Disposition {
                decision: "accept".to_owned(),
                by: Disposer::Policy { authority: None },
                verdict: Some("executed".to_owned()),
                reason: None,
                expiry: None,
            }),
            effect: Some(Effect {
                kind: Some("payment".to_owned()),
                external_ref: Some(format!("order-{n}")),
                irreversibility: Some("reversible".to_owned()),
                state: EffectState::Confirmed {
                    request: Some(seen),
                    response: seen,
                    by: Attested::GateExecuted,
                },
            }),
            constraints: Vec::new(),
            model_attestation: None,
            supersedes: None,
        };
        let made = action.produce().expect("a capsule");
        let draft = Draft {
            content_type: CONTENT_TYPE,
            issuer: &made.issuer,
            subject: &made.subject,
            issued_at: Some(NOW),
            payload: &made.payload,
        };
        seal_with_claims(&draft, &made.claims, &self.key).expect("sealed")
    }
}
