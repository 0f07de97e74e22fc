"""Judges where an address leads before something connects that Python's sockets do not show.

LiveKit's client for rooms is such a thing: it is a library of its own, and asks the resolver
itself.
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from caal_node.core.errors import NetworkRefused
from caal_node.network.guard import names_kept_here
from caal_node.network.policy import NetworkPolicy, address_of, canonical_name


def outside(policy: NetworkPolicy, url: str) -> str | None:
    """Return in a few words where `url` leads outside of `policy`, or None where it does not.

    It waits for the resolver, so call it in a thread. A name has to lead inside with each of its
    addresses, since nobody knows which of them will be taken.

    Raises:
        OSError: The name leads nowhere.
    """
    host = urlsplit(url).hostname or ""
    if policy.is_open:
        return None
    if (address := address_of(host)) is not None:
        return None if policy.allows(address) else f"{host} is outside"
    if not policy.allows_lookup(host, names_kept_here()):
        return f"the name {host} may not be looked up"
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except NetworkRefused:  # another policy of this process
        return f"the name {host} may not be looked up"
    for *_, place in found:
        leads_to = address_of(str(place[0]))
        if leads_to is None or not policy.allows(leads_to, (canonical_name(host),)):
            return f"{host} leads to {place[0]}, which is outside"
    return None
