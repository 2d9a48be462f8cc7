"""Randomized response: every person perturbs their own value, and no curator is needed (Section 3.2).

These are local mechanisms. Nobody's true value reaches anyone, so there is no query, no ledger and no sensitivity: two
inputs are neighbours if they are two values that one person may hold, any value against any other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, sqrt
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidParameter
from tacit.primitives.mechanism import positive, printed
from tacit.primitives.noise import SYSTEM
from tacit.privacy.budget import Loss
from tacit.rational import Number, whole

if TYPE_CHECKING:
    from tacit.primitives.noise import Noise

_LN_3 = Fraction(10986122886681096914, 10**19)  # the natural logarithm of 3, rounded up
_MOST_CHOICES = 1024  # a response costs k g proposals: few where k is small or eps is
_MOST_PROPOSALS = 2**18


class Response(ABC):
    """One of k values goes in and one comes out: the truth with probability g, each other value with f."""

    __slots__ = ()

    @property
    @abstractmethod
    def choices(self) -> int:
        """k, how many values there are."""

    @property
    @abstractmethod
    def truth(self) -> float:
        """g, the probability of the truth."""

    @property
    @abstractmethod
    def other(self) -> float:
        """f, the probability of each other value."""

    @property
    @abstractmethod
    def margin(self) -> float:
        """g - f, on which every estimate rests."""

    @abstractmethod
    def loss(self) -> Loss:
        """What it costs a person to respond once."""

    @abstractmethod
    def sample(self, values: ArrayLike, noise: Noise) -> NDArray[np.int64]:
        """What is told instead of each value."""

    def randomise(self, values: ArrayLike) -> NDArray[np.int64]:
        """What to tell instead of each value 0 .. k-1: one draw of the system's noise for each person."""
        return self.sample(values, SYSTEM)

    def probabilities(self) -> NDArray[np.float64]:
        """Row by the true value, column by what is told."""
        law = np.full((self.choices, self.choices), self.other)
        np.fill_diagonal(law, self.truth)
        return law

    def estimate(self, told: ArrayLike) -> NDArray[np.float64]:
        """The fraction of people with each value, unbiased; it may leave [0, 1], and clamping is post-processing."""
        values = self._checked(told).ravel()
        if not values.size:
            raise InvalidParameter("nobody has responded, so there is nothing to estimate from.")
        seen = np.bincount(values, minlength=self.choices) / values.size
        # E[Y_v] = f + p_v (g - f) = 1/k + (p_v - 1/k) (g - f)
        return np.asarray((seen - 1 / self.choices) / self.margin + 1 / self.choices)

    def deviation(self, people: int, fraction: float) -> float:
        """The standard deviation of an estimate: people drawn at random, this fraction of whom hold the value."""
        told = self.other + fraction * self.margin
        return sqrt(told * (1 - told) / people) / self.margin

    def _checked(self, values: Any) -> NDArray[np.int64]:
        array = np.asarray(values)
        whole_numbers = array.dtype.kind in "biu" or not array.size
        if not whole_numbers or (array.size and not 0 <= array.min() <= array.max() < self.choices):
            raise InvalidParameter(f"values must be whole numbers from 0 to {self.choices - 1}. Nothing was drawn.")
        return array.astype(np.int64)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class RandomizedResponse(Response):
    """Keeps a value with probability g = e^eps/(e^eps + k - 1), else tells another of the k values, each alike.

    Privacy: eps-DP, local: g is e^eps times the chance of any other value; Claim 3.5 is k = 2, eps = ln 3.
    Accuracy: `estimate` is unbiased, `deviation` is its standard deviation (Section 3.2).

    >>> bit = RandomizedResponse(1)
    >>> bit, round(bit.truth, 10), round(bit.deviation(1000, 0.3), 10)
    (RandomizedResponse(epsilon=1), 0.7310585786, 0.0336254902)
    """

    epsilon: Fraction
    choices: int = 2

    def __init__(self, epsilon: Number, choices: int = 2) -> None:
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "choices", whole(choices, "the number of choices", 2, _MOST_CHOICES))

    def loss(self) -> Loss:
        return Loss.pure(self.epsilon)

    @property
    def truth(self) -> float:
        return 1 / (1 + (self.choices - 1) * exp(-self.epsilon))

    @property
    def other(self) -> float:
        return exp(-self.epsilon) * self.truth

    @property
    def margin(self) -> float:
        return -expm1(-self.epsilon) * self.truth  # a difference of floats would lose its digits for small epsilon

    def sample(self, values: ArrayLike, noise: Noise) -> NDArray[np.int64]:
        true = self._checked(values)
        return np.asarray((true + self._moves(true.size, noise).reshape(true.shape)) % self.choices)

    def _moves(self, size: int, noise: Noise) -> NDArray[np.int64]:
        # A move is proposed uniformly and kept with probability 1 if it is 0, else exp(-eps): of the moves that are
        # kept, in the order drawn, each is 0 with probability g, independently. Nothing here has seen a value.
        kept: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        missing, most = size, _MOST_PROPOSALS
        while missing > 0:
            moves = noise.uniform(self.choices, min(most, int(1.1 * missing * self.choices * self.truth) + 16))
            kept.append(moves[noise.bernoulli_exp((moves != 0).astype(np.int64), self.epsilon)])
            missing -= kept[-1].size
        return np.concatenate(kept)[:size]

    __repr__ = printed


@dataclass(frozen=True, slots=True)
class WarnerResponse(Response):
    """Warner's two coins, as in the book: tails, tell the truth; heads, tell what the second coin shows.

    Privacy: ln 3-DP, local (Claim 3.5; truth on *tails*, E5): yes is 3/4 given yes and 1/4 given no. The law is that of
    RandomizedResponse(ln 3); ln 3 is charged rounded up.  Accuracy: `estimate` is 2Y - 1/2, Y the fraction of yes.

    >>> WarnerResponse().probabilities().tolist(), WarnerResponse().estimate([1, 1, 1, 0]).tolist()
    ([[0.75, 0.25], [0.25, 0.75]], [0.0, 1.0])
    """

    choices: ClassVar[int] = 2
    truth: ClassVar[float] = 0.75
    other: ClassVar[float] = 0.25
    margin: ClassVar[float] = 0.5

    def loss(self) -> Loss:
        return Loss.pure(_LN_3)

    def sample(self, values: ArrayLike, noise: Noise) -> NDArray[np.int64]:
        true = self._checked(values)
        heads, second = noise.uniform(2, 2 * true.size).reshape(2, *true.shape)
        return np.where(heads == 1, second, true)
