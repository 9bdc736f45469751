"""JSON-RPC over streams: messages, a connection, and a session that reconnects."""

import codecs
import errno
import os
import random

from . import json, poller, reconnect, stream, timeval, util, vlog

EOF = util.EOF
vlog = vlog.Vlog("jsonrpc")

# How much one recv() asks for. Large replies should not cost a call of the system for every few kilobytes.
_READ_BYTES = 64 * 1024
# How often one call of `recv` reads, and how many probes it deals with, so that a fast peer cannot keep the caller's
# main loop waiting.
_READS_MAX = 50
# The id of the probes of a session, whose replies no caller sees.
_PROBE_ID = "echo"

_MEMBERS = ("method", "params", "result", "error", "id")


class Message(object):
    """A request, notification, reply or error. A member that is None is absent or null."""

    T_REQUEST = 0
    T_NOTIFY = 1
    T_REPLY = 2
    T_ERROR = 3
    __types = {T_REQUEST: "request", T_NOTIFY: "notification", T_REPLY: "reply", T_ERROR: "error"}
    # The members that a message must have; it must have no other.
    __required = {
        T_REQUEST: ("method", "params", "id"),
        T_NOTIFY: ("method", "params"),
        T_REPLY: ("result", "id"),
        T_ERROR: ("error", "id"),
    }

    _next_id = 0

    def __init__(self, type_, method, params, result, error, id):
        self.type = type_
        self.method = method
        self.params = params
        self.result = result
        self.error = error
        self.id = id

    @staticmethod
    def _create_id():
        this_id = Message._next_id
        Message._next_id += 1
        return this_id

    @staticmethod
    def create_request(method, params):
        return Message(Message.T_REQUEST, method, params, None, None, Message._create_id())

    @staticmethod
    def create_notify(method, params):
        return Message(Message.T_NOTIFY, method, params, None, None, None)

    @staticmethod
    def create_reply(result, id):
        return Message(Message.T_REPLY, None, None, result, None, id)

    @staticmethod
    def create_error(error, id):
        return Message(Message.T_ERROR, None, None, None, error, id)

    @staticmethod
    def type_to_string(type_):
        return Message.__types[type_]

    def is_valid(self):
        """None, or a text that tells what is wrong with the message."""
        if self.params is not None and not isinstance(self.params, (list, tuple)):
            return '"params" must be JSON array'
        if self.type not in Message.__types:
            return "invalid JSON-RPC message type %s" % self.type
        required = Message.__required[self.type]
        for name in _MEMBERS:
            present = getattr(self, name) is not None
            if present != (name in required):
                verb = "must not" if present else "must"
                return '%s %s have "%s"' % (Message.__types[self.type], verb, name)
        return None

    @staticmethod
    def from_json(json):
        """The message of a JSON value, or a text that tells what is wrong with it."""
        if not isinstance(json, dict):
            return "message is not a JSON object"
        unexpected = [name for name in json if name not in _MEMBERS]
        if "method" in json and not isinstance(json["method"], str):
            return "method is not a JSON string"
        method, params, result, error, id_ = (json.get(name) for name in _MEMBERS)
        if unexpected:
            return 'message has unexpected member "%s"' % min(unexpected)
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
        # RFC 7047 wants these members even though they are null.
        null = {Message.T_REPLY: "error", Message.T_ERROR: "result", Message.T_NOTIFY: "id"}.get(self.type)
        json = {}
        for name in _MEMBERS:
            value = getattr(self, name)
            if value is not None or name == null:
                json[name] = value
        return json

    def __str__(self):
        parts = [Message.__types[self.type]]
        if self.method is not None:
            parts.append('method="%s"' % self.method)
        for name in _MEMBERS[1:]:
            value = getattr(self, name)
            if value is not None:
                parts.append("%s=%s" % (name, json.to_string(value)))
        return ", ".join(parts)


class Connection(object):
    """Messages over one stream. The first error ends the connection; `get_status` tells it."""

    def __init__(self, stream):
        self.name = stream.name
        self.stream = stream
        self.status = 0
        self.input = ""
        self.output = b""
        self.parser = None
        self.received_bytes = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def close(self):
        if self.stream is not None:
            self.stream.close()
            self.stream = None

    def run(self):
        """Sends what the stream takes."""
        if self.status:
            return
        while self.output:
            sent = self.stream.send(self.output)
            if sent < 0:
                if sent != -errno.EAGAIN:
                    vlog.warn("%s: send error: %s" % (self.name, os.strerror(-sent)))
                    self.error(-sent)
                return
            if sent == 0:
                return
            self.output = self.output[sent:]

    def wait(self, poller):
        if not self.status:
            self.stream.run_wait(poller)
            if self.output:
                self.stream.send_wait(poller)

    def get_status(self):
        """0, or the error number or EOF that ended the connection."""
        return self.status

    def get_backlog(self):
        """How many bytes wait to be sent."""
        return 0 if self.status else len(self.output)

    def get_received_bytes(self):
        return self.received_bytes

    def __log_msg(self, title, msg):
        if vlog.dbg_is_enabled():
            vlog.dbg("%s: %s %s" % (self.name, title, msg))

    def send(self, msg):
        """Queues `msg`, and sends it if nothing was queued before. Returns 0 or the error that ended the connection."""
        if self.status:
            return self.status
        self.__log_msg("send", msg)
        was_empty = not self.output
        self.output += json.to_string(msg.to_json()).encode("utf-8")
        if was_empty:
            self.run()
        return self.status

    def send_block(self, msg):
        """Sends `msg` and everything queued before; returns 0 or an error number."""
        error = self.send(msg)
        if error:
            return error
        while True:
            self.run()
            if not self.get_backlog() or self.get_status():
                return self.status
            waiter = poller.Poller()
            self.wait(waiter)
            waiter.block()

    def recv(self):
        """(0, message), (EAGAIN, None) when none is complete yet, or (error, None)."""
        if self.status:
            return self.status, None
        for _ in range(_READS_MAX):
            if not self.input:
                error = self._read()
                if error:
                    return error, None
            if self.parser is None:
                self.parser = json.Parser()
            used = self.parser.feed(self.input)
            self.input = self.input[used:]
            if self.parser.is_done():
                msg = self.__process_msg()
                if msg is None:
                    return self.status, None
                return 0, msg
        return errno.EAGAIN, None

    def _read(self):
        """Fills `input`; returns 0 or an error number, which ends the connection unless it is EAGAIN."""
        error, data = self.stream.recv(_READ_BYTES)
        if not error and data:
            try:
                self.input = self._decoder.decode(data)
                self.received_bytes += len(data)
            except UnicodeError:
                error = errno.EILSEQ
        if error == errno.EAGAIN:
            return error
        if error:
            vlog.warn("%s: receive error: %s" % (self.name, os.strerror(error)))
            self.error(error)
            return self.status
        if not data:
            self.error(EOF)
            return EOF
        return 0

    def __process_msg(self):
        """The message that the parser has completed, or None after an error."""
        value = self.parser.finish()
        self.parser = None
        if isinstance(value, str):
            vlog.warn("%s: error parsing stream: %s" % (self.name, value))
            self.error(errno.EPROTO)
            return None
        msg = Message.from_json(value)
        if not isinstance(msg, Message):
            vlog.warn("%s: received bad JSON-RPC message: %s" % (self.name, msg))
            self.error(errno.EPROTO)
            return None
        self.__log_msg("received", msg)
        return msg

    def recv_block(self):
        """Waits for a message: (0, message) or (error, None)."""
        while True:
            error, msg = self.recv()
            if error != errno.EAGAIN:
                return error, msg
            self.run()
            waiter = poller.Poller()
            self.wait(waiter)
            self.recv_wait(waiter)
            waiter.block()

    def recv_wait(self, poller):
        if self.status or self.input:
            poller.immediate_wake()
        else:
            self.stream.recv_wait(poller)

    def transact_block(self, request):
        """Sends `request` and waits for its reply: (0, reply or error message) or (error, None). Other messages are dropped."""
        error = self.send(request)
        reply = None
        while not error:
            error, reply = self.recv_block()
            if reply and reply.type in (Message.T_REPLY, Message.T_ERROR) and reply.id == request.id:
                break
        return error, reply

    def error(self, error):
        """Ends the connection with `error`, if no other error has ended it already."""
        if self.status == 0:
            self.status = error
            self.stream.close()
            self.input = ""
            self.output = b""
            self.parser = None


class Session(object):
    """A connection that is made anew when it ends, to the next of several remotes, and that probes a silent peer."""

    def __init__(self, reconnect, rpc, remotes):
        self.reconnect = reconnect
        self.rpc = rpc
        self.stream = None
        self.pstream = None
        self.seqno = 0
        self.remotes = list(remotes)
        random.shuffle(self.remotes)
        self.next_remote = 0

    @staticmethod
    def open(name, probe_interval=None):
        """A session with the remote `name`; "ptcp:" and "punix:" wait for the peer to connect."""
        return Session.open_multiple([name], probe_interval)

    @staticmethod
    def open_multiple(remotes, probe_interval=None):
        """A session with one of `remotes` at a time. `probe_interval` in milliseconds; None is the default, 0 is off."""
        fsm = reconnect.Reconnect(timeval.msec())
        session = Session(fsm, None, remotes)
        session.pick_remote()
        fsm.enable(timeval.msec())
        fsm.set_backoff_free_tries(len(remotes))
        name = fsm.get_name()
        if not stream.stream_or_pstream_needs_probes(name):
            fsm.set_probe_interval(0)
        elif probe_interval is not None:
            fsm.set_probe_interval(probe_interval)
        if stream.PassiveStream.is_valid_name(name):
            fsm.set_passive(True, timeval.msec())
        return session

    @staticmethod
    def open_unreliably(jsonrpc):
        """A session of the connection `jsonrpc`, which is not made anew when it ends."""
        fsm = reconnect.Reconnect(timeval.msec())
        fsm.set_quiet(True)
        fsm.set_name(jsonrpc.name)
        fsm.set_max_tries(0)
        fsm.connected(timeval.msec())
        return Session(fsm, jsonrpc, [jsonrpc.name])

    def pick_remote(self):
        """Takes the next remote in turn for the next attempt."""
        self.reconnect.set_name(self.remotes[self.next_remote])
        self.next_remote = (self.next_remote + 1) % len(self.remotes)

    def close(self):
        seqno = self.seqno
        self.__end()
        # Its user ended the session, so there is nothing to tell.
        self.seqno = seqno

    def __end(self):
        """Closes whatever is open; the number of the session tells users that their connection is gone."""
        if self.rpc is not None:
            self.rpc.error(EOF)
            self.rpc.close()
            self.rpc = None
            self.seqno += 1
        elif self.stream is not None:
            self.stream.close()
            self.stream = None
            self.seqno += 1
        if self.pstream is not None:
            self.pstream.close()
            self.pstream = None

    def __disconnect(self):
        """Ends the connection or the attempt; a passive session goes on listening."""
        pstream, self.pstream = self.pstream, None
        self.__end()
        self.pstream = pstream

    def __connect(self):
        self.__disconnect()
        now = timeval.msec()
        name = self.reconnect.get_name()
        if self.reconnect.is_passive():
            error = 0
            if self.pstream is None:
                error, self.pstream = stream.PassiveStream.open(name)
            if not error:
                self.reconnect.listening(now)
        else:
            error, self.stream = stream.Stream.open(name)
            if not error:
                self.reconnect.connecting(now)
        if error:
            self.reconnect.connect_failed(now, error)
            self.stream = None
            if self.remotes:
                self.pick_remote()
        self.seqno += 1

    def run(self):
        """Does what is due: connects, sends, probes, disconnects."""
        if self.pstream is not None:
            self._accept()
        if self.rpc is not None:
            self._run_rpc()
        elif self.stream is not None:
            self._run_connecting()
        action = self.reconnect.run(timeval.msec())
        if action == reconnect.CONNECT:
            self.__connect()
        elif action == reconnect.DISCONNECT:
            self.reconnect.disconnected(timeval.msec(), 0)
            self.__disconnect()
            if self.remotes:
                self.pick_remote()
        elif action == reconnect.PROBE and self.rpc is not None:
            request = Message.create_request("echo", [])
            request.id = _PROBE_ID
            self.rpc.send(request)

    def _accept(self):
        error, new_stream = self.pstream.accept()
        if not error:
            if self.rpc is not None or self.stream is not None:
                # The newest peer counts: the old one may have gone without a word.
                vlog.info("%s: new connection replacing active connection" % self.reconnect.get_name())
                self.reconnect.disconnected(timeval.msec(), 0)
                self.__disconnect()
            self.reconnect.connected(timeval.msec())
            self.rpc = Connection(new_stream)
        elif error != errno.EAGAIN:
            self.reconnect.listen_error(timeval.msec(), error)
            self.pstream.close()
            self.pstream = None

    def _run_rpc(self):
        backlog = self.rpc.get_backlog()
        self.rpc.run()
        if self.rpc.get_backlog() < backlog:
            # The peer takes data, so it is there.
            self.reconnect.activity(timeval.msec())
        error = self.rpc.get_status()
        if error:
            self.reconnect.disconnected(timeval.msec(), error)
            self.__disconnect()
            if self.remotes:
                self.pick_remote()

    def _run_connecting(self):
        self.stream.run()
        error = self.stream.connect()
        if error == 0:
            self.reconnect.connected(timeval.msec())
            self.rpc = Connection(self.stream)
            self.stream = None
        elif error != errno.EAGAIN:
            self.reconnect.connect_failed(timeval.msec(), error)
            self.stream.close()
            self.stream = None
            if self.remotes:
                self.pick_remote()

    def wait(self, poller):
        """Makes `poller` wake for everything that `run` does."""
        if self.rpc is not None:
            self.rpc.wait(poller)
        elif self.stream is not None:
            self.stream.run_wait(poller)
            self.stream.connect_wait(poller)
        if self.pstream is not None:
            self.pstream.wait(poller)
        self.reconnect.wait(poller, timeval.msec())

    def get_name(self):
        return self.reconnect.get_name()

    def get_num_of_remotes(self):
        return len(self.remotes)

    def get_backlog(self):
        return self.rpc.get_backlog() if self.rpc is not None else 0

    def send(self, msg):
        """0, or an error number: ENOTCONN without a connection."""
        if self.rpc is not None:
            return self.rpc.send(msg)
        return errno.ENOTCONN

    def recv(self):
        """The next message or None. Requests and replies of probes are dealt with here."""
        if self.rpc is None:
            return None
        for _ in range(_READS_MAX):
            before = self.rpc.get_received_bytes()
            error, msg = self.rpc.recv()
            now = timeval.msec()
            self.reconnect.receive_attempted(now)
            if self.rpc.get_received_bytes() != before:
                self.reconnect.activity(now)
            if error:
                return None
            if msg.type == Message.T_REQUEST and msg.method == "echo":
                self.send(Message.create_reply(msg.params, msg.id))
            elif msg.type in (Message.T_REPLY, Message.T_ERROR) and msg.id == _PROBE_ID:
                pass
            else:
                return msg
        return None

    def recv_wait(self, poller):
        if self.rpc is not None:
            self.rpc.recv_wait(poller)

    def is_alive(self):
        """Whether the session has a connection or may get one."""
        return self.rpc is not None or self.stream is not None or self.reconnect.get_max_tries() != 0

    def is_connected(self):
        return self.rpc is not None

    def get_seqno(self):
        """A number that is another one for every connection: it changes with each attempt and at each end."""
        return self.seqno

    def force_reconnect(self):
        """Ends the connection; a new one follows."""
        self.reconnect.force_reconnect(timeval.msec())

    def reset_backoff(self):
        """The next attempts need not wait: one for each remote, and one more when the end of a connection comes first."""
        free_tries = len(self.remotes)
        if self.is_connected():
            free_tries += 1
        self.reconnect.set_backoff_free_tries(free_tries)
