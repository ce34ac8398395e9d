"""Django's contrib apps: migrations, and the admin through the test client.

Each line of the output is `pass NAME` or `fail NAME: why`.
"""

import io
import os
import sys
import tempfile

os.environ["SERVER_PORT"] = sys.argv[1]
os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import django  # noqa: E402

django.setup()

from django.contrib.auth.models import Group, Permission, User  # noqa: E402
from django.contrib.sessions.models import Session  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.test import Client  # noqa: E402

CLIENT = Client()
APPS = ["contenttypes", "auth", "admin", "sessions"]


def command(*arguments, **options):
    out = io.StringIO()
    call_command(*arguments, stdout=out, **options)
    return out.getvalue()


def migrate(app):
    def work():
        command("migrate", app, verbosity=0)
    work.__name__ = f"migrate_{app}"
    return work


def migrate_again():
    assert "No migrations to apply" in command("migrate")


def permissions_are_there():
    assert Permission.objects.filter(codename="add_user").count() == 1


def inspectdb():
    text = command("inspectdb", "auth_user")
    assert "username = models.CharField(unique=True, max_length=150)" in text, text


def create_superuser():
    User.objects.create_superuser("root", "root@example.com", "secret")


def admin_login():
    answer = CLIENT.post("/admin/login/?next=/admin/", {"username": "root", "password": "secret"})
    assert answer.status_code == 302, answer.status_code
    assert CLIENT.get("/admin/").status_code == 200
    assert Session.objects.count() == 1


def admin_add():
    answer = CLIENT.post("/admin/auth/group/add/", {"name": "editors", "permissions": [1, 2]})
    assert answer.status_code == 302, answer.content[:300]
    assert Group.objects.get().permissions.count() == 2


def admin_list_and_search():
    answer = CLIENT.get("/admin/auth/group/?q=EDIT&o=-1")
    assert answer.status_code == 200 and b"editors" in answer.content


def admin_change():
    group = Group.objects.get()
    answer = CLIENT.post(f"/admin/auth/group/{group.pk}/change/", {"name": "writers", "permissions": [3]})
    assert answer.status_code == 302
    assert [one.pk for one in Group.objects.get(name="writers").permissions.all()] == [3]


def admin_add_user():
    words = {"username": "ada", "password1": "Lovelace 1815", "password2": "Lovelace 1815", "usable_password": "true"}
    answer = CLIENT.post("/admin/auth/user/add/", words)
    assert answer.status_code == 302, answer.content[-2000:]
    assert CLIENT.get("/admin/auth/user/?is_staff__exact=0").status_code == 200


def admin_history():
    group = Group.objects.get()
    assert b"Changed Name" in CLIENT.get(f"/admin/auth/group/{group.pk}/history/").content


def admin_delete():
    group = Group.objects.get()
    answer = CLIENT.post(f"/admin/auth/group/{group.pk}/delete/", {"post": "yes"})
    assert answer.status_code == 302
    assert not Group.objects.exists()


def atomic():
    try:
        with transaction.atomic():
            Group.objects.create(name="outer")
            try:
                with transaction.atomic():
                    Group.objects.create(name="inner")
                    raise KeyError
            except KeyError:
                pass
            assert [one.name for one in Group.objects.all()] == ["outer"]
            raise ValueError
    except ValueError:
        assert not Group.objects.exists()


def admin_logout():
    assert CLIENT.post("/admin/logout/").status_code == 200


def dumpdata_and_loaddata():
    text = command("dumpdata", "auth.user")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(text)
        file.flush()
        User.objects.all().delete()
        call_command("loaddata", file.name, verbosity=0)
    assert User.objects.count() == 2


def flush():
    command("flush", interactive=False, verbosity=0)
    assert not User.objects.exists()


def clearsessions_and_check():
    command("clearsessions")
    command("check", databases=["default"])


def migrate_back():
    command("migrate", "admin", "zero", verbosity=0)
    command("migrate", "auth", "0011", verbosity=0)
    assert "django_admin_log" not in connection.introspection.table_names()


CASES = [*map(migrate, APPS), migrate_again, permissions_are_there, inspectdb, create_superuser, admin_login, admin_add,
         admin_list_and_search, admin_change, admin_add_user, admin_history, admin_delete, atomic, admin_logout,
         dumpdata_and_loaddata, flush, clearsessions_and_check, migrate_back]

for case in CASES:
    try:
        case()
        print(f"pass {case.__name__}", flush=True)
    except Exception as error:
        print(f"fail {case.__name__}: {type(error).__name__} {error}".replace("\n", " ")[:500], flush=True)
