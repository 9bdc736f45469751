"""Which methods of an API class the plays call, and which they leave out.

The methods come from introspection, so a newer ovsdbapp with more methods shows gaps. A method that takes `may_exist`
or `if_exists` must be called with the flag set and with the flag clear; a method that can fail must have succeeded
at least once.
"""

import inspect

FLAGS = ("may_exist", "if_exists")

# Methods that no play can call, with the reason.
EXEMPT = {}


class Coverage:
    def __init__(self, title, api_class):
        self.title = title
        self.api_class = api_class
        self.calls = {}
        self.failures = {}
        self.flags = {}

    def called(self, name, arguments, options):
        self.calls[name] = self.calls.get(name, 0) + 1
        try:
            bound = inspect.signature(getattr(self.api_class, name)).bind(None, *arguments, **options)
        except (TypeError, ValueError):
            return
        bound.apply_defaults()
        given = dict(bound.arguments)
        for flag in FLAGS:
            if flag in given:
                self.flags.setdefault((name, flag), set()).add(bool(given[flag]))

    def failed(self, name):
        self.failures[name] = self.failures.get(name, 0) + 1

    def methods(self):
        return sorted(name for name, _ in inspect.getmembers(self.api_class, callable) if not name.startswith("_"))

    def report(self, transcript):
        methods = self.methods()
        gaps = 0
        for name in methods:
            if name in EXEMPT:
                continue
            if not self.calls.get(name):
                gaps += 1
                transcript.say(f"GAP {self.title}.{name} is called by no play")
                continue
            if self.calls[name] == self.failures.get(name, 0):
                gaps += 1
                transcript.say(f"GAP {self.title}.{name} never succeeds")
            for flag in FLAGS:
                if flag in inspect.signature(getattr(self.api_class, name)).parameters:
                    for missing in {True, False} - self.flags.get((name, flag), set()):
                        gaps += 1
                        transcript.say(f"GAP {self.title}.{name} is never called with {flag}={missing}")
        calls = sum(self.calls.values())
        failures = sum(self.failures.values())
        transcript.say(f"COVERED {self.title}: {len(methods)} methods, {calls} calls, {failures} of them refused, {gaps} gaps")
