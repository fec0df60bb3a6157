#!/usr/bin/env python3
"""Races Capstan against its peers: the same statements, the same generator.

    bench/race.py                      all peers in bench/peers, about six minutes
    bench/race.py --json a.json --svg docs/curves
    bench/race.py --seconds 2 --growth 2000 --only capstan

Every server runs on this machine, one at a time, on a port of its own, with the
generator (`capstan-hammer --plain`) on the same cores. Statements are Ed25519,
because every peer takes those. Prints a table of ratios, and with --svg DIR
draws the curves. Standard library only; peers are installed with pip into
target/race.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from base64 import b64decode
from math import ceil, floor, log10
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = HERE.parent / "target" / "race"
IN_FLIGHT = (1, 8, 64)


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def issuer_key(keys):
    """The raw Ed25519 key in the trust file that the generator writes, in hex."""
    pem = (keys / "trust.toml").read_text()
    body = pem.split("-----BEGIN PUBLIC KEY-----")[1].split("-----END")[0]
    return b64decode("".join(body.split()))[-32:].hex()


class Server:
    """One log under race, in a directory of its own."""

    def __init__(self, peer, capstan, keys):
        self.peer, self.port = peer, free_port()
        self.dir = Path(tempfile.mkdtemp(dir=WORK, prefix=peer["name"] + "-"))
        self.url = f"http://127.0.0.1:{self.port}"
        values = {
            "python": peer.get("python", sys.executable),
            "port": self.port,
            "dir": self.dir,
            "key": issuer_key(keys),
            "capstan": capstan,
        }
        if peer["name"] == "capstan":
            # As shipped, but for its bound on how often one issuer may register.
            policy = self.dir / "policy.toml"
            policy.write_text((HERE.parent / "policy/issuers.toml").read_text().split("[rate]")[0])
            run(capstan, "init", "--data", self.dir / "log", "--name", "race.invalid", "--policy", policy)
            shutil.copy(keys / "trust.toml", self.dir / "log" / "trust.toml")
        command = [part.format(**values) for part in peer["start"]]
        self.log = open(self.dir / "server.log", "wb")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, cwd=peer.get("cwd"))
        self.wait()

    def wait(self):
        for _ in range(200):
            if self.process.poll() is not None:
                sys.exit(f"{self.peer['name']} ended: {(self.dir / 'server.log').read_text()[-2000:]}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        sys.exit(f"{self.peer['name']} does not listen")

    def resident_mb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def stored_bytes(self):
        files = (path for path in self.dir.rglob("*") if path.is_file() and path.name != "server.log")
        return sum(path.stat().st_blocks * 512 for path in files)

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.dir)


def generator(capstan):
    return Path(capstan).with_name("capstan-hammer")


def hammer(capstan, keys, server, **options):
    flags = [flag for name, value in options.items() for flag in (f"--{name.replace('_', '-')}", value)]
    command = [generator(capstan), "--url", server.url, "--plain", "--keys", "ed25519", "--key-dir", keys]
    command += ["--readers", "0", "--save", WORK / "evidence", "--json", *flags]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    try:
        told = json.loads(done.stdout)
    except json.JSONDecodeError:
        sys.exit(f"hammer said nothing about {server.peer['name']}: {done.stderr}")
    if done.returncode:
        told["failed"] = told.get("error", done.stderr.strip())
    return told


def refuses_forgeries(capstan, keys, server):
    """Whether a statement with one flipped bit of its signature is refused."""
    signing = keys / "ed25519.key"
    payload = WORK / "payload"
    payload.write_text("{}")
    sealed = WORK / "forged.cose"
    sealed.unlink(missing_ok=True)
    issuer = (keys / "trust.toml").read_text().split('name = "')[1].split('"')[0]
    run(capstan, "seal", payload, "--key", signing, "--iss", issuer, "--sub", "urn:race:forged", "--content-type", "application/json", "--output", sealed)
    forged = bytearray(sealed.read_bytes())
    forged[-1] ^= 1
    request = urllib.request.Request(server.url + "/entries", bytes(forged), {"content-type": "application/cose"})
    try:
        return urllib.request.urlopen(request, timeout=10).status >= 400
    except urllib.error.HTTPError as refused:
        return refused.code < 500


def syncs(server, drive):
    """How often the server syncs while 20 statements are registered, or None."""
    if not shutil.which("strace"):
        return None
    trace = server.dir / "syncs"
    watch = subprocess.Popen(
        ["strace", "-f", "-p", str(server.process.pid), "-e", "trace=fsync,fdatasync,sync_file_range,msync", "-o", str(trace)],
        stderr=subprocess.DEVNULL,
    )
    time.sleep(0.5)
    drive()
    watch.terminate()
    watch.wait()
    return sum("sync" in line and "= 0" in line for line in trace.read_text().splitlines())


def growth(capstan, keys, server, most, seconds):
    """Milliseconds for one statement at growing sizes, 8 in flight."""
    points, size, step = [], 0, 1000
    ends = time.monotonic() + seconds
    while size < most and time.monotonic() < ends:
        count = min(step, most - size)
        told = hammer(capstan, keys, server, in_flight=8, count=count, seconds=max(5, int(ends - time.monotonic())))
        done = told["statements"]["registered"]
        size += done
        if not done or "failed" in told:
            break
        points.append((size, told["seconds"] * 1000 / done))
        step = max(1000, size // 4)
    return points


def race(peer, capstan, keys, options):
    server = Server(peer, capstan, keys)
    found = {"name": peer["name"], "about": peer.get("about", "")}
    try:
        found["refuses_forgeries"] = refuses_forgeries(capstan, keys, server)
        found["syncs_in_20"] = syncs(server, lambda: hammer(capstan, keys, server, in_flight=1, count=20))
        for in_flight in IN_FLIGHT:
            told = hammer(capstan, keys, server, in_flight=in_flight, seconds=options.seconds)
            found[f"at_{in_flight}"] = {
                "per_second": told["statements"]["per_second"],
                "p50": told["statements"]["answer_ms"]["p50"],
                "p99": told["statements"]["answer_ms"]["p99"],
                "pushed_back": told["statements"]["pushed_back"],
                "failed": told.get("failed"),
            }
        found["receipt_bytes"] = receipt_bytes(capstan, keys, server)
    finally:
        server.stop()
    server = Server(peer, capstan, keys)
    try:
        found["growth"] = growth(capstan, keys, server, options.growth, options.growth_seconds)
        size = found["growth"][-1][0] if found["growth"] else 0
        found["resident_mb"] = server.resident_mb()
        found["bytes_per_entry"] = server.stored_bytes() / max(1, size)
    finally:
        server.stop()
    return found


def receipt_bytes(capstan, keys, server):
    signing = keys / "ed25519.key"
    sealed = WORK / "one.cose"
    sealed.unlink(missing_ok=True)
    issuer = (keys / "trust.toml").read_text().split('name = "')[1].split('"')[0]
    run(capstan, "seal", WORK / "payload", "--key", signing, "--iss", issuer, "--sub", f"urn:race:{time.time_ns()}", "--content-type", "application/json", "--output", sealed)
    request = urllib.request.Request(server.url + "/entries", sealed.read_bytes(), {"content-type": "application/cose", "accept": "application/cose"})
    return len(urllib.request.urlopen(request, timeout=10).read())


def table(results):
    """Every figure of every server, and what part or multiple of ours it is."""
    rows = [["", *[found["name"] for found in results]]]

    def row(what, value, show):
        ours = value(results[0])
        cell = lambda mine: "-" if mine is None else show(mine) + (f" ({mine / ours:.3g}x)" if ours else "")
        rows.append([what, *[cell(value(found)) for found in results]])

    ms, whole = lambda v: f"{v:.2f} ms", lambda v: f"{v:,.0f}"
    for in_flight in IN_FLIGHT:
        at = f"at_{in_flight}"
        row(f"statements/s, {in_flight} in flight", lambda f: f[at]["per_second"], whole)
        row(f"p50, {in_flight} in flight", lambda f: f[at]["p50"], ms)
        row(f"p99, {in_flight} in flight", lambda f: f[at]["p99"], ms)
    row("statements sent away meanwhile", lambda f: sum(f[f"at_{n}"]["pushed_back"] for n in IN_FLIGHT), whole)
    first, last = (lambda f: f["growth"][0] if f["growth"] else None), (lambda f: f["growth"][-1] if f["growth"] else None)
    row("cost of an entry up to 1 000 entries", lambda f: first(f) and first(f)[1], ms)
    row("entries grown to", lambda f: last(f) and last(f)[0], whole)
    row("cost of an entry there / up to 1 000", lambda f: last(f) and last(f)[1] / first(f)[1], lambda v: f"{v:.2f}")
    row("bytes on disk per entry", lambda f: f["bytes_per_entry"], whole)
    row("bytes of a receipt", lambda f: f["receipt_bytes"], whole)
    row("resident after growth", lambda f: f["resident_mb"], lambda v: f"{v:.0f} MB")
    rows.append(["refuses a forged signature", *["yes" if f["refuses_forgeries"] else "NO" for f in results]])
    rows.append(["syncs while 20 are registered one by one", *["not seen" if f["syncs_in_20"] is None else str(f["syncs_in_20"]) for f in results]])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" * len(rows[0]) + "|")
    return "\n".join(lines)


def decades(values):
    """The powers of ten that enclose all values."""
    return range(floor(log10(min(values))), max(ceil(log10(max(values))), floor(log10(min(values))) + 1) + 1)


def svg(path, title, series, x_label, y_label):
    """A small chart: one line for each series, both axes logarithmic."""
    points = [point for _, line in series for point in line if point[1] > 0]
    if not points:
        return
    across, up = (decades(values) for values in zip(*points))
    x = lambda v: 70 + (log10(v) - across[0]) / (across[-1] - across[0]) * 420
    y = lambda v: 250 - (log10(v) - up[0]) / (up[-1] - up[0]) * 190
    colours = ["#1f4e8c", "#7fa3d1", "#b3541e", "#dfa47f", "#4b7a3a", "#9cc28d"] if len(series) > 3 else ["#1f4e8c", "#b3541e", "#4b7a3a"]
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 310" font-family="sans-serif" font-size="12">', '<rect width="640" height="310" fill="#fff"/>', f'<text x="70" y="24" font-size="14">{title}</text>']
    for power in across:
        at = x(10**power)
        parts.append(f'<path d="M{at:.0f} 60V250" stroke="#ddd"/><text x="{at:.0f}" y="268" text-anchor="middle">{10**power:,}</text>')
    for power in up:
        at = y(10**power)
        parts.append(f'<path d="M70 {at:.0f}H490" stroke="#ddd"/><text x="64" y="{at + 4:.0f}" text-anchor="end">{10.0**power:,g}</text>')
    parts.append(f'<text x="280" y="292" text-anchor="middle">{x_label}</text><text x="64" y="48" text-anchor="end">{y_label}</text>')
    for number, (name, line) in enumerate(series):
        colour = colours[number % len(colours)]
        path_data = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line if b > 0)
        parts.append(f'<polyline points="{path_data}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="502" y="{70 + 18 * number}" fill="{colour}">{name}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n")


def peers(only):
    own = {"name": "capstan", "start": ["{capstan}", "serve", "--data", "{dir}/log", "--listen", "127.0.0.1:{port}"], "about": "Rust, fjall, one synced commit per batch"}
    found = [own]
    for path in sorted((HERE / "peers").glob("*.toml")):
        peer = tomllib.loads(path.read_text())
        if "pip" in peer and (not only or peer["name"] in only):
            home = WORK / f"venv-{peer['name']}"
            if not (home / "bin/python").exists():
                run(sys.executable, "-m", "venv", home)
            run(home / "bin/pip", "install", "--quiet", "--disable-pip-version-check", *peer["pip"])
            peer["python"] = str(home / "bin/python")
        found.append(peer)
    return [peer for peer in found if not only or peer["name"] in only]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--capstan", default=str(HERE.parent / "target/dist/capstan"), help="the program, with capstan-hammer beside it, built with --workspace --profile dist")
    parser.add_argument("--seconds", type=int, default=8, help="for each rate measured")
    parser.add_argument("--growth", type=int, default=100_000, help="entries to grow to")
    parser.add_argument("--growth-seconds", type=int, default=120, help="at most this long for each peer")
    parser.add_argument("--only", nargs="*", default=[], help="names of peers")
    parser.add_argument("--svg", type=Path, help="folder for the curves")
    parser.add_argument("--json", type=Path, help="file for everything measured")
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    keys = Path(tempfile.mkdtemp(dir=WORK, prefix="keys-"))
    run(generator(options.capstan), "--keys", "ed25519", "--key-dir", keys, "--trust-out", keys / "trust.toml")
    results = []
    for peer in peers(options.only):
        print(f"racing {peer['name']}", file=sys.stderr, flush=True)
        results.append(race(peer, options.capstan, keys, options))
    print(f"{os.cpu_count()} cores, generator on the same cores, {time.strftime('%Y-%m-%d')}\n")
    print(table(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.svg:
        options.svg.mkdir(parents=True, exist_ok=True)
        svg(options.svg / "growth.svg", "cost of an entry as the log grows", [(f["name"], f["growth"]) for f in results], "entries in the log", "ms")
        latency = [(f"{f['name']} {p}", [(n, f[f"at_{n}"][p]) for n in IN_FLIGHT]) for f in results for p in ("p50", "p99")]
        svg(options.svg / "latency.svg", "answer time", latency, "requests in flight", "ms")
    shutil.rmtree(keys)


main()
