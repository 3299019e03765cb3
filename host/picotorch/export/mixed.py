"""Choose the layers that an int8 program computes in float, so that its outputs are exact enough.

The graph in which values are rounded to integers runs with single roundings off. A layer in float does
without the roundings of its weights, and without the roundings of a value if all other layers that
compute or read this value are in float, too. So the search adds up, for each rounding, the error that
it makes by itself, and adds the layers that it takes to remove it, the most error for a cycle first.

Importing it imports torch.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torchao.quantization.pt2e.quantizer.quantizer import Q_ANNOTATION_KEY

from ..host.twin import open_program
from ..measure import by_size, timing
from .lower_float import Lowered, path_of, value_name
from .passes import data_movement
from .progress import Each, Steps
from .result import MixedLayer, MixedReport
from .trial import Site, Trial

_MANY = 24  # operators of a module, above which it is one layer: the steps of a recurrent layer
_LEAST = 1e-30  # gain and cycles, so that quotients are numbers
_STEP = 0.5  # dB, by which the goal of a search rises at first where its result was not enough

Layers: TypeAlias = frozenset[str]  # names, as keep_float takes them


class Mixed(NamedTuple):
    """A program with layers in float.

    lowered: the program. names: its layers in float, in the notation of keep_float. report: the part of
    the report of picotorch export.
    """

    lowered: Lowered
    names: tuple[str, ...]
    report: MixedReport


def reach(int8: Lowered, samples: Iterable[tuple[Any, ...]], core: str, target: float,
          lower: Callable[[tuple[str, ...]], Lowered], measure: Callable[[Lowered], float],
          steps: Steps, is_sqnr: bool = True) -> Mixed:
    """Leave layers of a program in float, until `measure` returns `target` or more.

    lower(names) returns the program with these layers in float. measure(lowered) returns the SQNR of
    its worst output, or a metric, for which the SQNR rises step by step. If the target cannot be
    reached, all layers are in float.
    """
    with steps.step("running it with single roundings off"):
        search = Search(int8, samples, core, steps.each)
    first = found = measure(int8)
    lowered, chosen, step = int8, Layers(), _STEP
    goal = target if is_sqnr else search.sqnr() + step
    while found < target and len(chosen) < len(search.layers):
        with steps.step("choosing layers to leave in float"):
            more = search.choose(chosen, goal)
        if more != chosen:
            chosen, lowered = more, lower(tuple(sorted(more)))
            found = measure(lowered)
        goal, step = goal + step + (max(target - found, 0) if is_sqnr else 0), 2 * step
    with steps.step("measuring what each layer gains"):
        layers = search.gains(chosen, steps.each)
    return Mixed(lowered, tuple(sorted(chosen)), MixedReport(
        target=target, is_sqnr=is_sqnr, reached=found >= target, int8=_number(first),
        found=_number(found), int8_cycles=search.int8_cycles, layers=layers,
        cycles=search.int8_cycles if lowered is int8
        else timing.estimated(lowered.program, core).cycles))


def _number(sqnr: float) -> float | None:
    """Return a number for JSON, which has no infinity."""
    return sqnr if math.isfinite(sqnr) else None


class _Rounding(NamedTuple):
    """Roundings that disappear together.

    layers: the layers that have to be in float for this. noise: by output, the squared errors that the
    roundings make by themselves, beside its squared values.
    """

    layers: Layers
    sites: tuple[Site, ...]
    noise: np.ndarray


class _Value:
    """A value, with the copies of it that data movements make, which share its scale.

    makers, users: the layers that compute and read it, "" for operators in float.
    """

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.makers: set[str] = set()
        self.users: set[str] = set()

    def conversions(self, in_float: Layers) -> list[str]:
        """Return the conversions of this value with these layers in float."""
        float_makers, float_users = (
            {layer for layer in layers if not layer or layer in in_float}
            for layers in (self.makers, self.users))
        pairs = ("quantize", float_makers, self.users - float_users), (
            "dequantize", self.makers - float_makers, float_users)
        return [name for name, makers, users in pairs if makers and users]


class Search:
    """A search for layers to leave in float, by samples (arguments of forward), for a core.

    layers: their names, as keep_float takes them. int8_cycles: of the program, None if unknown.
    """

    def __init__(self, lowered: Lowered, samples: Iterable[tuple[Any, ...]], core: str,
                 each: Each = iter) -> None:
        assert lowered.fake_quantized is not None  # of an int8 program
        self.core = core
        self.trials = [Trial(lowered.fake_quantized, lowered.reference, sample) for sample in samples]
        first = self.trials[0]
        self.outputs = [node for node in first.outputs() if _is_float(first.floats[node])]
        self.signals = sum(_squares([trial.floats[node] for node in self.outputs])
                           for trial in self.trials)
        self.layer_of = _layer_names(first)
        self.layers = tuple(dict.fromkeys(self.layer_of.values()))
        self.values = self._values(first)
        self.cycles_in_float = self._cycles_in_float(lowered)
        self.roundings = self._roundings(first, each)

    def _values(self, trial: Trial) -> list[_Value]:
        """Return the rounded values: copies of one value are one."""
        roots: dict[torch.fx.Node, torch.fx.Node] = {}

        def root(node: torch.fx.Node) -> torch.fx.Node:
            while node in roots:
                node = roots[node]
            return node

        def join(node: torch.fx.Node, other: torch.fx.Node) -> None:
            if root(node) is not root(other):
                roots[root(node)] = root(other)

        for site in trial.sites:
            for user in site.users():
                if site.value is not None and self._is_mover(user):
                    join(user, site.value)
        for node in trial.nodes.values():
            for source in node.all_input_nodes:
                if self._is_mover(node) and self._is_mover(source):
                    join(node, source)  # a list of parts, and one of them
        found: dict[torch.fx.Node, _Value] = defaultdict(_Value)
        for site in trial.sites:
            if site.value is None and not self._is_mover(site.user):
                continue
            value = found[root(site.user if site.value is None else site.value)]
            value.sites.append(site)
            if site.value is None or not self._is_mover(site.value):
                value.makers.add(self.layer_of.get(site.value, ""))
            value.users |= {self.layer_of.get(user, "") for user in site.users()
                            if not self._is_mover(user)}
        return list(found.values())

    def _is_mover(self, node: torch.fx.Node) -> bool:
        return node not in self.layer_of and _is_int8(node)

    def _roundings(self, trial: Trial, each: Each) -> list[_Rounding]:
        groups: dict[Layers, list[Site]] = defaultdict(list)
        for value in self.values:
            groups[frozenset(value.makers | value.users) - {""}] += value.sites
        for site in trial.sites:
            if site.value is None and site.user in self.layer_of:
                groups[frozenset(self.layer_of.get(user, "") for user in site.users())].append(site)
        return [_Rounding(layers, tuple(sites), self._noise(sites))
                for layers, sites in each([(layers, sites) for layers, sites in groups.items()
                                           if layers and "" not in layers])]

    def _noise(self, sites: Sequence[Site]) -> np.ndarray:
        """Return the squared errors of each output beside its squared values, by these roundings."""
        names = [tuple(one.name for one in site.dequantizers) for site in sites]
        noise = np.zeros(len(self.outputs))
        for trial in self.trials:
            own = {tuple(one.name for one in site.dequantizers): site for site in trial.sites}
            outputs = [node for node in trial.outputs() if _is_float(trial.floats[node])]
            rounded = trial.values(outputs, [own[name] for name in names])
            noise += _squares([
                value.double() - trial.floats[node].double()
                for node, value in zip(outputs, rounded, strict=True)])
        return noise / np.maximum(self.signals, _LEAST)

    def noise(self, in_float: Layers) -> np.ndarray:
        """Return the error of each output with these layers in float, beside its values (squares)."""
        off = {one for rounding in self.roundings if rounding.layers <= in_float
               for site in rounding.sites for one in site.dequantizers}
        return self._noise([site for site in self.trials[0].sites
                            if off.isdisjoint(site.dequantizers)])

    def sqnr(self, in_float: Layers = frozenset()) -> float:
        """Return the SQNR of the worst output with these layers in float, in dB."""
        return -10 * math.log10(max(float(self.noise(in_float).max()), _LEAST))

    def _cycles_in_float(self, lowered: Lowered) -> dict[str, float]:
        """Return the cycles that each layer takes in float above those in int8."""
        meta = open_program(lowered.program).method_meta("forward")
        names = {node.name: layer for node, layer in self.layer_of.items()}
        found = dict.fromkeys(self.layers, 0.0)
        time, counts = timing.estimate(lowered.program, self.core)
        self.int8_cycles = None if time is None else time.cycles
        for i, int8, in_float in by_size.cycles_by_instruction(meta, self.core, counts):
            part = lowered.parts.get(i)
            if part is not None and part.node in names:
                found[names[part.node]] += in_float - int8
        return found

    def cycles(self, in_float: Layers) -> float:
        """Return the cycles of the program with these layers in float above all in int8."""
        return sum(self.cycles_in_float[layer] for layer in in_float) + sum(
            self._conversion_cycles(value, in_float) - self._conversion_cycles(value, frozenset())
            for value in self.values if not in_float.isdisjoint(value.makers | value.users))

    def _conversion_cycles(self, value: _Value, in_float: Layers) -> float:
        floats = self.trials[0].floats
        sizes = [floats[site.value].numel() for site in value.sites if site.value is not None]
        return sum(by_size.conversion_cycles(self.core, name, max(sizes, default=0))
                   for name in value.conversions(in_float))

    def gains(self, chosen: Layers, each: Each) -> list[MixedLayer]:
        """Return what each layer gains alone in float, the largest gain first."""
        base, found = self.sqnr(), []
        for layer in each(self.layers):
            one = frozenset([layer])
            found.append(MixedLayer(layer, self.sqnr(one) - base, round(self.cycles(one)),
                                    layer in chosen))
        return sorted(found, key=lambda one: -one.gain)

    def choose(self, start: Layers, target: float) -> Layers:
        """Return layers, `start` among them, with which the SQNR is `target`, or all layers."""
        chosen, goal = start, 10 ** (-target / 10)
        while self.sqnr(chosen) < target and len(chosen) < len(self.layers):
            chosen |= self._next(chosen, goal)
        for layer in sorted(chosen - start, key=lambda one: -self.cycles(frozenset([one]))):
            less = chosen - {layer}
            if self.cycles(less) < self.cycles(chosen) and self.sqnr(less) >= target:
                chosen = less
        return chosen

    def _next(self, chosen: Layers, goal: float) -> Layers:
        """Return the layers that remove the most error for a cycle, of the error above the goal."""
        rest = [one for one in self.roundings if not one.layers <= chosen]
        above = np.maximum(sum(one.noise for one in rest) - goal, _LEAST)
        before = self.cycles(chosen)
        best, best_rate = frozenset(self.layers), 0.0
        for needed in {one.layers - chosen for one in rest}:
            removed = sum(one.noise for one in rest if one.layers <= chosen | needed)
            cycles = max(self.cycles(chosen | needed) - before, 1.0)
            rate = (float((np.minimum(removed, above) / above).sum()) + _LEAST) / cycles
            if rate > best_rate:
                best, best_rate = needed, rate
        return best


def _squares(values: Sequence[torch.Tensor]) -> np.ndarray:
    """Return the sum of the squares of each value."""
    return np.array([float((value.double().nan_to_num() ** 2).sum()) for value in values])


def _is_float(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _is_int8(node: torch.fx.Node) -> bool:
    annotation = node.meta.get(Q_ANNOTATION_KEY)
    return node.op == "call_function" and annotation is not None and bool(
        annotation.input_qspec_map or annotation.output_qspec)


def _layer_names(trial: Trial) -> dict[torch.fx.Node, str]:
    """Return the layer of each int8 operator, but not of data movements.

    An activation belongs to the layer before it if no rounding is between them.
    """
    nodes = [node for node in trial.nodes.values() if _is_int8(node)]
    paths = {path_of(node) for node in trial.nodes.values() if node.op == "call_function"}
    inner = {path for path in paths if any(other.startswith(f"{path}.") for other in paths)} | {""}
    heads: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in nodes:
        source = node.args[0] if node.args else None
        if source in heads:
            heads[node] = heads[source]
        elif node.target not in data_movement.MOVERS:
            heads[node] = node
    of_path: dict[str, set[torch.fx.Node]] = defaultdict(set)
    for head in heads.values():
        of_path[path_of(head)].add(head)
    found = {}
    for node, head in heads.items():
        path, same = path_of(head), len(of_path[path_of(head)])
        is_whole = path not in inner and (same == 1 or same > _MANY)
        found[node] = path if is_whole else value_name(head)
    return found
