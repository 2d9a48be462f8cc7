"""The machinery of the noise: certified bounds, ties, tails, small words in full, entropy, refusals."""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.errors import InvalidParameter, NoiseUnavailable
from tacit.primitives import noise, tables
from tacit.primitives.certified import below, exp_bounds, exp_floats
from tacit.primitives.entropy import SystemEntropy
from tacit.primitives.noise import SYSTEM
from tacit.primitives.tables import Guided, Histogram, Law

ROOMS = Path(noise.__file__).parents[1]


@pytest.fixture(autouse=True)
def _many_digits() -> Iterator[None]:
    with mpmath.workprec(500):
        yield


class Tape:
    """Entropy that was written beforehand: numbers for `bits`, arrays for `words`, each used once."""

    def __init__(self, bits: list[int] | None = None, words: list[list[int]] | None = None) -> None:
        self.numbers, self.arrays = bits or [], words or []

    def bits(self, count: int) -> int:
        number = self.numbers.pop(0)
        assert 0 <= number < 1 << count
        return number

    def words(self, count: int, dtype: object = np.uint64) -> NDArray[np.unsignedinteger]:
        array = self.arrays.pop(0)
        assert len(array) == count
        return np.array(array, dtype)


class Fixed:
    """Every fraction is next to 0, or next to 1; a coin always shows 0."""

    def __init__(self, high: bool) -> None:
        self.high = high

    def bits(self, count: int) -> int:
        return 0 if count == 1 else (1 << count) - 1 if self.high else 1

    def words(self, count: int, dtype: object = np.uint64) -> NDArray[np.unsignedinteger]:
        raise AssertionError("not here")


LOW, HIGH = Fixed(False), Fixed(True)


def laplace(scale: Fraction) -> Law:
    return Law(1, scale.denominator, scale.numerator, True)


def geometric(scale: Fraction) -> Law:
    return Law(1, scale.denominator, scale.numerator, False)


def gaussian(variance: Fraction) -> Law:
    return Law(2, variance.denominator, 2 * variance.numerator, True)


def exp(num: int, den: int) -> mpmath.mpf:
    return mpmath.exp(-mpmath.mpf(num) / den)


def height(table: Histogram, z: int) -> mpmath.mpf:
    return table.weight * exp(*table.law.exponent(z))


ODD = Fraction(10**18 + 9, 7 * 10**16 + 3)
LAWS = {
    "laplace 1": laplace(Fraction(1)),
    "laplace 100": laplace(Fraction(100)),
    "laplace 14.28...": laplace(ODD),
    "laplace 10^4": laplace(Fraction(10**4)),
    "laplace 2^40": laplace(Fraction(2**40)),
    "laplace 10^-6": laplace(Fraction(1, 10**6)),
    "geometric 7/3": geometric(Fraction(7, 3)),
    "gaussian 1": gaussian(Fraction(1)),
    "gaussian 47.85...": gaussian(Fraction(335 * 10**17 + 1, 7 * 10**17)),
    "gaussian 10^8": gaussian(Fraction(10**8)),
    "gaussian 2^80": gaussian(Fraction(2**80)),
}
laws = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())


# --- certified values ------------------------------------------------------------------------------------------------


def test_the_bounds_enclose_the_exponential_and_lie_at_most_two_apart() -> None:
    for i in range(4000):
        num, den = SystemEntropy().bits(1 + i % 90), 1 + SystemEntropy().bits(1 + i * 7 % 90)
        bits = 1 + i % 300
        low, high = exp_bounds(num, den, bits)
        assert low <= 2**bits * exp(num, den) <= high <= low + 2
    assert exp_bounds(0, 5, 70) == (2**70, 2**70)
    assert exp_bounds(10**400, 1, 64) == (0, 1)


def test_the_float_exponential_is_within_its_bound() -> None:
    grid = np.arange(6000) * (float(mpmath.log(2)) / 128)  # where the reduction changes its multiple
    x = np.concatenate([grid, np.nextafter(grid, 99), np.linspace(0, 64, 9001), 2.0 ** -np.arange(1, 1070)])
    x = np.minimum(x, 64)
    worst = max(abs(y / exp(int(n), int(d)) - 1) for y, (n, d) in zip(exp_floats(x), map(ratio, x), strict=True))
    assert worst < mpmath.mpf(2) ** -50
    assert (exp_floats(np.array([65.0, 1e300, np.inf])) == exp_floats(np.array([64.0]))).all()


def ratio(x: float) -> tuple[int, int]:
    return float(x).as_integer_ratio()


@pytest.mark.parametrize("ties", [0, 1, 2, 5])
def test_a_comparison_goes_on_until_the_digits_part(ties: int) -> None:
    num, den, weight = 7, 3, 10**6
    target = weight * exp(num, den)
    known = int(target)
    digits = int(mpmath.floor((target - known) * mpmath.mpf(2) ** (64 * ties + 64)))
    equal = [digits >> 64 * (ties - i) & 2**64 - 1 for i in range(ties + 1)]
    for last, answer in ((equal[-1] - 1, True), (equal[-1] + 1, False)):
        tape = Tape([*equal[:-1], last])
        assert below(known, weight, num, den, tape) is answer
        assert not tape.numbers, "not all digits were needed"
    for far, answer in ((known - 10, True), (known + 10, False)):
        assert below(far, weight, num, den, Tape()) is answer


def test_a_certain_coin_needs_no_bits() -> None:
    assert below(2**53 - 1, 2**53, 0, 1, Tape())
    assert not below(2**53, 2**53, 0, 1, Tape())


# --- histograms: all words of a short kind ---------------------------------------------------------------------------

SHORT = {
    "laplace 1": (laplace(Fraction(1)), 2, 3),
    "laplace 7/3": (laplace(Fraction(7, 3)), 2, 4),
    "laplace 20": (laplace(Fraction(20)), 2, 3),
    "laplace 1/20": (laplace(Fraction(1, 20)), 2, 3),
    "geometric 5": (geometric(Fraction(5)), 1, 4),
    "geometric 1/2": (geometric(Fraction(1, 2)), 1, 2),
    "gaussian 25/4": (gaussian(Fraction(25, 4)), 2, 4),
    "gaussian 100": (gaussian(Fraction(100)), 1, 2),
}


@pytest.mark.parametrize("guide", [0, 4])
@pytest.mark.parametrize("case", SHORT.values(), ids=SHORT.keys())
def test_over_all_words_every_integer_gets_exactly_its_share(
    case: tuple[Law, int, int], guide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    law, fineness, reach = case
    chances: list[mpmath.mpf] = []

    def keep(known: int, weight: int, num: int, den: int, _: object) -> bool:
        chances.append(min(max(weight * exp(num, den) - known, mpmath.mpf(0)), mpmath.mpf(1)))
        return True

    monkeypatch.setattr(tables, "below", keep)
    table = Histogram(law, fineness, reach, word=10, guide=guide)
    assert table.begins[-1] <= 2**10
    masses: dict[int, mpmath.mpf] = defaultdict(mpmath.mpf)
    owners = [b for b, level in zip(table.blocks, table.levels, strict=True) for _ in range(level << table.step)]
    assert len(owners) == table.owned
    assert table.owned == 0 or guide
    for word, block in enumerate(owners):  # these are below the floors
        masses[(block << table.step) + word % 2**table.step] += 1
    tails = table.begins[len(table.blocks)]
    depth = 25
    for word in range(table.owned, 2**10):
        for turn in range(depth if tails <= word < table.begins[-1] else 1):
            chances.clear()
            tape = Tape([1] * turn + [0])
            z = table.settle(word, tape)
            tossed = turn + 1 - len(tape.numbers)
            if z is not None:
                masses[z] += mpmath.mpf(2) ** -tossed * (chances[0] if chances else 1)
            if not tossed:
                break
    reached = table.end + (1 << table.fall) * (depth - 1)  # as far as the coins were followed
    assert min(masses) < -table.end or not law.two_sided
    assert max(masses) >= reached > table.end
    for z in range(-reached if law.two_sided else 0, reached):
        assert abs(masses[z] - height(table, z)) < mpmath.mpf(10) ** -100, z
    if not law.two_sided:
        assert min(masses) == 0


# --- histograms: full words ------------------------------------------------------------------------------------------


@laws
@pytest.mark.parametrize("fine", [False, True])
def test_every_top_and_floor_is_certified(law: Law, fine: bool) -> None:
    table = Guided(law).histogram if fine else Histogram(law)
    assert table.begins == sorted(table.begins)
    assert 2**64 - 2**50 < table.begins[-1] <= 2**64
    width = 1 << table.step
    step = max(1, len(table.blocks) // 300)
    for i in sorted({*range(0, len(table.blocks), step), len(table.blocks) - 1}):
        level, begin, end = table.levels[i], table.begins[i], table.begins[i + 1]
        top = level + (end - begin) // width
        assert (end - begin) % width == 0
        assert level <= table.floors[i] <= top
        first = table.blocks[i] * width
        for z in {first, first + width - 1}:  # f is monotone on a block
            assert table.floors[i] <= height(table, z) <= top
    assert height(table, table.end) <= table.top
    steep = exp(*law.exponent(table.end + (1 << table.fall))) / exp(*law.exponent(table.end))
    assert steep <= mpmath.mpf(1) / 2
    covered = {b << table.step for b in table.blocks}
    assert covered == set(range(-table.end if law.two_sided else 0, table.end, width))


@laws
def test_arrays_and_integers_settle_every_border_alike(law: Law) -> None:
    guided = Guided(law)
    table = guided.histogram
    borders = {b + d for b in table.begins for d in (-1, 0, 1)}
    for i in range(0, len(table.blocks), max(1, len(table.blocks) // 200)):  # and around the curve in every block
        for r in {0, (1 << table.step) // 3, (1 << table.step) - 1}:
            z = (table.blocks[i] << table.step) + r
            curve = int(height(table, z)) - table.levels[i]
            borders |= {table.begins[i] + ((curve + d) << table.step) + r for d in (-(2**30), -1, 0, 1, 2**30)}
    words = sorted(b for b in borders if table.owned <= b < 2**64)
    for entropy in (LOW, HIGH):
        values, kept = guided.settle(np.array(words, np.uint64), entropy)
        exact = [table.settle(word, entropy) for word in words]
        assert [int(v) if k else None for v, k in zip(values, kept, strict=True)] == exact


@pytest.mark.parametrize("name", sorted(LAWS.keys() - {"laplace 10^-6"}))
def test_the_word_on_the_curve_is_decided_by_the_fraction(name: str) -> None:
    table = Guided(LAWS[name]).histogram
    i = len(table.blocks) // 3
    z = table.blocks[i] << table.step
    word = table.begins[i] + (int(height(table, z)) - table.levels[i] << table.step)
    assert table.settle(word, LOW) == z
    assert table.settle(word, HIGH) is None
    assert table.settle(word - (1 << table.step), HIGH) == z


def test_a_tail_reaches_as_far_as_its_coins() -> None:
    table = Histogram(geometric(Fraction(100)))
    tail = table.begins[len(table.blocks)]
    later = tail + (table.top << table.fall)
    assert table.settle(tail, LOW) == table.end
    assert table.settle(tail + 5, LOW) == table.end + 5
    for heads in range(3):
        z = table.settle(later, Tape([1] * heads + [0] + [0] * 9))
        assert z == table.end + (1 + heads << table.fall)
    assert table.settle(table.begins[-1], LOW) is None


# --- bulk draws from written words -----------------------------------------------------------------------------------


def test_sixteen_bits_name_the_block_and_others_the_place_in_it() -> None:
    guided = Guided(laplace(Fraction(10**4)))
    table = guided.histogram
    cells = [0, 1, 30000, (table.owned >> 48) - 1]
    offsets = [0, 1 << 9, 65535, 77]
    owners = np.repeat(table.blocks, [level >> 48 - table.step for level in table.levels])
    tape = Tape(words=[cells, offsets, []])
    expected = [(int(owners[c]) << table.step) + (o >> 16 - table.step) for c, o in zip(cells, offsets, strict=True)]
    assert guided.draw(4, tape).tolist() == expected
    assert not tape.arrays


def test_a_word_thrown_away_is_drawn_again_in_its_place() -> None:
    guided = Guided(laplace(Fraction(10**4)))
    table = guided.histogram
    i = 5
    away = table.begins[i + 1] - 1  # just under the top of a block, at its far end
    assert table.settle(away, HIGH) is None
    shared = [away >> 48, away << 16 & 2**64 - 1]
    tape = Tape(words=[[0, shared[0], 0], [3 << 9, 0, 4 << 9], [shared[1]], [0], [5 << 9], []])
    assert guided.draw(3, tape).tolist() == [3, 5, 4]
    assert not tape.arrays


def test_uniform_words_past_the_last_full_round_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_ENTROPY", Tape(words=[[65534, 65535, 4], [65535], [2]]))
    assert SYSTEM.uniform(3, 3).tolist() == [2, 1, 2]


def test_a_coin_on_the_edge_looks_at_further_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    third = 2**64 // 3  # 1/3 is 0.0101...: all its words are alike
    monkeypatch.setattr(
        noise, "_ENTROPY", Tape(words=[[third - 1, third, third + 1, third], [third, third - 1], [third + 1]])
    )
    assert SYSTEM.bernoulli(Fraction(1, 3), 4).tolist() == [True, False, False, True]
    monkeypatch.setattr(noise, "_ENTROPY", Tape(words=[[2**63 - 1, 2**63]]))
    assert SYSTEM.bernoulli(Fraction(1, 2), 2).tolist() == [True, False]


@pytest.mark.parametrize("count", [3, 60])  # one by one, and in arrays
@pytest.mark.parametrize("x", [Fraction(1, 10**9), Fraction(1, 3), Fraction(17), Fraction(36), Fraction(80)])
def test_exponential_coins_know_the_side_of_every_word(
    x: Fraction, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    curve = int(2**53 * exp(x.numerator, x.denominator))
    words = [curve, curve + 1, max(curve - 1, 0)] * (count // 3)
    for fraction, answer in ((0, True), (2**64 - 1, False)):
        tape = Tape([fraction] * 4 * count, [[w << 11 | 5 for w in words]])
        monkeypatch.setattr(noise, "_ENTROPY", tape)
        exponents = np.full(len(words), x.numerator, np.int64)
        drawn = SYSTEM.bernoulli_exp(exponents, Fraction(1, x.denominator)).reshape(-1, 3)
        assert (drawn == [answer, False, answer or curve > 0]).all()


def test_choices_start_and_end_where_they_should(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are found in a line of equal tops whatever their order: one by one, and many at once."""
    size = 3 * 2**14 + 5
    points = 2**40 + 1  # of each index with exponent 0
    line = size * points
    mask = (1 << 64) // line * line  # what is uniform below the line comes from words below this
    ends = [0, 1, 2**14 - 1, 2**14, 2**14 + 1, 2**15, 3 * 2**14, size - 1]
    for indices in ([index] for index in ends), [ends, ends[::-1], 5 * [*ends[3:], *ends[:3]]]:
        for wanted in indices:
            for within in (0, 2**40 - 1):
                words = [index * points + within for index in wanted]
                assert max(words) < mask
                monkeypatch.setattr(noise, "_ENTROPY", Tape(words=[words]))
                assert SYSTEM.weighted(np.zeros(size, np.int64), Fraction(1), len(words)).tolist() == wanted


@pytest.mark.parametrize("copies", [1, 20])  # one by one, and in arrays
def test_a_point_above_the_curve_is_drawn_again_in_its_place(copies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    exponents = np.array([0, 3], np.int64)
    first, curve = 2**40 + 1, int(2**40 * exp(3, 7))
    words = [
        first - 1,
        5,
        first + curve,
        first + curve - 1,
        first + curve + 1,
    ] * copies  # above, kept, tie, kept, above
    for fraction, tied in ((0, True), (2**64 - 1, False)):
        again = (2 if tied else 3) * copies
        tape = Tape([fraction] * 3 * len(words), [words, [7] * again])
        monkeypatch.setattr(noise, "_ENTROPY", tape)
        drawn = SYSTEM.weighted(exponents, Fraction(1, 7), len(words))
        assert drawn.tolist() == [0, 0, int(tied), 1, 0] * copies
        assert not tape.arrays


def test_the_longest_line_of_points_can_be_drawn_from() -> None:
    for size in (1, 2**20, 2**21 - 1, 2**21, 2**31 - 1, 2**36):
        bits = min(40, 61 - size.bit_length())
        assert size * int(noise._tops(np.zeros(1, np.int64), Fraction(1), bits)[0]) < 2**62


def test_the_tops_of_a_choice_are_above_the_curve_and_close_to_it() -> None:
    exponents = np.array([0, 1, 2, 50, 1000, 10**6, 2**62], np.int64)
    for rate in (Fraction(1, 10**30), Fraction(1, 7), Fraction(10**18 + 9, 10**18), Fraction(10**30)):
        for bits in (40, 33):
            tops = noise._tops(exponents, rate, bits)
            for e, top in zip(exponents, tops, strict=True):
                curve = 2**bits * exp(int(e) * rate.numerator, rate.denominator)
                assert curve <= top <= curve + 2


# --- entropy ---------------------------------------------------------------------------------------------------------

DRAWS: dict[str, Callable[[int], object]] = {
    "uniform": lambda n: SYSTEM.uniform(10**6, n),
    "bernoulli": lambda n: SYSTEM.bernoulli(Fraction(1, 3), n),
    "bernoulli_exp": lambda n: SYSTEM.bernoulli_exp(np.ones(n, np.int64), Fraction(1, 3)),
    "geometric": lambda n: SYSTEM.geometric(Fraction(10**6), n),
    "laplace": lambda n: SYSTEM.laplace(Fraction(10**6), n),
    "gaussian": lambda n: SYSTEM.gaussian(Fraction(10**12), n),
    "weighted": lambda n: SYSTEM.weighted(np.zeros(n, np.int64), Fraction(1), 1),
    "weighted, often": lambda n: SYSTEM.weighted(np.zeros(5, np.int64), Fraction(1), n),
}


@pytest.mark.parametrize("size", [1, 10, 100, 100_000])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS.keys())
def test_without_entropy_there_is_no_noise(
    draw: Callable[[int], object], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw(size)  # tables may be made already: they are no source of randomness

    def fail(_: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "urandom", fail)
    with pytest.raises(NoiseUnavailable, match="no second source"):
        draw(size)


def test_entropy_that_fails_half_way_gives_no_half_of_a_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    left, real = [3], os.urandom

    def fail(count: int) -> bytes:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(5, "Input/output error")
        return real(count)

    monkeypatch.setattr(os, "urandom", fail)
    with pytest.raises(NoiseUnavailable):
        SYSTEM.laplace(Fraction(10**6), 10**6)


def test_every_key_is_fresh_and_every_word_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    keys, real = [], os.urandom

    def watched(count: int) -> bytes:
        keys.append(real(count))
        return keys[-1]

    monkeypatch.setattr(os, "urandom", watched)
    for dtype in (np.uint16, np.uint32, np.uint64):
        words = SystemEntropy().words(700_001, dtype)
        assert words.dtype == dtype
        assert words.shape == (700_001,)
        # 10^5 words from each end: all zero has probability 0, and a mean 12 standard deviations off below 1e-30
        for part in (words[:100_000], words[-100_000:]):
            assert abs(part.mean() / np.iinfo(dtype).max - 0.5) < 12 * (1 / 12 / 100_000) ** 0.5
    assert all(len(key) == 32 for key in keys)
    assert len(set(keys)) == len(keys) == 2 + 3 + 6


def test_bits_are_within_their_width() -> None:
    # 2,000 draws of each: a value missing has probability 8 (7/8)^2000 < 1e-100
    assert {SystemEntropy().bits(3) for _ in range(2000)} == set(range(8))
    assert SystemEntropy().bits(0) == 0
    assert SystemEntropy().words(0).shape == (0,)


def test_two_children_and_their_parent_draw_differently() -> None:
    DRAWS["laplace"](5000)  # tables and modules are there before the fork

    def told(pipe: int) -> bytes:
        with os.fdopen(pipe, "rb") as end:
            return end.read()

    said = []
    for _ in range(2):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.write(
                write, SYSTEM.laplace(Fraction(10**6), 3).tobytes() + SYSTEM.laplace(Fraction(10**6), 1000).tobytes()
            )
            os._exit(0)
        os.close(write)
        said.append(told(read))
        os.waitpid(child, 0)
    own = SYSTEM.laplace(Fraction(10**6), 3).tobytes() + SYSTEM.laplace(Fraction(10**6), 1000).tobytes()
    for part in (slice(0, 24), slice(24, None)):  # three equal draws by chance: below 1e-17
        assert len({bytes(x[part]) for x in (*said, own)}) == 3


def test_threads_share_tables_and_nothing_else() -> None:
    scale = Fraction(987654321, 1000)  # seen nowhere before: all threads make its tables at once
    with ThreadPoolExecutor(8) as pool:
        drawn = list(pool.map(lambda n: SYSTEM.laplace(scale, n), [5, 2000] * 40))
    assert len({x.tobytes() for x in drawn}) == 80  # five equal draws by chance: below 1e-25
    spread = np.abs(np.concatenate(drawn)).mean() / float(scale)
    assert abs(spread - 1) < 6 / (40 * 2005) ** 0.5  # |z| is exponential within 1e-6; false alarm 2e-9


def test_no_room_touches_a_random_generator_that_can_be_guessed() -> None:
    private = {"primitives", "curator", "privacy", "engines"}
    for path in ROOMS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
            else:
                names = []
            assert "random" not in {name.split(".")[0] for name in names}, path
            assert not any(name.startswith("numpy.random") for name in names), path
            if isinstance(node, ast.Attribute) and ast.unparse(node).startswith(("np.random.", "numpy.random.")):
                # elsewhere only what takes a seed, for post-processing
                assert node.attr in {"Generator", "default_rng"}, path
                assert path.relative_to(ROOMS).parts[0] not in private, path
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng"):
                assert node.args or node.keywords, path


# --- refusals and shapes ---------------------------------------------------------------------------------------------

TWICE = Fraction(2**41)


@pytest.mark.parametrize(
    "ask",
    [
        *(
            lambda s=s: SYSTEM.laplace(s, 1)
            for s in (Fraction(0), Fraction(-1), TWICE, 1 / TWICE, 0.5, "1", None, True)
        ),
        *(lambda s=s: SYSTEM.geometric(s, 1) for s in (Fraction(0), TWICE, 1 / TWICE, float("nan"))),
        *(lambda s=s: SYSTEM.gaussian(s, 1) for s in (Fraction(0), TWICE**2, 1 / TWICE**2, float("inf"))),
        *(lambda n=n: SYSTEM.laplace(Fraction(1), n) for n in (-1, 1.0, True, "3", 2**60)),
        *(lambda p=p: SYSTEM.bernoulli(p, 1) for p in (Fraction(-1, 2), Fraction(3, 2), 0.5)),
        *(lambda b=b: SYSTEM.uniform(b, 1) for b in (0, -1, 2**62 + 1, 2.0)),
        lambda: SYSTEM.bernoulli_exp(np.array([-1]), Fraction(1)),
        lambda: SYSTEM.bernoulli_exp(np.array([1.0]), Fraction(1)),
        lambda: SYSTEM.bernoulli_exp(np.array([[1]]), Fraction(1)),
        lambda: SYSTEM.bernoulli_exp(np.array([1]), Fraction(0)),
        lambda: SYSTEM.weighted(np.array([], np.int64), Fraction(1), 1),
        lambda: SYSTEM.weighted(np.array([1, 2]), Fraction(1), 1),
        lambda: SYSTEM.weighted(np.array([0, -2]), Fraction(1), 1),
        *(lambda n=n: SYSTEM.weighted(np.array([0, 2]), Fraction(1), n) for n in (-1, 1.0, True, 2**60)),
    ],
)
def test_what_has_no_law_is_refused(ask: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        ask()


def test_a_seed_has_no_place() -> None:
    with pytest.raises(TypeError):
        noise.SystemNoise(seed=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        noise.SystemNoise().seed = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("size", [0, 1, 16, 17, 1025, 2**16, 2**16 + 1])
def test_there_are_as_many_draws_as_asked(size: int) -> None:
    for draw in (SYSTEM.laplace, SYSTEM.geometric, SYSTEM.gaussian):
        for parameter in (Fraction(3), Fraction(10**6)):
            drawn = draw(parameter, size)
            assert drawn.shape == (size,)
            assert drawn.dtype == np.int64
    assert SYSTEM.uniform(7, size).shape == (size,)
    assert SYSTEM.bernoulli(Fraction(1), size).all()
    assert not SYSTEM.bernoulli(Fraction(0), size).any()
    assert SYSTEM.bernoulli_exp(np.zeros(size, np.int64), Fraction(1)).shape == (size,)
    chosen = SYSTEM.weighted(np.zeros(3, np.int64), Fraction(1), size)
    assert chosen.shape == (size,)
    assert chosen.dtype == np.int64


def test_few_tables_are_kept() -> None:
    for i in range(200):
        SYSTEM.laplace(Fraction(1, 3) + i, 1)
    assert tables.tables.cache_info().currsize <= 64
