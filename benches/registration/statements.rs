//! Signed statements in numbers, as agents would send them.

use capstan::envelope::{Draft, seal, seal_with_claims};
use capstan::key::{Algorithm, SigningKey};
use capstan::profile::capsule::{
    Action, ActionKind, Attested, CONTENT_TYPE, Disposer, Disposition, Effect, EffectState,
};
use capstan::profile::cra::trace::{self, Event, GENESIS};
use capstan::profile::pacr::{self, CausalId, CognitiveSplit, Estimate, Resources, SixTuple};
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
    /// Causal records with one to four predecessors that were logged before.
    Pacr,
    /// TRACE batches of one event; every session is gone on with.
    Trace,
}

/// Records lie this far behind those that name them, and sessions this far
/// between two of their batches: more than are ever in flight.
const APART: usize = 2048;

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
            Kind::Pacr => self.causal(n),
            Kind::Trace => self.trace(n),
        };
        (first..first + count).map(one).collect()
    }

    /// Like the payloads of the other kinds, 500 to 650 bytes.
    fn opaque(&self, n: usize) -> Vec<u8> {
        let filler = "x".repeat(520);
        let payload =
            format!(r#"{{"action":"pay","order":{n},"verdict":"executed","filler":"{filler}"}}"#);
        self.plain("application/json", n, payload.as_bytes())
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
            decision_id: None,
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

    fn causal(&self, n: usize) -> Vec<u8> {
        let id = |n: usize| CausalId::from_bytes(&(1 + n as u128).to_be_bytes()).expect("an id");
        let before = (1..=1 + n % 4).filter_map(|step| n.checked_sub(step * APART));
        let estimate = |point: f64| Estimate { point, lower: point / 2.0, upper: point * 2.0 };
        let record = SixTuple {
            id: id(n),
            predecessors: before.map(id).collect(),
            landauer_cost: estimate(3e-21),
            resources: Resources {
                energy: estimate(5e-19),
                time: estimate(0.002),
                space: estimate(512.0),
            },
            cognitive_split: CognitiveSplit {
                statistical_complexity: estimate(2.5),
                entropy_rate: estimate(0.5),
                info_gain: Estimate::ZERO,
            },
            payload: b"PACR\x02paid".to_vec(),
        };
        let encoding = pacr::Encoding::Json;
        self.plain(encoding.content_type(), n, &record.encode(encoding))
    }

    fn trace(&self, n: usize) -> Vec<u8> {
        let (session, sequence) = (n % APART, n / APART);
        let uuid = |kind: usize, n: usize| format!("01939c6e-0000-7000-8{kind:03x}-{n:012x}");
        let mut event = Event {
            line: 0,
            at: String::new(),
            event_id: uuid(1, n),
            trace_id: uuid(2, session),
            span_id: uuid(3, session),
            parent_span_id: None,
            session_id: uuid(4, session),
            sequence: 0,
            timestamp: "2026-06-01T00:00:00.000000Z".to_owned(),
            event_type: "policy.evaluated".to_owned(),
            payload: Json::object([
                ("policy_id", Json::from("p")),
                ("result", Json::from("allow")),
            ]),
            previous: GENESIS.to_owned(),
            hash: String::new(),
        };
        let mut line = String::new();
        for at in 0..=sequence {
            event.event_id = uuid(1, at * APART + session);
            event.sequence = at as u64;
            line = event.seal().expect("an event");
            event.previous = event.hash.clone();
        }
        self.plain(trace::BATCH_CONTENT_TYPE, n, line.as_bytes())
    }

    fn plain(&self, content_type: &str, n: usize, payload: &[u8]) -> Vec<u8> {
        let subject = format!("urn:example:record:{n}");
        let draft = Draft {
            content_type,
            issuer: ISSUER,
            subject: &subject,
            issued_at: Some(NOW),
            payload,
        };
        seal(&draft, &self.key).expect("sealed")
    }
}
