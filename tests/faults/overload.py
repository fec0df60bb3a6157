#!/usr/bin/env python3
"""Overloads a log of its own and sees whether it stays itself.

    tests/faults/overload.py target/debug/capstan            the short form, half a minute
    tests/faults/overload.py target/release/capstan --long   a minute flat out, 10,000 idle connections

In: a built program. Out: a table; exit code 1 when a promise is broken. Loopback
only, everything bounded in count and time. Standard library only.
"""

import argparse
import json
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESIDENT_MB_MAX = 400


class Log:
    """A log in a directory of its own, with the hammer's keys pinned."""

    def __init__(self, program, work):
        self.program, self.work = program, work
        self.keys = work / "keys"
        data = work / "log"
        self.run("init", "--data", data, "--name", "overload.invalid", "--policy", HERE.parent.parent / "policy/all-records.toml")
        self.run("hammer", "--key-dir", self.keys, "--trust-out", data / "trust.toml")
        self.process = subprocess.Popen(
            [program, "serve", "--data", data, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=open(work / "log.txt", "wb"), text=True
        )
        self.address = self.process.stdout.readline().strip().removeprefix("listening on http://")
        host, port = self.address.rsplit(":", 1)
        self.host, self.port = host, int(port)

    def run(self, *arguments):
        subprocess.run([self.program, *map(str, arguments)], check=True, capture_output=True)

    def resident_mb(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024

    def hammer(self, *arguments):
        command = [self.program, "hammer", "--url", f"http://{self.address}", "--key-dir", self.keys, "--mix", "capsules=4,pacr=2,pca=1,trace=2", "--save", self.work / "evidence", "--json"]
        done = subprocess.run([str(part) for part in [*command, *arguments]], capture_output=True, text=True)
        told = json.loads(done.stdout) if done.stdout else {"ok": False, "error": done.stderr}
        return told

    def connect(self):
        return socket.create_connection((self.host, self.port), 5)

    def status(self, path="/health/live"):
        try:
            return urllib.request.urlopen(f"http://{self.address}{path}", timeout=10).status
        except urllib.error.HTTPError as error:
            return error.code


def steady(log, seconds):
    """What the log takes with eight at a time: the rate others are compared with."""
    told = log.hammer("--seconds", seconds, "--in-flight", 8, "--readers", 0, "--duplicates", 0, "--refusals", 0)
    return told["ok"], told.get("statements", {}).get("per_second", 0), told


def flat_out(log, seconds, in_flight):
    """Many more at once than it can take: pushed back or answered, never lost."""
    told = log.hammer("--seconds", seconds, "--in-flight", in_flight, "--readers", 2)
    counts = told["statements"]
    detail = f"{counts['per_second']:.0f}/s, p99 {counts['answer_ms']['p99']:.0f} ms, {counts.get('pushed_back', 0)} pushed back"
    return told["ok"] and log.resident_mb() < RESIDENT_MB_MAX, f"{detail}, {log.resident_mb():.0f} MB"


def idle(log, count):
    """Connections that say nothing."""
    held = []
    try:
        for _ in range(count):
            held.append(log.connect())
    except OSError as error:
        print(f"note: {len(held)} of {count} connections: {error}")
    ok, rate, _ = steady(log, 2)
    detail = f"{len(held)} held, {rate:.0f}/s beside them, {log.resident_mb():.0f} MB"
    for one in held:
        one.close()
    return ok and log.resident_mb() < RESIDENT_MB_MAX, detail


def half_open(log, count):
    """Requests whose body never comes, and some that stop within their headers."""
    held = []
    for number in range(count):
        one = log.connect()
        one.sendall(b"POST /entries HTTP/1.1\r\nhost: x\r\n" + (b"content-length: 1000\r\n\r\nxx" if number % 2 else b"x-a"))
        held.append(one)
    ok, rate, _ = steady(log, 2)
    for one in held:
        one.close()
    return ok, f"{count} held, {rate:.0f}/s beside them"


def huge_header(log):
    """A megabyte of header is refused, not kept."""
    one = log.connect()
    try:
        one.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\nx-big: " + b"a" * 1_000_000 + b"\r\n\r\n")
        answer = one.recv(100)
    except OSError:
        answer = b"closed"
    one.close()
    return not answer.startswith(b"HTTP/1.1 2"), answer.split(b"\r\n")[0].decode() or "closed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--long", action="store_true")
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 25_000), hard))
    work = Path(tempfile.mkdtemp(prefix="capstan-overload-"))
    log = Log(options.program.resolve(), work)
    sizes = (60, 512, 10_000) if options.long else (5, 256, 500)
    failed = 0
    try:
        ok, before, _ = steady(log, 3)
        print(f"| steady, 8 in flight | {before:.0f}/s | {'ok' if ok else 'BROKEN'} |", flush=True)
        for name, trial in [
            (f"flat out, {sizes[1]} in flight, {sizes[0]} s", lambda: flat_out(log, *sizes[:2])),
            (f"{sizes[2]} idle connections", lambda: idle(log, sizes[2])),
            ("200 half-open requests", lambda: half_open(log, 200)),
            ("a header of a megabyte", lambda: huge_header(log)),
        ]:
            ok, detail = trial()
            alive = log.process.poll() is None and log.status() == 200
            failed += not (ok and alive)
            print(f"| {name} | {detail} | {'ok' if ok and alive else 'BROKEN'} |", flush=True)
        ok, after, _ = steady(log, 3)
        failed += not ok
        print(f"| steady again | {after:.0f}/s | {'ok' if ok else 'BROKEN'} |")
    finally:
        log.process.terminate()
        log.process.wait(30)
    if failed:
        sys.exit(f"{failed} promises broken; evidence in {work}")
    shutil.rmtree(work)


main()
