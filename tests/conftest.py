"""How many examples hypothesis tries: `make test` asks for fewer, `make test-slow` for many."""

from hypothesis import settings

settings.register_profile("quick", max_examples=40, deadline=None)
settings.register_profile("thorough", max_examples=500, deadline=None)
settings.load_profile("quick")
