"""CAGED's estimator: a conditional variational auto-encoder of one neighbour given the centre it sends a message to.

The equations and the symbols are those of `models/caged/method.py`. For a directed pair (centre c, neighbour x):

    (mu, log sigma^2) = Enc([e_x ; e_c]),    z = mu + tau sigma,    e_xhat = Dec([z ; e_c])
    recon = |e_x - e_xhat|^2,    KL = sum_k (mu_k^2 + sigma_k^2 - log sigma_k^2 - 1) / 2

The first linear layer of either network is split by node: W [e_x ; e_c] = W_a e_x + W_b e_c. While the embeddings and
the network stand still (scoring), W_a e_x and W_b e_c are computed once per node, then gathered and added per pair.
Scoring walks the edges in chunks, so its memory is that of one chunk beside these node tables and one number per edge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from caged.columns import WHOLE, Columns
from caged.errors import DeviceError
from caged.models.caged.sides import Pairs
from caged.optimiser import adam_with_moments

AUTO_ON_CUDA = "bf16"  # what estimator_precision=auto is there; on CPU it is float32
CHUNK = 2**13  # directed pairs scored at a time on CPU
CHUNK_BYTES = 2**32  # on CUDA: memory of the pairs scored at a time, if a quarter of what is free is not less
PAIR_ROWS = 32  # rows of K numbers that scoring holds per pair, at most
LOG_VARIANCE_LIMIT = 10.0  # exp of it stays far from the limits of float32
ACTIVE_VARIANCE = 0.01  # a latent unit is active if its posterior mean varies more than this over the pairs


class PairBatch(NamedTuple):
    """A batch of fixed size; `weight` is 1 on pairs and 0 on padding."""

    pairs: Pairs
    weight: Tensor  # (B,)


class Elbo(NamedTuple):
    """Both terms of the bound per pair, without lambda and beta, and the posterior mean."""

    recon: Tensor  # (B,)
    kl: Tensor  # (B,)
    mean: Tensor  # (B, K)


class Terms(NamedTuple):
    """Factors of the two terms."""

    recon: float  # lambda
    kl: float  # beta


class Scores(NamedTuple):
    """What scoring found out about all edges of one direction."""

    loss: Tensor  # (E,) lambda recon + beta KL
    recon: Tensor  # () mean over the pairs, without lambda
    kl: Tensor  # () mean over the pairs, without beta
    active_units: Tensor  # ()


# ---------------------------------------------------------------- the network


def hidden_widths(embedding_size: int, layers: int) -> list[int]:
    """Doubling up to the midpoint, then mirrored: 2K 2^min(k, n-1-k) for k = 0..n-1.

    >>> [hidden_widths(256, layers) for layers in (1, 2, 3, 4)]
    [[512], [512, 512], [512, 1024, 512], [512, 1024, 1024, 512]]
    """
    return [2 * embedding_size * 2 ** min(k, layers - 1 - k) for k in range(layers)]


class Network(nn.Module):
    """Encoder and decoder. Values start uniform in +-1/sqrt(inputs), PyTorch's default, from the given generator."""

    def __init__(self, embedding_size: int, layers: int, device: torch.device, generator: Generator) -> None:
        super().__init__()
        widths = hidden_widths(embedding_size, layers)
        steps = list(zip([2 * embedding_size, *widths], widths, strict=False))

        def linear(inputs: int, outputs: int) -> nn.Linear:
            layer = nn.Linear(inputs, outputs, device="meta").to_empty(device=device)
            bound = 1 / math.sqrt(inputs)
            with torch.no_grad():
                for values in layer.parameters():
                    values.copy_(torch.empty(values.shape).uniform_(-bound, bound, generator=generator))
            return layer

        self.embedding_size = embedding_size
        self.encoder = nn.ModuleList([linear(*step) for step in steps])
        self.mean = linear(widths[-1], embedding_size)
        self.log_variance = linear(widths[-1], embedding_size)
        self.decoder = nn.ModuleList([linear(*step) for step in steps])
        self.output = linear(widths[-1], embedding_size)

    # The first layers, split by what they read.

    def from_neighbour(self, rows: Tensor) -> Tensor:
        """W_a e_x of the encoder's first layer."""
        return F.linear(rows, self._first(self.encoder).weight[:, : self.embedding_size])

    def from_centre(self, rows: Tensor) -> Tensor:
        """W_b e_c + b of the encoder's first layer."""
        first = self._first(self.encoder)
        return F.linear(rows, first.weight[:, self.embedding_size :], first.bias)

    def from_latent(self, z: Tensor) -> Tensor:
        """W_a z of the decoder's first layer."""
        return F.linear(z, self._first(self.decoder).weight[:, : self.embedding_size])

    def condition(self, rows: Tensor) -> Tensor:
        """W_b e_c + b of the decoder's first layer."""
        first = self._first(self.decoder)
        return F.linear(rows, first.weight[:, self.embedding_size :], first.bias)

    # What follows them.

    def encode(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """mu and log sigma^2; tanh between hidden layers, none after the last. `hidden` is overwritten."""
        for layer in list(self.encoder)[1:]:
            hidden = layer(hidden.tanh_())  # in place: no gradient needs what goes into a tanh
        log_variance = self.log_variance(hidden).float().clamp(-LOG_VARIANCE_LIMIT, LOG_VARIANCE_LIMIT)
        return self.mean(hidden).float(), log_variance

    def decode(self, hidden: Tensor) -> Tensor:
        """e_xhat; tanh after every hidden layer. `hidden` is overwritten."""
        hidden = hidden.tanh_()
        for layer in list(self.decoder)[1:]:
            hidden = layer(hidden).tanh_()
        result: Tensor = self.output(hidden).float()
        return result

    @staticmethod
    def _first(stack: nn.ModuleList) -> nn.Linear:
        layer = stack[0]
        assert isinstance(layer, nn.Linear)
        return layer


# ---------------------------------------------------------------- the bound


def kl_to_standard_normal(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL(N(mu, diag sigma^2) || N(0, I)) = sum_k (mu_k^2 + sigma_k^2 - log sigma_k^2 - 1) / 2, per row.

    >>> import torch
    >>> kl_to_standard_normal(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2)).item()  # (9 + 16) / 2
    12.5
    """
    return 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(1)


def elbo(
    network: Network, rows: Tensor, hidden: Tensor, condition: Tensor, noise: Tensor | None, *, averaged: bool
) -> Elbo:
    """Both terms for a batch of pairs.

    `rows` are e_x (B, K), `hidden` the first layer of the encoder and `condition` the decoder's share of e_c, both
    (B, 2K). `noise` is tau (B, K); None takes the mean of z. `averaged` divides the squared error by K.
    """
    mean, log_variance = network.encode(hidden)
    z = mean if noise is None else mean + noise * (0.5 * log_variance).exp()
    error = (rows - network.decode(network.from_latent(z) + condition)).square()
    return Elbo(error.mean(1) if averaged else error.sum(1), kl_to_standard_normal(mean, log_variance), mean)


# ---------------------------------------------------------------- training and scoring


class Estimator:
    """The network, its Adam and its noise: what lives on from update to update.

    Every rank has all of it and the same noise. Each works on its share of the pairs, and the gradients and scores of
    all are added: the numbers of one rank, to rounding.
    """

    def __init__(
        self,
        network: Network,
        *,
        learning_rate: float,
        averaged: bool,
        precision: str,
        noise: Generator,
        columns: Columns = WHOLE,
    ) -> None:
        self.network = network
        self._columns = columns
        self.averaged = averaged
        self.noise = noise
        self.precision = resolved_precision(precision, noise.device)
        self._parameters = list(network.parameters())
        self.optimizer = adam_with_moments(self._parameters, learning_rate)

    def state(self) -> dict[str, Tensor]:
        """Network and moments, by name."""
        tensors = {}
        for name, values in self.network.named_parameters():
            tensors[f"estimator.{name}"] = values.data
            for moment, value in self.optimizer.state[values].items():
                tensors[f"estimator_adam.{name}.{moment}"] = value
        return tensors

    def check_precision(self) -> None:
        if self.noise.device.type == "cpu" and self.precision != "float32":
            raise DeviceError(
                f"on CPU the estimator computes in float32, but method.estimator_precision is {self.precision}; "
                f"leave it at auto, or use --device cuda"
            )

    def step(self, neighbours: Tensor, centres: Tensor, batch: PairBatch, terms: Terms) -> Tensor:
        """One Adam step on sum over the batch of terms.recon * recon + terms.kl * KL.

        Fixed shapes and no host synchronisation. Returns the sums of recon and KL over the batch, (2,).
        """
        self.optimizer.zero_grad(set_to_none=True)
        own = self._columns.share(len(batch.weight))
        rows = neighbours.index_select(0, batch.pairs.neighbours[own])
        centre = centres.index_select(0, batch.pairs.centres[own])
        tau = torch.randn(len(batch.weight), rows.shape[1], generator=self.noise, device=rows.device)[own]
        with tf32(self.precision, rows.device):
            with halved(self.precision, rows.device):
                hidden = self.network.from_neighbour(rows) + self.network.from_centre(centre)
                condition = self.network.condition(centre)
                parts = elbo(self.network, rows, hidden, condition, tau, averaged=self.averaged)
            weight = batch.weight[own]
            sums = torch.stack((weight @ parts.recon, weight @ parts.kl))  # not in half precision
            (terms.recon * sums[0] + terms.kl * sums[1]).backward()
        sums = sums.detach()
        self._columns.sum_(*(values.grad for values in self._parameters if values.grad is not None), sums)
        self.optimizer.step()
        return sums

    def shuffled_batches(self, edge_count: int, batch_size: int) -> tuple[Tensor, Tensor]:
        """All edges in random order, a batch per row: edge numbers, and 1 or, on padding, 0."""
        device = self.noise.device
        steps = -(-edge_count // batch_size)
        order = torch.randperm(edge_count, generator=self.noise, device=device)
        order = F.pad(order, (0, steps * batch_size - edge_count)).view(steps, batch_size)
        real = (torch.arange(order.numel(), device=device) < edge_count).view_as(order).float()
        return order, real

    @torch.no_grad()
    def score(self, neighbours: Tensor, centres: Tensor, edges: Pairs, terms: Terms, *, sample: bool) -> Scores:
        """The bound of every edge, with one draw of z per edge or with its mean."""
        count, device = len(edges.centres), neighbours.device
        loss = neighbours.new_zeros(count)
        sums = torch.zeros(2, device=device, dtype=torch.float64)
        moments = torch.zeros(2, self.network.embedding_size, device=device, dtype=torch.float64)
        with tf32(self.precision, device), halved(self.precision, device):
            of_neighbours = self.network.from_neighbour(neighbours)
            of_centres, conditions = self.network.from_centre(centres), self.network.condition(centres)
            chunk = self._columns.told(lambda: chunk_size(self.network.embedding_size, device))
            for number, start in enumerate(range(0, count, chunk)):
                x, c = (part[start : start + chunk] for part in edges)
                shape = (len(x), self.network.embedding_size)
                tau = torch.randn(shape, generator=self.noise, device=device) if sample else None
                if number % self._columns.size != self._columns.rank:
                    continue
                rows = neighbours.index_select(0, x)
                hidden = of_neighbours.index_select(0, x).add_(of_centres.index_select(0, c))
                parts = elbo(self.network, rows, hidden, conditions.index_select(0, c), tau, averaged=self.averaged)
                loss[start : start + chunk] = terms.recon * parts.recon + terms.kl * parts.kl
                sums += torch.stack((parts.recon.sum(dtype=torch.float64), parts.kl.sum(dtype=torch.float64)))
                moments += power_sums(parts.mean)
        self._columns.sum_(loss, sums, moments)
        variance = moments[1] / count - (moments[0] / count).square()
        return Scores(loss, sums[0] / count, sums[1] / count, (variance > ACTIVE_VARIANCE).sum())


def power_sums(values: Tensor) -> Tensor:
    """Sums of values and of their squares over the rows, (2, K) in float64.

    Only the result is float64: mean and variance of a chunk are computed in the type of the values, and nothing cancels
    in n mean and n (variance + mean^2).
    """
    variance, mean = torch.var_mean(values, 0, correction=0)
    variance, mean = variance.double(), mean.double()
    return len(values) * torch.stack((mean, variance + mean.square()))


def chunk_size(embedding_size: int, device: torch.device) -> int:
    """Directed pairs that are scored at a time; a power of two, so that little else decides which noise a pair gets."""
    if device.type == "cpu":
        return CHUNK
    free, _ = torch.cuda.mem_get_info(device)
    fitting = min(CHUNK_BYTES, free // 4) // (4 * PAIR_ROWS * embedding_size)
    return int(2 ** (max(fitting, 1).bit_length() - 1))


# ---------------------------------------------------------------- precision


def resolved_precision(asked: str, device: torch.device) -> str:
    """What `auto` stands for.

    >>> import torch
    >>> resolved_precision("auto", torch.device("cpu")), resolved_precision("tf32", torch.device("cuda"))
    ('float32', 'tf32')
    """
    return asked if asked != "auto" else "float32" if device.type == "cpu" else AUTO_ON_CUDA


@contextmanager
def tf32(precision: str, device: torch.device) -> Iterator[None]:
    """On CUDA, whether float32 products may round their factors to TF32."""
    if device.type == "cpu":
        yield
        return
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def halved(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Products in bfloat16 where asked for; both terms of the bound stay float32."""
    if precision != "bf16":
        return nullcontext()
    # No cache of casts: in a recorded step it would go stale after the first optimiser step.
    return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)
