"""What everything is measured against: LightGCN as most code bases write it. Written once and left alone.

Propagation is a product with one sparse COO matrix per layer and autograd behind it, triples come from a Python loop
over users with rejection, lists from numpy's argpartition in blocks of users. Nothing here is slow on purpose: the
positives of a user are a set, the epoch is shuffled as arrays, evaluation multiplies whole blocks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F


def normalized_adjacency(users: np.ndarray, items: np.ndarray, user_count: int, item_count: int) -> torch.Tensor:
    """D^-1/2 A D^-1/2 over users and items together, as a coalesced COO tensor."""
    rows = np.concatenate([users, items + user_count])
    columns = np.concatenate([items + user_count, users])
    nodes = user_count + item_count
    degrees = np.bincount(rows, minlength=nodes)
    values = 1.0 / np.sqrt(degrees[rows] * degrees[columns])
    index = torch.from_numpy(np.stack([rows, columns]))
    return torch.sparse_coo_tensor(index, torch.from_numpy(values).float(), (nodes, nodes)).coalesce()


class LightGCN(torch.nn.Module):
    """He et al. 2020; mean of the layers 0..L."""

    def __init__(self, adjacency: torch.Tensor, user_count: int, item_count: int, width: int, layers: int) -> None:
        super().__init__()
        self.adjacency = adjacency
        self.sizes = [user_count, item_count]
        self.layers = layers
        self.users = torch.nn.Embedding(user_count, width, device=adjacency.device)
        self.items = torch.nn.Embedding(item_count, width, device=adjacency.device)
        torch.nn.init.normal_(self.users.weight, std=0.1)
        torch.nn.init.normal_(self.items.weight, std=0.1)

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        nodes = torch.cat([self.users.weight, self.items.weight])
        per_layer = [nodes]
        for _ in range(self.layers):
            nodes = torch.sparse.mm(self.adjacency, nodes)
            per_layer.append(nodes)
        users, items = torch.split(torch.stack(per_layer, dim=1).mean(dim=1), self.sizes)
        return users, items

    def loss(self, users: torch.Tensor, positives: torch.Tensor, negatives: torch.Tensor, l2: float) -> torch.Tensor:
        """BPR on propagated rows, L2 on the layer-0 rows of the batch."""
        all_users, all_items = self()
        u, i, j = all_users[users], all_items[positives], all_items[negatives]
        ranking = F.softplus((u * j).sum(1) - (u * i).sum(1)).mean()
        rows: tuple[torch.Tensor, ...] = (self.users(users), self.items(positives), self.items(negatives))
        penalty = sum(part.pow(2).sum() for part in rows) / (2 * len(users))
        return ranking + l2 * penalty


def sample_epoch(positives_of: list[list[int]], item_count: int, edge_count: int, seed: int) -> np.ndarray:
    """As many triples as interactions: a random user, one of their items, a random item that they do not have."""
    draw = random.Random(seed)
    owned = [set(items) for items in positives_of]
    active = [user for user, items in enumerate(positives_of) if 0 < len(items) < item_count]
    triples = []
    for _ in range(edge_count):
        user = draw.choice(active)
        positive = draw.choice(positives_of[user])
        negative = draw.randrange(item_count)
        while negative in owned[user]:
            negative = draw.randrange(item_count)
        triples.append((user, positive, negative))
    return np.array(triples)


def batches(triples: np.ndarray, batch_size: int, device: torch.device | str) -> Iterator[tuple[torch.Tensor, ...]]:
    shuffled = triples[np.random.permutation(len(triples))]
    for start in range(0, len(shuffled), batch_size):
        batch = torch.from_numpy(shuffled[start : start + batch_size]).to(device)
        yield batch[:, 0], batch[:, 1], batch[:, 2]


def train_steps(
    model: LightGCN, optimizer: torch.optim.Optimizer, triples: np.ndarray, batch_size: int, l2: float
) -> float:
    """One pass over the triples; the mean loss."""
    total, count = 0.0, 0
    for users, positives, negatives in batches(triples, batch_size, model.adjacency.device):
        loss = model.loss(users, positives, negatives, l2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        count += 1
    return total / count


def top_k(users: np.ndarray, items: np.ndarray, seen: list[np.ndarray], k: int, block: int = 512) -> np.ndarray:
    """The k best unseen items of every user, best first, in blocks of users."""
    lists = []
    for start in range(0, len(users), block):
        scores = users[start : start + block] @ items.T
        for row, owned in enumerate(seen[start : start + block]):
            scores[row, owned] = -np.inf
        best = np.argpartition(-scores, k, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        lists.append(np.take_along_axis(best, order, axis=1))
    return np.concatenate(lists)


class PairAutoencoder(torch.nn.Module):
    """CAGED's estimator with three hidden layers, as its paper writes it: encoder and decoder of concatenated rows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        wide, linear, tanh = 2 * width, torch.nn.Linear, torch.nn.Tanh()
        self.encoder = torch.nn.Sequential(
            linear(wide, wide), tanh, linear(wide, 2 * wide), tanh, linear(2 * wide, wide)
        )
        self.mean, self.log_variance = linear(wide, width), linear(wide, width)
        self.decoder = torch.nn.Sequential(
            linear(wide, wide), tanh, linear(wide, 2 * wide), tanh, linear(2 * wide, wide), tanh, linear(wide, width)
        )

    def forward(self, x: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Squared error and KL of each pair of a neighbour x and a centre c."""
        hidden = self.encoder(torch.cat([x, c], dim=1))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        z = mean + torch.randn_like(mean) * torch.exp(log_variance / 2)
        found = self.decoder(torch.cat([z, c], dim=1))
        kl = (mean.pow(2) + log_variance.exp() - log_variance - 1).sum(1) / 2
        return (x - found).pow(2).sum(1), kl


def update_weights(
    model: PairAutoencoder,
    optimizer: torch.optim.Optimizer,
    vectors: tuple[torch.Tensor, torch.Tensor],
    edges: tuple[torch.Tensor, torch.Tensor],
    weights: tuple[torch.Tensor, torch.Tensor],
    batch_size: int,
    eps: float,
) -> None:
    """One update of CAGED: a pass over the edges in both directions, scores of all of them, a moving average in place.

    `vectors` and `edges` are (users, items), `weights` those of the messages to users and to items.
    """
    sides = [(vectors[1], edges[1], vectors[0], edges[0]), (vectors[0], edges[0], vectors[1], edges[1])]
    for batch in torch.randperm(len(edges[0]), device=edges[0].device).split(batch_size):
        for neighbours, x, centres, c in sides:
            error, kl = model(neighbours[x[batch]], centres[c[batch]])
            optimizer.zero_grad()
            (error.sum() + kl.sum()).backward()
            optimizer.step()
    with torch.no_grad():
        for (neighbours, x, centres, c), weight in zip(sides, weights, strict=True):
            parts = zip(x.split(batch_size), c.split(batch_size), strict=True)
            error = torch.cat([model(neighbours[a], centres[b])[0] for a, b in parts])
            weight.mul_(1 - eps).add_(eps * torch.exp(-error))
