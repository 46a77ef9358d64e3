"""The shell that tidies up when this program ends, in whatever way: the guard of the project's tests."""

import os
import subprocess

from tracefs import value_of

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "tests", "support", "src", "guard.sh")
# In the environment of every process of a run of tests: the name of the run.
VARIABLE = "TRACEBRIDGE_TEST_RUN"
SECONDS_TO_END = 120


class Guard:
    """It kills what a campaign has started, puts back the settings, and removes the campaign's directory."""

    def __init__(self, place, tracefs):
        self.place = place
        self.variable = (VARIABLE, os.path.basename(place))
        env = {name: value for name, value in os.environ.items() if name != VARIABLE}
        # The guard of the test program that runs this one leaves this guard to its work.
        env["TRACEBRIDGE_TEST_GUARD_IN"] = os.environ.get(VARIABLE, "")
        # With the directory open, the lock of the tracefs is held until the guard is done.
        files = [tracefs.directory] if tracefs else []
        self.shell = subprocess.Popen(
            ["sh", SCRIPT, "=".join(self.variable), place], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, cwd="/", env=env, pass_fds=files, start_new_session=True)
        if tracefs:
            self._tell("rmdir", tracefs.instance())

    def put_back_at_end(self, paths):
        """Has the guard put back these settings: {path: what it shows}."""
        file = os.path.join(self.place, "settings")
        with open(file, "w") as settings:
            for path, shown in paths.items():
                first = shown.split("\n", 1)[0]
                settings.write(f"{path}\n{first}\n{value_of(first)}\n")
        self._tell("settings", file)

    def put_nothing_back(self):
        """The settings are in order."""
        self._tell("settings", "")

    def _tell(self, word, argument):
        self.shell.stdin.write(f"{word}\t{argument}\n".encode())
        self.shell.stdin.flush()

    def end(self):
        """Has the guard tidy up now."""
        self.shell.stdin.close()
        self.shell.wait(timeout=SECONDS_TO_END)

