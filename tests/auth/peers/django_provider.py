"""django-oauth-toolkit on a free port of loopback, which it prints: a provider that registers no clients.

Options are one JSON object in the first argument: `redirect_uri` (that of its only client), `lifetime` (seconds).
Runs in a Python of its own (scripts/peers), with nothing of accord.
"""

from __future__ import annotations

import json
import sys
from wsgiref.simple_server import WSGIRequestHandler, make_server

import django
from django.conf import settings

OPTIONS = json.loads(sys.argv[1])
LOGIN = '<form method="post" action="{{ request.get_full_path }}">{% csrf_token %}<input name="login"></form>'
CONSENT = """<form method="post" action="{{ request.get_full_path }}">{% csrf_token %}
{% for field in form %}{% if field.is_hidden %}{{ field }}{% endif %}{% endfor %}
<input type="hidden" name="allow" value="Authorize"></form>"""

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=[
        "django.contrib.auth",
        "django.contrib.contenttypes",
        "django.contrib.sessions",
        "oauth2_provider",
    ],
    LOGIN_URL="/login/",
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
    ],
    OAUTH2_PROVIDER={
        "SCOPES": {"read": "Read", "write": "Write"},
        "ACCESS_TOKEN_EXPIRE_SECONDS": OPTIONS.get("lifetime", 3600),
        "ROTATE_REFRESH_TOKEN": True,
        "REFRESH_TOKEN_GRACE_PERIOD_SECONDS": 0,
    },
    ROOT_URLCONF=__name__,
    SECRET_KEY="a key for tests",
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "context_processors": ["django.template.context_processors.request"],
                "loaders": [
                    (
                        "django.template.loaders.locmem.Loader",
                        {"login.html": LOGIN, "oauth2_provider/authorize.html": CONSENT},
                    )
                ],
            },
        }
    ],
    USE_TZ=True,
)
django.setup()

from django.contrib.auth import authenticate, get_user_model, login  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpRequest, HttpResponse, JsonResponse  # noqa: E402
from django.shortcuts import redirect, render  # noqa: E402
from django.urls import include, path  # noqa: E402
from oauth2_provider.decorators import protected_resource  # noqa: E402
from oauth2_provider.models import get_application_model  # noqa: E402


def log_in(request: HttpRequest) -> HttpResponse:
    """The page where a user logs in."""
    if request.method != "POST":
        return render(request, "login.html")
    user = authenticate(request, username=request.POST["login"], password=request.POST["password"])
    if user is None:
        return HttpResponse("wrong password", status=403)
    login(request, user)
    return redirect(request.GET["next"])


@protected_resource()
def me(request: HttpRequest) -> HttpResponse:
    """Whose token it is."""
    return JsonResponse({"id": request.resource_owner.pk, "name": request.resource_owner.username})


urlpatterns = [
    path("login/", log_in),
    path("me/", me),
    path("o/", include("oauth2_provider.urls", namespace="oauth2_provider")),
]


class Quiet(WSGIRequestHandler):
    """Requests are not logged."""

    def log_message(self, *args: object) -> None:
        pass


def main() -> None:
    call_command("migrate", verbosity=0)
    get_user_model().objects.create_user("alice", password="password")
    get_application_model().objects.create(
        name="shop",
        client_id="shop",
        client_secret="secret-of-the-shop",
        client_type="confidential",
        authorization_grant_type="authorization-code",
        redirect_uris=OPTIONS["redirect_uri"],
    )
    with make_server("127.0.0.1", 0, get_wsgi_application(), handler_class=Quiet) as server:
        print(f"serves at http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


main()
