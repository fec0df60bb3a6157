//! A certificate made for one run: a CA, and a leaf below it that carries the
//! issuer's name and key. Just enough DER for that.

use crate::key::{Algorithm, PublicKey, SigningKey};
use crate::trust::x509::{Identity, Scope};
use crate::wire::text;

const SEQUENCE: u8 = 0x30;
/// Ed25519, as algorithm and as key (RFC 8410).
const ED25519: &[u8] = &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];
/// basicConstraints, critical: a CA. keyUsage, critical: it certifies.
const CA: &[u8] = &[
    0x30, 0x0f, 0x06, 0x03, 0x55, 0x1d, 0x13, 0x01, 0x01, 0xff, 0x04, 0x05, 0x30, 0x03, 0x01, 0x01,
    0xff, 0x30, 0x0e, 0x06, 0x03, 0x55, 0x1d, 0x0f, 0x01, 0x01, 0xff, 0x04, 0x04, 0x03, 0x02, 0x02,
    0x04,
];
/// keyUsage, critical: it signs.
const SIGNER: &[u8] = &[
    0x30, 0x0e, 0x06, 0x03, 0x55, 0x1d, 0x0f, 0x01, 0x01, 0xff, 0x04, 0x04, 0x03, 0x02, 0x07, 0x80,
];
const SUBJECT_ALT_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x1d, 0x11];

/// A leaf for this name and key, and what a trust file says about the CA
/// above it, which goes by `anchor` there and speaks for this name.
pub fn certify(issuer: &str, key: &PublicKey, anchor: &str) -> Result<(Vec<u8>, String), String> {
    let ca = SigningKey::generate(Algorithm::EdDsa).map_err(|e| e.to_string())?;
    let root = certificate("ca", ca.public(), CA, &ca)?;
    let name = der(SEQUENCE, &der(0x86, issuer.as_bytes()));
    let name = der(SEQUENCE, &[SUBJECT_ALT_NAME, &der(0x04, &name)].concat());
    let leaf = certificate("agent", key, &[SIGNER, &name].concat(), &ca)?;
    let root = text::base64(&root);
    let pem = format!("-----BEGIN CERTIFICATE-----\n{root}\n-----END CERTIFICATE-----\n");
    let anchor = toml::Value::from(anchor);
    let scope = scope_of(issuer).to_toml().join("\n");
    let entry = format!("[[anchor]]\nname = {anchor}\ncertificate = '''{pem}'''\n{scope}\n\n");
    Ok((leaf, entry))
}

/// The scope of a CA that speaks for this name, which its leaf has as a URI.
fn scope_of(issuer: &str) -> Scope {
    let domain = issuer.strip_prefix("spiffe://").and_then(|rest| rest.split('/').next());
    domain.map_or_else(|| Identity::Uri(issuer).scope(), |d| Identity::Spiffe(d).scope())
}

fn certificate(
    subject: &str,
    key: &PublicKey,
    extensions: &[u8],
    ca: &SigningKey,
) -> Result<Vec<u8>, String> {
    let body = [
        der(0xa0, &der(0x02, &[2])),
        der(0x02, &[1]),
        ED25519.to_vec(),
        name("ca"),
        der(SEQUENCE, &[der(0x17, b"250101000000Z"), der(0x17, b"350101000000Z")].concat()),
        name(subject),
        public_key(key).ok_or("a key of this kind has no certificate here")?,
        der(0xa3, &der(SEQUENCE, extensions)),
    ];
    let body = der(SEQUENCE, &body.concat());
    let signature = ca.sign(&body).map_err(|e| e.to_string())?;
    let signature = der(0x03, &[&[0], signature.as_slice()].concat());
    Ok(der(SEQUENCE, &[body, ED25519.to_vec(), signature].concat()))
}

/// SubjectPublicKeyInfo: what stands inside the PEM.
fn public_key(key: &PublicKey) -> Option<Vec<u8>> {
    let pem = key.to_pem()?;
    let base64: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    text::from_base64(&base64)
}

/// One common name.
fn name(text: &str) -> Vec<u8> {
    let common = [&[0x06, 0x03, 0x55, 0x04, 0x03], der(0x0c, text.as_bytes()).as_slice()].concat();
    der(SEQUENCE, &der(0x31, &der(SEQUENCE, &common)))
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short) if short < 0x80 => out.push(short),
        Ok(long) => out.extend([0x81, long]),
        Err(_) => {
            out.push(0x82);
            out.extend(u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    out.extend_from_slice(content);
    out
}
