"""Sockets: opening them by address, their options, and paths that are longer than the system's limit."""

import errno
import ipaddress
import os
import random
import socket

from . import fatal_signal, poller, util, vlog

vlog = vlog.Vlog("socket_util")

# The system's limit for the path of a Unix socket, with the terminating zero.
_UNIX_PATH_BYTES_MAX = 108

null_fd = -1


def make_short_name(long_name):
    """A short path to `long_name`, through a symbolic link to its directory. `free_short_name` removes the link."""
    directory, base = os.path.split(os.path.abspath(long_name))
    while True:
        link = "/tmp/ovs-un-py-%d-%d" % (random.randrange(1 << 31), os.getpid())
        try:
            os.symlink(directory, link)
        except FileExistsError:
            continue
        fatal_signal.add_file_to_unlink(link)
        return os.path.join(link, base)


def free_short_name(short_name):
    fatal_signal.unlink_file_now(os.path.dirname(short_name))


def make_unix_socket(style, nonblock, bind_path, connect_path, short=False):
    """A Unix socket, bound to `bind_path` or connected to `connect_path` if given: (error number, socket).

    `short` says that the caller has shortened the path already.
    """
    try:
        sock = socket.socket(socket.AF_UNIX, style)
    except OSError as e:
        return get_exception_errno(e), None
    bound = False
    try:
        if nonblock:
            set_nonblocking(sock)
        if bind_path is not None:
            # A socket that a dead program left behind would be in the way.
            try:
                os.unlink(bind_path)
            except OSError as e:
                if e.errno != errno.ENOENT:
                    raise
            with _ShortPath(bind_path, short) as path:
                sock.bind(path)
            bound = True
            fatal_signal.add_file_to_unlink(bind_path)
        if connect_path is not None:
            with _ShortPath(connect_path, short) as path:
                try:
                    sock.connect(path)
                except BlockingIOError:
                    pass
        return 0, sock
    except OSError as e:
        sock.close()
        if bound:
            fatal_signal.unlink_file_now(bind_path)
        return get_exception_errno(e) or errno.EINVAL, None


class _ShortPath:
    """`path`, or while the context lasts another name of the same file that fits the system's limit."""

    def __init__(self, path, short):
        self._path = path
        self._fd = None
        self._is_long = not short and len(os.fsencode(path)) >= _UNIX_PATH_BYTES_MAX

    def __enter__(self):
        if not self._is_long:
            return self._path
        directory, base = os.path.split(os.path.abspath(self._path))
        self._fd = os.open(directory, os.O_DIRECTORY | os.O_RDONLY)
        return "/proc/self/fd/%d/%s" % (self._fd, base)

    def __exit__(self, *_):
        if self._fd is not None:
            os.close(self._fd)


def check_connection_completion(sock):
    """0 when a non-blocking connect() succeeded, EAGAIN while it goes on, otherwise its error number."""
    p = poller.get_system_poll()
    p.register(sock.fileno(), poller.POLLOUT)
    ready = p.poll(0)
    if not ready:
        return errno.EAGAIN
    error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        return error
    if any(events & (poller.POLLERR | poller.POLLHUP) for _fd, events in ready):
        # Sending tells the error that the option did not.
        try:
            sock.send(b"\0", socket.MSG_DONTWAIT)
        except OSError as e:
            return get_exception_errno(e)
    return 0


def is_valid_ipv4_address(address):
    try:
        socket.inet_pton(socket.AF_INET, address)
    except (OSError, ValueError, TypeError):
        return False
    return True


def _split_host_port(target, default_port):
    """(host, text of the port or None). Brackets around an IPv6 address are dropped."""
    if target.startswith("["):
        host, bracket, rest = target[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError("%s: bad peer name format" % target)
        return host, rest[1:] or None
    host, colon, port = target.rpartition(":")
    if colon and default_port is not None and _is_ip(target):
        return target, None
    return (host, port or None) if colon else (target, None)


def _is_ip(host):
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _inet_parse_active(target, default_port):
    host, port = _split_host_port(target, default_port)
    if not host:
        raise ValueError("%s: bad peer name format" % target)
    if port is None:
        if default_port is None:
            raise ValueError("%s: port number must be specified" % target)
        port = default_port
    try:
        port = int(port)
    except ValueError:
        port = -1
    if not 0 <= port <= 65535:
        raise ValueError("%s: bad port number" % target)
    return host, port


def inet_parse_active(target, default_port, raises=True):
    """(host, port) of "HOST:PORT" or "HOST". A bad target is a ValueError, or ("", default_port) without `raises`."""
    try:
        return _inet_parse_active(target, default_port)
    except ValueError:
        if raises:
            raise
        return "", default_port


def inet_create_socket_active(style, address):
    """A non-blocking socket for `address`, a pair of host and port: (error number, socket, address family)."""
    host = address[0]
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return 0, socket.socket(family, style), family
    except OSError as e:
        return get_exception_errno(e), None, None


def inet_connect_active(sock, address, family, dscp):
    """Begins to connect `sock`: 0, EINPROGRESS, or an error number."""
    try:
        set_nonblocking(sock)
        set_dscp(sock, family, dscp)
        error = sock.connect_ex(address)
    except OSError as e:
        return get_exception_errno(e)
    return error


def inet_open_active(style, target, default_port, dscp):
    """Begins a connection to `target`: (error number, socket). A connection that is under way counts as no error.

    A host name is looked up by the system's resolver, which blocks.
    """
    try:
        host, port = inet_parse_active(target, default_port)
        addresses = socket.getaddrinfo(host, port, type=style)
    except ValueError as e:
        vlog.err(str(e))
        return errno.EINVAL, None
    except socket.gaierror as e:
        vlog.warn("%s: cannot resolve the host name (%s)" % (target, e.strerror))
        return errno.ENOENT, None
    family, _type, _protocol, _name, address = addresses[0]
    try:
        sock = socket.socket(family, style)
    except OSError as e:
        return get_exception_errno(e), None
    error = inet_connect_active(sock, address, family, dscp)
    if error and error != errno.EINPROGRESS:
        sock.close()
        return error, None
    return 0, sock


def get_exception_errno(e):
    """The error number of an exception of the system; its first argument if it has none."""
    if isinstance(e, OSError) and e.errno is not None:
        return e.errno
    return e.args[0] if e.args else errno.EIO


def get_null_fd():
    """A descriptor of /dev/null, the same one at every call, or a negative error number."""
    global null_fd
    if null_fd < 0:
        try:
            null_fd = os.open(os.devnull, os.O_RDWR)
        except OSError as e:
            vlog.err("could not open /dev/null: %s" % os.strerror(e.errno))
            return -e.errno
    return null_fd


def write_fully(fd, buf):
    """Writes all of `buf`: (error number, count of the bytes that were written)."""
    written = 0
    while written < len(buf):
        try:
            count = os.write(fd, buf[written:])
        except OSError as e:
            return get_exception_errno(e), written
        if not count:
            return errno.EPROTO, written
        written += count
    return 0, written


def set_nonblocking(sock):
    try:
        sock.setblocking(False)
    except OSError as e:
        vlog.err("could not set nonblocking mode on socket: %s" % util.ovs_retval_to_string(get_exception_errno(e)))


def set_dscp(sock, family, dscp):
    """Sets the class of traffic, from 0 to 63. None leaves it."""
    if dscp is None:
        return
    if dscp > 63:
        raise ValueError("Invalid dscp %d" % dscp)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, dscp << 2)
    elif family == socket.AF_INET:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
    else:
        raise ValueError("Invalid family %d" % family)
