"""Compares what the program understands of a file with the module that it was written from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from .outcome import Outcome, difference, outcome_of
from .trial import Trial, names_by_value
from .reference import SEED, Case, Reference
from .traps import mode_branches, name_of, reason_of, some

# The program runs the operators of the module in their order, and on small networks gives the same bits. Deep ones with
# batch norms over few elements amplify rounding to some hundred units of the last place. A lost term or factor is
# larger than this by orders of magnitude. ONNX has other operators, which round otherwise at each place.
_TOLERANCE_EPS = {"ONNX": 1e4}
_DEFAULT_EPS = 1e3
_MOST = 0.05  # of 16-bit modules, whose eps is large
_SMALL_GRADIENT = 0.01  # gradients are compared relative to at least this share of the largest one: a sum of terms that
# cancel, such as that of a bias before a batch norm, is nothing but rounding
_SMALL_OUTPUT = 1e-3  # the same for outputs and buffers, in units of each element


class Differs(Exception):
    """The file does not do what the module does, in a way that `kind` names."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind  # "tensors", "evaluation", "outputs", "gradients", "buffers", "step"


@dataclass
class Comparison:
    """Raises Differs from compare()."""

    reference: Reference
    trial: Trial
    format: str
    largest: float = 0.0
    lines: list[str] = field(default_factory=list)

    def compare(self) -> None:
        """In both modes, then one step of the program."""
        ours = self.trial.module()
        names = self._names(ours)
        for case, expected in self.reference.outcomes.items():
            self._compare_case(case, expected, self._outcome(ours, case), names)
        last = Case("eval", self.reference.batches[1])
        if self.reference.after is not None:
            self._compare_case(last, self.reference.after, self._outcome(ours, last), names, " after training")
        self._say_what_was_compared()
        self._compare_step(names)

    @cached_property
    def tolerance(self) -> float:
        tensors = (*self.reference.module.parameters(), *self.reference.example.tensors.values())
        eps = max(torch.finfo(each.dtype).eps for each in tensors if each.is_floating_point())
        return min(_TOLERANCE_EPS.get(self.format, _DEFAULT_EPS) * eps, _MOST)

    def _names(self, ours: torch.jit.ScriptModule) -> dict[str, str]:
        """{parameter of the module: parameter of the file} of those that train."""
        module = self.reference.module
        parameters = {name: each.detach() for name, each in ours.named_parameters()}
        names = names_by_value(module, parameters)
        used = self._parameters_with_gradients()
        trains = {name for name, each in ours.named_parameters() if each.requires_grad}
        lost = [name for name in used if names.get(name) not in trains]
        if lost:
            raise Differs(f"parameters of the module do not train in the file: {some(map(repr, lost))}", "tensors")
        frozen = {name for name, each in module.named_parameters() if not each.requires_grad}
        thawed = sorted(name for name in frozen - set(self.trial.freeze) if names.get(name) in trains)
        if thawed:
            raise Differs(f"parameters with requires_grad=False train in the file: {some(map(repr, thawed))}",
                          "tensors")
        self._check_ties(ours, names)
        return {name: names[name] for name in used}

    def _parameters_with_gradients(self) -> list[str]:
        gradients = [outcome.gradients for case, outcome in self.reference.outcomes.items() if case.mode == "train"]
        return [name for name in gradients[0] if any(each[name] is not None for each in gradients)]

    def _check_ties(self, ours: torch.jit.ScriptModule, names: Mapping[str, str]) -> None:
        groups: dict[int, list[str]] = {}
        for name, each in self.reference.module.named_parameters(remove_duplicate=False):
            groups.setdefault(id(each), []).append(name)
        tensors = dict(ours.named_parameters(remove_duplicate=False))
        for group in groups.values():
            there = {name: tensors[name] for name in group if name in tensors}
            if len({each.data_ptr() for each in there.values()}) > 1:
                raise Differs(f"{' and '.join(map(repr, there))} are one parameter of the module, and become several",
                              "tensors")
        shared: dict[int, list[str]] = {}
        for name, own in names.items():
            shared.setdefault(tensors[own].data_ptr(), []).append(name)
        for group in shared.values():
            if len(group) > 1:
                raise Differs(f"{' and '.join(map(repr, group))} are several parameters of the module, and become one",
                              "tensors")

    def _outcome(self, ours: torch.jit.ScriptModule, case: Case) -> Outcome:
        ours.train(case.mode == "train")
        example = self.reference.example.sized(case.batch)
        tensors = example.tensors
        accepted = {argument.name for argument in ours.forward.schema.arguments}  # type: ignore[attr-defined]
        by_name = tensors.keys() <= accepted

        def call() -> object:
            return ours(**tensors) if by_name else ours(*tensors.values())

        try:
            # The program runs TorchScript without optimizing it, too.
            with torch.jit.optimized_execution(False):
                return outcome_of(ours, call, SEED, case.mode == "train")
        except Exception as error:
            raise Differs(f"the file fails in {case}: {reason_of(error)}", "evaluation" if case.mode == "eval" else
                          "outputs") from error

    def _compare_case(self, case: Case, expected: Outcome, ours: Outcome, names: Mapping[str, str],
                      when: str = "") -> None:
        kind = "evaluation" if case.mode == "eval" else "outputs"
        where = f"in {case}{when}"
        outputs = _paired(expected.outputs, ours.outputs)
        if outputs is None:
            raise Differs(f"{where} the module returns {_listed(expected.outputs)}, and the file "
                          f"{_listed(ours.outputs)}", kind)
        for name, (output, theirs) in outputs.items():
            floor = _SMALL_OUTPUT * theirs.numel() ** 0.5
            self._note(difference(output, theirs, floor), f"{where} the output{_quoted(name)} of the file", kind)
        if case.mode == "train":
            floor = _SMALL_GRADIENT * _largest_norm(expected.gradients.values())
            for name, own in names.items():
                self._compare_gradient(name, ours.gradients.get(own), expected.gradients[name], floor, where)
        for name, buffer in expected.buffers.items():
            if name in ours.buffers:
                self._note(difference(ours.buffers[name], buffer, _SMALL_OUTPUT * buffer.numel() ** 0.5),
                           f"{where} the buffer '{name}' after forward with the file", "buffers")
            elif self._changes(name):
                raise Differs(f"forward changes the buffer '{name}', and the file does not hold it", "buffers")

    def _compare_gradient(self, name: str, ours: Tensor | None, expected: Tensor | None, floor: float,
                          where: str) -> None:
        if ours is None or expected is None:
            there = ours if expected is None else expected
            if there is not None and float(there.norm()) > self.tolerance * floor:
                raise Differs(f"{where} the parameter '{name}' has a gradient only in the "
                              f"{'file' if expected is None else 'module'}", "gradients")
            return
        if ours.shape != expected.shape:  # ONNX stores some weights transposed
            ours = ours.t() if ours.dim() == 2 else ours
        self._note(difference(ours, expected, floor), f"{where} the gradient of '{name}' of the file", "gradients")

    def _changes(self, buffer: str) -> bool:
        """Whether training changes a buffer that may matter; torch.nn counts batches for momentum=None alone."""
        if buffer.rpartition(".")[2] == "num_batches_tracked":
            owner = self.reference.module.get_submodule(buffer.rpartition(".")[0])
            if getattr(owner, "momentum", None) is not None:
                return False
        values = [outcome.buffers[buffer] for outcome in self.reference.outcomes.values()]
        return any(difference(value, values[0]) > 0 for value in values[1:])

    def _note(self, apart: float, what: str, kind: str) -> None:
        if not apart <= self.tolerance:
            size = "has another shape or type, or is not finite" if apart == float("inf") else f"differs by {apart:.1e}"
            raise Differs(f"{what} {size}", kind)
        self.largest = max(self.largest, apart)

    def _say_what_was_compared(self) -> None:
        sizes = sorted({case.batch for case in self.reference.outcomes if case.mode == "eval"}, reverse=True)
        trained = sorted({case.batch for case in self.reference.outcomes if case.mode == "train"})
        noise = ", with the same random numbers" if self.reference.is_random else ""
        self.lines.append(f"eval mode: outputs of batches of {' and '.join(map(str, sizes))}")
        self.lines.append(f"train mode: outputs, gradients and buffers of batches of {' and '.join(map(str, trained))}"
                          f"{noise}")
        self.lines.append(f"largest relative difference {self.largest:.1e} (allowed: {self.tolerance:.1e})")

    def _compare_step(self, names: Mapping[str, str]) -> None:
        """A step of the program, with the gradients of the loss that it trains by."""
        loss, gradients = self.reference.loss_gradients(self.trial.task.loss_of)
        parameters = dict(self.trial.understood().named_parameters(remove_duplicate=False))
        weights = {own: parameters[own].detach() for own in names.values()}
        expected = {own: _like(gradients[name], weights[own]) for name, own in names.items()}
        found_loss, found = self.trial.step(weights, expected)
        if self.reference.is_random:
            if not torch.isfinite(torch.tensor(found_loss)) and torch.isfinite(loss):
                raise Differs(f"the loss of a step is {found_loss}", "step")
            self.lines.append("a step of training by the program (its random numbers are its own: not compared)")
            return
        apart = abs(found_loss - float(loss)) / max(abs(float(loss)), 1e-3)
        self._note(apart, "the loss of a step of the program", "step")
        size = _largest_norm(expected.values())
        for own, gradient in expected.items():
            wanted = torch.zeros_like(found[own]) if gradient is None else gradient.double()
            # The gradient is a difference of two weights, which have the digits of their type: hence ten times more.
            apart = difference(found[own], wanted, max(_SMALL_GRADIENT * size, 1e-30))
            if not apart <= 10 * self.tolerance:
                raise Differs(f"a step of the program changes '{own}' otherwise than its gradient ({apart:.1e})",
                              "step")
        self.lines.append("a step of training by the program: its loss, and each weight after it")


def explained(differs: Differs, reference: Reference) -> str:
    """The message, with the parts of the module that may be the cause, and what to write instead."""
    module = reference.module
    text = str(differs)
    if differs.kind == "gradients" and reference.gradient_traps:
        return (f"{text}. A file holds the operators of forward, and not {some(reference.gradient_traps)}: write "
                "operators whose gradient is the wanted one (docs/models.md, 'What the export leaves out')")
    if differs.kind in ("evaluation", "outputs", "buffers"):
        causes = []
        if branches := mode_branches(module):
            causes.append(f"it cannot hold {some(branches)}")
        if differs.kind != "evaluation" and reference.kept_in_eval:
            causes.append(f"layers are in eval mode while the module trains: {some(map(repr, reference.kept_in_eval))}")
        attributes = [f"'{name}' of {name_of(module, each)}" for each, name in reference.replaced_tensors]
        if attributes:
            causes.append(f"forward replaces tensors that are not buffers: {some(attributes)}; register them as "
                          "buffers and change them in place")
        if causes:
            return f"{text}; {'; '.join(causes)}"
    return text


def _paired(expected: Mapping[str, Tensor], ours: Mapping[str, Tensor]) -> dict[str, tuple[Tensor, Tensor]] | None:
    """Outputs of the file beside those of the module: by name, or in order where the file has other names."""
    if expected.keys() <= ours.keys():
        return {name: (ours[name], expected[name]) for name in expected}
    if len(expected) != len(ours):
        return None
    return {name: (own, each) for (name, each), own in zip(expected.items(), ours.values())}


def _largest_norm(gradients: Iterable[Tensor | None]) -> float:
    return max((float(each.norm()) for each in gradients if each is not None), default=0.0)


def _like(gradient: Tensor | None, weight: Tensor) -> Tensor | None:
    return gradient.t() if gradient is not None and gradient.shape != weight.shape else gradient


def _listed(outputs: Mapping[str, Tensor]) -> str:
    return f"{len(outputs)} tensor{'s' if len(outputs) != 1 else ''} ({some(name or 'one' for name in outputs)})"


def _quoted(name: str) -> str:
    return f" '{name}'" if name else ""
