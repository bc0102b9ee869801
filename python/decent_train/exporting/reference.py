"""The module itself as the reference of an export: what it gives in both modes, for several sizes of a batch."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from .error import ExportError
from .inputs import Example
from .outcome import Outcome, difference, gradients_of, named_outputs, outcome_of, seed_all
from .state import ModuleState
from .traps import custom_functions, hooks_on_gradients, name_of, noting_tensor_hooks, reason_of

SEED = 7
LossOf = Callable[[dict[str, Tensor]], Tensor]
_CLEARLY = 1e-3  # more than rounding that depends on the size of a batch
_PROBES = (1, 1000, 10**6)  # added to a counter, to see whether forward depends on it


@dataclass(frozen=True)
class Case:
    """One call of forward. The cases of a reference follow one another: each starts with the buffers of the last."""

    mode: str  # "train" or "eval"
    batch: int

    def __str__(self) -> str:
        return f"{self.mode} mode, {self.batch} sample{'s' if self.batch > 1 else ''}"


@dataclass
class Reference:
    """Raises ExportError from measure() if the module fails on the example, or depends on what no file holds."""

    module: nn.Module
    example: Example
    state: ModuleState
    dynamic_batch: bool
    modes: dict[nn.Module, bool]
    """Of each submodule in training."""
    outcomes: dict[Case, Outcome] = field(default_factory=dict)
    """In the order in which the cases ran."""
    after: Outcome | None = None
    """In eval mode again, after training has changed the buffers."""
    is_random: bool = False
    """Whether outputs in train mode depend on the random generator."""
    gradient_traps: list[str] = field(default_factory=list)
    """Whatever changes gradients without being an operator of forward."""
    counters: list[str] = field(default_factory=list)
    """Attributes that each forward changes without an effect on the outputs."""
    replaced_tensors: list[tuple[nn.Module, str]] = field(default_factory=list)
    """Tensors that are neither parameters nor buffers, and that forward replaces."""

    def train(self) -> None:
        """Puts the module into the mode in which it trains."""
        for module, training in self.modes.items():
            module.training = training

    def eval(self) -> None:
        self.module.eval()

    def forward(self, example: Example) -> object:
        return self.module(*example.args, **example.kwargs)

    @property
    def batches(self) -> tuple[int, int]:
        """The example's size, and the one to which a dynamic batch is changed."""
        size = self.example.batch
        return (size, size + 1) if self.dynamic_batch else (size, size)

    @property
    def kept_in_eval(self) -> list[str]:
        """Layers that stay in eval mode in training."""
        return [name for name, each in self.module.named_modules()
                if not self.modes[each] and not any(each.children()) and _depends_on_mode(each)]

    def measure(self) -> None:
        """Fills all of it. The buffers are afterwards as before."""
        for case, outcome in self._cases():
            self.outcomes[case] = outcome
        self.after = self._outcome(Case("eval", self.batches[1]))
        self.state.restore()
        self._check_outputs()
        self._look_for_randomness()
        self._look_for_counters()

    def mixes_samples(self) -> bool:
        """Whether the first sample has other outputs in eval mode if it is alone in its batch."""
        one, many = (self.outcomes.get(Case("eval", size)) for size in (1, self.batches[1]))
        if one is None or many is None or one.outputs.keys() != many.outputs.keys():
            return False
        rows = [(one.outputs[name], each[:1]) for name, each in many.outputs.items()
                if each.dim() > 0 and each.shape[0] == self.batches[1] and each.is_floating_point()]
        return any(difference(alone, among, _CLEARLY * among.numel() ** 0.5) > _CLEARLY for alone, among in rows)

    def loss_gradients(self, loss_of: LossOf) -> tuple[Tensor, dict[str, Tensor | None]]:
        """The loss of training, a function of the outputs, and its gradients, on the larger batch."""
        self.train()
        seed_all(SEED)
        loss = loss_of(dict(named_outputs(self.forward(self.example.sized(self.batches[1])))))
        gradients = gradients_of(self.module, loss)
        self.state.restore()
        return loss.detach(), gradients

    def _cases(self) -> Iterator[tuple[Case, Outcome]]:
        size, other = self.batches
        yield self._measured(Case("eval", other))
        if self.dynamic_batch:
            try:
                yield self._measured(Case("eval", 1))
            except ExportError:
                pass  # the module itself takes no batch of one sample
        yield self._measured(Case("train", size))
        if other != size:
            yield self._measured(Case("train", other))

    def _measured(self, case: Case) -> tuple[Case, Outcome]:
        try:
            return case, self._outcome(case)
        except ExportError:
            raise
        except Exception as error:
            hint = ""
            if case.batch != self.example.batch:
                hint = (f" The example has {self.example.batch}: a batch may have any size, and the last one is often "
                        "smaller; write sizes as x.shape[0], or export with dynamic_batch=False.")
            raise ExportError(f"the module itself fails in {case}: {reason_of(error)}.{hint}") from error

    def _outcome(self, case: Case) -> Outcome:
        self.train() if case.mode == "train" else self.eval()
        example = self.example.sized(case.batch)
        with noting_tensor_hooks() as hooks:
            outcome = outcome_of(self.module, lambda: self.forward(example), SEED, case.mode == "train", self._note)
        self._add_traps(hooks)
        return outcome

    def _note(self, outputs: dict[str, Tensor]) -> None:
        self._add_traps(custom_functions(outputs.values()))

    def _add_traps(self, traps: list[str]) -> None:
        self.gradient_traps += [trap for trap in traps if trap not in self.gradient_traps]

    def _check_outputs(self) -> None:
        self._add_traps(hooks_on_gradients(self.module))
        outputs = {name: output for outcome in self.outcomes.values() for name, output in outcome.outputs.items()}
        if not outputs:
            raise ExportError("forward returns no tensor: return a tensor, or a tuple or dictionary of tensors")
        gradients = next(outcome.gradients for case, outcome in self.outcomes.items() if case.mode == "train")
        if all(each is None for each in gradients.values()):
            raise ExportError("no output of forward depends on a parameter by differentiable operations, so that "
                              "nothing can train: look for .detach(), .data, torch.no_grad or integer outputs")

    def _look_for_randomness(self) -> None:
        for mode in (self.eval, self.train):
            mode()
            before = _foreign_generators(SEED)
            plain = self._outputs(SEED)
            if _foreign_generators() != before:
                raise ExportError(f"forward draws random numbers of Python's 'random' or of NumPy in {mode.__name__} "
                                  "mode, which a file would hold as constants: draw them with torch.rand")
        self.is_random = _apart(plain, self._outputs(SEED + 1))

    def _look_for_counters(self) -> None:
        self.train()
        self._outputs(SEED, keep=True)
        changed = self.state.changed_attributes()
        self.replaced_tensors = self.state.changed_tensors()
        self.state.restore()
        for (module, name), (before, now) in changed.items():
            what = f"the attribute '{name}' of {name_of(self.module, module)}"
            numbers = [now + probe for probe in _PROBES] if type(now) in (int, float) else []  # type: ignore[operator]
            if self._depends_on(module, name, [before, now, *numbers]):
                raise ExportError(f"{what} changes in forward ({before!r} -> {now!r}), and outputs depend on it: in a "
                                  f"file it would be a constant. Make it a buffer (self.register_buffer('{name}', "
                                  "torch.tensor(..))) that forward changes in place, and compute with torch.where")
            self.counters.append(what)

    def _depends_on(self, module: nn.Module, name: str, values: list[object]) -> bool:
        """Whether outputs in either mode are others for other values of the attribute before forward."""
        def outputs(value: object) -> dict[object, Tensor]:
            result: list[Tensor] = []
            for mode in (self.train, self.eval):
                mode()
                setattr(module, name, value)
                result += self._outputs(SEED).values()
            return dict(enumerate(result))

        try:
            first, *others = map(outputs, values)
            return any(_apart(first, other) for other in others)
        except Exception:  # such as an index out of range: it depends on the number
            return True
        finally:
            self.state.restore()

    def _outputs(self, seed: int, keep: bool = False) -> dict[str, Tensor]:
        seed_all(seed)
        with torch.no_grad():
            outputs = {name: each.clone() for name, each in named_outputs(self.forward(self.example))}
        if not keep:
            training = {module: module.training for module in self.module.modules()}
            self.state.restore()
            for module, mode in training.items():
                module.training = mode
        return outputs


def reference_of(module: nn.Module, example: Example, state: ModuleState, dynamic_batch: bool) -> Reference:
    """A module in train mode keeps the layers that are in eval mode; of one in eval mode all layers train."""
    flags = {each: each.training for each in module.modules()}
    if not module.training:
        module.train()
    modes = {each: each.training for each in module.modules()} if not flags[module] else flags
    return Reference(module, example, state, dynamic_batch, modes)


def _depends_on_mode(module: nn.Module) -> bool:
    return isinstance(module, (nn.modules.batchnorm._NormBase, nn.modules.dropout._DropoutNd))


def _foreign_generators(seed: int | None = None) -> tuple[object, ...]:
    """States of the generators that are not PyTorch's, at `seed` if it is given."""
    if seed is not None:
        seed_all(seed)
    numpy = sys.modules.get("numpy")
    return random.getstate(), repr(numpy.random.get_state()) if numpy else None


def _apart(a: dict, b: dict) -> bool:
    return a.keys() != b.keys() or any(difference(b[name], a[name]) > 0 for name in a)
