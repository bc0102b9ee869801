"""Fourier transforms. A last dimension of 2 holds complex numbers, of 1 real ones."""

from typing import Optional

import torch
from torch import Tensor


# DFT and STFT (opset 17).
def _signal(self, x: Tensor) -> Tensor:
    return torch.view_as_complex(x.contiguous()) if x.size(-1) == 2 else x.squeeze(-1)


# DFT (opset 17).
def _dft(self, x: Tensor, length: Optional[int], axis: int, inverse: bool, onesided: bool) -> Tensor:
    axis = axis if axis >= 0 else axis + x.dim()
    signal = self._signal(x)
    if inverse and onesided:
        return torch.fft_irfft(signal, length, axis).unsqueeze(-1)
    if inverse:
        return torch.view_as_real(torch.fft_ifft(signal, length, axis))
    if onesided:
        return torch.view_as_real(torch.fft_rfft(signal, length, axis))
    return torch.view_as_real(torch.fft_fft(signal, length, axis))


# STFT (opset 17).
def _stft(self, x: Tensor, step: int, window: Optional[Tensor], length: Optional[int], onesided: bool) -> Tensor:
    if length is None:
        length = x.size(1) if window is None else window.size(0)
    frames = self._signal(x).unfold(1, length, step)
    if window is not None:
        frames = frames * window
    if onesided:
        return torch.view_as_real(torch.fft_rfft(frames))
    return torch.view_as_real(torch.fft_fft(frames))
