#!/usr/bin/env python3
"""SIGKILL at random under `capstan-hammer`: the log is killed while running and
while starting, and restarted on the same data and address. The hammer keeps
running, checks what was acknowledged before each kill, and checks everything once
more at the end.

    SEED=N tests/faults/run [long] kill
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time

import lib

KILLS, KILLS_LONG = 12, 220
# One in this many kills hits a log that is still starting.
AT_START = 5


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def main():
    kills = KILLS_LONG if "--long" in sys.argv else KILLS
    dice, started = random.Random(lib.seed()), time.time()
    work = lib.scratch("kill")
    data, port = lib.new_log(work), free_port()
    (fresh,) = lib.Statements(work, 1).all
    server, at_start = lib.Server(data, port=port), 0
    empty = lib.tree_size(server)
    hammer = subprocess.Popen(
        [lib.hammer(), "--json", "--dev", "--url", f"http://127.0.0.1:{port}"]
        + f"--seconds 86400 --duplicates 10 --patience 60 --seed {lib.seed()}".split(),
        cwd=work, env=lib.environment(), stdout=subprocess.PIPE,
    )
    while hammer.poll() is None and lib.tree_size(server) == empty:
        time.sleep(0.05)
    for _ in range(kills):
        server.kill()
        is_up = dice.randrange(AT_START) > 0
        server = lib.Server(data, port=port, wait=is_up)
        time.sleep(dice.uniform(0.02, 0.4) if is_up else dice.uniform(0, 0.15))
        at_start += not is_up
        if hammer.poll() is not None:
            break
    server.kill()
    server = lib.Server(data, port=port)
    time.sleep(1)
    hammer.send_signal(signal.SIGINT)
    told = json.loads(hammer.communicate()[0] or "{}")
    server.terminate()
    statements = told.get("statements", {})
    failures = []
    if hammer.returncode != 0:
        failures.append(f"the hammer ended with {hammer.returncode}: {told}")
    elif statements["registered"] < kills or statements["connection_errors"] < kills // 2:
        failures.append(f"there was no load while the log was killed: {statements}")
    try:
        lib.check_data(data, [], fresh)
    except lib.Broken as error:
        failures.append(str(error))
    for failure in failures:
        lib.say("BROKEN " + failure)
    lib.say(
        f"kill: {kills + 1} kills, {at_start} of them at a start, seed {lib.seed()}:"
        f" {statements.get('registered')} registered, {len(failures)} broken,"
        f" {time.time() - started:.0f} s"
    )
    lib.finish(work, failures)


if __name__ == "__main__":
    sys.exit(main())
