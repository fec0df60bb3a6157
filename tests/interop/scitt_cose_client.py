"""Registers a statement and verifies what comes back with scitt-cose.

usage: scitt_cose_client.py URL
"""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from scitt_cose import (
    attach_receipts,
    build_signed_statement,
    extract_receipts,
    parse_signed_statement,
    verify_receipt,
)

from scrapi import check, flip, log_key, pem, register, request


def main(url):
    secret = Ed25519PrivateKey.generate()
    issuer = secret.public_key()
    statement = build_signed_statement(
        b'{"action":"deploy","result":"ok"}',
        alg="EdDSA",
        private_key_pem=secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        issuer="https://agent.example",
        subject="urn:example:run:1",
        content_type="application/json",
        kid=issuer.public_bytes(Encoding.Raw, PublicFormat.Raw),
    )
    receipt, entry = register(url, statement)
    key = pem(log_key(url, receipt))
    leaf = hashlib.sha256(statement).hexdigest()

    parsed = parse_signed_statement(statement, public_key_pem=pem(issuer))
    check("scitt-cose verifies the statement", parsed["signature_verified"] is True)
    check("scitt-cose reads its issuer and subject",
          (parsed["issuer"], parsed["subject"]) == ("https://agent.example", "urn:example:run:1"))

    result = verify_receipt(receipt, leaf_entry_hex=leaf, log_public_key_pem=key)
    check("scitt-cose verifies the receipt", result.ok, result.errors)
    check("the receipt carries iss, sub and kid",
          bool(result.issuer and result.subject and result.protected_header_ext.get(4)))

    transparent = attach_receipts(statement, [receipt])
    parsed = parse_signed_statement(transparent, public_key_pem=pem(issuer))
    check("the transparent statement verifies",
          parsed["signature_verified"] is True and extract_receipts(transparent) == [receipt])

    status, _, again = request(entry, Accept="application/cose")
    check("GET Location answers a receipt", status == 200, status)
    check("that receipt verifies too",
          verify_receipt(again, leaf_entry_hex=leaf, log_public_key_pem=key).ok)

    status, _, again = request(f"{url}/entries", statement,
                               Content_Type="application/cose", Accept="application/cose")
    check("the same statement again is accepted", status in (200, 201), status)
    check("its receipt verifies", verify_receipt(again, leaf_entry_hex=leaf, log_public_key_pem=key).ok)

    with tempfile.TemporaryDirectory() as directory:
        files = Path(directory)
        for name, data in ("s.cose", statement), ("s.pem", pem(issuer)), ("r.cose", receipt), ("r.pem", key):
            (files / name).write_bytes(data)
        command = [sys.executable, "-m", "scitt_cose.cli",
                   "--statement", "s.cose", "--statement-pubkey", "s.pem",
                   "--receipt", "r.cose", "--receipt-log-pubkey", "r.pem", "--leaf-entry-hex"]
        run = subprocess.run([*command, leaf], cwd=files, capture_output=True, text=True)
        check("the scitt-cose command agrees", run.returncode == 0, run.stdout + run.stderr)
        run = subprocess.run([*command, flip(bytes.fromhex(leaf)).hex()], cwd=files, capture_output=True)
        check("the scitt-cose command refuses another leaf", run.returncode == 1)

    forged = flip(statement, len(statement) // 2)
    check("a changed statement fails",
          parse_signed_statement(forged, public_key_pem=pem(issuer))["signature_verified"] is False)
    other = hashlib.sha256(forged).hexdigest()
    check("the receipt fails for a changed statement",
          verify_receipt(receipt, leaf_entry_hex=other, log_public_key_pem=key).failed_at == "signature")
    check("a changed receipt fails",
          not verify_receipt(flip(receipt), leaf_entry_hex=leaf, log_public_key_pem=key).ok)
    check("the receipt fails under another key",
          not verify_receipt(receipt, leaf_entry_hex=leaf, log_public_key_pem=pem(issuer)).ok)
    status, _, _ = request(f"{url}/entries", flip(statement),
                           Content_Type="application/cose", Accept="application/cose")
    check("the log refuses a forged statement", 400 <= status < 500, status)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1].rstrip("/"))
