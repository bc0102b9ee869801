"""One thread, as the runs that are compared with eager PyTorch have."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
