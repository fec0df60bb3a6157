//! Files that verbs read and write.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Serialize, Serializer};

use super::CliError;
use super::output::{Out, stdout_is_terminal};
use crate::checkpoint::VerifierKey;
use crate::key::{PublicKey, SigningKey};
use crate::store::read_private;
use crate::trust::{self, TrustAnchors};
use crate::wire::printable::printable;
use crate::wire::text;

/// Reads a file, or standard input for `-`.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
        return Ok(bytes);
    }
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Reads a text file.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    String::from_utf8(read(path)?).with_context(|| format!("{} is not text", path.display()))
}

/// Writes to a file, or to standard output unless that is a terminal.
pub(super) fn write(path: Option<&Path>, bytes: &[u8], out: &Out) -> anyhow::Result<()> {
    match path {
        Some(path) if path != Path::new("-") => write_file(path, bytes),
        None if stdout_is_terminal() => {
            let error =
                CliError::failed("usage", "the result is binary; it is not written to a terminal");
            Err(error.next("the same command with `-o FILE`").into())
        }
        _ => out.raw(bytes),
    }
}

/// A binary result, for a file or standard output. With `--json` the object
/// names the file, or holds the bytes in base64.
#[derive(Serialize)]
pub(super) struct Delivery<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    ok: bool,
    code: &'static str,
    #[serde(flatten)]
    content: Option<Content<'a>>,
}

/// The member name and the bytes.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Content<'a> {
    #[serde(serialize_with = "as_base64")]
    Statement(&'a [u8]),
    #[serde(serialize_with = "as_base64")]
    Receipt(&'a [u8]),
    #[serde(serialize_with = "as_base64")]
    Bundle(&'a [u8]),
}

fn as_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text::base64(bytes))
}

impl<'a> Delivery<'a> {
    pub(super) fn new(content: Content<'a>) -> Self {
        Self { id: None, output: None, ok: true, code: "ok", content: Some(content) }
    }

    pub(super) fn with_id(self, id: String) -> Self {
        Self { id: Some(id), ..self }
    }

    pub(super) fn send(mut self, output: Option<&Path>, out: &Out) -> anyhow::Result<()> {
        let Some(Content::Statement(bytes) | Content::Receipt(bytes) | Content::Bundle(bytes)) =
            self.content
        else {
            return Ok(());
        };
        match output.filter(|path| *path != Path::new("-")) {
            Some(path) => {
                write_file(path, bytes)?;
                if !out.is_json() {
                    out.note(printable!("wrote {}", path.display()));
                    return Ok(());
                }
                self.output = Some(path.display().to_string());
                self.content = None;
            }
            None if !out.is_json() => return write(output, bytes, out),
            None => {}
        }
        out.answer(&self, "")
    }
}

/// Replaces a file atomically.
pub fn write_file(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let fresh = PathBuf::from(name);
    let written = std::fs::File::create(&fresh)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&fresh, path));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// A private key that only its owner can read.
pub fn signing_key(path: &Path) -> anyhow::Result<SigningKey> {
    refuse_public(path)?;
    let pem = read_private(path)?;
    SigningKey::from_pem(&pem).with_context(|| format!("{}", path.display()))
}

/// A public key gets its own message, not one about the file mode.
fn refuse_public(path: &Path) -> Result<(), CliError> {
    let is_public =
        std::fs::read_to_string(path).is_ok_and(|text| text.contains("-----BEGIN PUBLIC KEY-----"));
    if !is_public {
        return Ok(());
    }
    let what = format!("{} is a public key; signing needs the private one", path.display());
    let error = CliError::failed("public-key", what);
    let private = path.with_extension("");
    let is_named_so = path.extension().is_some_and(|ext| ext == "pub") && private.exists();
    Err(if is_named_so { error.next(format!("--key {}", private.display())) } else { error })
}

/// Recognises keys and certificates, which are not evidence to verify.
pub(super) fn not_evidence(bytes: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(bytes).ok()?;
    if text.contains("PRIVATE KEY-----") {
        return Some("a private key: keep it to yourself");
    }
    if text.contains("-----BEGIN PUBLIC KEY-----") {
        return Some("a public key: --issuer-key and --log-key take it");
    }
    if text.contains("-----BEGIN CERTIFICATE-----") {
        return Some("a certificate: a trust file names it");
    }
    let is_vkey = VerifierKey::parse(text.trim()).is_ok();
    is_vkey.then_some("the key of a log's checkpoints: --log-key takes it")
}

/// A public key: PEM, or a COSE_Key.
pub(super) fn public_key(path: &Path) -> anyhow::Result<PublicKey> {
    let bytes = read(path)?;
    let key = match std::str::from_utf8(&bytes) {
        Ok(pem) if pem.contains("-----BEGIN") => PublicKey::from_pem(pem),
        _ => PublicKey::from_cose_key(&bytes),
    };
    key.with_context(|| format!("{}", path.display()))
}

/// The key of a log: of its receipts, or of its checkpoints.
pub(super) enum LogKey {
    Receipts(PublicKey),
    Checkpoints(VerifierKey),
}

/// Reads either kind of log key.
pub(super) fn log_key(path: &Path) -> anyhow::Result<LogKey> {
    let text = read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    if let Some(Ok(key)) = text.map(|text| VerifierKey::parse(text.trim())) {
        return Ok(LogKey::Checkpoints(key));
    }
    public_key(path).map(LogKey::Receipts)
}

/// Where the trust file is: the flag, `$CAPSTAN_TRUST`, or the user's own.
/// The second value says whether somebody asked for this very file.
pub(super) fn trust_path(flag: Option<&Path>) -> Option<(PathBuf, bool)> {
    let named = flag.map(Path::to_owned).or_else(|| variable("CAPSTAN_TRUST"));
    if let Some(path) = named {
        return Some((path, true));
    }
    Some((user_directory()?.join("trust.toml"), false))
}

/// Where a user's own files are.
pub(super) fn user_directory() -> Option<PathBuf> {
    let config = variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")))?;
    Some(config.join("capstan"))
}

/// The trust file; without one nothing is trusted. Fails if an anchor has no
/// scope.
pub(super) fn trust(flag: Option<&Path>) -> anyhow::Result<TrustAnchors> {
    let trust = any_trust(flag)?;
    let Some(name) = trust.unscoped().into_iter().next() else { return Ok(trust) };
    let path = trust_path(flag).map(|(path, _)| path).unwrap_or_default();
    let path = path.display();
    let error = trust::Error::Unscoped { names: trust.unscoped() };
    let next = format!("capstan trust upgrade {path} --anchor {name:?} --spiffe DOMAIN");
    Err(CliError::cannot_tell(error.code(), format!("{path}: {error}")).next(next).into())
}

/// The same, with or without scopes.
pub(super) fn any_trust(flag: Option<&Path>) -> anyhow::Result<TrustAnchors> {
    let Some((path, asked_for)) = trust_path(flag) else { return Ok(TrustAnchors::default()) };
    if !asked_for && !path.exists() {
        return Ok(TrustAnchors::default());
    }
    TrustAnchors::parse_any(&read_text(&path)?).with_context(|| format!("{}", path.display()))
}

/// A variable that names a path.
pub(super) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
