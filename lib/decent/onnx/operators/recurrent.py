"""LSTM, GRU and RNN. Shapes are ONNX's with time first: x [time, batch, input], states [directions, batch, hidden],
outputs over time [time, directions, batch, hidden].
"""

from typing import List, Optional, Tuple

import torch
from torch import Tensor


# PyTorch's own functions.


# LSTM, GRU and RNN (opset 7): x [directions, gates * hidden, ..] with its gates in another order.
def _gates_in_order(self, x: Tensor, order: List[int]) -> Tensor:
    if len(order) == 1:
        return x
    gates = x.chunk(len(order), 1)
    return torch.cat([gates[i] for i in order], 1)


# LSTM, GRU and RNN (opset 7): weights for torch.lstm, torch.gru and torch.rnn_tanh, which would read beyond tensors
# that are too small.
def _recurrent_weights(self, x: Tensor, w: Tensor, r: Tensor, b: Optional[Tensor], order: List[int]) -> List[Tensor]:
    directions, hidden = r.size(0), r.size(2)
    gates = len(order) * hidden
    fit = w.size() == [directions, gates, x.size(2)] and r.size() == [directions, gates, hidden]
    assert fit and (b is None or b.size() == [directions, 2 * gates]), "weights of other shapes than the input has"
    w = self._gates_in_order(w, order)
    r = self._gates_in_order(r, order)
    weights: List[Tensor] = []
    if b is None:
        for i in range(w.size(0)):
            weights += [w[i], r[i]]
    else:
        halves = b.chunk(2, 1)
        wb = self._gates_in_order(halves[0], order)
        rb = self._gates_in_order(halves[1], order)
        for i in range(w.size(0)):
            weights += [w[i], r[i], wb[i], rb[i]]
    return weights


# LSTM, GRU and RNN (opset 7). Made contiguous, as cuDNN requires: a state that the graph expanded is not.
def _initial_state(self, state: Optional[Tensor], x: Tensor, r: Tensor) -> Tensor:
    shape = [r.size(0), x.size(1), r.size(2)]
    if state is None:
        return x.new_zeros(shape)
    assert state.size() == shape, "a state of another shape than the input has"
    return state.contiguous()


# LSTM, GRU and RNN (opset 7), direction reverse: each sequence by itself; its padding stays in place.
def _reversed_in_time(self, x: Tensor, lengths: Optional[Tensor]) -> Tensor:
    if lengths is None:
        return x.flip([0])
    steps = torch.arange(x.size(0), device=x.device).unsqueeze(1)
    source = torch.where(steps < lengths, lengths - 1 - steps, steps)
    return x.gather(0, source.unsqueeze(2).expand([-1, -1, x.size(2)]))


# LSTM, GRU and RNN (opset 7) with sequence_lens.
def _packed(self, x: Tensor, lengths: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    longest_first, order = torch.sort(lengths.to(torch.int64), 0, True)
    sizes = longest_first.to(torch.device("cpu"))
    data, batch_sizes = torch._pack_padded_sequence(x.index_select(1, order), sizes, False)
    return data, batch_sizes, order


# LSTM, GRU and RNN (opset 7) with sequence_lens.
def _unpacked(self, data: Tensor, batch_sizes: Tensor, order: Tensor, steps: int) -> Tensor:
    y, _ = torch._pad_packed_sequence(data, batch_sizes, False, 0.0, steps)
    return y.index_select(1, torch.argsort(order))


# LSTM, GRU and RNN (opset 7): [time, batch, directions * hidden] in ONNX's shape.
def _by_direction(self, y: Tensor, directions: int) -> Tensor:
    return y.unflatten(2, [directions, -1]).transpose(1, 2)


# LSTM (opset 7): the output over time, the last hidden and the last cell state.
def _lstm(self, x: Tensor, w: Tensor, r: Tensor, b: Optional[Tensor], lengths: Optional[Tensor], h: Optional[Tensor],
          c: Optional[Tensor], reverse: bool) -> Tuple[Tensor, Tensor, Tensor]:
    # gates: input, output, forget, cell; torch.lstm has input, forget, cell, output
    weights = self._recurrent_weights(x, w, r, b, [0, 2, 3, 1])
    state = [self._initial_state(h, x, r), self._initial_state(c, x, r)]
    two = w.size(0) == 2
    steps = x.size(0)
    if reverse:
        x = self._reversed_in_time(x, lengths)
    if lengths is None:
        y, h_n, c_n = torch.lstm(x, state, weights, b is not None, 1, 0.0, self.training, two, False)
    else:
        data, batch_sizes, order = self._packed(x, lengths)
        state = [each.index_select(1, order) for each in state]
        data, h_n, c_n = torch.lstm(data, batch_sizes, state, weights, b is not None, 1, 0.0, self.training, two)
        y = self._unpacked(data, batch_sizes, order, steps)
        back = torch.argsort(order)
        h_n, c_n = h_n.index_select(1, back), c_n.index_select(1, back)
    if reverse:
        y = self._reversed_in_time(y, lengths)
    return self._by_direction(y, w.size(0)), h_n, c_n


# GRU and RNN (opset 7): function is gru, rnn_relu or rnn_tanh.
def _one_state_run(self, function: str, x: Tensor, batch_sizes: Optional[Tensor], h: Tensor, weights: List[Tensor],
                   biased: bool, two: bool) -> Tuple[Tensor, Tensor]:
    if batch_sizes is None:
        if function == "gru":
            return torch.gru(x, h, weights, biased, 1, 0.0, self.training, two, False)
        if function == "rnn_relu":
            return torch.rnn_relu(x, h, weights, biased, 1, 0.0, self.training, two, False)
        return torch.rnn_tanh(x, h, weights, biased, 1, 0.0, self.training, two, False)
    if function == "gru":
        return torch.gru(x, batch_sizes, h, weights, biased, 1, 0.0, self.training, two)
    if function == "rnn_relu":
        return torch.rnn_relu(x, batch_sizes, h, weights, biased, 1, 0.0, self.training, two)
    return torch.rnn_tanh(x, batch_sizes, h, weights, biased, 1, 0.0, self.training, two)


# GRU with linear_before_reset, and RNN (opset 7): the output over time and the last state.
def _one_state(self, function: str, x: Tensor, w: Tensor, r: Tensor, b: Optional[Tensor], lengths: Optional[Tensor],
               h: Optional[Tensor], reverse: bool) -> Tuple[Tensor, Tensor]:
    # gates of a GRU: update, reset, hidden; torch.gru has reset, update, hidden
    order = [1, 0, 2] if function == "gru" else [0]
    weights = self._recurrent_weights(x, w, r, b, order)
    state = self._initial_state(h, x, r)
    two = w.size(0) == 2
    steps = x.size(0)
    if reverse:
        x = self._reversed_in_time(x, lengths)
    if lengths is None:
        y, h_n = self._one_state_run(function, x, None, state, weights, b is not None, two)
    else:
        data, batch_sizes, longest_first = self._packed(x, lengths)
        state = state.index_select(1, longest_first)
        data, h_n = self._one_state_run(function, data, batch_sizes, state, weights, b is not None, two)
        y = self._unpacked(data, batch_sizes, longest_first, steps)
        h_n = h_n.index_select(1, torch.argsort(longest_first))
    if reverse:
        y = self._reversed_in_time(y, lengths)
    return self._by_direction(y, w.size(0)), h_n


# Cases that PyTorch's functions lack, step by step. `activations` has the activations of each direction in turn.


# LSTM, GRU and RNN (opset 7): clip and activation.
def _gate(self, x: Tensor, activation: str, alpha: float, beta: float, clip: float) -> Tensor:
    if clip > 0.0:
        x = torch.clamp(x, -clip, clip)
    if activation == "sigmoid":
        return torch.sigmoid(x)
    if activation == "tanh":
        return torch.tanh(x)
    if activation == "relu":
        return torch.relu(x)
    if activation == "affine":
        return x * alpha + beta
    if activation == "leakyrelu":
        return torch.leaky_relu(x, alpha)
    if activation == "thresholdedrelu":
        return torch.where(x >= alpha, x, torch.zeros_like(x))
    if activation == "scaledtanh":
        return torch.tanh(x * beta) * alpha
    if activation == "hardsigmoid":
        return torch.clamp(x * alpha + beta, 0.0, 1.0)
    if activation == "elu":
        return torch.elu(x, alpha)
    if activation == "softsign":
        return x / (1.0 + torch.abs(x))
    return torch.softplus(x)


# LSTM, GRU and RNN (opset 7): the input's part of the gates of all steps.
def _input_gates(self, x: Tensor, w: Tensor, b: Optional[Tensor], direction: int) -> Tensor:
    return torch.matmul(x, w[direction].t()) if b is None else torch.linear(x, w[direction], b[direction].chunk(2)[0])


# LSTM, GRU and RNN (opset 7) with sequence_lens: step t, unless the sequence has ended.
def _while_in_sequence(self, new: Tensor, old: Tensor, t: int, lengths: Optional[Tensor]) -> Tensor:
    return new if lengths is None else torch.where((lengths > t).unsqueeze(1), new, old)


# LSTM, GRU and RNN (opset 7).
def _in_time(self, steps: List[Tensor], backward: bool) -> Tensor:
    if backward:
        steps.reverse()
    return torch.stack(steps)


# LSTM (opset 7): gates [batch, 4 * hidden] to the hidden and the cell state.
def _lstm_step(self, gates: Tensor, c: Tensor, p: Optional[Tensor], activations: List[str], alpha: List[float],
               beta: List[float], clip: float, coupled: bool, k: int) -> Tuple[Tensor, Tensor]:
    i, o, f, new = gates.chunk(4, 1)
    if p is not None:
        peep_i, peep_o, peep_f = p.chunk(3)
        i, f = i + peep_i * c, f + peep_f * c
    i = self._gate(i, activations[k], alpha[k], beta[k], clip)
    f = 1.0 - i if coupled else self._gate(f, activations[k], alpha[k], beta[k], clip)
    c = f * c + i * self._gate(new, activations[k + 1], alpha[k + 1], beta[k + 1], clip)
    if p is not None:
        o = o + p.chunk(3)[1] * c
    o = self._gate(o, activations[k], alpha[k], beta[k], clip)
    return o * self._gate(c, activations[k + 2], alpha[k + 2], beta[k + 2], 0.0), c


# LSTM (opset 7) with a clip, peepholes, input_forget or other activations.
def _lstm_loop(self, x: Tensor, w: Tensor, r: Tensor, b: Optional[Tensor], lengths: Optional[Tensor],
               h: Optional[Tensor], c: Optional[Tensor], p: Optional[Tensor], reverse: bool, activations: List[str],
               alpha: List[float], beta: List[float], clip: float, coupled: bool) -> Tuple[Tensor, Tensor, Tensor]:
    h_0, c_0 = self._initial_state(h, x, r), self._initial_state(c, x, r)
    outputs: List[Tensor] = []
    last_h: List[Tensor] = []
    last_c: List[Tensor] = []
    for d in range(w.size(0)):
        from_input = self._input_gates(x, w, b, d)
        h_bias = None if b is None else b[d].chunk(2)[1]
        peephole = None if p is None else p[d]
        backward = reverse or d == 1
        h_t, c_t = h_0[d], c_0[d]
        steps: List[Tensor] = []
        for step in range(x.size(0)):
            t = x.size(0) - 1 - step if backward else step
            gates = from_input[t] + torch.linear(h_t, r[d], h_bias)
            h_new, c_new = self._lstm_step(gates, c_t, peephole, activations, alpha, beta, clip, coupled, 3 * d)
            steps.append(self._while_in_sequence(h_new, torch.zeros_like(h_new), t, lengths))
            h_t = self._while_in_sequence(h_new, h_t, t, lengths)
            c_t = self._while_in_sequence(c_new, c_t, t, lengths)
        outputs.append(self._in_time(steps, backward))
        last_h.append(h_t)
        last_c.append(c_t)
    return torch.stack(outputs, 1), torch.stack(last_h), torch.stack(last_c)


# GRU (opset 7).
def _gru_step(self, from_input: Tensor, h: Tensor, r: Tensor, b: Optional[Tensor], linear_before_reset: bool,
              activations: List[str], alpha: List[float], beta: List[float], clip: float, k: int) -> Tensor:
    two = 2 * h.size(1)
    in_zr, in_h = from_input[:, :two], from_input[:, two:]
    r_zr, r_h = r[:two], r[two:]
    b_zr: Optional[Tensor] = None if b is None else b[:two]
    b_h: Optional[Tensor] = None if b is None else b[two:]
    zr = in_zr + torch.linear(h, r_zr, b_zr)
    z, reset = self._gate(zr, activations[k], alpha[k], beta[k], clip).chunk(2, 1)
    if linear_before_reset:
        new = in_h + reset * torch.linear(h, r_h, b_h)
    else:
        new = in_h + torch.linear(reset * h, r_h, b_h)
    new = self._gate(new, activations[k + 1], alpha[k + 1], beta[k + 1], clip)
    return (1.0 - z) * new + z * h


# GRU (opset 7) with a clip, other activations, or a reset before the matrix product.
def _gru_loop(self, x: Tensor, w: Tensor, r: Tensor, b: Optional[Tensor], lengths: Optional[Tensor],
              h: Optional[Tensor], reverse: bool, linear_before_reset: bool, activations: List[str], alpha: List[float],
              beta: List[float], clip: float) -> Tuple[Tensor, Tensor]:
    h_0 = self._initial_state(h, x, r)
    outputs: List[Tensor] = []
    last: List[Tensor] = []
    for d in range(w.size(0)):
        from_input = self._input_gates(x, w, b, d)
        h_bias = None if b is None else b[d].chunk(2)[1]
        backward = reverse or d == 1
        h_t = h_0[d]
        steps: List[Tensor] = []
        for step in range(x.size(0)):
            t = x.size(0) - 1 - step if backward else step
            new = self._gru_step(from_input[t], h_t, r[d], h_bias, linear_before_reset, activations, alpha, beta, clip,
                                 2 * d)
            steps.append(self._while_in_sequence(new, torch.zeros_like(new), t, lengths))
            h_t = self._while_in_sequence(new, h_t, t, lengths)
        outputs.append(self._in_time(steps, backward))
        last.append(h_t)
    return torch.stack(outputs, 1), torch.stack(last)


# RNN (opset 7) with a clip or other activations.
def _rnn_loop(self, x: Tensor, w: Tensor, r: Tensor, b: Optional[Tensor], lengths: Optional[Tensor],
              h: Optional[Tensor], reverse: bool, activations: List[str], alpha: List[float], beta: List[float],
              clip: float) -> Tuple[Tensor, Tensor]:
    h_0 = self._initial_state(h, x, r)
    outputs: List[Tensor] = []
    last: List[Tensor] = []
    for d in range(w.size(0)):
        from_input = self._input_gates(x, w, b, d)
        h_bias = None if b is None else b[d].chunk(2)[1]
        backward = reverse or d == 1
        h_t = h_0[d]
        steps: List[Tensor] = []
        for step in range(x.size(0)):
            t = x.size(0) - 1 - step if backward else step
            new = self._gate(from_input[t] + torch.linear(h_t, r[d], h_bias), activations[d], alpha[d], beta[d], clip)
            steps.append(self._while_in_sequence(new, torch.zeros_like(new), t, lengths))
            h_t = self._while_in_sequence(new, h_t, t, lengths)
        outputs.append(self._in_time(steps, backward))
        last.append(h_t)
    return torch.stack(outputs, 1), torch.stack(last)
