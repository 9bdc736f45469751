"""Sockets of the families that OVSDB connections use.

It owns the creation of Unix and TCP sockets, the parsing of addresses, and the state of connection
attempts.  Functions return numbers of errno instead of raising, except for wrong addresses.
"""

import errno
import os
import socket
import tempfile

from . import fatal_signal
from . import poller
from . import vlog as _vlog

vlog = _vlog.Vlog("socket_util")

# A descriptor of /dev/null, opened by the first call of `get_null_fd()`.
null_fd = -1

# The longest path that fits into the address of a Unix socket.
_UNIX_PATH_MAX = 107


def make_short_name(long_name):
    """Returns a short path of the file `long_name`, through a symbolic link to its folder.

    `free_short_name()` removes the link.
    """
    if long_name is None:
        return None
    folder = os.path.abspath(os.path.dirname(long_name) or ".")
    number = 0
    while True:
        link = os.path.join(tempfile.gettempdir(), "ovs-un-py-%d-%d" % (os.getpid(), number))
        try:
            os.symlink(folder, link)
        except FileExistsError:
            number += 1
            continue
        fatal_signal.add_file_to_unlink(link)
        return os.path.join(link, os.path.basename(long_name))


def free_short_name(short_name):
    """Removes the link that `make_short_name()` created."""
    if short_name is not None:
        fatal_signal.unlink_file_now(os.path.dirname(short_name))


def make_unix_socket(style, nonblock, bind_path, connect_path, short=False):
    """Creates a Unix socket, bound to `bind_path` and connected to `connect_path` if given.

    Returns a pair of an error and the socket.  A file at `bind_path` is replaced, and the new one
    is removed when the process ends.  With `short`, paths are never shortened.
    """
    try:
        sock = socket.socket(socket.AF_UNIX, style)
    except OSError as e:
        return get_exception_errno(e), None
    links = []

    def fitting(path):
        if short or len(os.fsencode(path)) <= _UNIX_PATH_MAX:
            return path
        links.append(make_short_name(path))
        return links[-1]

    bound = False
    try:
        if nonblock:
            set_nonblocking(sock)
        if bind_path is not None:
            if os.path.lexists(bind_path):
                fatal_signal.unlink_file_now(bind_path)
            sock.bind(fitting(bind_path))
            bound = True
            fatal_signal.add_file_to_unlink(bind_path)
        if connect_path is not None:
            try:
                sock.connect(fitting(connect_path))
            except OSError as e:
                if get_exception_errno(e) != errno.EINPROGRESS:
                    raise
        return 0, sock
    except OSError as e:
        sock.close()
        if bound:
            fatal_signal.unlink_file_now(bind_path)
        # Python reports a path that is too long without a number.
        error = get_exception_errno(e)
        return error if isinstance(error, int) else errno.ENAMETOOLONG, None
    finally:
        for link in links:
            free_short_name(link)


def check_connection_completion(sock):
    """Returns 0 if `sock` is connected, `EAGAIN` if it still tries, or the error."""
    try:
        attempt = poller.SelectPoll()
        attempt.register(sock, poller.POLLOUT)
        if not attempt.poll(0):
            return errno.EAGAIN
        error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error == 0:
            sock.getpeername()
        return error
    except ValueError:
        # A closed socket has the descriptor -1, which select(2) refuses.
        return errno.EBADF
    except OSError as e:
        error = get_exception_errno(e)
        return errno.EPIPE if error == errno.ENOTCONN else error


def is_valid_ipv4_address(address):
    """Returns true if `address` is an IPv4 address in dotted form."""
    try:
        socket.inet_pton(socket.AF_INET, address)
    except OSError:
        return False
    return True


def _is_ipv6_address(address):
    try:
        socket.inet_pton(socket.AF_INET6, address.partition("%")[0])
    except OSError:
        return False
    return True


def _resolve(name, port):
    """Returns an address of the host `name`, or None.  This asks the system and may block."""
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    return found[0][4][0] if found else None


def inet_parse_active(target, default_port, raises=True):
    """Returns the address and the port of `target`, "HOST:PORT" or, with a default port, "HOST".

    An IPv6 address stands in brackets.  A wrong `target` raises `ValueError`, or returns `("",
    None)` without `raises`.
    """
    try:
        return _parse_active(target, default_port)
    except ValueError:
        if raises:
            raise
        return "", None


def _parse_active(target, default_port):
    if target.startswith("[") and target.endswith("]"):
        host, port = target, ""
    else:
        host, colon, port = target.rpartition(":")
        if not colon:
            host, port = target, ""
        elif port == "":
            raise ValueError("%s: bad port number" % target)
    if port:
        port = int(port)
    elif default_port:
        port = default_port
    else:
        raise ValueError("%s: port number must be specified" % target)
    if host.startswith("["):
        host = host[1:]
    if host.endswith("]"):
        host = host[:-1]
    if not host:
        raise ValueError("%s: bad peer name format" % target)
    if is_valid_ipv4_address(host) or _is_ipv6_address(host):
        return host, port
    address = None if ":" in host or " " in host else _resolve(host, port)
    if address is None:
        raise ValueError("%s: bad peer name format" % target)
    return address, port


def inet_create_socket_active(style, address):
    """Returns the family of `address`, a pair of a host and a port, and a socket for it."""
    family = socket.AF_INET if is_valid_ipv4_address(address[0]) else socket.AF_INET6
    return family, socket.socket(family, style, 0)


def inet_connect_active(sock, address, family, dscp):
    """Begins to connect `sock` to `address`.  Returns 0 or an error other than `EINPROGRESS`."""
    try:
        set_nonblocking(sock)
        set_dscp(sock, family, dscp)
        error = sock.connect_ex(address)
    except OSError as e:
        return get_exception_errno(e)
    return 0 if error in (0, errno.EINPROGRESS, errno.EWOULDBLOCK) else error


def inet_open_active(style, target, default_port, dscp):
    """Begins to connect a socket to `target`.  Returns a pair of an error and the socket.

    See `inet_parse_active()` about `target`.
    """
    try:
        address = inet_parse_active(target, default_port)
        if not 0 <= address[1] <= 65535:
            raise ValueError("%s: bad port number" % target)
    except ValueError as e:
        vlog.err(str(e))
        return errno.ECONNREFUSED, None
    try:
        family, sock = inet_create_socket_active(style, address)
    except OSError as e:
        return get_exception_errno(e), None
    error = inet_connect_active(sock, address, family, dscp)
    if error:
        sock.close()
        return error, None
    return 0, sock


def get_exception_errno(e):
    """Returns the number of errno that an exception of the socket module carries."""
    if isinstance(e, OSError) and e.errno is not None:
        return e.errno
    return e.args[0] if e.args else errno.EIO


def get_null_fd():
    """Returns a descriptor of /dev/null, always the same, or a negative number of errno."""
    global null_fd
    if null_fd < 0:
        try:
            null_fd = os.open(os.devnull, os.O_RDWR)
        except OSError as e:
            vlog.err("could not open %s: %s" % (os.devnull, os.strerror(e.errno)))
            return -e.errno
    return null_fd


def write_fully(fd, buf):
    """Writes all of `buf` to `fd`.  Returns a pair of an error and the number of bytes written."""
    data = buf.encode("utf-8") if isinstance(buf, str) else bytes(buf)
    written = 0
    while written < len(data):
        try:
            n = os.write(fd, data[written:])
        except OSError as e:
            return get_exception_errno(e), written
        if n == 0:
            return errno.EPROTO, written
        written += n
    return 0, written


def set_nonblocking(sock):
    """Makes operations on `sock` return at once."""
    try:
        sock.setblocking(False)
    except OSError as e:
        vlog.err("could not set nonblocking mode on socket: %s"
                 % os.strerror(get_exception_errno(e)))


def set_dscp(sock, family, dscp):
    """Sets the differentiated services code point, 0 to 63, of the packets of `sock`.

    A negative `dscp` leaves it alone.
    """
    if dscp < 0:
        return
    if dscp > 63:
        raise ValueError("Invalid dscp %d" % dscp)
    if family == socket.AF_INET:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, dscp << 2)
    elif family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, dscp << 2)
    else:
        raise ValueError("Invalid family %d" % family)
