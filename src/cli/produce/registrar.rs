//! Sends statements to one log and verifies its receipts.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use crate::cli::check::succession;
use crate::cli::client::Client;
use crate::cli::client::registration;
use crate::cli::output::Out;
use crate::cli::{CliError, files};
use crate::envelope::SignedStatement;
use crate::key::PublicKey;
use crate::receipt::Receipt;
use crate::trust::{TrustAnchors, TrustedLog};
use crate::verify::{self, Included, Memo, inclusion};
use crate::wire::printable::{Printable, printable};
use crate::wire::text;

/// A log to register at, and the keys its receipts must verify under.
pub(in crate::cli) struct Registrar {
    client: Client,
    trust: RwLock<TrustAnchors>,
    /// Where the trust came from, and where a new key is written.
    trust_file: Option<PathBuf>,
    /// Keys the log publishes: they show that a receipt is intact, not that the
    /// log is the right one.
    offered: Vec<PublicKey>,
    /// Held while successions are fetched, so that this happens once.
    following: tokio::sync::Mutex<()>,
    out: Out,
}

/// A receipt that verified.
pub(in crate::cli) struct Receipted {
    pub(in crate::cli) receipt: Vec<u8>,
    pub(in crate::cli) index: Option<u64>,
}

/// Why there is no receipt that verified.
pub(in crate::cli) enum Unsent {
    /// The log refused the statement.
    Refused(CliError),
    /// The log accepted it, but its receipt does not verify.
    Unverified { error: CliError, answer: Vec<u8> },
    /// It is unknown whether the log has it.
    NotSent(anyhow::Error),
}

impl Registrar {
    /// Fetches the keys of the log, which also shows that it can be reached.
    pub(in crate::cli) async fn new(
        client: Client,
        trust: Option<&Path>,
        out: Out,
    ) -> anyhow::Result<Self> {
        let trust_file = files::trust_path(trust).map(|(path, _)| path);
        let trust = RwLock::new(files::trust(trust)?);
        let offered = client.keys().await?;
        let following = tokio::sync::Mutex::new(());
        Ok(Self { client, trust, trust_file, offered, following, out })
    }

    /// Sends one statement and checks what comes back.
    pub(in crate::cli) async fn send(
        &self,
        statement: &SignedStatement,
    ) -> Result<Receipted, Unsent> {
        let receipt = match registration::register(&self.client, statement.bytes()).await {
            Ok(receipt) => receipt,
            Err(error) => return Err(unsent(error)),
        };
        let unverified = |error| Unsent::Unverified { error, answer: receipt.clone() };
        let parsed = Receipt::parse(receipt.clone()).map_err(|e| {
            unverified(CliError::no(e.code(), format!("the log's receipt cannot be read: {e}")))
        })?;
        let shown = self.check(&parsed, statement).await.map_err(unverified)?;
        Ok(Receipted { receipt, index: shown.place.map(|(index, _)| index) })
    }

    /// Checks a receipt under the keys of the trust file, and under those that
    /// follow from them.
    async fn check(
        &self,
        receipt: &Receipt,
        statement: &SignedStatement,
    ) -> Result<Included, CliError> {
        let canonical = statement.canonical();
        let under = |keys: &[PublicKey]| inclusion(receipt, &canonical, keys, &mut Memo::default());
        let wrong = |e: verify::Error| {
            CliError::no(e.code(), format!("the log's receipt does not verify: {e}"))
        };
        let Some(known) = self.known(receipt) else { return under(&self.offered).map_err(wrong) };
        let error = match under(&known.keys) {
            Ok(shown) => return Ok(shown),
            Err(error) => error,
        };
        let kid = receipt.envelope().header().kid.clone().unwrap_or_default();
        if error != verify::Error::HeadSignature || is_among(&kid, &known.keys) {
            return Err(wrong(error));
        }
        let _alone = self.following.lock().await;
        // Another task may have added the key meanwhile.
        let known = self.known(receipt).unwrap_or(known);
        if let Ok(shown) = under(&known.keys) {
            return Ok(shown);
        }
        let followed = succession::follow(&self.client, &known).await;
        let extended = succession::extended(&known, &followed);
        let shown = under(&extended.keys).map_err(|_| self.unknown_key(&kid, &known))?;
        self.add_keys(&known, &extended);
        Ok(shown)
    }

    /// No succession leads from a trusted key to this one.
    fn unknown_key(&self, kid: &[u8], known: &TrustedLog) -> CliError {
        let url = self.client.base().as_str().trim_end_matches('/');
        let known_keys: Vec<String> = known.keys.iter().map(|key| key.id().to_string()).collect();
        let what = format!(
            "the statement is registered, but its receipt is signed by an unknown key, {}; \
             for {} your trust file has {}, and the log publishes no succession from it",
            text::hex(kid),
            known.name,
            known_keys.join(", "),
        );
        let next = format!(
            "ask its operator which key is right, then `{} trust add {url} --replace`",
            crate::cli::program()
        );
        CliError::cannot_tell("log-key-unknown", what).next(next)
    }

    /// Trusts the keys that follow, here and in the trust file.
    fn add_keys(&self, known: &TrustedLog, extended: &TrustedLog) {
        {
            let mut trust = self.trust.write().unwrap_or_else(PoisonError::into_inner);
            *trust = std::mem::take(&mut *trust).with_log(extended.clone());
        }
        let old = known.keys.first().map(|key| key.id().to_string()).unwrap_or_default();
        let new = extended.keys.first().map(|key| key.id().to_string()).unwrap_or_default();
        self.out.note(printable!(
            "{} signs with a new key, {}; it published a succession from the trusted one, {}",
            known.name,
            new,
            old
        ));
        let Some(path) = &self.trust_file else { return };
        match succession::remember(path, extended) {
            Ok(()) => self.out.note(printable!("added the new key to {}", path.display())),
            Err(error) => {
                let why = crate::cli::output::chain(&error);
                self.out
                    .complain(Printable::long(format!("the new key could not be saved: {why}")));
            }
        }
    }

    /// What the trust file says about the log that a receipt names.
    fn known(&self, receipt: &Receipt) -> Option<TrustedLog> {
        let issuer = receipt.envelope().header().claims.issuer.as_deref()?;
        let trust = self.trust.read().unwrap_or_else(PoisonError::into_inner);
        succession::entry(&trust, issuer).filter(|log| !log.keys.is_empty())
    }

    /// Warns if the keys of the log come only from the log itself.
    pub(in crate::cli) fn note_untrusted_key(&self, receipt: &[u8]) {
        let parsed = Receipt::parse(receipt.to_vec());
        if parsed.is_ok_and(|receipt| self.known(&receipt).is_some()) {
            return;
        }
        let url = self.client.base().as_str().trim_end_matches('/');
        self.out.note(printable!(
            "the receipt was verified with the keys {0} publishes, not with your trust file\n\
             next\n  {1} trust add {0}",
            url,
            crate::cli::program()
        ));
    }
}

fn is_among(kid: &[u8], keys: &[PublicKey]) -> bool {
    keys.iter().any(|key| key.id().as_bytes() == kid)
}

fn unsent(error: anyhow::Error) -> Unsent {
    let error = match error.downcast::<registration::Refused>() {
        Ok(registration::Refused(error)) => return Unsent::Refused(error),
        Err(error) => error,
    };
    match error.downcast::<registration::NoReceipt>() {
        Ok(none) => {
            let error = CliError::failed("no-receipt", none.to_string());
            Unsent::Unverified { error, answer: none.body }
        }
        Err(error) => Unsent::NotSent(error),
    }
}
