"""Attention and what comes with it. Queries, keys and values are [batch, heads, time, size]."""

from typing import List, Optional, Tuple

import torch
from torch import Tensor


# Attention (opset 23; left, right and lengths are opset 24's): True where a query may see a key, or a number that is
# added to its scores.
def _attention_mask(self, mask: Optional[Tensor], q: Tensor, k: Tensor, past: int, lengths: Optional[Tensor],
                    causal: bool, left: int, right: int) -> Optional[Tensor]:
    if mask is not None:
        short = k.size(2) - mask.size(-1)
        if short > 0:
            mask = torch.constant_pad_nd(mask, [0, short], 0.0 if mask.dtype == torch.bool else float("-inf"))
    if causal:
        right = 0
    if lengths is None and left < 0 and right < 0:
        return mask
    key = torch.arange(k.size(2), device=k.device)
    query = torch.arange(q.size(2), device=q.device).unsqueeze(1) + past
    if lengths is not None:
        query = query + (lengths - q.size(2)).reshape(-1, 1, 1, 1)
    seen = torch.ones_like(query - key, dtype=torch.bool)
    if lengths is not None:
        seen = key < lengths.reshape(-1, 1, 1, 1)
    if left >= 0:
        seen = seen & (query - key <= left)
    if right >= 0:
        seen = seen & (key - query <= right)
    if mask is None:
        return seen
    if mask.dtype == torch.bool:
        return mask & seen
    return mask.masked_fill(~seen, float("-inf"))


# Attention (opset 23) beyond torch.scaled_dot_product_attention. Also returns the scores: shown is 0 for the raw ones,
# 1 capped, 2 masked, 3 as weights.
def _attention(self, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], scale: float, softcap: float, shown: int,
               precision: int) -> Tuple[Tensor, Tensor]:
    groups = self._quotient(q.size(1), k.size(1))
    if groups != 1:
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    root = (scale if scale != 0.0 else float(q.size(3)) ** -0.5) ** 0.5
    scores = torch.matmul(q * root, (k * root).transpose(2, 3))
    result = scores
    if softcap > 0.0:
        scores = torch.tanh(scores / softcap) * softcap
    if shown == 1:
        result = scores
    if mask is not None:
        if mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask, float("-inf"))
        else:
            scores = torch.where(torch.isneginf(mask), mask, scores + mask)
    if shown == 2:
        result = scores
    weights = torch._safe_softmax(scores, -1, precision).to(q.dtype)
    if shown == 3:
        result = weights
    return torch.matmul(weights, v), result


# RotaryEmbedding (opset 23).
def _rotary_embedding(self, x: Tensor, cos: Tensor, sin: Tensor, position: Optional[Tensor], heads: int, rotated: int,
                      interleaved: bool) -> Tensor:
    # [batch, time, heads, size] inside
    flat = x.dim() == 3
    x = x.unflatten(2, [heads, -1]) if flat else x.transpose(1, 2)
    if rotated == 0:
        rotated = x.size(3)
    if position is not None:
        cos, sin = torch.embedding(cos, position), torch.embedding(sin, position)
    cos = cos.narrow(-1, 0, rotated // 2).unsqueeze(2)
    sin = sin.narrow(-1, 0, rotated // 2).unsqueeze(2)
    turned, rest = x.split([rotated, x.size(3) - rotated], 3)
    if interleaved:
        a, b = turned.unflatten(3, [-1, 2]).unbind(4)
        turned = torch.stack([cos * a - sin * b, sin * a + cos * b], 4).flatten(3)
    else:
        a, b = turned.chunk(2, 3)
        turned = torch.cat([cos * a - sin * b, sin * a + cos * b], 3)
    y = torch.cat([turned, rest], 3)
    return y.flatten(2) if flat else y.transpose(1, 2)


# LinearAttention (opset 27): the output and the last state, [batch, heads, size of a key, size of a value].
def _linear_attention(self, q: Tensor, k: Tensor, v: Tensor, state: Optional[Tensor], decay: Optional[Tensor],
                      beta: Optional[Tensor], heads: int, groups: int, scale: float,
                      precision: int) -> Tuple[Tensor, Tensor]:
    # [batch, time, heads of keys, .., size] inside; q [.., groups, size]
    given = q.dtype
    q = q.unflatten(2, [heads, groups, -1]).to(precision)
    k = k.unflatten(2, [heads, -1]).to(precision)
    v = v.unflatten(2, [heads, -1]).to(precision)
    present = given if state is None else state.dtype
    if state is None:
        s = torch.zeros([k.size(0), heads, k.size(3), v.size(3)], dtype=precision, device=q.device)
    else:
        s = state.to(precision)
    outputs: List[Tensor] = []
    for t in range(q.size(1)):
        k_t, v_t = k[:, t], v[:, t]
        if decay is not None:
            s = s * torch.exp(decay[:, t].to(precision)).unflatten(1, [heads, -1]).unsqueeze(3)
        if beta is not None:
            known = torch.matmul(k_t.unsqueeze(2), s).squeeze(2)
            v_t = beta[:, t].to(precision).unsqueeze(2) * (v_t - known)
        s = s + k_t.unsqueeze(3) * v_t.unsqueeze(2)
        outputs.append(torch.matmul(q[:, t], s))
    factor = scale if scale != 0.0 else float(q.size(4)) ** -0.5
    return (torch.stack(outputs, 1) * factor).flatten(2).to(given), s.to(present)
