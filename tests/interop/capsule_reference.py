"""Makes Capsules of format 2, good and damaged, and writes what the published
reference of the draft's era says about each: one JSON object per line.

usage: capsule_reference.py COUNT > FILE
"""

import copy
import json
import random
import sys

from agent_action_capsule.canonical import compute_capsule_id, normalize
from agent_action_capsule.contracts import NEVER_DISPATCH_VERDICT_CLASSES, derive_effect_mode
from agent_action_capsule.verify import verify

DIGESTS = ["1" * 64, "ab" * 32, "x" * 64, "1" * 63, "1" * 64 + "\n", "AB" * 32]
WORDS = {
    "action_type": ["fyi", "decide", "decide", "other"],
    "format_version": ["2"] * 12 + ["4", "1"],
    "decision": ["accept", "reject", "needs_input", "deferred", "odd"],
    "approver": ["human", "policy", "policy", "counterparty"],
    "verdict_class": [
        "executed", "blocked", "hitl_dispatched", "denied", "timeout", "errored", "engine_failure",
        "deferred", "needs_decision", "expired", "escalated", "resolved", "custom_review",
    ],
    "status": ["planned", "dispatched", "confirmed", "confirmed", "failed", "reverted", "odd"],
    "type": ["write_order", "send_payment", "teleport_goods"],
    "irreversibility_class": ["two_way", "one_way_terminal", "odd"],
    "effect_attestation": ["gate_executed", "runtime_claimed", "tee_anchored"],
    "relation": ["supersedes", "confirms"],
    "attestation_mode": ["self_attested", "self_attested", "anchored", "odd"],
    "effect_mode": ["not_applicable", "dispatched_unconfirmed", "confirmed", "odd"],
    "ledger_mode": ["standalone", "chained", "anchored", "odd"],
}
VALUES = [
    None, True, False, 0, -1, 2**53 - 1, 2**53, -(2**53), 10**30, 1.5, 1e3, -0.0, "", "x", "1" * 64,
    [], {}, [1], [[]], [{"x": None}], {"a": 1}, {"a": {}}, ["human"], "\u20ac\U0001f600\u0007\"\\/",
]
NAMES = ["x", "\u20ac", "\U0001f600", "\ufb33", "domain", "provenance", "self_reported_reasoning", "_sd", "constraints"]


def word(rng, name):
    return rng.choice(WORDS[name])


def sometimes(rng, block, name, value, chance=0.7):
    if rng.random() < chance:
        block[name] = value


def make(rng):
    """A Capsule that is often right."""
    capsule = {
        "spec_version": "draft-mih-scitt-agent-action-capsule-01",
        "format_version": word(rng, "format_version"),
        "action_id": f"a-{rng.randrange(10**6)}", "action_type": word(rng, "action_type"),
        "operator": "acme", "developer": "agent@v1", "timestamp": "2026-06-13T00:00:00Z",
    }
    if rng.random() < 0.9:
        approver = word(rng, "approver")
        disposition = {
            "decision": word(rng, "decision"), "approver": approver,
            "human_disposed": rng.random() < (0.8 if approver == "human" else 0.1),
        }
        sometimes(rng, disposition, "verdict_class", word(rng, "verdict_class"))
        sometimes(rng, disposition, "reason_digest", rng.choice(DIGESTS), 0.2)
        sometimes(rng, disposition, "expiry_policy", {"ttl_seconds": 60, "on_expiry": "expired"}, 0.1)
        capsule["disposition"] = disposition
    if rng.random() < 0.6:
        effect = {"status": word(rng, "status")}
        sometimes(rng, effect, "type", word(rng, "type"))
        sometimes(rng, effect, "response_digest", rng.choice(DIGESTS[:2] * 4 + DIGESTS))
        sometimes(rng, effect, "request_digest", rng.choice(DIGESTS), 0.3)
        sometimes(rng, effect, "effect_attestation", word(rng, "effect_attestation"))
        sometimes(rng, effect, "irreversibility_class", word(rng, "irreversibility_class"), 0.3)
        capsule["effect"] = effect
    if rng.random() < 0.9:
        modes = ["attestation_mode", "effect_mode", "ledger_mode"]
        capsule["assurance"] = {mode: word(rng, mode) for mode in modes}
    if rng.random() < 0.3:
        capsule["constraints"] = [{"id": "c", "result": "pass", "blocking": True}]
    if rng.random() < 0.3:
        capsule["chain"] = {
            "parent_capsule_id": rng.choice(DIGESTS[:2] * 3 + DIGESTS), "relation": word(rng, "relation"),
        }
    return capsule


def mend(rng, capsule):
    """Makes the parts fit each other."""
    capsule["format_version"], capsule["action_type"] = "2", rng.choice(["fyi", "decide"])
    disposition = capsule.get("disposition", {})
    if disposition:
        disposition["approver"] = rng.choice(["human", "policy"])
    effect = capsule.get("effect")
    if effect and disposition.get("verdict_class") in NEVER_DISPATCH_VERDICT_CLASSES:
        effect["status"] = "planned"
    if effect and effect["status"] == "planned":
        effect.pop("effect_attestation", None)
    elif effect:
        effect.setdefault("effect_attestation", "runtime_claimed")
        effect["response_digest"] = rng.choice(DIGESTS[:2])
    if "assurance" in capsule:
        capsule["assurance"]["effect_mode"] = derive_effect_mode(effect)
    if "chain" in capsule:
        capsule["chain"]["parent_capsule_id"] = rng.choice(DIGESTS[:2])


def places(value):
    """Every container and key in a value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], (dict, list)):
            yield from places(value[key])


def damage(rng, capsule):
    """Changes one thing somewhere."""
    container, key = rng.choice(list(places(capsule)))
    kind = rng.randrange(4)
    if kind == 0 and isinstance(container, dict):
        del container[key]
    elif kind == 1 and isinstance(container, dict):
        container[rng.choice(NAMES)] = copy.deepcopy(rng.choice(VALUES))
    else:
        container[key] = copy.deepcopy(rng.choice(VALUES))


def seal(capsule):
    try:
        capsule["capsule_id"] = compute_capsule_id(capsule)
    except ValueError:
        capsule["capsule_id"] = "0" * 64


def spoil(rng, text):
    """Things a parsed value cannot show."""
    kind = rng.randrange(5)
    if kind == 0:
        return text.replace("{", '{"zero":-0,', 1)
    if kind == 1:
        return text.replace("{", '{"operator":"first",', 1)
    if kind == 2:
        return text.replace('"acme"', '"\\ud800"', 1)
    if kind == 3:
        return text.replace("{", '{"deep":' + "[" * 70 + "]" * 70 + ",", 1)
    return text.replace("{", '{"n":NaN,', 1)


def judged(capsule):
    result = verify(capsule)
    stopped = any(f.code == "verifier_internal_error" for f in result.findings)
    verdict = {
        "ok": result.ok, "capsule_id": result.capsule_id, **result.assurance,
        "errors": [[f.check, f.code] for f in result.errors],
    }
    return verdict, stopped


def main(count):
    rng = random.Random(1)
    for number in range(count):
        capsule = make(rng)
        if rng.random() < 0.8:
            mend(rng, capsule)
        damages = rng.choice([0, 0, 1, 1, 2, 3])
        if rng.random() < 0.5:
            seal(capsule)
            for _ in range(damages):
                damage(rng, capsule)
        else:
            for _ in range(damages):
                damage(rng, capsule)
            seal(capsule)
        text = json.dumps(capsule, ensure_ascii=rng.random() < 0.5)
        if number % 20 == 0:
            text = spoil(rng, text)
        parsed = json.loads(text)
        verdict, stopped = judged(parsed)
        normal, normal_stopped = judged(normalize(parsed))
        print(json.dumps({
            "text": text, "verdict": verdict, "stopped": stopped,
            "normal_verdict": normal, "normal_stopped": normal_stopped,
        }))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(int(sys.argv[1]))
