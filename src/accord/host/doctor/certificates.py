"""The faults of a certificate, in words."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_SECONDS = 5.0

_PROBLEMS = {
    9: ("is not valid yet", "check the clock of this machine; otherwise the server needs another certificate"),
    10: ("has expired", "the server needs a new certificate; check the clock of this machine"),
    18: ("is self-signed", "give the server a certificate of an authority, or trust this one on this machine"),
    19: (
        "comes from an authority that signed itself and is not trusted here",
        "install the certificate of that authority on this machine: SSL_CERT_FILE names a file with it",
    ),
    20: (
        "comes from an authority that is not known here, or the server does not send the certificates between",
        "have the server send its whole chain, or install its authority: SSL_CERT_FILE names a file with it",
    ),
    21: ("cannot be verified: the chain is incomplete", "have the server send its whole chain of certificates"),
    23: ("was revoked", "the server needs a new certificate"),
}
"""Codes of OpenSSL (X509_V_ERR_...), with what they mean and what to do."""
_NAME_CODES = (62, 64)


def describe_problem(error: ssl.SSLCertVerificationError, host: str) -> tuple[str, str]:
    """Return what is wrong with the certificate of a host, and what to do."""
    if error.verify_code in _NAME_CODES:
        return (
            f"the certificate is not for the name {host}",
            "use the name in the certificate, or issue it for this one",
        )
    found = _PROBLEMS.get(error.verify_code)
    if found is None:
        return f"the certificate of {host} is not accepted: {error.verify_message}", "the server needs another one"
    return f"the certificate of {host} {found[0]}", found[1]


async def describe_certificate(address: str, port: int, host: str) -> list[str]:
    """Return the names and dates in a certificate that is not accepted; nothing without the package cryptography.

    The connection sends nothing.
    """
    if find_spec("cryptography") is None:
        return []
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(OSError, TimeoutError):
        _, writer = await asyncio.wait_for(
            asyncio.open_connection(address, port, ssl=context, server_hostname=host), _SECONDS
        )
        encoded = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return [] if encoded is None else _facts(encoded)
    return []


def _facts(encoded: bytes) -> list[str]:
    from cryptography import x509

    broken = (ValueError, x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)
    with suppress(*broken):
        return _described(x509.load_der_x509_certificate(encoded))
    return ["the certificate cannot be decoded"]


def _described(certificate: Certificate) -> list[str]:
    from cryptography import x509

    names = []
    with suppress(x509.ExtensionNotFound):
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = [*extension.get_values_for_type(x509.DNSName)]
        names += map(str, extension.get_values_for_type(x509.IPAddress))
    return [
        f"issued for {', '.join(names[:10]) or certificate.subject.rfc4514_string()}",
        f"issued by {certificate.issuer.rfc4514_string()}",
        f"valid from {certificate.not_valid_before_utc:%Y-%m-%d} to {certificate.not_valid_after_utc:%Y-%m-%d}",
    ]
