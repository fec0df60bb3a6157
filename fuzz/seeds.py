#!/usr/bin/env python3
"""Writes seeds/<target>/: a few small inputs of our own for each fuzz target.

Standard library only; run it from anywhere, the output does not vary.
"""

import json
from base64 import b64encode, urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent


def head(major, n):
    """The shortest CBOR head."""
    if n < 24:
        return bytes([major << 5 | n])
    for extra, size in (24, 1), (25, 2), (26, 4), (27, 8):
        if n < 1 << 8 * size:
            return bytes([major << 5 | extra]) + n.to_bytes(size, "big")
    raise ValueError(n)


def cbor(value):
    """Just enough CBOR: numbers, bytes, text, lists, maps, tags, None, truth."""
    if value is None or isinstance(value, bool):
        return {False: b"\xf4", True: b"\xf5", None: b"\xf6"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    if isinstance(value, dict):
        return head(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in value.items())
    tag, inner = value
    return head(6, tag) + cbor(inner)


def sign1(protected, unprotected, payload):
    """A COSE_Sign1 whose signature is 64 zero bytes."""
    return cbor((18, [cbor(protected), unprotected, payload, bytes(64)]))


KID = sha256(b"kid").digest()
NODE = sha256(b"node").digest()
CLAIMS = {1: "https://agent.example", 2: "urn:example:run:1", 6: 1_800_000_000}
STATEMENT = {1: -7, 3: "application/json", 4: KID, 15: CLAIMS}
LOG = {1: -7, 4: KID, 15: {1: "https://log.example", 2: "capstan.receipt.v1"}, 395: 1}

statement = sign1(STATEMENT, {}, b"{}")
inclusion = sign1(LOG, {396: {-1: [cbor([3, 1, [NODE, NODE]])]}}, None)
consistency = sign1(LOG, {396: {-2: [cbor([1, 3, [NODE, NODE]])]}}, None)
leaf = {1: [NODE, "ce:2.1:00", NODE], 2: [[True, NODE]]}
ccf = sign1(LOG | {395: 2}, {396: {-1: [cbor(leaf)]}}, None)
note = (
    "go.sum database tree\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
    "\u2014 sum.golang.org Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/"
    "Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
).encode()

ONE = [1, 0, 2]
event = {
    "id": NODE[:16],
    "predecessors": [KID[:16]],
    "landauer_cost": ONE,
    "resources": {"energy": ONE, "time": ONE, "space": ONE},
    "cognitive_split": {"statistical_complexity": ONE, "entropy_rate": ONE, "info_gain": ONE},
    "payload": b"PACR\x05\x3f\xe0" + bytes(6),
}


def in_json(value):
    """A causal record's CBOR as its JSON."""
    if isinstance(value, dict):
        return {name: in_json(inner) for name, inner in value.items()}
    if value is ONE:
        return dict(zip(("point", "lower", "upper"), ONE))
    if isinstance(value, list):
        return [in_json(inner) for inner in value]
    return value.hex().upper() if len(value) == 16 else b64encode(value).decode()


UUID = "01939c6e-0000-7000-8000-%012x"


def trace(*payloads):
    """A sound chain of TRACE events, hashed as Appendix B of CRA 1.0 does."""
    lines, previous = [], "0" * 64
    for sequence, payload in enumerate(payloads):
        event = {
            "trace_version": "1.0",
            "event_id": UUID % sequence,
            "trace_id": UUID % 900,
            "span_id": UUID % 901,
            "session_id": UUID % 902,
            "sequence": sequence,
            "timestamp": "2024-12-28T12:00:00.000000Z",
            "event_type": "policy.evaluated",
            "payload": payload,
            "previous_event_hash": previous,
        }
        hashed = [compact(value) if isinstance(value, dict) else str(value) for value in event.values()]
        previous = sha256("".join(hashed).encode()).hexdigest()
        lines.append(json.dumps(event | {"event_hash": previous}))
    return "\n".join(lines).encode()


def compact(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


request = {
    "carp_version": "1.0",
    "request_id": UUID % 1,
    "timestamp": "2024-12-28T12:00:00Z",
    "operation": "resolve",
    "requester": {"agent_id": "a", "session_id": UUID % 2},
    "task": {"goal": "g"},
}
atlas = {
    "atlas_version": "1.0",
    "atlas_id": "com.example.desk",
    "version": "1.0.0",
    "name": "n",
    "description": "d",
    "policies": [{"policy_id": "p", "type": "allow", "actions": ["t.*"]}],
    "actions": [{"action_id": "t.look", "name": "n", "description": "d"}],
    "dependencies": {"com.example.base": "^1.0.0"},
}
resolution = {
    "carp_version": "1.0",
    "resolution_id": UUID % 3,
    "request_id": UUID % 1,
    "timestamp": "2024-12-28T12:00:00Z",
    "decision": {"type": "deny"},
    "context_blocks": [],
    "allowed_actions": [],
    "denied_actions": [],
    "constraints": [],
    "ttl_seconds": 300,
    "trace_id": UUID % 4,
}

capsule = {
    "spec_version": "draft-mih-scitt-agent-action-capsule-01",
    "format_version": "2",
    "action_id": "order-7",
    "action_type": "decide",
    "operator": "acme",
    "developer": "agent@v1",
    "timestamp": "2026-06-13T00:00:00Z",
    "disposition": {"decision": "accept", "approver": "human", "human_disposed": True, "verdict_class": "executed"},
    "effect": {
        "status": "confirmed",
        "type": "write_order",
        "effect_attestation": "gate_executed",
        "request_digest": "1" * 64,
        "response_digest": "2" * 64,
    },
    "constraints": [{"id": "com.example.floor", "result": "pass", "severity": "high", "blocking": True}],
    "assurance": {"attestation_mode": "self_attested", "effect_mode": "confirmed", "ledger_mode": "standalone"},
}


def identified(record):
    """A Capsule with its id: nothing in ours is empty, so nothing is removed."""
    return compact(record | {"capsule_id": sha256(compact(record).encode()).hexdigest()}).encode()


def der(tag, *parts):
    """One DER element of up to 64 KiB."""
    content = b"".join(parts)
    size = len(content)
    long = size.to_bytes(2, "big").lstrip(b"\0")
    return bytes([tag]) + (bytes([size]) if size < 128 else bytes([128 | len(long)]) + long) + content


ED25519 = der(0x30, der(6, bytes([43, 101, 112])))
# The base point of the curve: a key whose secret is one.
spki = der(0x30, ED25519, der(3, b"\0\x58" + b"\x66" * 31))
moment = der(0x17, b"260101000000Z")
unsigned = der(
    0x30,
    der(0xA0, der(2, b"\2")),
    der(2, b"\1"),
    ED25519,
    der(0x30),
    der(0x30, moment, moment),
    der(0x30),
    spki,
)
certificate = der(0x30, unsigned, ED25519, der(3, bytes(65)))
x = urlsafe_b64encode(b"\x58" + b"\x66" * 31).decode().rstrip("=")
method = {"id": "#k", "type": "JsonWebKey", "publicKeyJwk": {"kty": "OKP", "crv": "Ed25519", "x": x}}
did = {"id": "did:web:example.org", "verificationMethod": [method], "assertionMethod": ["#k"]}


def often(first, pattern, last):
    """An input of `memory`: the pattern as often as it may be, to all readers."""
    return bytes([255, 255, 255, len(first), len(pattern)]) + first + pattern + last


# Elements, nesting, members, lines: items that cost more than their bytes.
PATTERNS = [(b"[", b"0,", b"0]"), (b"[", b"{},", b"0]"), (b"", b"[", b""), (b'{"a":[', b'"",', b"0]}")]
PATTERNS += [(b"\x99\x0f\xff", b"\x00", b""), (b"\x81" * 9 + b"\x99\x0f\xf0", b"\x80", b""), (b"", b"1\n", b"")]
PATTERNS += [(b"", b"a=0\n[b]\n", b""), (b'{"steps":[', b"0,", b'0],"constraints":[0]}')]
PATTERNS += [(b"\xd2\x84\x59\x0f\xf3\xb9\x0f\xff", b"\x00", b"")]


def question(line, *headers, body=b""):
    """An input of `query`: a request as text."""
    return "\n".join([line, *headers, "", ""]).encode() + body


TOKEN = "Authorization: Bearer sesame"
BROWSER = "Accept: text/html, application/problem+json;q=0.9, application/cbor;q=0.812, */*;q=0.1"
ENTRY, CAUSAL = "/entries/{id}", "/api/v1/lineages/" + NODE[:16].hex().upper()
FILTERS = "issuer=https%3A%2F%2Fagent.example&operator=acme&since=2026-01-01T00:00:00Z&until=2030-01-01T00:00:00%2B01:00"
READS = ["/", "/policy", "/health", "/openapi.json", "/checkpoint", "/checkpoint/key", "/.well-known/scitt-keys"]
READS += ["/.well-known/scitt-keys/{kid}", ENTRY, ENTRY + "/statement", ENTRY + "?api-version=2026-03-26"]
READS += ["/entries/1.2", "/entries/1.18446744073709551616", "/tile/0/000.p/5", "/tile/entries/000.p/5"]
READS += ["/consistency?from=2&to=5", "/api/v1/statements?limit=2&cursor=4&any=acme&any=order-7", "/api/v1/statements/{id}"]
READS += ["/api/v1/statements?" + FILTERS, "/api/v1/open-items?" + FILTERS, "/api/v1/stories/order-7"]
READS += ["/api/v1/bundles/{id}", CAUSAL, CAUSAL + "/prov", f"{CAUSAL}/to/{KID[:16].hex().upper()}"]

SEEDS = {
    "capsule": [identified(capsule), compact(capsule).encode(), identified({"domain": "é", "x": [1.5, None]})],
    "did": [
        json.dumps(did).encode(),
        b"did:x509:0:sha256:" + urlsafe_b64encode(NODE).rstrip(b"=") + b"::subject:CN:a::san:dns:b.example",
        certificate,
        spki,
        cbor({1: 1, -1: 6, -2: b"\x58" + b"\x66" * 31}),
    ],
    "json": [
        b'{"a":[1,-2.5e+3,{"b":null,"c":[]}],"d":"\\u00e9\\ud83d\\ude00 x","e":true,"f":{"g":0}}',
        b'[1e400,-0,0.1,123456789012345678901234567890,"\\ud800"]',
        b'{"a":1,"\\u0061":2}',
        identified(capsule),
    ],
    "memory": [often(*pattern) for pattern in PATTERNS],
    "cbor": [cbor(0), cbor(-1), cbor({1: [b"x", "y", None]}), cbor((1, 2)), b"\xf9\x3c\x00", cbor(STATEMENT)],
    "statement": [
        statement,
        sign1(STATEMENT | {1: -8}, {394: [inclusion]}, b"{}"),
        sign1({1: -7, 4: KID, 15: CLAIMS, 258: -16, 259: "text/plain"}, {}, NODE),
        sign1({1: -7, 15: CLAIMS, 34: [-16, NODE]}, {33: b"0"}, b""),
        sign1(STATEMENT, {}, None),
    ],
    "cra": [json.dumps(document).encode() for document in (request, resolution, atlas)],
    "receipt": [inclusion, consistency, ccf],
    "checkpoint": [note, b"log.example+00000000+AQ=="],
    "tile_path": [
        b"tile/0/000",
        b"tile/entries/x001/x234/067.p/8",
        b"tile/63/000.p/1",
        b"\x00\x20" + NODE,
    ],
    "pacr": [cbor(event), json.dumps(in_json(event)).encode()],
    "pca": [
        (HERE.parent / "tools/src/pca_conformance/t13_a.json").read_bytes(),
        (HERE.parent / "tools/src/pca_conformance/t13_b.json").read_bytes(),
        b'{"capsule_version":"1.0","proofs":[]}',
        b'{"now":"2026-04-10T12:00:00Z","brs_score":1e0,"brs_threshold":2,"ood":false,"merkle_proofs":[]}',
    ],
    "policy": [(HERE.parent / "policy" / f"{name}.toml").read_bytes() for name in ("issuers", "open")],
    "query": [question("GET " + path) for path in READS]
    + [
        question("HEAD /entries/1.0", "Accept: application/scitt-receipt+cose;q=1, application/cose;q=0.5"),
        question("GET /entries/zz", BROWSER),
        question("GET /metrics", TOKEN),
        question("OPTIONS /entries", "Origin: https://a.example", "Access-Control-Request-Method: POST"),
        question("POST /entries", TOKEN, "Content-Type: application/cose; x=1", body=statement),
        question("POST /entries?api-version=2026-03-26", TOKEN, BROWSER, "X-Forwarded-For: ::1, 10.0.0.1", body=b"0"),
        question("POST /entries/batch", TOKEN, "Content-Type: application/cbor-seq", body=statement + cbor(0)),
        question("POST /entries", "Authorization: Basic c2VzYW1l"),
        question("DELETE /entries/1.0", TOKEN),
    ],
    "trace": [trace({"policy_id": "p", "result": "allow"}, {"policy_id": "q", "result": 1.5, "x": ["é", None]})],
    "trust": [
        b'[[issuer]]\nname = "https://agent.example"\nkeys = []\nuntil = 2026-01-01T00:00:00Z\n',
        b'[[issuer]]\nname = "a"\nkeys = ["""-----BEGIN PUBLIC KEY-----\n'
        + b64encode(spki)
        + b'\n-----END PUBLIC KEY-----"""]\n',
        b'[[anchor]]\nname = "a"\ncertificate = ""\neku = "1.3.6.1.5.5.7.3.3"\n',
        b'[[log]]\nname = "https://log.example"\nkeys = []\ncheckpoint = "log.example+00000000+AQ=="\n',
    ],
}
SEEDS["verify"] = SEEDS["statement"][:2] + SEEDS["receipt"] + SEEDS["checkpoint"][:1]

for target, inputs in SEEDS.items():
    directory = HERE / "seeds" / target
    directory.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        (directory / str(number)).write_bytes(data)
