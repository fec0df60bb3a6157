"""Self-certified causal records with a thousand causes each, signed without any
code of the log, for a log with the open policy."""

import json

import lib

ISSUER, KIND = "https://causes.example", "application/pacr+json"
# A key for this test only. All signatures share one nonce, which reveals the
# key but saves a point multiplication per signature.
SECRET = int.from_bytes(lib.sha256(b"causes"), "big") % lib.ORDER
NONCE = int.from_bytes(lib.sha256(b"nonce"), "big") % lib.ORDER
POINT, R = lib.times(SECRET, lib.BASE), lib.times(NONCE, lib.BASE)[0] % lib.ORDER
NONCE_INVERSE = pow(NONCE, -1, lib.ORDER)


def name(number):
    return f"0190A1B2C3D4E5F60718293A{number + 1:08X}"


def text(value):
    data = value.encode()
    return head(3, len(data)) + data


def head(kind, value):
    if value < 24:
        return bytes([kind << 5 | value])
    width = 1 if value < 256 else 2
    return bytes([kind << 5 | (23 + width)]) + value.to_bytes(width, "big")


def key():
    """The COSE key; the digest of these members is its thumbprint."""
    x, y = (number.to_bytes(32, "big") for number in POINT)
    return b"\xa4\x01\x02\x20\x01\x21" + lib.bstr(x) + b"\x22" + lib.bstr(y)


def sign(message):
    digest = int.from_bytes(lib.sha256(message), "big")
    s = NONCE_INVERSE * (digest + R * SECRET) % lib.ORDER
    return b"".join(number.to_bytes(32, "big") for number in (R, min(s, lib.ORDER - s)))


def estimate(point):
    return {"lower": point, "point": point, "upper": point}


MEASURED = {
    "cognitive_split": {
        "entropy_rate": estimate(0.5),
        "info_gain": estimate(0.0),
        "statistical_complexity": estimate(2.5),
    },
    "landauer_cost": estimate(3e-21),
    "payload": "",
    "resources": {"energy": estimate(5e-19), "space": estimate(512.0), "time": estimate(0.002)},
}


def statement(number, causes):
    """A record whose causes are this many of the records before it."""
    named = [name(cause) for cause in range(max(0, number - causes), number)]
    record = {"id": name(number), "predecessors": named, **MEASURED}
    payload = json.dumps(record, separators=(",", ":")).encode()
    kid = lib.sha256(key())
    claims = b"\xa3\x01" + text(ISSUER) + b"\x02" + text("urn:example:causes")
    claims += b"\x08\xa1\x01" + key()
    protected = b"\xa4\x01\x26\x03" + text(KIND) + b"\x04" + lib.bstr(kid) + b"\x0f" + claims
    message = b"\x84\x6aSignature1" + lib.bstr(protected) + b"\x40" + lib.bstr(payload)
    signature = lib.bstr(sign(message))
    return b"\xd2\x84" + lib.bstr(protected) + b"\xa0" + lib.bstr(payload) + signature
