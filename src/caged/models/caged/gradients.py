"""One step of CAGED's estimator with its gradient written out, in buffers that never move.

It computes what `Estimator.step` leaves to autograd, for a recording on CUDA. There a batch is so small that most of a
step is the start of kernels, so what counts is how few of them wait for each other:

- pairs come as rows [e_x ; e_c] of one gather, so the first layer is one product and nothing is concatenated;
- the numbers of the network lie in one vector: both heads are one product, and rounding to bfloat16 is one copy;
- gradients of weights are no one's input, so a second stream computes them while the first goes on to the layer below;
  a third one computes what the loss reports and what the way back through z needs.

With m the weight of a pair (0 on padding), g the gradient that arrives at z, and lambda, beta as in `method.py`:

    d xhat         = 2 lambda m (e_xhat - e_x)                         (divided by K where the error is averaged)
    d mu           = g + beta m mu
    d log sigma^2  = (g tau sigma + beta m (sigma^2 - 1)) / 2          0 where the clamp holds log sigma^2
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from caged.models.caged.estimator import (
    LOG_VARIANCE_LIMIT,
    Network,
    Terms,
    hidden_widths,
    kl_to_standard_normal,
)

ALIGNMENT = 64  # numbers; matrices and biases start at multiples of it, as products on tensor cores like them


class Layer(NamedTuple):
    """A linear layer: what products read, and where its gradient goes."""

    weight: Tensor  # (outputs, inputs)
    bias: Tensor  # (outputs,)
    weight_gradient: Tensor  # float32, as are all gradients
    bias_gradient: Tensor


class FlatNetwork:
    """The numbers of a network in one vector, their gradients in another, and a rounded copy where products want one.

    The parameters of the network become views of the first, and their `grad` views of the second.
    """

    def __init__(self, network: Network, dtype: torch.dtype) -> None:
        stacks = [[_known_linear(layer)] for stack in (network.encoder, network.decoder) for layer in stack]
        groups = [*stacks, [network.mean, network.log_variance], [network.output]]
        count = sum(_aligned(sum(part.weight.numel() for part in group)) for group in groups)
        count += sum(_aligned(sum(part.bias.numel() for part in group)) for group in groups)
        self.values = network.output.bias.new_zeros(count).detach()
        self.gradients = torch.zeros_like(self.values)
        self.rounded = self.values if dtype == self.values.dtype else self.values.to(dtype)
        self._start = 0
        layers = [self._layer(group) for group in groups]
        depth = len(network.encoder)
        self.encoder, self.decoder = layers[:depth], layers[depth : 2 * depth]
        self.heads, self.output = layers[2 * depth :]
        self.refresh()

    def refresh(self) -> None:
        """Round again what the products read, after the numbers have changed."""
        if self.rounded is not self.values:
            self.rounded.copy_(self.values)

    def _layer(self, group: list[nn.Linear]) -> Layer:
        """One layer of the matrices of the group, below each other, and of their biases."""
        matrix, bias = self._taken([part.weight for part in group]), self._taken([part.bias for part in group])
        shape = (sum(part.out_features for part in group), group[0].in_features)
        return Layer(
            self.rounded[matrix].view(shape),
            self.rounded[bias],
            self.gradients[matrix].view(shape),
            self.gradients[bias],
        )

    def _taken(self, parameters: list[Tensor]) -> slice:
        """The next place in the vectors, to which the parameters move."""
        first = place = self._start
        for values in parameters:
            part = slice(place, place + values.numel())
            place = part.stop
            self.values[part] = values.detach().flatten()
            values.data, values.grad = self.values[part].view_as(values), self.gradients[part].view_as(values)
        self._start = first + _aligned(place - first)
        return slice(first, place)


class SideStream:
    """A second CUDA stream for work that the next product does not wait for; on CPU everything has its turn."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """What is inside starts after all that was asked for before; buffers that it shares must outlive it."""
        if self._stream is None:
            yield
            return
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            yield

    def join(self) -> None:
        if self._stream is not None:
            torch.cuda.current_stream().wait_stream(self._stream)


class WrittenStep:
    """Loss and gradient of one batch of B pairs. `totals` gathers the sums of recon and KL over the batches."""

    def __init__(
        self,
        network: Network,
        flat: FlatNetwork,
        *,
        batch_size: int,
        averaged: bool,
        terms: Terms,
        device: torch.device,
    ) -> None:
        size, self.terms, self.flat = network.embedding_size, terms, flat
        self.embedding_size, self.averaged = size, averaged
        widths = hidden_widths(size, len(flat.encoder))

        def rows(width: int, dtype: torch.dtype = flat.rounded.dtype) -> Tensor:
            return torch.zeros(batch_size, width, device=device, dtype=dtype)

        self.encoded, self.decoded = [rows(width) for width in widths], [rows(width) for width in widths]
        self.d_encoded, self.d_decoded = [rows(width) for width in widths], [rows(width) for width in widths]
        self.heads, self.d_heads = rows(2 * size), rows(2 * size)  # [mu ; log sigma^2]
        self.latent = rows(2 * size)  # [z ; e_c]
        self.d_z, self.found, self.d_found = rows(size), rows(size), rows(size)
        self.error, self.sigma, self.pull, self.slope, self.push = (rows(size, torch.float32) for _ in range(5))
        self.totals = torch.zeros(2, device=device)
        self._ones = torch.ones(1, batch_size, device=device, dtype=flat.rounded.dtype)
        self._of_weights, self._of_terms = SideStream(device), SideStream(device)

    @torch.no_grad()
    def __call__(self, inputs: Tensor, target: Tensor, noise: Tensor, weight: Tensor) -> None:
        """Leaves the gradient of sum_b weight_b (terms.recon recon_b + terms.kl KL_b) in `flat`.

        `inputs` (B, 2K) are [e_x ; e_c] in the type of the products, `target` e_x, `noise` tau (B, K), `weight` (B,).
        """
        weight = weight[:, None]
        self._encode(inputs)
        self._draw(inputs, noise)
        with self._of_terms():
            self._prepare_way_back(noise, weight)
        self._decode(target)
        with self._of_terms():
            squares = self.error.square()
            per_pair = squares.mean(1, keepdim=True) if self.averaged else squares.sum(1, keepdim=True)
            self.totals[0].add_((weight * per_pair).sum())
        self._decode_backward(weight)
        self._encode_backward(inputs)
        self._of_weights.join()
        self._of_terms.join()

    def _encode(self, inputs: Tensor) -> None:
        last = len(self.encoded) - 1
        for number, (layer, hidden) in enumerate(zip(self.flat.encoder, self.encoded, strict=True)):
            _linear(inputs, layer, hidden)
            if number < last:
                hidden.tanh_()
            inputs = hidden
        _linear(inputs, self.flat.heads, self.heads)

    def _draw(self, inputs: Tensor, noise: Tensor) -> None:
        """z = mu + tau sigma, beside e_c."""
        size = self.embedding_size
        mean, log_variance = self.heads.chunk(2, 1)
        torch.mul(log_variance, 0.5, out=self.sigma)
        self.sigma.clamp_(-LOG_VARIANCE_LIMIT / 2, LOG_VARIANCE_LIMIT / 2).exp_()
        torch.addcmul(mean, noise, self.sigma, out=self.latent[:, :size])
        self.latent[:, size:].copy_(inputs[:, size:])

    def _prepare_way_back(self, noise: Tensor, weight: Tensor) -> None:
        """All that the gradients of mu and log sigma^2 need beside g; and the KL term."""
        mean, log_variance = self.heads.float().chunk(2, 1)
        free = 0.5 * (log_variance.abs() <= LOG_VARIANCE_LIMIT)
        torch.mul(mean, self.terms.kl * weight, out=self.pull)
        torch.mul(noise * self.sigma, free, out=self.slope)
        torch.mul(self.sigma.square() - 1, self.terms.kl * weight * free, out=self.push)
        held = log_variance.clamp(-LOG_VARIANCE_LIMIT, LOG_VARIANCE_LIMIT)
        self.totals[1].add_(weight[:, 0] @ kl_to_standard_normal(mean, held))

    def _decode(self, target: Tensor) -> None:
        hidden = self.latent
        for layer, following in zip(self.flat.decoder, self.decoded, strict=True):
            _linear(hidden, layer, following)
            hidden = following.tanh_()
        _linear(hidden, self.flat.output, self.found)
        torch.sub(self.found, target, out=self.error)

    def _decode_backward(self, weight: Tensor) -> None:
        scale = 2 * self.terms.recon / (self.embedding_size if self.averaged else 1)
        torch.mul(self.error, scale * weight, out=self.d_found)
        inputs = [self.latent, *self.decoded]
        self._gradient(self.flat.output, self.d_found, inputs[-1])
        torch.mm(self.d_found, self.flat.output.weight, out=self.d_decoded[-1])
        for number in reversed(range(len(self.decoded))):
            layer, gradient = self.flat.decoder[number], self.d_decoded[number]
            _through_tanh(gradient, self.decoded[number])
            self._gradient(layer, gradient, inputs[number])
            if number > 0:
                torch.mm(gradient, layer.weight, out=self.d_decoded[number - 1])
            else:  # e_c needs no gradient
                torch.mm(gradient, layer.weight[:, : self.embedding_size], out=self.d_z)

    def _encode_backward(self, pairs: Tensor) -> None:
        d_mean, d_log_variance = self.d_heads.chunk(2, 1)
        self._of_terms.join()
        torch.add(self.d_z, self.pull, out=d_mean)
        torch.addcmul(self.push, self.d_z, self.slope, out=d_log_variance)
        inputs = [pairs, *self.encoded]
        last = len(self.encoded) - 1
        self._gradient(self.flat.heads, self.d_heads, inputs[-1])
        torch.mm(self.d_heads, self.flat.heads.weight, out=self.d_encoded[last])
        for number in reversed(range(len(self.encoded))):
            layer, gradient = self.flat.encoder[number], self.d_encoded[number]
            if number < last:
                _through_tanh(gradient, self.encoded[number])
            self._gradient(layer, gradient, inputs[number])
            if number > 0:
                torch.mm(gradient, layer.weight, out=self.d_encoded[number - 1])

    def _gradient(self, layer: Layer, arriving: Tensor, inputs: Tensor) -> None:
        with self._of_weights():
            _product(arriving.T, inputs, layer.weight_gradient)
            _product(self._ones, arriving, layer.bias_gradient[None])  # a sum over the rows, on the tensor cores


def _aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT


def _known_linear(layer: nn.Module) -> nn.Linear:
    assert isinstance(layer, nn.Linear)
    return layer


def _linear(inputs: Tensor, layer: Layer, out: Tensor) -> None:
    torch.addmm(layer.bias, inputs, layer.weight.T, out=out)


def _through_tanh(gradient: Tensor, values: Tensor) -> None:
    """gradient * (1 - values^2), in place."""
    torch.ops.aten.tanh_backward.grad_input(gradient, values, grad_input=gradient)


def _product(left: Tensor, right: Tensor, out: Tensor) -> None:
    """left @ right in the type of `out`: gradients are float32 also where the factors are not."""
    if left.dtype == out.dtype:
        torch.mm(left, right, out=out)
    else:
        torch.mm(left, right, out_dtype=out.dtype, out=out)
