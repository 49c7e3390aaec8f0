"""Secrets that are recognized by their form: tokens of well-known services, JWTs, private keys, passwords in URLs and
commands.
"""

from __future__ import annotations

import re

from accord.lazy_patterns import lazy_pattern

REDACTED = "[redacted]"
LEAST_WORD = 16
"""A shorter text of letters and digits alone is neither a secret of a known form, nor has it one behind a name."""

LIKE_A_SECRET = r"(?=[^\d\s&]{0,64}+\d)(?=[^A-Za-z\s&]{0,64}+[A-Za-z])"
"""A lookahead for letters and digits: "the password is wrong" has no secret."""

_LETTERS = r"[A-Za-z0-9]{16,}+(?:-?\w++)*+"
_WORD = r"[\w-]{16,}+"
# Each row has the forms that begin with one letter: the search then skips all other characters in a tight loop.
_TOKENS = {
    "1": rf"//0{_WORD}",  # Google
    "A": rf"(?:[KS]IA[A-Z0-9]{{16}}|Iza{_WORD}|TATT3{_WORD}|GE-SECRET-KEY-{_LETTERS})",  # AWS, Google, Atlassian, age
    "S": rf"G\.{_WORD}\.{_WORD}",  # SendGrid
    "d": rf"(?:o[opr]_v1_|api|p\.[a-z]{{2,5}}\.|ckr_[po]at_){_LETTERS}",  # DigitalOcean, Databricks, Doppler, Docker
    "e": r"yJ(?<!(?<!\\)[\w-]eyJ)[\w-]{8,}+\.\.?[\w-]{8,}+(?:\.[\w-]++){0,3}",  # JWT, JWE
    "f": rf"igd_{_WORD}",  # Figma
    "g": rf"(?:(?:h[pousr]_|ithub_pat_|sk_){_LETTERS}"  # GitHub, Groq
    rf"|l(?:pat|ptt|[dfr]t|rtr|cbt|soat|oas|agent|imt|ffct)-{_WORD})",  # GitLab
    "h": rf"(?:f_{_LETTERS}|v[sbr]\.{_WORD})",  # Hugging Face, Vault
    "l": rf"in_api_{_LETTERS}",  # Linear
    "n": rf"(?:(?:pm_|tn_){_LETTERS}|vapi-{_WORD})",  # npm, Notion, NVIDIA
    "p": rf"(?:plx-{_LETTERS}|ypi-[\w-]{{50,}}+)",  # Perplexity, PyPI
    "r": rf"(?:8_|k_(?:live|test)_|ubygems_){_LETTERS}",  # Replicate, Stripe, RubyGems
    "s": rf"(?:k-(?<!(?<!\\)[A-Za-z0-9]sk-)[\w-]{{20,}}+|(?:bp_|hp(?:at|ca|pa|ss)_|k_(?:live|test)_){_LETTERS}"
    r"|ntry[su]_[\w+/=-]{40,}+)",  # OpenAI, Anthropic, Supabase, Shopify, Stripe, Sentry
    "t": r"skey-[a-z]{3,16}-[\w-]{12,}+",  # Tailscale
    "v": rf"1\.0-[a-f0-9]{{20,40}}-{_LETTERS}",  # Cloudflare
    "w": rf"hsec_{_LETTERS}",  # Stripe
    "x": rf"(?:(?:ox[a-z]|app)-[A-Za-z0-9-]{{10,}}+|ai-{_LETTERS})",  # Slack, xAI
    "y": rf"a29\.{_WORD}",  # Google
}
_PRIVATE_KEY = (
    r"-----BEGIN[ +][A-Z0-9 +]{0,40}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----"
    r"(?:[^-]++|-(?!----)){0,1000}+(?:-----END[ +][A-Z0-9 +]{0,40}-----)?"
)
_WORDS = "1dfhlrtv"
"""The letters whose forms begin a word, because other words end so."""
# An expression with a plain letter or mark at its start is found fast, one with `\b` there is tried at each place.
_WORD_START = r"(?<!(?<!\\)[A-Za-z0-9]%s)"
"""The beginning of a word, also after a line break that is written as `\\n`."""
_FORMS = lazy_pattern(
    "|".join(
        [_PRIVATE_KEY, *(f"{first}{_WORD_START % first * (first in _WORDS)}{rest}" for first, rest in _TOKENS.items())]
    )
)

_URL_WORD = r"[^\s/:@\"'<>]"
_IN_QUERY = r"[^\s&\"'<>]"
_URL_PASSWORD = rf"(://{_URL_WORD}*+:)[^\s/\"'<>]+(?=@)"
_PASSWORD_WITH_SLASH = (
    rf"(://(?<!http://)(?<!https://){_URL_WORD}*+:)(?!\d*+/)[^\s@\"'<>]{{1,100}}+(?:@[^\s/@\"'<>]*)*(?=@)"
)
_TOKEN_AS_USER = r"(://)(?=[A-Za-z_.~-]{0,64}\d)[\w.~-]{20,256}(?=(?::[^\s/@\"'<>]{0,256})?@)"
_LOGIN = r"((?:mysql\w{0,10}|mariadb|sshpass|htpasswd|login)\b[^\n;|&]{0,100}?[ ]-p[ ]?)(?![ -])\S+"
_USER = r"((?:curl\b[^\n;|&]{0,100}?[ ](?:-u|-U)|--(?:proxy-)?user)[ =]?[^\s:@/]{1,100}:)(?=\S*[^\d\s])\S+"

KEY_PARTS = "d|p|q|dp|dq|qi|k"
"""The private members of a JSON Web Key (RFC 7518, 6)."""
PRIVATE_MEMBERS = frozenset(KEY_PARTS.split("|"))

_MARKED = (
    ("/bot", r"(/bot)\d{6,12}:[\w-]{30,}+"),  # Telegram
    ("hooks.slack.com", r"(hooks\.slack\.com/services/)[\w/-]{20,}+"),
    ("/webhooks/", r"(/webhooks/\d{1,30}/)[\w-]{30,}+"),  # Discord
    ("sig=", rf"([?&;]sig=){_IN_QUERY}++"),  # Azure
    ("code=", rf"([?&;]code=){_IN_QUERY}{{16,}}+"),  # OAuth
    ("state=", rf"([?&;]state=){_IN_QUERY}{{16,}}+"),  # OAuth
    ("key=", rf"([?&]key=){LIKE_A_SECRET}{_IN_QUERY}{{8,}}+"),  # Google
    ("kty", rf"(\\{{0,3}}[\"'](?:{KEY_PARTS})\\{{0,3}}[\"'][ ]{{0,3}}:[ ]{{0,3}}\\{{0,3}}[\"'])[\w+/=-]++"),  # JWK
    ("://", _URL_PASSWORD),
    ("://", _PASSWORD_WITH_SLASH),
    ("://", _TOKEN_AS_USER),
    ("\\/", rf"(:\\{{1,3}}/\\{{1,3}}/{_URL_WORD}*+:)[^\s/\"'<>]+(?=@)"),  # JSON may escape a slash
    (" -p", _LOGIN),
    ("redis-cli", r"(redis-cli\b[^\n;|&]{0,100}?[ ]-a[ ])\S+"),
    ("-u'", r"('-u',[ ]?'[^\s\"':]{1,100}:)[^\s\"']++"),
    ('-u"', r"(\"-u\",[ ]?\"[^\s\"':]{1,100}:)[^\s\"']++"),
    (" -u", _USER),
    ("-user", _USER),
    ("ASSWORD '", r"(PASSWORD ')[^']++"),  # SQL
    ("assword '", r"(password ')[^']++"),
    ("BY '", r"(IDENTIFIED BY ')[^']++"),  # SQL
    ("login", r"(login[ \t]{1,3}\S{1,100}[ \t]{1,3}password[ \t]{1,3})\S+"),  # .netrc
)
"""The second element is searched for in texts that contain the first; the secret follows the first group."""
_MARKED_PATTERNS = [(mark, lazy_pattern(pattern)) for mark, pattern in _MARKED]

_MARK = lazy_pattern("|".join(dict.fromkeys(re.escape(mark) for mark, _ in _MARKED)))
_SHORT = 50
"""In a shorter text, all marks are found faster by one expression than one by one."""

_HIDDEN = rf"\1{REDACTED}"


def redact_forms(text: str) -> str:
    """Return a text without secrets of a known form."""
    redacted = _FORMS.sub(REDACTED, text)
    if len(redacted) < _SHORT and _MARK.search(redacted) is None:
        return redacted
    for mark, pattern in _MARKED_PATTERNS:
        if mark in redacted:
            redacted = pattern.sub(_HIDDEN, redacted)
    return redacted


def may_have_form(text: str) -> bool:
    """Return whether a text has a secret of a known form."""
    return _FORMS.search(text) is not None or any(
        mark in text and pattern.search(text) for mark, pattern in _MARKED_PATTERNS
    )
