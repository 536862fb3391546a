"""What is being measured now: the line of ``render.waiting``, once nobody waits any more."""

from __future__ import annotations

from avahi_gpu.render.text import printable
from avahi_gpu.render.waiting import CLEAR, LINE_MAX, Waiting, columns, shorten


class Measuring(Waiting):
    """Shows the gathering, then each step: one live line, and on a pipe one line for each kind of step."""

    _step = ""
    _kind = ""

    def step(self, text: str) -> None:
        """This is being measured. What stands before the first comma is its kind."""
        with self._lock:
            self._step = text
            kind = text.partition(",")[0]
            if not self.live and kind != self._kind:
                self._write(f"avahi-gpu: {printable(kind, LINE_MAX)}\n")
            self._kind = kind
            self._draw()

    def over(self) -> None:
        """Nothing is measured or awaited any more."""
        with self._lock:
            self._step = ""
            super().over()

    def _draw(self) -> None:
        if not self._step:
            super()._draw()
        elif self.live:
            line = f"avahi-gpu: {printable(self._step, LINE_MAX)}"
            self._write(CLEAR + shorten(line, columns(self.stream) - 1))
            self._shown = line
