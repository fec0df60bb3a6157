//! `capstan seal`: signs an action as a Capsule, an event as a causal record, or
//! any payload as it is.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::builder::PossibleValue;

use crate::cli::client::target::Target;
use crate::cli::files::{Content, Delivery};
use crate::cli::output::{Out, chain};
use crate::cli::read::names;
use crate::cli::{CliError, Exit, files};
use crate::envelope::{Draft, SignedStatement, StatementId, seal, seal_with_claims};
use crate::key::SigningKey;
use crate::profile::capsule::{
    Action, Attachments, CONTENT_TYPE, Example, Mistakes, OUTCOME_CONTENT_TYPE,
};
use crate::profile::pacr::{self, Disclosure, Encoding, PacrRecord, SALT_BYTES};
use crate::profile::{Finding, read_payload};
use crate::service::now;
use crate::store::write_private;
use crate::wire::digest::Digest;
use crate::wire::json::Json;
use crate::wire::printable::{Printable, printable};

const EXAMPLE: &str = "\
Examples:
  capstan seal --example blocked > action.json
  capstan seal action.json --key agent.key --response reply.json --output action.cose
  capstan seal note.txt --key agent.key --content-type text/plain \\
    --iss https://agents.example --sub order-7781 --output note.cose
  capstan seal event.json --profile pacr --key agent.key --iss https://agents.example \\
    --output event.cose";

#[derive(clap::Args)]
#[command(after_help = EXAMPLE)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    pub(in crate::cli) what: What,
    /// File for the statement instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What is sealed, and how. Without a content type or a profile the file
/// describes an action and becomes an Agent Action Capsule.
#[derive(Clone, clap::Args)]
pub(in crate::cli) struct What {
    /// Description of an action, or any payload; `-` reads standard input
    #[arg(value_name = "FILE", required_unless_present = "example")]
    payload: Option<PathBuf>,
    /// Private key, PKCS#8 PEM
    #[arg(long, value_name = "FILE", required_unless_present = "example")]
    key: Option<PathBuf>,
    /// Print an example description and exit
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = "executed",
          value_parser = EXAMPLES.map(PossibleValue::new), conflicts_with = "payload",
          hide_short_help = true)]
    pub(in crate::cli) example: Option<String>,
    /// Media type of a payload that is signed unchanged
    #[arg(long, value_name = "TYPE", requires = "iss", requires = "sub")]
    content_type: Option<String>,
    /// Issuer: your name
    #[arg(long, value_name = "ISS")]
    iss: Option<String>,
    /// Subject of the statement
    #[arg(long, value_name = "SUB", requires = "content_type")]
    sub: Option<String>,
    /// The request that was sent, as JSON; only its digest is published
    #[arg(long, value_name = "FILE", conflicts_with = "content_type")]
    request: Option<PathBuf>,
    /// The response that was observed, as JSON; only its digest is published
    #[arg(long, value_name = "FILE", conflicts_with = "content_type")]
    response: Option<PathBuf>,
    /// Evidence of a constraint, as JSON; only its digest is published
    #[arg(long, value_name = "ID=FILE", conflicts_with = "content_type")]
    evidence: Vec<String>,
    /// Open item that this closes: capsule id, or any name the log knows
    #[arg(long, value_name = "ID", conflicts_with = "content_type")]
    supersedes: Option<String>,
    /// Seal an outcome of an action: its subject, or any name the log knows
    #[arg(long, value_name = "ID", requires = "iss", conflicts_with_all = ["content_type", "supersedes"])]
    outcome_of: Option<String>,
    /// Decision that the action or outcome belongs to
    #[arg(long, value_name = "ID", conflicts_with = "content_type")]
    decision_id: Option<String>,
    /// What the file describes, if not an action: `pacr` is an event
    #[arg(long, requires = "iss", conflicts_with_all = ATTACHED)]
    profile: Option<Profile>,
    /// Publish a salted digest of the payload; this file keeps what reveals it
    #[arg(long, value_name = "FILE", requires = "profile", hide_short_help = true)]
    hash_payload: Option<PathBuf>,
    /// Encoding of the record
    #[arg(long, requires = "profile")]
    encoding: Option<Spelling>,
}

/// What goes with an action or a ready payload alone.
const ATTACHED: [&str; 7] =
    ["content_type", "request", "response", "evidence", "supersedes", "outcome_of", "decision_id"];

const EXAMPLES: [&str; 4] = ["executed", "blocked", "approval", "outcome"];

#[derive(Clone, Copy, clap::ValueEnum)]
enum Profile {
    Pacr,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Spelling {
    Json,
    Cbor,
}

pub(in crate::cli) async fn run(args: &Args, out: &Out) -> anyhow::Result<Exit> {
    if let Some(kind) = &args.what.example {
        return example(kind, out);
    }
    let bytes = args.what.resolved(&Target::default(), out).await?.seal()?;
    // No log would accept what this refuses, so report it now.
    let statement = SignedStatement::parse(bytes.clone())?;
    let id = StatementId::of(&statement).to_string();
    if args.output.is_some() && !out.is_json() {
        out.note(printable!("sealed {}", id));
    }
    Delivery::new(Content::Statement(&bytes)).with_id(id).send(args.output.as_deref(), out)?;
    flags(&statement).into_iter().for_each(|flag| out.note(flag));
    Ok(Exit::Yes)
}

/// Prints an example description that can be sealed unchanged.
pub(in crate::cli) fn example(kind: &str, out: &Out) -> anyhow::Result<Exit> {
    let unknown = || CliError::failed("usage", format!("there is no example {kind:?}"));
    let example: Example = kind.parse().map_err(|_| unknown())?;
    let object: serde_json::Value = serde_json::from_str(example.text())?;
    out.answer(&object, example.text())?;
    out.note(match example {
        Example::Outcome => printable!(
            "Save it as outcome.json and edit it; then `{}`. \
             The subject is that of the action it is about.",
            "capstan seal outcome.json --key agent.key --iss https://agents.example \
             --outcome-of urn:agent-action-capsule:acme:order-7781 -o outcome.cose"
        ),
        Example::Approval | Example::Blocked | Example::Executed => printable!(
            "Save it as action.json and edit it; then `{}`. {}",
            "capstan seal action.json --key agent.key -o action.cose",
            "Every member is explained in docs/profiles/capsule.md."
        ),
    });
    Ok(Exit::Yes)
}

/// Findings of a causal record that do not prevent its registration.
fn flags(statement: &SignedStatement) -> Vec<Printable> {
    let Some(payload) = statement.payload() else { return Vec::new() };
    let read = read_payload(statement.header(), payload);
    if read.get::<PacrRecord>().is_none() {
        return Vec::new();
    }
    let flag = |f: &Finding| printable!("flagged {} at {}: {}", f.code, f.at, f.detail);
    read.findings.iter().map(flag).collect()
}

impl What {
    /// The same with the capsule id that `--supersedes` means.
    pub(in crate::cli) async fn resolved(
        &self,
        target: &Target,
        out: &Out,
    ) -> anyhow::Result<Self> {
        let supersedes = names::superseded(self.supersedes.as_deref(), target, out).await?;
        let outcome_of = names::outcome_subject(self.outcome_of.as_deref(), target).await?;
        Ok(Self { supersedes, outcome_of, ..self.clone() })
    }

    /// The Signed Statement.
    pub(in crate::cli) fn seal(&self) -> anyhow::Result<Vec<u8>> {
        self.seal_payload(&self.payload()?, None)
    }

    /// The file that is sealed.
    pub(in crate::cli) fn payload(&self) -> anyhow::Result<Vec<u8>> {
        let missing = || CliError::failed("usage", "the file to seal is missing");
        files::read(self.payload.as_deref().ok_or_else(missing)?)
    }

    /// A digest of everything that is said about the record: the file, what
    /// goes with it, and the flags.
    pub(in crate::cli) fn description(&self, payload: &[u8]) -> anyhow::Result<Digest> {
        let mut parts = vec![payload.to_vec()];
        for path in [&self.request, &self.response].into_iter().flatten() {
            parts.push(files::read(path)?);
        }
        let said = [&self.content_type, &self.iss, &self.sub, &self.supersedes, &self.outcome_of];
        let said = said.into_iter().chain([&self.decision_id]);
        parts.extend(said.map(|text| text.clone().unwrap_or_default().into_bytes()));
        for one in &self.evidence {
            let (id, file) = one.split_once('=').context("--evidence takes ID=FILE")?;
            parts.extend([id.as_bytes().to_vec(), files::read(Path::new(file))?]);
        }
        // Only if given, so that digests from older versions stay the same.
        parts.extend(self.hash_payload.is_some().then(|| b"hash-payload".to_vec()));
        let digests: Vec<Digest> = parts.iter().map(|part| Digest::of(part)).collect();
        let bytes: Vec<&[u8]> = digests.iter().map(|d| d.as_bytes().as_slice()).collect();
        Ok(Digest::of_parts(&bytes))
    }

    /// The Signed Statement of a payload that was read. `after` is the last
    /// record with the same description: this one is another action.
    pub(in crate::cli) fn seal_payload(
        &self,
        payload: &[u8],
        after: Option<&str>,
    ) -> anyhow::Result<Vec<u8>> {
        let missing = || CliError::failed("usage", "--key is missing");
        let key = files::signing_key(self.key.as_deref().ok_or_else(missing)?)?;
        if let (Some(Profile::Pacr), Some(issuer)) = (self.profile, &self.iss) {
            return self.causal(payload, issuer, &key);
        }
        match (&self.content_type, &self.iss, &self.sub, &self.outcome_of) {
            (Some(content_type), Some(issuer), Some(subject), _) => {
                let draft =
                    Draft { content_type, issuer, subject, issued_at: Some(now()), payload };
                Ok(seal(&draft, &key)?)
            }
            (None, Some(issuer), None, Some(subject)) => {
                self.outcome(payload, issuer, subject, &key)
            }
            (None, None, None, None) => self.capsule(payload, after, &key),
            _ => Err(CliError::failed(
                "usage",
                "an action is described in its file; --iss goes with --content-type and --sub",
            )
            .into()),
        }
    }

    fn capsule(
        &self,
        description: &[u8],
        after: Option<&str>,
        key: &SigningKey,
    ) -> anyhow::Result<Vec<u8>> {
        let name = match after {
            None => Digest::of(description),
            Some(earlier) => Digest::of_parts(&[description, b"\0", earlier.as_bytes()]),
        };
        let with = Attachments {
            request: self.request.as_deref().map(json).transpose()?,
            response: self.response.as_deref().map(json).transpose()?,
            evidence: self.evidence.iter().map(|e| evidence(e)).collect::<Result<_, _>>()?,
            supersedes: self.supersedes.clone(),
            decision_id: self.decision_id.clone(),
            // The same description sealed again is the same action, unless it
            // is known to be another one.
            action_id: format!("act-{}", name.to_string().get(..32).unwrap_or_default()),
            now: now(),
        };
        let refused = |code, detail: String| CliError::no(code, detail);
        let action = Action::describe(description, &with).map_err(|e| mistaken(&e))?;
        let made = action.produce().map_err(|e| refused(e.code(), e.to_string()))?;
        let draft = Draft {
            content_type: CONTENT_TYPE,
            issuer: &made.issuer,
            subject: &made.subject,
            issued_at: Some(now()),
            payload: &made.payload,
        };
        Ok(seal_with_claims(&draft, &made.claims, key)?)
    }

    fn causal(&self, described: &[u8], issuer: &str, key: &SigningKey) -> anyhow::Result<Vec<u8>> {
        let mistaken = |e: pacr::DescriptionError| CliError::no(e.code(), chain(&e.into()));
        let tuple = match &self.hash_payload {
            None => pacr::describe(described).map_err(mistaken)?.0,
            Some(kept) => {
                let salt = salt(kept)?;
                let (tuple, disclosure) =
                    pacr::describe_hashed(described, &salt).map_err(mistaken)?;
                keep(kept, &disclosure)?;
                tuple
            }
        };
        let encoding = match self.encoding {
            Some(Spelling::Cbor) => Encoding::Cbor,
            Some(Spelling::Json) | None => Encoding::Json,
        };
        let draft = Draft {
            content_type: encoding.content_type(),
            issuer,
            subject: &tuple.id.to_string(),
            issued_at: Some(now()),
            payload: &tuple.encode(encoding),
        };
        Ok(seal(&draft, key)?)
    }

    fn outcome(
        &self,
        payload: &[u8],
        issuer: &str,
        subject: &str,
        key: &SigningKey,
    ) -> anyhow::Result<Vec<u8>> {
        let content = Json::read(payload)?;
        if content.members().is_none() {
            return Err(CliError::no(
                "outcome-not-object",
                "an outcome is a JSON object (3.3)".to_owned(),
            )
            .into());
        }
        let mut claims = vec![("capsule_statement_type", "outcome".to_owned())];
        claims.extend(self.decision_id.clone().map(|id| ("capsule_decision_id", id)));
        let content_type = OUTCOME_CONTENT_TYPE;
        let draft = Draft { content_type, issuer, subject, issued_at: Some(now()), payload };
        Ok(seal_with_claims(&draft, &claims, key)?)
    }
}

/// Random bytes for a new disclosure; those of one that is there, so that the
/// same description is the same event.
fn salt(kept: &Path) -> anyhow::Result<[u8; SALT_BYTES]> {
    if kept.exists() {
        let bytes = files::read(kept)?;
        return bytes.first_chunk().copied().ok_or_else(|| differs(kept).into());
    }
    let mut salt = [0; SALT_BYTES];
    aws_lc_rs::rand::fill(&mut salt)
        .map_err(|_| anyhow::anyhow!("the system gives no random numbers"))?;
    Ok(salt)
}

/// Writes a disclosure where it can be found again, for its owner alone; never
/// over another one.
fn keep(kept: &Path, disclosure: &Disclosure) -> anyhow::Result<()> {
    if !kept.exists() {
        return Ok(write_private(kept, disclosure.as_bytes())?);
    }
    if files::read(kept)? == disclosure.as_bytes() { Ok(()) } else { Err(differs(kept).into()) }
}

fn differs(kept: &Path) -> CliError {
    let what = format!("{} discloses something else; name another file", kept.display());
    CliError::failed("disclosure-differs", what)
}

/// Every mistake on a line of its own.
fn mistaken(mistakes: &Mistakes) -> CliError {
    let next = "capstan seal --example";
    let [one] = mistakes.all() else {
        let mut lines = Printable::default();
        mistakes.all().iter().for_each(|mistake| lines.line(printable!("  {}", mistake)));
        let what = format!("the description has {} mistakes", mistakes.all().len());
        return CliError::no(mistakes.code(), what).details(lines).next(next);
    };
    CliError::no(one.code(), one.to_string()).next(next)
}

fn json(path: &Path) -> anyhow::Result<Json> {
    Json::read(&files::read(path)?).with_context(|| format!("{}", path.display()))
}

fn evidence(argument: &str) -> anyhow::Result<(String, Json)> {
    let (id, file) = argument.split_once('=').context("--evidence takes ID=FILE")?;
    Ok((id.to_owned(), json(Path::new(file))?))
}
