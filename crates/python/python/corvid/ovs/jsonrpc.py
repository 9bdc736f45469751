"""JSON-RPC as OVSDB uses it (RFC 7047 4): messages, connections, and sessions that reconnect.

It owns the framing of messages on a stream and the conduct of a session: which remote is tried
next, when a probe is sent, and that "echo" is answered.  `ovs.reconnect` decides on the times and
`ovs.stream` moves the bytes.
"""

import codecs
import errno
import itertools
import os
import random

from . import json as ovs_json
from . import poller as _poller
from . import reconnect as _reconnect
from . import stream as _stream
from . import timeval
from . import vlog as _vlog

# The error of a connection that the peer closed, as distinct from numbers of errno.
EOF = _reconnect.EOF

vlog = _vlog.Vlog("jsonrpc")

_RECEIVE_SIZE = 4096
# More than a socket takes at once, and little enough to be copied for each attempt.
_SEND_SIZE = 1 << 18
# Characters of a message that the log shows.
_LOGGED_SIZE = 4096

_PROBE_ID = "echo"


class Message(object):
    """A request, a notification, a reply, or an error."""

    T_REQUEST = 0
    T_NOTIFY = 1
    T_REPLY = 2
    T_ERROR = 3

    _TYPE_NAMES = {T_REQUEST: "request", T_NOTIFY: "notification", T_REPLY: "reply",
                   T_ERROR: "error"}
    # The members that a message of each type has; it has none of the others.
    _MEMBERS = {T_REQUEST: ("method", "params", "id"), T_NOTIFY: ("method", "params"),
                T_REPLY: ("result", "id"), T_ERROR: ("error", "id")}
    _ids = itertools.count()

    def __init__(self, type_, method, params, result, error, id):
        self.type = type_
        self.method = method
        self.params = params
        self.result = result
        self.error = error
        self.id = id

    @staticmethod
    def create_request(method, params):
        """Returns a request with an id of its own."""
        return Message(Message.T_REQUEST, method, params, None, None, next(Message._ids))

    @staticmethod
    def create_notify(method, params):
        """Returns a notification, to which there is no reply."""
        return Message(Message.T_NOTIFY, method, params, None, None, None)

    @staticmethod
    def create_reply(result, id):
        """Returns the reply to the request `id`."""
        return Message(Message.T_REPLY, None, None, result, None, id)

    @staticmethod
    def create_error(error, id):
        """Returns the reply that the request `id` failed."""
        return Message(Message.T_ERROR, None, None, None, error, id)

    @staticmethod
    def type_to_string(type_):
        """Returns the name of a type of messages."""
        return Message._TYPE_NAMES[type_]

    def is_valid(self):
        """Returns None, or a string that says why this is not a correct message."""
        if self.params is not None and not isinstance(self.params, list):
            return '"params" must be JSON array'
        members = Message._MEMBERS.get(self.type)
        if members is None:
            return "invalid JSON-RPC message type %s" % self.type
        for name in ("method", "params", "result", "error", "id"):
            if (getattr(self, name) is not None) != (name in members):
                return '%s must%s have "%s"' % (Message.type_to_string(self.type),
                                                "" if name in members else " not", name)
        return None

    @staticmethod
    def from_json(json):
        """Returns the message that a JSON value is, or a string that says why it is not one."""
        if not isinstance(json, dict):
            return "message is not a JSON object"
        members = dict(json)
        if not isinstance(members.get("method", ""), str):
            return "method is not a JSON string"
        method, params, result, error, id_ = (members.pop(name, None) for name in (
            "method", "params", "result", "error", "id"))
        if members:
            return 'message has unexpected member "%s"' % members.popitem()[0]
        if result is not None:
            type_ = Message.T_REPLY
        elif error is not None:
            type_ = Message.T_ERROR
        elif id_ is not None:
            type_ = Message.T_REQUEST
        else:
            type_ = Message.T_NOTIFY
        message = Message(type_, method, params, result, error, id_)
        return message.is_valid() or message

    def to_json(self):
        """Returns the message as a JSON value."""
        json = {}
        if self.method is not None:
            json["method"] = self.method
        if self.params is not None:
            json["params"] = self.params
        # RFC 7047 wants these members even where they are null.
        if self.result is not None or self.type == Message.T_ERROR:
            json["result"] = self.result
        if self.error is not None or self.type == Message.T_REPLY:
            json["error"] = self.error
        if self.id is not None or self.type == Message.T_NOTIFY:
            json["id"] = self.id
        return json

    def __str__(self):
        parts = [Message.type_to_string(self.type)]
        if self.method is not None:
            parts.append('method="%s"' % self.method)
        for name in ("params", "result", "error", "id"):
            value = getattr(self, name)
            if value is not None:
                parts.append("%s=%s" % (name, ovs_json.to_string(value)))
        return ", ".join(parts)


class Connection(object):
    """Messages over one stream.

    `status` is 0 until the stream fails; then it stays at the error, and the stream is closed.
    """

    def __init__(self, stream):
        self.name = stream.name
        self.stream = stream
        self.status = 0
        # Decoded text that no message has used yet, and bytes that wait to be sent.
        self.input = ""
        self.output = bytearray()
        self.parser = None
        self.received_bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def close(self):
        """Closes the stream."""
        self.stream.close()

    def run(self):
        """Sends as much of the backlog as goes at once."""
        if self.status:
            return
        self.stream.run()
        while self.output:
            sent = self.stream.send(bytes(self.output[:_SEND_SIZE]))
            if sent < 0:
                if sent != -errno.EAGAIN:
                    vlog.warn("%s: send error: %s" % (self.name, os.strerror(-sent)))
                    self.error(-sent)
                return
            if sent == 0:
                return
            del self.output[:sent]

    def wait(self, poller):
        """Makes `poller` wake up when `run()` has something to do."""
        if self.status:
            # The owner has not looked at the status yet.
            poller.immediate_wake()
            return
        self.stream.run_wait(poller)
        if self.output:
            self.stream.send_wait(poller)

    def get_status(self):
        """Returns 0, `EOF` if the peer closed the connection, or a number of errno."""
        return self.status

    def get_backlog(self):
        """Returns the number of bytes that wait to be sent."""
        return 0 if self.status else len(self.output)

    def get_received_bytes(self):
        """Returns the number of bytes that were received."""
        return self.received_bytes

    def send(self, msg):
        """Appends `msg` to the backlog, and sends it if nothing is before it.

        Returns the status.
        """
        if self.status:
            return self.status
        self.__log_message("send", msg)
        was_empty = not self.output
        self.output += ovs_json.to_string(msg.to_json()).encode("utf-8")
        if was_empty:
            self.run()
        return self.status

    def send_block(self, msg):
        """Sends `msg` and waits until the backlog is empty.  Returns the status."""
        error = self.send(msg)
        while not error and self.get_backlog():
            poller = _poller.Poller()
            self.wait(poller)
            poller.block()
            self.run()
            error = self.get_status()
        return error

    def recv(self):
        """Receives a message.  Returns a pair of an error and the message.

        The error is `EAGAIN` if no message is there yet.
        """
        while not self.status:
            if not self.input:
                error = self.__fill_input()
                if error:
                    return error, None
                continue
            if self.parser is None:
                self.parser = ovs_json.Parser()
            used = self.parser.feed(self.input)
            self.input = self.input[used:]
            if self.parser.is_done():
                message = self.__take_message()
                if message is not None:
                    self.__log_message("received", message)
                    return 0, message
        return self.status, None

    def __fill_input(self):
        """Receives some bytes.  Returns an error, or 0 although the text may still be empty."""
        error, data = self.stream.recv(_RECEIVE_SIZE)
        if error == errno.EAGAIN:
            return error
        if not error and not data:
            self.error(EOF)
            return EOF
        if not error:
            self.received_bytes += len(data)
            try:
                # A character may be cut at the end of the bytes; its rest follows.
                self.input = self._decoder.decode(data)
                return 0
            except UnicodeDecodeError:
                error = errno.EILSEQ
        vlog.warn("%s: receive error: %s" % (self.name, os.strerror(error)))
        self.error(error)
        return error

    def __take_message(self):
        """Returns the message that the parser has completed, or None after an error."""
        json = self.parser.finish()
        self.parser = None
        if isinstance(json, str):
            vlog.warn("%s: error parsing stream: %s" % (self.name, json))
            self.error(errno.EPROTO)
            return None
        message = Message.from_json(json)
        if isinstance(message, str):
            vlog.warn("%s: received bad JSON-RPC message: %s" % (self.name, message))
            self.error(errno.EPROTO)
            return None
        return message

    def __log_message(self, verb, message):
        """Logs a message, cut if it is long.  Nothing is formatted unless the log wants it."""
        if vlog.dbg_is_enabled():
            text = str(message)
            if len(text) > _LOGGED_SIZE:
                text = "%s... (%d characters in all)" % (text[:_LOGGED_SIZE], len(text))
            vlog.dbg("%s: %s %s" % (self.name, verb, text))

    def recv_block(self):
        """Waits for a message.  Returns a pair of an error and the message."""
        while True:
            error, message = self.recv()
            if error != errno.EAGAIN:
                return error, message
            self.run()
            poller = _poller.Poller()
            self.wait(poller)
            self.recv_wait(poller)
            poller.block()

    def transact_block(self, request):
        """Sends `request` and waits for its reply.  Returns a pair of an error and the reply.

        Other messages that arrive meanwhile are dropped.
        """
        error = self.send(request)
        while not error:
            error, reply = self.recv_block()
            if (reply is not None and reply.type in (Message.T_REPLY, Message.T_ERROR)
                    and reply.id == request.id):
                return error, reply
        return error, None

    def recv_wait(self, poller):
        """Makes `poller` wake up when `recv()` may have something to return."""
        if self.status or self.input:
            poller.immediate_wake()
        else:
            self.stream.recv_wait(poller)

    def error(self, error):
        """Makes the connection fail with `error`, if it did not fail before."""
        if self.status == 0:
            self.status = error
            self.stream.close()
            self.input = ""
            self.output = bytearray()


class Session(object):
    """A JSON-RPC connection that is established again whenever it breaks."""

    def __init__(self, reconnect, rpc, remotes):
        self.reconnect = reconnect
        self.rpc = rpc
        self.stream = None
        self.pstream = None
        # It changes with every attempt and with every loss of a connection.
        self.seqno = 0
        if not isinstance(remotes, list):
            remotes = [remotes]
        self.remotes = list(remotes)
        random.shuffle(self.remotes)
        self.next_remote = 0

    @staticmethod
    def open(name, probe_interval=None):
        """Returns a session with the remote `name`, active or passive.

        `probe_interval` is in milliseconds, 0 turns probes off, None leaves the default.  A
        passive session has one connection at a time; a new one replaces the one before.
        """
        return Session.open_multiple([name], probe_interval)

    @staticmethod
    def open_multiple(remotes, probe_interval=None):
        """Returns a session with one of `remotes` at a time, tried in random order."""
        reconnect = _reconnect.Reconnect(timeval.msec())
        session = Session(reconnect, None, remotes)
        session.pick_remote()
        reconnect.enable(timeval.msec())
        reconnect.set_backoff_free_tries(len(remotes))
        name = reconnect.get_name()
        if _stream.PassiveStream.is_valid_name(name):
            reconnect.set_passive(True, timeval.msec())
        if not _stream.stream_or_pstream_needs_probes(name):
            reconnect.set_probe_interval(0)
        elif probe_interval is not None:
            reconnect.set_probe_interval(probe_interval)
        return session

    @staticmethod
    def open_unreliably(jsonrpc):
        """Returns a session with the connection `jsonrpc`, which ends with it."""
        reconnect = _reconnect.Reconnect(timeval.msec())
        session = Session(reconnect, jsonrpc, [jsonrpc.name])
        reconnect.set_quiet(True)
        session.pick_remote()
        reconnect.set_max_tries(0)
        reconnect.connected(timeval.msec())
        return session

    def close(self):
        """Closes the connection, and ends listening."""
        if self.rpc is not None:
            self.rpc.close()
            self.rpc = None
        if self.stream is not None:
            self.stream.close()
            self.stream = None
        if self.pstream is not None:
            self.pstream.close()
            self.pstream = None

    def pick_remote(self):
        """Makes the next attempt go to the next remote."""
        self.reconnect.set_name(self.remotes[self.next_remote])
        self.next_remote = (self.next_remote + 1) % len(self.remotes)

    def __disconnect(self):
        if self.rpc is not None:
            self.rpc.error(EOF)
            self.rpc.close()
            self.rpc = None
        elif self.stream is not None:
            self.stream.close()
            self.stream = None
        else:
            return
        self.seqno += 1

    def __connect(self):
        self.__disconnect()
        name = self.reconnect.get_name()
        if not self.reconnect.is_passive():
            error, self.stream = _stream.Stream.open(name)
            if error:
                self.reconnect.connect_failed(timeval.msec(), error)
                self.pick_remote()
            else:
                self.reconnect.connecting(timeval.msec())
        elif self.pstream is None:
            error, self.pstream = _stream.PassiveStream.open(name)
            if error:
                self.reconnect.connect_failed(timeval.msec(), error)
                self.pick_remote()
            else:
                self.reconnect.listening(timeval.msec())
        else:
            self.reconnect.listening(timeval.msec())
        self.seqno += 1

    def run(self):
        """Accepts, connects, sends, probes and disconnects, as is due."""
        self.__run_passive()
        if self.rpc is not None:
            backlog = self.rpc.get_backlog()
            self.rpc.run()
            if self.rpc.get_backlog() < backlog:
                # The peer took something, so it is there.
                self.reconnect.activity(timeval.msec())
            error = self.rpc.get_status()
            if error:
                self.reconnect.disconnected(timeval.msec(), error)
                self.__disconnect()
                self.pick_remote()
        elif self.stream is not None:
            self.__run_attempt()

        action = self.reconnect.run(timeval.msec())
        if action == _reconnect.CONNECT:
            self.__connect()
        elif action == _reconnect.DISCONNECT:
            self.reconnect.disconnected(timeval.msec(), 0)
            self.__disconnect()
            self.pick_remote()
        elif action == _reconnect.PROBE and self.rpc is not None:
            request = Message.create_request("echo", [])
            request.id = _PROBE_ID
            self.rpc.send(request)

    def __run_passive(self):
        if self.pstream is None:
            return
        error, stream = self.pstream.accept()
        if error == 0:
            if self.rpc is not None or self.stream is not None:
                vlog.info("%s: new connection replacing active connection"
                          % self.reconnect.get_name())
                self.__disconnect()
            self.reconnect.connected(timeval.msec())
            self.rpc = Connection(stream)
        elif error != errno.EAGAIN:
            self.reconnect.listen_error(timeval.msec(), error)
            self.pstream.close()
            self.pstream = None

    def __run_attempt(self):
        self.stream.run()
        error = self.stream.connect()
        if error == 0:
            self.reconnect.connected(timeval.msec())
            self.rpc = Connection(self.stream)
            self.stream = None
        elif error != errno.EAGAIN:
            self.reconnect.connect_failed(timeval.msec(), error)
            self.pick_remote()
            self.stream.close()
            self.stream = None

    def wait(self, poller):
        """Makes `poller` wake up when `run()` has something to do."""
        if self.rpc is not None:
            self.rpc.wait(poller)
        elif self.stream is not None:
            self.stream.run_wait(poller)
            self.stream.connect_wait(poller)
        if self.pstream is not None:
            self.pstream.wait(poller)
        self.reconnect.wait(poller, timeval.msec())

    def get_backlog(self):
        """Returns the number of bytes that wait to be sent."""
        return self.rpc.get_backlog() if self.rpc is not None else 0

    def get_name(self):
        """Returns the name of the remote that is connected or tried next."""
        return self.reconnect.get_name()

    def send(self, msg):
        """Sends `msg`.  Returns 0 or an error, which is `ENOTCONN` without a connection."""
        return self.rpc.send(msg) if self.rpc is not None else errno.ENOTCONN

    def recv(self):
        """Returns a message, or None if there is none for the caller."""
        if self.rpc is None:
            return None
        received_bytes = self.rpc.get_received_bytes()
        error, msg = self.rpc.recv()
        now = timeval.msec()
        self.reconnect.receive_attempted(now)
        if self.rpc.get_received_bytes() != received_bytes:
            self.reconnect.activity(now)
        if error:
            return None
        if msg.type == Message.T_REQUEST and msg.method == "echo":
            self.send(Message.create_reply(msg.params, msg.id))
            return None
        if msg.type == Message.T_REPLY and msg.id == _PROBE_ID:
            return None
        return msg

    def recv_wait(self, poller):
        """Makes `poller` wake up when `recv()` may have something to return."""
        if self.rpc is not None:
            self.rpc.recv_wait(poller)

    def is_alive(self):
        """Returns true if there is a connection, or an attempt, or if attempts are left."""
        if self.rpc is not None or self.stream is not None:
            return True
        max_tries = self.reconnect.get_max_tries()
        return max_tries is None or max_tries > 0

    def is_connected(self):
        """Returns true if there is a connection."""
        return self.rpc is not None

    def get_seqno(self):
        """Returns a number that is another one after every loss of the connection."""
        return self.seqno

    def force_reconnect(self):
        """Makes `run()` drop the connection and open a new one."""
        self.reconnect.force_reconnect(timeval.msec())

    def reset_backoff(self):
        """Allows one attempt without a wait for each remote.

        Losing the present connection takes one of them, so it does not count.
        """
        free_tries = len(self.remotes)
        if self.is_connected():
            free_tries += 1
        self.reconnect.set_backoff_free_tries(free_tries)

    def get_num_of_remotes(self):
        """Returns the number of remotes."""
        return len(self.remotes)
