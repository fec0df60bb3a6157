"""What the Python clients share: SCRAPI requests and the log's keys."""

import base64
import hashlib
import sys
import urllib.error
import urllib.parse
import urllib.request

import cbor2
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

KID, KTY, CRV, X, Y = 2, 1, -1, -2, -3  # COSE_Key labels
OKP, EC2, ED25519, P256 = 1, 2, 6, 1


def check(what, passed, detail=""):
    """One line per check; the first that fails ends the run."""
    if not passed:
        sys.exit(f"FAIL {what} {detail}".rstrip())
    print(f"ok   {what}")


def request(url, body=None, **headers):
    """(status, headers, body) of a GET, or of a POST when there is a body."""
    sent = urllib.request.Request(url, data=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
    try:
        with urllib.request.urlopen(sent, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, refused.read()


def register(url, statement):
    """POST a Signed Statement; the receipt and the entry's absolute URL."""
    status, headers, receipt = request(
        f"{url}/entries", statement, Content_Type="application/cose", Accept="application/cose"
    )
    check("POST /entries answers 201", status == 201, f"{status} {receipt[:300]!r}")
    check("the answer is application/cose", headers.get_content_type() == "application/cose")
    check("the answer names its entry", bool(headers["Location"]))
    return receipt, urllib.parse.urljoin(f"{url}/entries", headers["Location"])


def log_key(url, receipt):
    """The key of the log's COSE_KeySet that the receipt's kid names."""
    status, headers, body = request(f"{url}/.well-known/scitt-keys", Accept="application/cbor")
    check("GET /.well-known/scitt-keys answers 200", status == 200, f"{status} {body[:300]!r}")
    check("the key set is application/cbor", headers.get_content_type() == "application/cbor")
    kid = cbor2.loads(cbor2.loads(receipt).value[0])[4]
    found = [key for key in cbor2.loads(body) if key.get(KID) == kid]
    check("the receipt's kid names one key of the log", len(found) == 1)
    key = found[0]
    if (key[KTY], key[CRV]) == (OKP, ED25519):
        return ed25519.Ed25519PublicKey.from_public_bytes(key[X])
    if (key[KTY], key[CRV]) == (EC2, P256):
        return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + key[X] + key[Y])
    sys.exit(f"FAIL the log's key is neither Ed25519 nor P-256: {key}")


def pem(key):
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def directory(url, key):
    """A witness directory that trusts this one log under this one key."""
    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return {
        "directory_version": "1",
        "witnesses": [
            {
                "name": "log under test",
                "endpoint": url,
                "binding": "scrapi",
                "key_ids": [hashlib.sha256(der).hexdigest()],
                "public_keys": [base64.b64encode(der).decode()],
                "since": "2026-01-01",
            }
        ],
    }


def flip(data, at=-1):
    """The bytes with one bit changed."""
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)
