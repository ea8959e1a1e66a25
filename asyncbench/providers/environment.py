"""The way to a server, as the environment names it: a proxy, and the certificates that are trusted.

Every door asks here: an SDK's, our own, and what fetches tokens. So HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and
NO_PROXY mean the same at each. Libraries would read them in ways of their own, and some ~/.netrc with them.
"""

import os
import re
import ssl
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit
from urllib.request import getproxies

from asyncbench.errors import ConfigError

# ── Proxies

_PORTS: Final = {"http": 80, "https": 443}
_SPEAKS: Final = ("http", "https")  # to proxies
_METADATA: Final = "metadata.google.internal"  # of a machine at Google: reached from there alone
_ENTRY: Final = re.compile(r"\[?(?P<host>[^\[\]]*?)\]?(?::(?P<port>\d+))?")  # of NO_PROXY


_Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A proxy that stands before an address."""

    url: str  # without a user
    login: tuple[str, str] | None = field(default=None, repr=False)  # user and password

    @property
    def arguments(self) -> dict[str, Any]:
        """What aiohttp is given with a request."""
        if self.login is None:
            return {"proxy": self.url}
        import aiohttp  # what only plans needs no library that calls

        # aiohttp makes the header for proxies of this one.
        headers = {"Authorization": aiohttp.encode_basic_auth(*self.login)}
        return {"proxy": self.url, "proxy_headers": headers}

    @property
    def address_with_login(self) -> str:
        """Its address with user and password, as requests wants it."""
        if self.login is None:
            return self.url
        user, password = (quote(word, safe="") for word in self.login)
        return self.url.replace("://", f"://{user}:{password}@", 1)


def proxy_of(url: str) -> Proxy | None:
    """Return the proxy that calls to an address go through, or None if they go straight there.

    HTTPS_PROXY or HTTP_PROXY by the address, else ALL_PROXY; in small letters or large, the small ones first.
    None stands before this machine, before the metadata service of a cloud, nor before what NO_PROXY names.

    Raises:
        ConfigError: the proxy speaks no HTTP, or its address is none. No message repeats that address, for it
            may hold a password.
    """
    proxies, scheme = getproxies(), urlsplit(url).scheme
    variable = scheme if proxies.get(scheme) else "all"
    address = proxies.get(variable)
    if not address or goes_straight(url, proxies.get("no", "")):
        return None

    name = f"{variable.upper()}_PROXY"
    way_out = "Set it to http://HOST:PORT, or name the server in NO_PROXY."
    proxy = urlsplit(address if "://" in address else f"http://{address}")
    if proxy.scheme not in _SPEAKS:
        raise ConfigError(
            f"{name} names a proxy of the kind {proxy.scheme}, and asyncbench speaks to HTTP proxies "
            f"alone. {way_out}"
        )
    try:
        host, port = proxy.hostname, proxy.port or _PORTS[proxy.scheme]
    except ValueError:
        host, port = None, 0
    if not host:
        raise ConfigError(f"{name} holds no address of a proxy. {way_out}")
    host_in_url = f"[{host}]" if ":" in host else host
    login = (unquote(proxy.username or ""), unquote(proxy.password or ""))
    return Proxy(url=f"{proxy.scheme}://{host_in_url}:{port}", login=login if any(login) else None)


def proxy_arguments(url: str) -> dict[str, Any]:
    """Return aiohttp's arguments for a request to an address: its proxy, if any; raises as `proxy_of`."""
    proxy = proxy_of(url)
    return {} if proxy is None else proxy.arguments


def goes_straight(url: str, no_proxy: str = "") -> bool:
    """Return whether no proxy stands before an address.

    Args:
        url: the address.
        no_proxy: names, which stand for all below them, and addresses and networks (10.0.0.0/8), with or
            without a port, between commas or blanks; `*`: all.
    """
    parts = urlsplit(url)
    host, port = _plain(parts.hostname or ""), parts.port or _PORTS.get(parts.scheme)
    try:
        address: _Address | None = ip_address(host.partition("%")[0])
    except ValueError:
        address = None
    address = getattr(address, "ipv4_mapped", None) or address
    if address is not None and (address.is_loopback or address.is_link_local or address.is_unspecified):
        return True
    if host in ("localhost", _METADATA) or host.endswith(".localhost"):
        return True
    return any(_matches(entry, host, address, port) for entry in re.split(r"[\s,]+", no_proxy))


def _matches(entry: str, host: str, address: _Address | None, port: int | None) -> bool:
    """Return whether an entry of NO_PROXY names a host."""
    if entry in ("", "*"):
        return entry == "*"
    entry = entry.rpartition("://")[2].rstrip("/")
    network, match = _network(entry), _ENTRY.fullmatch(entry)
    if network is None and match is not None:
        if match["port"] and int(match["port"]) != port:
            return False
        network, entry = _network(match["host"]), match["host"]
    if network is not None:
        return address is not None and address in network
    name = _plain(entry.removeprefix("*").removeprefix("."))
    return bool(name) and (host == name or host.endswith(f".{name}") or fnmatchcase(host, name))


def _plain(host: str) -> str:
    host = host.lower().rstrip(".")
    with suppress(UnicodeError):
        return host.encode("idna").decode() if not host.isascii() else host
    return host


def _network(entry: str) -> IPv4Network | IPv6Network | None:
    """Return the addresses that an entry stands for, or None if it is no address."""
    with suppress(ValueError):
        return ip_network(re.sub(r"^\[(.*)\](?=/|$)", r"\1", entry), strict=False)
    return None


# ── Certificates

TRUST: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")  # what all doors trust
OF_REQUESTS: Final = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
# By adapter, what the library reads that finds its credentials.
OF_LIBRARIES: Final = {
    **dict.fromkeys(("vertex", "vertex-anthropic", "azure"), OF_REQUESTS),
    "bedrock": ("AWS_CA_BUNDLE",),
}
_HASHED: Final = re.compile(r"[0-9a-f]{8}\.\d+")  # how OpenSSL finds a certificate in a directory


def check_certificates(variables: Collection[str] = TRUST) -> None:
    """Check that the files and directories that variables name hold certificates.

    Raises:
        ConfigError: one does not; names the variable, its value and the way out.
    """
    for variable in variables:
        value = os.environ.get(variable)
        is_needless = variable == "SSL_CERT_DIR" and os.environ.get("SSL_CERT_FILE")  # then it is not needed
        if value and not is_needless and (fault := _fault(variable, value)):
            kind = "a directory" if variable == "SSL_CERT_DIR" else "a file"
            raise ConfigError(
                f"the environment variable {variable} is {value!r}, which {fault}. Set it to {kind} of PEM "
                "certificates, or unset it to trust the usual ones."
            )


def token_certificates() -> str | None:
    """Return the certificates for token servers, by path, or None for the usual ones."""
    return next(filter(None, map(os.environ.get, (*OF_REQUESTS, *TRUST))), None)


def _fault(variable: str, value: str) -> str | None:
    """Return the fault of a file or directory of certificates, or None without one."""
    if variable == "SSL_CERT_DIR":
        return _fault_of_directories([Path(folder) for folder in value.split(os.pathsep) if folder])
    path = Path(value)
    try:
        if path.is_dir():
            if variable in OF_REQUESTS:
                return _fault_of_directories([path])
            return "is a directory (for one there is SSL_CERT_DIR)"
        data = path.read_bytes()
        if not data.strip():
            return "is empty"
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except FileNotFoundError:
        return "does not exist"
    except ssl.SSLError:
        return "holds no certificate in PEM"
    except (OSError, ValueError) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or error})"
    return None


def _fault_of_directories(folders: Collection[Path]) -> str | None:
    """Return why OpenSSL finds no certificate in some directories, or None if it finds one."""
    fault = "holds no certificate under its hash (run `openssl rehash` on it)"
    for folder in folders:
        try:
            if any(_HASHED.fullmatch(path.name) for path in folder.iterdir()):
                return None
        except FileNotFoundError:
            fault = "does not exist"
        except NotADirectoryError:
            fault = "is no directory"
        except OSError as error:
            fault = f"cannot be read ({error.strerror})"
    return fault
