"""Django on the server whose port is in the environment: its contrib apps, and the models of its tests."""

import os

import psycopg

# The gateway lets clients in by any name, and its one database has its own.
with psycopg.connect(host="127.0.0.1", port=os.environ["SERVER_PORT"], user="postgres", dbname="postgres") as asked:
    NAME = asked.execute("select current_database()").fetchone()[0]
DATABASE = {
    "ENGINE": "django.db.backends.postgresql",
    "HOST": "127.0.0.1",
    "PORT": os.environ["SERVER_PORT"],
    "USER": "postgres",
    "NAME": NAME,
    # There is one database, and no CREATE DATABASE: tests run in it.
    "TEST": {"NAME": NAME},
}
DATABASES = {"default": DATABASE}
if "SERVER_SUITE" in os.environ:
    # Django's tests want a second one to be configured.
    DATABASES["other"] = {"ENGINE": "django.db.backends.sqlite3"}
SECRET_KEY = "of nobody"
USE_TZ = "SERVER_SUITE" not in os.environ
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
INSTALLED_APPS = [f"django.contrib.{app}" for app in ("admin", "auth", "contenttypes", "sessions", "messages")]
MIDDLEWARE = ["django.contrib.sessions.middleware.SessionMiddleware",
              "django.contrib.auth.middleware.AuthenticationMiddleware",
              "django.contrib.messages.middleware.MessageMiddleware"]
PROCESSORS = ["django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
              "django.contrib.messages.context_processors.messages"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
              "OPTIONS": {"context_processors": PROCESSORS}}]
ROOT_URLCONF = "urls"
ALLOWED_HOSTS = ["testserver"]
STATIC_URL = "static/"
