"""A minimal HTTP/2 client that opens many streams and ends none of them.

Requests are sent without compression. It respects the server's windows and stream
limit and ignores everything else.
"""

import select
import socket
import struct

DATA, HEADERS, SETTINGS, PING, GO_AWAY, WINDOW_UPDATE = 0, 1, 4, 6, 7, 8
MAX_STREAMS, INITIAL_WINDOW = 3, 4
FRAME_MAX = 16_384


def literal(name, value):
    """A literal header field."""
    fields = (name.encode(), value.encode())
    return b"\0" + b"".join(bytes([len(field)]) + field for field in fields)


class Connection:
    def __init__(self, place):
        self.socket = socket.create_connection(place, timeout=20)
        self.buffer = b""
        self.window = self.stream_window = 65_535
        self.max_streams = 2**31
        self.windows, self.answered, self.is_open = {}, set(), True
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
        self.settled = False
        while not self.settled and self.is_open:
            self.read_frame(20)

    def send(self, data):
        try:
            self.socket.sendall(data)
        except OSError:
            self.is_open = False

    def post(self, number, length):
        """Sends the header of a registration with a body of this length."""
        stream = 2 * number + 1
        fields = [
            (":method", "POST"), (":scheme", "http"), (":path", "/entries"), (":authority", "x"),
            ("content-type", "application/cose"), ("content-length", str(length)),
        ]  # fmt: skip
        block = b"".join(literal(*field) for field in fields)
        self.windows[stream] = self.stream_window
        self.send(frame(HEADERS, 4, stream, block))
        return stream

    def send_body(self, stream, count, timeout):
        """Sends up to this many bytes of a body, giving up when the window stays
        closed this many seconds; the number sent."""
        sent = 0
        while sent < count and self.is_open and stream not in self.answered:
            room = min(self.window, self.windows[stream], count - sent, FRAME_MAX)
            if room <= 0:
                if not self.read_frame(timeout):
                    break
                continue
            self.send(frame(DATA, 0, stream, bytes(room)))
            self.window -= room
            self.windows[stream] -= room
            sent += room
            while self.read_frame(0):
                pass
        return sent

    def read_frame(self, timeout):
        """Reads one frame, if one arrives in time."""
        while True:
            if len(self.buffer) >= 9:
                length = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) >= 9 + length:
                    break
            if not self.is_open or not select.select([self.socket], [], [], timeout)[0]:
                return False
            try:
                more = self.socket.recv(1 << 16)
            except OSError:
                more = b""
            if not more:
                self.is_open = False
                return False
            self.buffer += more
        kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
        payload, self.buffer = self.buffer[9 : 9 + length], self.buffer[9 + length :]
        self.take(kind, flags, stream, payload)
        return True

    def take(self, kind, flags, stream, payload):
        if kind == SETTINGS and flags & 1 == 0:
            for at in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[at : at + 6])
                if name == MAX_STREAMS:
                    self.max_streams = value
                elif name == INITIAL_WINDOW:
                    self.stream_window = value
            self.send(frame(SETTINGS, 1, 0, b""))
            self.settled = True
        elif kind == PING and flags & 1 == 0:
            self.send(frame(PING, 1, 0, payload))
        elif kind == WINDOW_UPDATE:
            (more,) = struct.unpack(">I", payload)
            if stream == 0:
                self.window += more
            elif stream in self.windows:
                self.windows[stream] += more
        elif kind == GO_AWAY:
            self.is_open = False
        elif kind != SETTINGS and kind != PING:
            # A response, or a reset stream.
            self.answered.add(stream)

    def close(self):
        self.socket.close()


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + payload
