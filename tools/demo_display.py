# SPDX-License-Identifier: GPL-2.0-or-later
"""How the demo tells its story: lines above one live line on a terminal, plain lines elsewhere."""
import os
import shutil
import sys
import textwrap
import time

SPINNER = "|/-\\"
BOLD, DIM, GREEN, RED, CYAN, OFF = "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[31m", "\x1b[36m", "\x1b[0m"


class Display:
    """`live` text is redrawn in place on a terminal; a log gets it only when it has changed."""

    def __init__(self, log=None, out=None):
        self.out = out or sys.stdout
        self.is_live = (self.out.isatty() and not os.environ.get("NO_COLOR")
                        and os.environ.get("TERM", "dumb") != "dumb")
        self.started = time.monotonic()
        self._log = log
        self._turn = 0
        self._drawn = False

    def elapsed(self):
        return time.monotonic() - self.started

    def _clock(self):
        seconds = int(self.elapsed())
        return f"{seconds // 60:02d}:{seconds % 60:02d}"

    def _width(self):
        return max(40, shutil.get_terminal_size((80, 24)).columns)

    def _clear(self):
        if self._drawn:
            self.out.write("\r\x1b[K")
            self._drawn = False

    def _line(self, text, style=""):
        plain = f"{time.strftime('%H:%M:%S')} {text}"
        if self._log is not None:
            self._log.write(plain + "\n")
            self._log.flush()
        if not self.is_live:
            self.out.write(plain + "\n")
            self.out.flush()
            return
        self._clear()
        for number, part in enumerate(textwrap.wrap(text, self._width() - 7, break_on_hyphens=False) or [""]):
            clock = f"{DIM}{self._clock()}{OFF}" if number == 0 else "     "
            self.out.write(f"{clock}  {style}{part}{OFF if style else ''}\n")
        self.out.flush()

    def title(self, text):
        if not self.is_live:
            return self._line(f"== {text}")
        self._clear()
        self.out.write("\n")
        return self._line(text, BOLD)

    def say(self, text):
        self._line(text)

    def command(self, text):
        self._line(f"$ {text}", CYAN if self.is_live else "")

    def good(self, text):
        self._line(text, GREEN if self.is_live else "")

    def bad(self, text):
        for line in text.splitlines():
            self._line(line, RED if self.is_live else "")

    def live(self, text):
        """One line, cut to the terminal's width; written in one go, so it does not flicker."""
        if not self.is_live:
            return
        self._turn += 1
        line = f"{self._clock()}  {SPINNER[self._turn % 4]} {text}"[:self._width() - 1]
        self.out.write(f"\r{line}\x1b[K")
        self.out.flush()
        self._drawn = True

    def close(self):
        self._clear()
        self.out.flush()
