"""Certificates and keys of OPC UA from their files, PEM or DER.

Read here and handed over as bytes: asyncua would read them in threads of its own, deep within the connection.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from drivers.base import DriverError
from drivers.opcua.options import Credentials

T = TypeVar("T")
DER = serialization.Encoding.DER


@dataclass(frozen=True, slots=True)
class Certificates:
    """All in DER. `uri` is the application that the certificate is for: both sides compare it with what is said."""

    certificate: bytes
    private_key: bytes
    peer: bytes
    uri: str


def read_certificates(who: Credentials) -> Certificates:
    """What the options name; DriverError says which file is wrong."""
    own = _certificate(who.certificate)
    key = _read(who.private_key, "private key without a password", _key)
    plain = key.private_bytes(DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Certificates(own.public_bytes(DER), plain, _certificate(who.peer).public_bytes(DER), _uri(own))


def _certificate(path: str) -> x509.Certificate:
    return _read(path, "certificate", lambda d: x509.load_pem_x509_certificate(d) if _pem(d) else _from_der(d))


def _from_der(data: bytes) -> x509.Certificate:
    return x509.load_der_x509_certificate(data)


def _key(data: bytes) -> PrivateKeyTypes:
    load = serialization.load_pem_private_key if _pem(data) else serialization.load_der_private_key
    return load(data, None)


def _pem(data: bytes) -> bool:
    return data.lstrip().startswith(b"-----BEGIN")


def _read(path: str, what: str, parse: Callable[[bytes], T]) -> T:
    try:
        return parse(Path(path).read_bytes())
    except OSError as error:
        raise DriverError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise DriverError(f"{path} holds no {what} in PEM or DER") from error


def _uri(certificate: x509.Certificate) -> str:
    with contextlib.suppress(x509.ExtensionNotFound):
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        for uri in names.get_values_for_type(x509.UniformResourceIdentifier):
            return str(uri)
    raise DriverError("the certificate names no application (a URI in its subjectAltName), which OPC UA wants")
