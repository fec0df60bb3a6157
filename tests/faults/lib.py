"""What every fault test needs: a log, a client, and the invariants.

The receipts are read and the trees computed here, in a second language and
without any code of the log, so that a mistake is not made twice.
"""

import hashlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def binary():
    """`run` says where it is."""
    return os.path.abspath(os.environ["CAPSTAN"])


def environment():
    return {k: v for k, v in os.environ.items() if not k.startswith("CAPSTAN")}


def capstan(*arguments, cwd=None, check=True):
    done = subprocess.run(
        [binary(), *arguments], cwd=cwd, env=environment(), capture_output=True, timeout=120
    )
    if check and done.returncode != 0:
        raise Broken(f"capstan {' '.join(arguments)}: {done.stderr.decode()}{done.stdout.decode()}")
    return done


class Broken(Exception):
    """A promise that was not kept."""


# -- CBOR, as much of it as a receipt needs ---------------------------------


def cbor(data, at=0):
    first = data[at]
    kind, short = first >> 5, first & 31
    at += 1
    if short < 24:
        value = short
    elif short < 28:
        width = 1 << (short - 24)
        value, at = int.from_bytes(data[at : at + width], "big"), at + width
    else:
        raise ValueError("an item without a length")
    if kind == 0:
        return value, at
    if kind == 1:
        return -1 - value, at
    if kind in (2, 3):
        piece = data[at : at + value]
        return (piece if kind == 2 else piece.decode()), at + value
    if kind == 4:
        items = []
        for _ in range(value):
            item, at = cbor(data, at)
            items.append(item)
        return items, at
    if kind == 5:
        pairs = {}
        for _ in range(value):
            key, at = cbor(data, at)
            pairs[key], at = cbor(data, at)
        return pairs, at
    if kind == 6:
        return cbor(data, at)
    return {20: False, 21: True, 22: None}.get(short), at


def place(receipt):
    """Size of the tree, index of the leaf and path in a receipt, and its time."""
    (protected, unprotected, _, _), _ = cbor(receipt)
    (proof,) = unprotected[396][-1]
    (size, index, path), _ = cbor(proof)
    claims = cbor(protected)[0].get(15, {})
    return size, index, path, claims.get(6)


# -- RFC 9162 ----------------------------------------------------------------


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def leaf_of(name):
    return sha256(b"\0", bytes.fromhex(name))


def root_of(leaves):
    if not leaves:
        return sha256()
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return sha256(b"\1", root_of(leaves[:split]), root_of(leaves[split:]))


def root_by_path(leaf, index, size, path):
    node, last = leaf, size - 1
    for sibling in path:
        if last == 0:
            raise Broken("a path is too long")
        if index & 1 or index == last:
            node = sha256(b"\1", sibling, node)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            node = sha256(b"\1", node, sibling)
        index, last = index >> 1, last >> 1
    if last:
        raise Broken("a path is too short")
    return node


class Roots:
    """Roots of many prefixes of one tree: the complete subtrees are kept."""

    def __init__(self, leaves):
        self.levels = [leaves]
        while len(self.levels[-1]) > 1:
            below = self.levels[-1]
            pairs = range(0, len(below) - 1, 2)
            self.levels.append([sha256(b"\1", below[i], below[i + 1]) for i in pairs])

    def at(self, size):
        peaks, start = [], 0
        for level in reversed(range(size.bit_length())):
            if size >> level & 1:
                peaks.append(self.levels[level][start >> level])
                start += 1 << level
        root = peaks.pop()
        while peaks:
            root = sha256(b"\1", peaks.pop(), root)
        return root


# -- a running log -----------------------------------------------------------


class Server:
    def __init__(self, data, around=(), env=None, log=None, settings=()):
        self.stderr = open(log, "wb") if log else subprocess.DEVNULL
        environ = environment()
        environ.update(env or {})
        environ.update(settings)
        self.process = subprocess.Popen(
            [*around, binary(), "serve", "--listen", "127.0.0.1:0", "--data", data],
            stdout=subprocess.PIPE,
            stderr=self.stderr,
            env=environ,
            start_new_session=True,
        )
        line = self.process.stdout.readline().decode().strip()
        prefix = "listening on http://"
        if not line.startswith(prefix):
            self.kill()
            raise NotStarted(f"the log did not start: {line!r}")
        self.address = line[len(prefix) :]

    def request(self, method, path, body=None, timeout=20):
        connection = http.client.HTTPConnection(self.address, timeout=timeout)
        try:
            connection.request(method, path, body, {"content-type": "application/cose"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        """SIGKILL to the whole group: a tracer must not outlive the log."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdout.close()
        if self.stderr is not subprocess.DEVNULL:
            self.stderr.close()

    def terminate(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Broken("the log did not stop on SIGTERM") from None
        self.process.stdout.close()
        if self.stderr is not subprocess.DEVNULL:
            self.stderr.close()


class NotStarted(Exception):
    """Nobody listens."""


class Statements:
    """Signed statements, made once and used by every run."""

    def __init__(self, work, count, payload_bytes=200):
        self.work = work
        self.all = []
        capstan("keygen", "--output", "agent.key", cwd=work)
        for number in range(count):
            text = f"statement {number} ".encode()
            payload = os.path.join(work, "payload")
            with open(payload, "wb") as file:
                file.write((text * (payload_bytes // len(text) + 1))[:payload_bytes])
            out = os.path.join(work, "one.cose")
            if os.path.exists(out):
                os.remove(out)
            capstan(
                *f"seal payload --key agent.key --content-type text/plain --iss https://a.example"
                f" --sub urn:example:{number} --output one.cose".split(),
                cwd=work,
            )
            with open(out, "rb") as file:
                self.all.append(file.read())

    @staticmethod
    def name(statement):
        """SHA-256 of the statement with its unprotected map emptied."""
        (protected, unprotected, payload, signature), _ = cbor(statement)
        if unprotected == {}:
            return sha256(statement).hex()
        raise Broken("the statements of these tests have nothing unprotected")


def new_log(work, name="data"):
    policy = os.path.join(ROOT, "policy", "open.toml")
    capstan("init", "--data", name, "--name", "faults.invalid", "--policy", policy, cwd=work)
    return os.path.join(work, name)


def register(server, statements, acknowledged, writers=4):
    """Registers from some threads until done or the log is gone."""
    waiting = list(reversed(statements))
    lock = threading.Lock()

    def work():
        while True:
            with lock:
                if not waiting:
                    return
                statement = waiting.pop()
            try:
                status, body = server.request("POST", "/entries", statement)
            except (OSError, http.client.HTTPException):
                return
            if status == 201:
                with lock:
                    acknowledged.append((Statements.name(statement), body))

    threads = [threading.Thread(target=work) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def leaves_of(server):
    size = json.loads(server.request("GET", "/")[1])["tree_size"]
    leaves = []
    for tile in range((size + 255) // 256):
        width = min(256, size - tile * 256)
        path = f"/tile/0/{tile:03}" + ("" if width == 256 else f".p/{width}")
        status, body = server.request("GET", path)
        if status != 200:
            raise Broken(f"{path} answers {status}")
        leaves += [body[i : i + 32] for i in range(0, len(body), 32)]
    if len(leaves) != size:
        raise Broken(f"{size} leaves are promised, {len(leaves)} served")
    return leaves


def check_tree(server, acknowledged):
    """I1 to I4: every receipt proves its statement, its root is a prefix of
    the tree, every statement stands once and where its receipt says."""
    leaves = leaves_of(server)
    roots = Roots(leaves)
    if len(set(leaves)) != len(leaves):
        raise Broken("a statement stands twice in the log")
    for name, receipt in acknowledged:
        size, index, path, _ = place(receipt)
        if size > len(leaves):
            raise Broken(f"a receipt is for {size} leaves, {len(leaves)} are left")
        if leaves[index] != leaf_of(name):
            raise Broken(f"{name} was acknowledged at {index} and is not there")
        if root_by_path(leaf_of(name), index, size, path) != roots.at(size):
            raise Broken(f"the head of {size} leaves is no prefix of the tree")
    return leaves


def check_data(data, acknowledged, fresh=None, settings=()):
    """Everything that must hold for a directory after whatever happened."""
    done = capstan("fsck", "--json", "--data", data, check=False)
    if done.returncode != 0:
        raise Broken(f"fsck: {done.stdout.decode()}{done.stderr.decode()[-600:]}")
    try:
        server = Server(data, log=data + ".log", settings=settings)
    except NotStarted as error:
        with open(data + ".log", errors="replace") as file:
            raise Broken(f"{error}: {file.read()[-600:]}") from None
    try:
        before = check_tree(server, acknowledged)
        if fresh is not None:
            status, receipt = server.request("POST", "/entries", fresh)
            if status != 201:
                raise Broken(f"after recovery a registration answers {status}")
            index = place(receipt)[1]
            if leaf_of(Statements.name(fresh)) not in before and index != len(before):
                raise Broken(f"the next index is {index}, {len(before)} are taken")
            check_tree(server, acknowledged + [(Statements.name(fresh), receipt)])
    finally:
        server.kill()


def say(text):
    print(text, flush=True)


def scratch(name):
    """A directory of our own, in memory where there is room for it."""
    parent = os.environ.get("FAULTS_DIR") or os.environ.get("TMPDIR") or "/tmp"
    path = os.path.join(parent, f"capstan-faults-{name}-{os.getpid()}")
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def finish(work, failures):
    """Leaves the evidence when there is some."""
    if failures:
        say(f"evidence is in {work}")
        sys.exit(1)
    shutil.rmtree(work, ignore_errors=True)
