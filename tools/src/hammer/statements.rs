//! Signed statements of every profile, in any number.
//!
//! In: signers, a mix, and a worker's own choices. Out: statements that a log
//! must take, in the order it must get them: what a record builds on was made
//! by the same worker before. And statements that no log may take.

use std::collections::BTreeMap;
use std::sync::Arc;

use capstan::envelope::{Draft, SignedStatement, StatementId};
use capstan::profile::cra::trace::{self, Event};
use capstan::profile::pacr::{self, CausalId};
use capstan::profile::{capsule, pca};
use capstan::service::now;
use capstan::wire::text;
use fastrand::Rng;

use super::mix::{Kind, Mix};
use super::records::{self, Name};
use super::signers::{KeyKind, Signer, assemble};
use super::worker_rng;

/// Causal records that a new one may build on.
const CAUSES_KEPT: usize = 64;
/// Events after which a session ends and the next begins.
const SESSION_EVENTS: u64 = 200;

/// A statement to send.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) key: KeyKind,
    pub(super) bytes: Arc<[u8]>,
    pub(super) id: StatementId,
    /// What is wrong with it, if it must be refused.
    pub(super) damage: Option<&'static str>,
}

/// Makes the statements of one worker.
pub(super) struct Generator {
    signers: Arc<Vec<Signer>>,
    mix: Mix,
    random: Rng,
    name: Name,
    causes: Vec<CausalId>,
    /// The last event of each issuer's session: a session is its issuer's.
    sessions: BTreeMap<String, Event>,
}

impl Generator {
    /// `name` is the first; its salt makes the names of a run unique.
    pub(super) fn new(signers: Arc<Vec<Signer>>, mix: Mix, seed: u64, name: Name) -> Self {
        let random = worker_rng(seed, name.worker.into());
        Self { signers, mix, random, name, causes: Vec::new(), sessions: BTreeMap::new() }
    }

    /// The next statement of the mix.
    pub(super) fn next(&mut self) -> anyhow::Result<Item> {
        let kind = self.mix.pick(&mut self.random);
        self.make(kind)
    }

    fn make(&mut self, kind: Kind) -> anyhow::Result<Item> {
        self.name.number += 1;
        let signers = self.signers.clone();
        let signer = self.random.choice(signers.iter());
        let signer = signer.ok_or_else(|| anyhow::anyhow!("there is no signer"))?;
        let bytes = match kind {
            Kind::Capsules => self.capsule(signer),
            Kind::Opaque => self.plain(signer, "application/json", &self.opaque()),
            Kind::Pacr => self.causal(signer),
            Kind::Pca => self.certificate(signer),
            Kind::Trace => self.trace(signer),
        }?;
        let statement = SignedStatement::parse(bytes)?;
        Ok(Item {
            kind,
            key: signer.kind,
            id: StatementId::of(&statement),
            bytes: statement.bytes().into(),
            damage: None,
        })
    }

    /// A statement no log may take. In a batch it must still be CBOR, or all
    /// of the batch is refused.
    pub(super) fn damaged(&mut self, is_cbor: bool) -> anyhow::Result<Item> {
        let kind = if self.mix.has(Kind::Capsules) { Kind::Capsules } else { Kind::Opaque };
        let sound = self.make(kind)?;
        let statement = SignedStatement::parse(sound.bytes.to_vec())?;
        let (unprotected, payload) = (statement.unprotected(), statement.payload());
        let payload = payload.unwrap_or_default();
        let mut signature = statement.signature().to_vec();
        let (damage, (payload, signature)) = match self.random.u64(..if is_cbor { 2 } else { 3 }) {
            0 => {
                let middle = signature.len() / 2;
                signature.iter_mut().skip(middle).take(1).for_each(|byte| *byte ^= 0x10);
                ("a bit of its signature is flipped", (payload.to_vec(), signature))
            }
            1 => {
                let longer = [payload, b" ".as_slice()].concat();
                ("its payload was changed after it was signed", (longer, signature))
            }
            _ => {
                let cut = statement.bytes().len() / 2;
                let bytes = statement.bytes().get(..cut).unwrap_or_default().into();
                return Ok(Item { damage: Some("half of it is missing"), bytes, ..sound });
            }
        };
        let bytes = assemble(&statement, unprotected, &payload, &signature);
        let damaged = SignedStatement::parse(bytes)?;
        Ok(Item {
            id: StatementId::of(&damaged),
            bytes: damaged.bytes().into(),
            damage: Some(damage),
            ..sound
        })
    }

    /// Like the payloads of the other kinds, some 600 bytes.
    fn opaque(&self) -> Vec<u8> {
        let (order, filler) = (&self.name, "x".repeat(520));
        format!(r#"{{"action":"pay","order":"{order}","verdict":"executed","filler":"{filler}"}}"#)
            .into_bytes()
    }

    fn capsule(&self, signer: &Signer) -> anyhow::Result<Vec<u8>> {
        let made = records::action(&self.name, &signer.issuer)?.produce()?;
        let draft = Draft {
            content_type: capsule::CONTENT_TYPE,
            issuer: &made.issuer,
            subject: &made.subject,
            issued_at: Some(now()),
            payload: &made.payload,
        };
        signer.seal(&draft, &made.claims)
    }

    /// Up to three causes, all of them records of this worker.
    fn causal(&mut self, signer: &Signer) -> anyhow::Result<Vec<u8>> {
        let mut causes: Vec<CausalId> = Vec::new();
        for _ in 0..self.random.u64(..4) {
            let cause = self.random.choice(&self.causes).copied();
            causes.extend(cause.filter(|cause| !causes.contains(cause)));
        }
        let record = records::six_tuple(&self.name, causes)?;
        if self.causes.len() >= CAUSES_KEPT {
            self.causes.remove(0);
        }
        self.causes.push(record.id);
        let encoding = pacr::Encoding::Json;
        self.plain(signer, encoding.content_type(), &record.encode(encoding))
    }

    fn certificate(&self, signer: &Signer) -> anyhow::Result<Vec<u8>> {
        let certificate = records::plan_certificate(&self.name, &signer.issuer, now())?;
        self.plain(signer, pca::CERTIFICATE_CONTENT_TYPE, certificate.as_bytes())
    }

    /// One to three events more of the issuer's session with this worker.
    fn trace(&mut self, signer: &Signer) -> anyhow::Result<Vec<u8>> {
        let mut lines = String::new();
        for _ in 0..=self.random.u64(..3) {
            let before = self.sessions.remove(&signer.issuer);
            let before = before.filter(|event| event.sequence < SESSION_EVENTS);
            let mut event = records::event(&self.name, before.as_ref());
            // Events of one batch belong to one session.
            let ends = !lines.is_empty() && event.sequence == 0;
            if ends {
                break;
            }
            let line = event.seal().map_err(|f| anyhow::anyhow!("an event of ours: {f:?}"))?;
            lines.push_str(&line);
            lines.push('\n');
            self.sessions.insert(signer.issuer.clone(), event);
            self.name.number += 1;
        }
        self.plain(signer, trace::BATCH_CONTENT_TYPE, lines.as_bytes())
    }

    fn plain(
        &self,
        signer: &Signer,
        content_type: &str,
        payload: &[u8],
    ) -> anyhow::Result<Vec<u8>> {
        let subject = format!("urn:example:hammer:{}", text::hex(&self.name.bytes()));
        let draft = Draft {
            content_type,
            issuer: &signer.issuer,
            subject: &subject,
            issued_at: Some(now()),
            payload,
        };
        signer.seal(&draft, &[])
    }
}
