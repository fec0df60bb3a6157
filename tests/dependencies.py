#!/usr/bin/env python3
"""Holds the crates of both lock files to deny.toml, without any tool.

Every crate that is built here has a licence of the list, comes from crates.io
with a checksum, and nothing of ours asks for just any version.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = tomllib.loads((ROOT / "deny.toml").read_text())
ALLOWED = set(LIST["licenses"]["allow"])
REGISTRIES = {"registry+" + address for address in LIST["sources"]["allow-registry"]}


def is_allowed(expression):
    """Whether an SPDX expression can be met with licences of the list."""
    # "A/B" is how "A OR B" was written once.
    words = re.findall(r"[()]|[^\s()/]+", expression.replace("/", " OR "))

    def alternatives(at):
        met, at = together(at)
        while at < len(words) and words[at] == "OR":
            other, at = together(at + 1)
            met = met or other
        return met, at

    def together(at):
        met, at = one(at)
        while at < len(words) and words[at] == "AND":
            other, at = one(at + 1)
            met = met and other
        return met, at

    def one(at):
        if words[at] == "(":
            met, at = alternatives(at + 1)
            return met, at + 1
        if words[at + 1 : at + 2] == ["WITH"]:
            return " ".join(words[at : at + 3]) in ALLOWED, at + 3
        return words[at] in ALLOWED, at + 1

    return alternatives(0)[0]


def check_reader():
    """The reader of expressions can say no."""
    for expression, expected in [
        ("MIT", True),
        ("GPL-2.0-only", False),
        ("MIT/GPL-2.0-only", True),
        ("GPL-2.0-only OR (MIT AND ISC)", True),
        ("MIT AND GPL-2.0-only", False),
        ("(MIT OR ISC) AND (GPL-2.0-only OR LGPL-3.0-only)", False),
        ("Apache-2.0 WITH LLVM-exception", False),
        ("Apache-2.0 WITH LLVM-exception OR MIT", True),
    ]:
        assert is_allowed(expression) == expected, expression


def wrong(manifest, host):
    """What is wrong with the crates of one manifest, and how many there are."""
    command = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={host}"]
    found = json.loads(subprocess.check_output([*command, f"--manifest-path={manifest}"], cwd=ROOT))
    lock = tomllib.loads((ROOT / manifest).with_suffix(".lock").read_text())
    checksums = {(p["name"], p["version"]) for p in lock["package"] if "checksum" in p}
    findings = []
    for crate in found["packages"]:
        name = f"{crate['name']} {crate['version']}"
        if crate["source"] is None:
            asked = [d for d in crate["dependencies"] if d["req"] == "*" and d["source"]]
            findings += [f"{name}: any version of {d['name']} will do" for d in asked]
            continue
        if crate["source"] not in REGISTRIES:
            findings.append(f"{name}: comes from {crate['source']}")
        if (crate["name"], crate["version"]) not in checksums:
            findings.append(f"{name}: no checksum in the lock file")
        if not is_allowed(crate["license"] or "none"):
            findings.append(f"{name}: licence {crate['license']} is not on the list")
    return findings, len(found["packages"])


check_reader()
target = re.search(r"^host: (.*)$", subprocess.check_output(["rustc", "-vV"], text=True), re.M)[1]
failed = False
for manifest in "Cargo.toml", "fuzz/Cargo.toml":
    findings, count = wrong(manifest, target)
    print(f"   {manifest}: {count} crates, {len(findings)} findings")
    for finding in findings:
        failed = True
        print("  ", finding)
sys.exit(failed)
