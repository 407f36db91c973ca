"""A TCP proxy on loopback that forwards only as many bytes as a test allows in each direction."""

import socket
import threading


class Gate:
    """Counts the bytes that may still pass in one direction; closed gates hold the others back."""

    def __init__(self):
        self.allowed, self.passed = float("inf"), 0
        self.changed = threading.Condition()

    def allow(self, size):
        """From now on, only this many more bytes pass."""
        with self.changed:
            self.allowed = size
            self.changed.notify_all()

    def take(self, size):
        with self.changed:
            self.changed.wait_for(lambda: self.allowed > 0)
            size = int(min(size, self.allowed))
            self.allowed -= size
            self.passed += size
            return size


class GatedProxy:
    """Forwards connections to a server. `up` is the gate to the server, `down` the one back."""

    BUFFER = 65536  # bytes; small, so that held bytes stay in the sender

    def __init__(self, server_port):
        self.server_port = server_port
        self.up, self.down = Gate(), Gate()
        self.sockets = []
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.BUFFER)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client = self.listener.accept()[0]
            server = socket.socket()
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.BUFFER)
            try:
                server.connect(("127.0.0.1", self.server_port))
            except OSError:
                client.close()
                continue
            self.sockets += [client, server]
            for source, target, gate in ((client, server, self.up), (server, client, self.down)):
                threading.Thread(target=self.pump, args=(source, target, gate), daemon=True).start()

    def drop(self):
        """Ends all connections, also those that a gate holds up."""
        for one in self.sockets:
            self.shut(one)
        self.sockets = []

    @staticmethod
    def shut(one):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended already

    def pump(self, source, target, gate):
        try:
            while piece := source.recv(self.BUFFER):
                while piece:
                    size = gate.take(len(piece))
                    target.sendall(piece[:size])
                    piece = piece[size:]
        except OSError:
            pass
        # The other direction ends too.
        self.shut(source)
        self.shut(target)
