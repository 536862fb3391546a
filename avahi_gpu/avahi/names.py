"""Avahi's own words on D-Bus: names, numbers and what its errors mean to us.

Numbers are those of avahi-common/defs.h; interfaces are described in /usr/share/dbus-1/interfaces.
"""

from __future__ import annotations

from avahi_gpu.errors import (
    AS_ROOT,
    AvahiCallFailed,
    AvahiUnavailable,
    BusError,
    BusUnavailable,
    NameCollision,
    PublishingForbidden,
    ResolveTimeout,
)

BUS_NAME = "org.freedesktop.Avahi"
SERVER_PATH = "/"

# the bus itself, and what we ask it to tell us
DBUS = "org.freedesktop.DBus"
DBUS_PATH = "/org/freedesktop/DBus"
MATCHES = (
    f"type='signal',sender='{DBUS}',interface='{DBUS}',member='NameOwnerChanged',arg0='{BUS_NAME}'",
    f"type='signal',sender='{BUS_NAME}',interface='{BUS_NAME}.Server',member='StateChanged'",
)

# AvahiServerState
SERVER_REGISTERING = 1
SERVER_RUNNING = 2
SERVER_COLLISION = 3

# AvahiEntryGroupState
GROUP_UNCOMMITTED = 0
GROUP_REGISTERING = 1
GROUP_ESTABLISHED = 2
GROUP_COLLISION = 3
GROUP_FAILURE = 4

ANY = -1  # AVAHI_IF_UNSPEC and AVAHI_PROTO_UNSPEC
IPV4 = 0  # AVAHI_PROTO_INET
IPV6 = 1  # AVAHI_PROTO_INET6

# AvahiLookupFlags
USE_MULTICAST = 2  # not a name server first: that costs seconds for an address where none answers

# AvahiLookupResultFlags
RESULT_CACHED = 1  # the daemon had it already
RESULT_LOCAL = 8  # published by this very daemon

# AvahiPublishFlags
PUBLISH_UNIQUE = 1  # one owner on the LAN
PUBLISH_NO_PROBE = 2  # the owner is sure to be the only one, so nobody is asked
PUBLISH_UPDATE = 64  # replaces the record of that name and type

# DNS (RFC 1035 section 3.2)
CLASS_IN = 1
TYPE_A = 1
TYPE_PTR = 12
TYPE_TXT = 16
TYPE_AAAA = 28
TYPE_SRV = 33

UNKNOWN_METHOD = "org.freedesktop.DBus.Error.UnknownMethod"

START_HINT = (
    f"`{AS_ROOT} setup` installs and starts it; where it is installed, `systemctl start avahi-daemon` does; "
    "`avahi-gpu doctor` tells why it is not there"
)
BUS_HINT = (
    "start it with `systemctl start dbus`; in a container, share the host's /run/dbus/system_bus_socket"
)

_GONE = {
    "org.freedesktop.DBus.Error.NameHasNoOwner",
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NoReply",  # the owner died with our question unanswered
    "org.freedesktop.DBus.Error.UnknownObject",  # objects die with the daemon that made them
    "org.freedesktop.Avahi.DisconnectedError",
}
_FORBIDDEN_HINT = (
    "in the section [publish] of /etc/avahi/avahi-daemon.conf set disable-publishing=no and "
    "disable-user-service-publishing=no, then restart avahi-daemon"
)


def avahi_missing() -> AvahiUnavailable:
    """Return the error of a bus without Avahi."""
    return AvahiUnavailable("avahi-daemon is not on the D-Bus system bus", START_HINT)


def error_of(name: str, text: str, what: str) -> BusError:
    """Return our error for the D-Bus error ``name``; ``what`` names the call, ``text`` is the sender's."""
    if name in _GONE:
        return avahi_missing()
    if name == "org.freedesktop.DBus.Error.Disconnected":
        return BusUnavailable("the D-Bus system bus closed the connection", BUS_HINT)
    if name == f"{BUS_NAME}.TimeoutError":
        hint = "is that machine switched on and connected to this LAN?"
        return ResolveTimeout(name, f"nobody on the LAN answered {what}", hint)
    if name == f"{BUS_NAME}.CollisionError":
        return NameCollision(name, f"{what}: that name is taken already", "choose another name")
    if name == f"{BUS_NAME}.NotPermittedError":
        return PublishingForbidden(name, f"avahi-daemon refused {what}: {text}", _FORBIDDEN_HINT)
    return AvahiCallFailed(name, f"avahi-daemon answered {what} with {name}: {text}")
