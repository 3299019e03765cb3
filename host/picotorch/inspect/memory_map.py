"""Draw the planned memory of a method over its instructions as an SVG.

Each tensor is a box: from its first to its last use across, its bytes upwards, in the colour of the
operator that writes it. The peak of live bytes is marked. Tooltips have the details. No two labels
overlap: one that has no room is left out.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from picotorch import MethodMeta, TensorInfo
from picotorch.errors import INVALID_ARGUMENT, fail

from ..host import quoting
from ..host.drawing import FONTS
from ..host.instructions import Instruction, read_instructions
from ..host.values import Values
from .description import planned_buffers
from .lifetimes import INPUT, SCRATCH, STATE, Box, lifetimes, live_bytes

# A palette of distinct neighbours, also for people with colour blindness.
_COLOURS = ["#4e79a7", "#f28e2b", "#76b7b2", "#b07aa1", "#59a14f", "#d7a52b", "#ff9da7", "#9c755f"]
_OTHERS = "#bab0ac"
_DARK_LUMINANCE = 0.016  # of #222
_KINDS = {INPUT: "#e15759", STATE: "#7f7f7f", SCRATCH: "#d4d0cb"}

_LEFT, _RIGHT, _TOP = 92, 24, 56  # margins
_PANEL, _STEP = 340, 56  # height of a buffer, and of what is between two
_MIN = 2  # height of a box
_CHARACTER = 7.0  # width of one at 11 px, in the widest of FONTS
_TITLE_CHARACTER = 8.4  # at 15 px, bold
_WIDTH, _PAGE_WIDTH = 600, 1080  # at least, of a file and on a page
_LINE = 13  # height of a line
_SLANT = 60  # degrees that the names of instructions rise
_NAME = 20  # characters of one at most
_LEGEND_ROW = 20

_STYLE = f"text {{ font: 11px {FONTS}; fill: #333; }}" """
.title { font-size: 15px; font-weight: 600; } .panel { font-weight: 600; } .dim { fill: #777; }
.box { stroke: #fff; stroke-width: 1; fill-opacity: .9; } .box:hover { stroke: #000; }
.inside { fill: #fff; pointer-events: none; } .on-light { fill: #222; } .grid { stroke: #e4e4e4; }
.axis { stroke: #999; fill: none; }
.peak { fill: none; stroke: #c00; stroke-width: 1.5; stroke-dasharray: 3 3; pointer-events: none; }
.limit { stroke: #e15759; stroke-dasharray: 5 3; } .peak-text { fill: #c23b3d; }
"""


def draw(meta: MethodMeta, title: str) -> str:
    """Return the text of the SVG. Raises InvalidArgument for a method without planned memory."""
    sizes = planned_buffers(meta)
    if not any(sizes):
        raise fail(INVALID_ARGUMENT, "the method has no planned memory to draw", "memory map")
    return _Drawing(meta, sizes, {}).text(title)


def for_page(meta: MethodMeta, names: Mapping[int, str]) -> str:
    """Return the SVG as an element of a page, which has the styles; "" without planned memory.

    The attribute data-layers of a box has the instructions that use it. names: of instructions, where
    they have better ones than their operators.
    """
    sizes = planned_buffers(meta)
    return _Drawing(meta, sizes, names, _PAGE_WIDTH).element() if any(sizes) else ""


def draw_all(drawings: list[tuple[MethodMeta, str]]) -> str:
    """Return the text of one SVG with a drawing for each (method, title), one below the other.

    Raises InvalidArgument for methods without planned memory.
    """
    parts, width, height = [], 0, 0
    for text in [draw(meta, title) for meta, title in drawings]:
        size = re.match(r'<svg [^>]*width="(\d+)" height="(\d+)"', text)
        assert size is not None
        parts.append(text.replace("<svg ", f'<svg y="{height}" ', 1))
        width, height = max(width, int(size[1])), height + int(size[2])
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                      f'viewBox="0 0 {width} {height}">', *parts, "</svg>", ""])


def _escaped(text: str) -> str:
    """Escape text for an XML element, and remove characters that XML does not allow."""
    return "\n".join(quoting.html(line) for line in text.split("\n"))


class _Drawing:
    def __init__(self, meta: MethodMeta, sizes: list[int], names: Mapping[int, str],
                 min_width: float = _WIDTH) -> None:
        """Prepare a drawing. min_width: pixels of the panels, for many instructions more."""
        self.names = names
        self.labels: list[tuple[float, float, float, float]] = []  # x, y, width, height
        self.values = Values(meta.program, meta.plan)
        self.instructions = read_instructions(meta, self.values)
        self.boxes = lifetimes(meta)
        self.boxes_of: dict[int, list[Box]] = defaultdict(list)
        for box in self.boxes:
            self.boxes_of[box.buffer].append(box)
        self.sizes = [(i, size) for i, size in enumerate(sizes) if size]
        self.columns = len(self.instructions) + 2  # one before the first, one behind the last
        self.step = min(30.0, 1150 / self.columns, max(8.0, 900 / self.columns))
        self.step = max(self.step, 2.0, min_width / self.columns)
        self.width = _LEFT + self.columns * self.step + _RIGHT
        self.colours = self._colours()
        self.parts: list[str] = []

    def _colours(self) -> dict[str, str]:
        """Return colours by maker. The operators that write most tensors have their own."""
        counts = Counter(self._maker(box) for box in self.boxes if box.made_by not in _KINDS)
        colours = {name: _COLOURS[i] if i < len(_COLOURS) else _OTHERS
                   for i, (name, _) in enumerate(counts.most_common())}
        return _KINDS | colours

    def _maker(self, box: Box) -> str:
        made = box.made_by
        return made if isinstance(made, str) else self.instructions[made].call

    def text(self, title: str) -> str:
        """Return the text of a file."""
        self.width = max(self.width, 16 + len(title) * _TITLE_CHARACTER + _RIGHT)
        self._text(16, 26, title, "title")
        height = self._draw(_TOP)
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" height="{height}" '
            f'viewBox="0 0 {self.width:.0f} {height}">', f"<style>{_STYLE}</style>",
            '<rect width="100%" height="100%" fill="#fff"/>', *self.parts, "</svg>", ""])

    def element(self) -> str:
        """Return the drawing as an element of a page."""
        height = self._draw(_TOP - 30)
        return "\n".join([
            f'<svg class="memory-map" role="img" aria-label="Planned memory over the instructions" '
            f'width="{self.width:.0f}" height="{height}" viewBox="0 0 {self.width:.0f} {height}">',
            *self.parts, "</svg>"])

    def _draw(self, y: int) -> int:
        """Draw everything from y on; return the height."""
        for buffer, size in self.sizes:
            self._panel(buffer, size, y)
            y += _PANEL + _STEP
        y += self._instruction_axis(y - _STEP) - _STEP + 26
        return self._legend(y)

    # ---- parts

    def _add(self, text: str) -> None:
        self.parts.append(text)

    def _text(self, x: float, y: float, text: str, kind: str = "", more: str = "") -> None:
        kind = f' class="{kind}"' if kind else ""
        self._add(f'<text x="{x:.1f}" y="{y:.1f}"{kind}{more}>{_escaped(text)}</text>')

    def _line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        self._add(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')

    def _rect(self, x: float, y: float, width: float, height: float, kind: str, more: str = "",
              tooltip: str = "") -> None:
        self._add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
                  f'class="{kind}"{more}>{tooltip and f"<title>{_escaped(tooltip)}</title>"}</rect>')

    def _x(self, instruction: int) -> float:
        """Return the left edge of the column of an instruction; -1 is the column before the first."""
        return _LEFT + (instruction + 1) * self.step

    def _panel(self, buffer: int, size: int, top: float) -> None:
        bottom, right = top + _PANEL, self._x(self.columns - 1)
        boxes = self.boxes_of[buffer]
        peak, maximum = max(live_bytes(boxes), key=lambda live: live[1], default=(-1, 0))
        for mark in _marks(size):
            y = bottom - mark / size * _PANEL
            self._line(_LEFT, y, right, y, "grid")
            self._text(_LEFT - 8, y + 4, f"{mark:,}", "dim", ' text-anchor="end"')
        for box in boxes:
            self._box(box, size, top)
        self._rect(self._x(peak), top, self.step, _PANEL, "peak")
        for box in boxes:
            self._label(box, size, top)
        self._line(_LEFT, top, right, top, "limit")
        self._add(f'<path d="M{_LEFT} {top}V{bottom}H{right:.1f}" class="axis"/>')
        middle = top + _PANEL / 2
        self._text(14, middle, "bytes", "dim",
                   f' text-anchor="middle" transform="rotate(-90 14 {middle})"')
        self._text(_LEFT, top - 8, f"planned buffer {buffer}: {size:,} bytes", "panel")
        self._text(right, top - 8, f"peak: {maximum:,} bytes live at {self._step_name(peak)}",
                   "peak-text", ' text-anchor="end"')

    def _step_name(self, instruction: int) -> str:
        if instruction < 0:
            return "the start"
        if instruction >= len(self.instructions):
            return "the end"
        return f"{instruction} {self._name(instruction)}"

    def _name(self, instruction: int) -> str:
        return self.names.get(instruction) or _short(self.instructions[instruction])

    def _rectangle_of(self, box: Box, size: int, top: float) -> tuple[float, float, float, float]:
        """Return (x, y, width, height)."""
        height = max(_MIN, box.nbytes / size * _PANEL)
        y = top + _PANEL - box.offset / size * _PANEL - height
        return self._x(box.first), y, (box.last - box.first + 1) * self.step, height

    def _box(self, box: Box, size: int, top: float) -> None:
        users = f"{max(box.first, 0)}-{min(box.last, len(self.instructions) - 1)}"
        fill = f' fill="{self.colours[self._maker(box)]}" data-layers="{users}"'
        self._rect(*self._rectangle_of(box, size, top), "box", fill, self._tooltip(box))

    def _label(self, box: Box, size: int, top: float) -> None:
        """Draw the longest text that fits in the box, and lies over no other label."""
        x, y, width, height = self._rectangle_of(box, size, top)
        value, made = box.values[0], box.made_by
        kind = "inside on-light" if _is_light(self.colours[self._maker(box)]) else "inside"
        sizes = _sizes(self.values.tensor(value))
        name = "" if isinstance(made, str) else self.names.get(made, "")
        for text in (*([f"{name} {sizes}", name] if name else []), f"%{value} {sizes}", f"%{value}"):
            place = x + 5, y + height / 2 - _LINE / 2, len(text) * _CHARACTER, _LINE
            if height >= _LINE + 1 and place[2] + 8 <= width and not any(
                    _overlap(place, other) for other in self.labels):
                self.labels.append(place)
                return self._text(x + 5, y + height / 2 + 4, text, kind)

    def _tooltip(self, box: Box) -> str:
        """Return a line for each tensor, then the users of the box."""
        lines = []
        for value in box.values:
            info = self.values.tensor(value)
            name = f" {info.name()}" if info.name() else ""
            lines.append(f"%{value}{name}: {info.dtype} {_sizes(info)}")
        lines.append(f"{box.nbytes:,} bytes at {box.offset:,} of planned buffer {box.buffer}")
        made = box.made_by
        if not isinstance(made, str):
            made = f"from {self._step_name(made)}"
        return "\n".join([*lines, f"{made}, used last at {self._step_name(box.last)}"])

    def _instruction_axis(self, y: float) -> int:
        """Draw indexes and names below the last panel, of as many as have room; return their height."""
        count = len(self.instructions)
        widest = len(str(count)) * _CHARACTER + 8
        every = next(n for n in (1, 2, 5, 10, 20, 50, 100, 1000, count + 1)
                     if n * self.step >= widest or n > count)
        for i in range(0, count, every):
            self._text(self._x(i) + self.step / 2, y + 15, str(i), "dim", ' text-anchor="middle"')
        self._text(_LEFT - 8, y + 15, "instruction", "dim", ' text-anchor="end"')
        every = math.ceil(_LINE / (self.step * math.sin(math.radians(_SLANT))))
        for i in range(0, count, every):
            x = self._x(i) + self.step / 2 + 4
            self._text(x, y + 28, _shortened(self._name(i)), "dim",
                       f' text-anchor="end" transform="rotate(-{_SLANT} {x:.1f} {y + 28:.1f})"')
        return 28 + math.ceil(_NAME * _CHARACTER * math.sin(math.radians(_SLANT)))

    def _legend(self, y: int) -> int:
        """Draw the meaning of the colours; return the height of the drawing."""
        present = Counter(self._maker(box) for box in self.boxes)
        entries = [(name, colour) for name, colour in self.colours.items()
                   if name in present and colour != _OTHERS]
        if any(colour == _OTHERS for colour in self.colours.values()):
            entries.append(("other operators", _OTHERS))
        x: float = _LEFT
        for name, colour in entries:
            width = 34 + len(name) * _CHARACTER
            if x > _LEFT and x + width > self.width - _RIGHT:
                x, y = _LEFT, y + _LEGEND_ROW
            self._rect(x, y - 10, 12, 12, "box", f' fill="{colour}"')
            self._text(x + 17, y, name)
            x += width
        return y + _LEGEND_ROW


def _short(instruction: Instruction) -> str:
    """Return the operator's name without namespace and overload."""
    name = instruction.call.split("::")[-1].split(".")[0].strip("_")
    name = name.removeprefix("quantized_").removeprefix("native_")
    return _shortened(name)


def _shortened(name: str) -> str:
    """Return at most _NAME characters; the end of a path is what differs."""
    if len(name) <= _NAME:
        return name
    return "…" + name[1 - _NAME :] if "." in name else name[: _NAME - 1] + "…"


def _is_light(colour: str) -> bool:
    """Return whether dark text has more contrast than white, by the formula of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05
    return luminance / (_DARK_LUMINANCE + 0.05) > 1.05 / luminance


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    """Return whether two rectangles (x, y, width, height) overlap."""
    return (one[0] < other[0] + other[2] and other[0] < one[0] + one[2]
            and one[1] < other[1] + other[3] and other[1] < one[1] + one[3])


def _sizes(info: TensorInfo) -> str:
    return f"[{', '.join(map(str, info.sizes()))}]"


def _marks(size: int) -> list[int]:
    """Return four to ten round numbers of bytes from 0 on."""
    unit: float = 1
    while size / unit > 10:
        unit *= 2.5 if str(unit).startswith("2") else 2
    return [mark * int(unit) for mark in range(int(size / int(unit)) + 1)]
