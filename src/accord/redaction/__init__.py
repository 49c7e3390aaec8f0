"""Redaction of secrets in log messages: "log messages MUST NOT contain credentials or secrets"
(server/utilities/logging).

A secret is recognized by its name, beside it or as its key, or by its form; also where it is percent-encoded. Both are
guesses; a secret with another name and no known form is not found: redaction is a safety net, and no reason to log
secrets. Words without a name are not judged by their entropy: ids, hashes and pictures are as random as secrets are.

One pass through a value:

1. `values` walks the containers. It hides what stands under a secret key (`names`), and beside a secret name, in an
   object with a name and a value, a pair, or a list of arguments.
2. In each text, `values` finds the JSON (`json_splice`), walks it alike, and puts only the changes back: the text of
   a result hides what the structured one does. JSON that was cut is completed with what would make its members secret.
3. `text` hides what is left in the text: `forms` finds tokens, JWTs, private keys, and passwords in URLs and commands;
   then the value beside each secret name, in whatever notation: what separates them, `_separator`, is looked for apart
   from what the value is, `_value_at`; or both are members of one record, `_in_record`.
4. Parts that are percent-encoded are decoded, and take step 3 again.

`beginnings` cuts a text that a peer made before it is redacted, and `exceptions` is for errors and log records.

Time is linear in the size of the value: no expression reads the same part of a text twice, and the number of places
that are checked one by one is limited.
"""

from __future__ import annotations

from accord.redaction.beginnings import cut, redact_beginning
from accord.redaction.exceptions import describe_redacted, redact_record, redacted_traceback
from accord.redaction.forms import REDACTED
from accord.redaction.names import names_secret
from accord.redaction.text import may_have_secret
from accord.redaction.values import redact, secret_values

__all__ = [
    "REDACTED",
    "cut",
    "describe_redacted",
    "may_have_secret",
    "names_secret",
    "redact",
    "redact_beginning",
    "redact_record",
    "redacted_traceback",
    "secret_values",
]
