"""Networks of operators that write into several buffers, as those of quantization-aware training."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
import torch.ao.quantization as quantization
from torch import Tensor, nn

from exported import BATCH
from networks import vectors


class Quantized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.dequant(self.second(torch.relu(self.first(self.quant(x)))))


def quantized(backend: str) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.ao.quantization moves to torchao
        model = Quantized().train()
        model.qconfig = quantization.get_default_qat_qconfig(backend)
        model = quantization.prepare_qat(model)
    model(torch.from_numpy(vectors()["x"][:BATCH]))  # which gives the buffers of a channel each their size
    return model


class Observed(nn.Module):
    """An operator with two results and four buffers that it writes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 6), nn.Linear(6, 4)
        self.register_buffer("on", torch.ones(1, dtype=torch.long))
        for name, value in (("low", torch.tensor(-1.0)), ("high", torch.tensor(1.0)), ("scale", torch.ones(1)),
                            ("zero", torch.zeros(1, dtype=torch.int32))):
            self.register_buffer(name, value)

    def forward(self, x: Tensor) -> Tensor:
        rounded, inside = torch.ops.aten._fused_moving_avg_obs_fq_helper.default(
            self.first(x), self.on, self.on, self.low, self.high, self.scale, self.zero, 0.1, 0, 15, -1)
        return self.second(rounded * inside)


OBSERVED: dict[str, Callable[[], nn.Module]] = {
    "a scale for each channel": lambda: quantized("fbgemm"),
    "one scale": lambda: quantized("qnnpack"),
    "two results": Observed,
}
