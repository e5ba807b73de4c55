"""A foreign embedder cannot bring a vector into the store that would spoil a ranking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from supersede.adapters.vectors import embed_checked, embed_or_none
from supersede.errors import (
    DimensionMismatch,
    EmbedderError,
    EmbedderUnavailable,
    ServerUnavailable,
)

GOOD = [0.6, 0.8, 0.0]


class Fake:
    """Returns what it was given, or raises it."""

    model = "fake"
    dimensions = 3

    def __init__(self, returns: Any) -> None:
        self.returns = returns
        self.calls = 0

    def embed(self, texts: list[str]) -> Any:
        self.calls += 1
        if isinstance(self.returns, BaseException):
            raise self.returns
        return self.returns


def matrix(*rows: list[float], dtype: Any = np.float32) -> Any:
    return np.array(rows, dtype=dtype)


UNUSABLE = {
    "zero vector": [0.0, 0.0, 0.0],
    "noise around zero": [1e-20, 0.0, 0.0],
    "NaN": [0.6, float("nan"), 0.0],
    "infinity": [float("inf"), 0.0, 0.0],
    "minus infinity": [0.6, 0.8, float("-inf")],
}


@pytest.mark.parametrize("row", UNUSABLE.values(), ids=UNUSABLE)
def test_a_vector_without_direction_is_refused_with_its_position(row: list[float]):
    with pytest.raises(EmbedderError) as caught:
        embed_checked(Fake(matrix(GOOD, row, GOOD, row)), ["a", "b", "c", "d"])
    assert caught.value.details == {"rows": [1, 3], "texts": 4}


@pytest.mark.parametrize("row", UNUSABLE.values(), ids=UNUSABLE)
def test_a_write_keeps_the_good_vectors_beside_one_without_direction(row: list[float]):
    with capture_logs() as logs:
        first, second, third = embed_or_none(Fake(matrix(GOOD, row, GOOD)), ["a", "b", "c"])
    assert first is not None
    assert third is not None
    assert second is None
    np.testing.assert_array_equal(first, np.float32(GOOD))
    assert [(log["event"], log["log_level"], log["unembedded"]) for log in logs] == [
        ("embedder_failed", "warning", 1)
    ]


@pytest.mark.parametrize("embed", [embed_checked, embed_or_none])
@pytest.mark.parametrize(
    ("returned", "got"),
    [
        pytest.param(matrix(GOOD[:2], GOOD[:2]), 2, id="all shorter"),
        pytest.param(matrix([*GOOD, 0], [*GOOD, 0]), 4, id="all longer"),
        pytest.param([GOOD, GOOD[:2]], 2, id="one shorter"),
        pytest.param(matrix([], []), 0, id="none at all"),
    ],
)
def test_a_wrong_dimension_is_refused(embed: Any, returned: Any, got: int):
    with pytest.raises(DimensionMismatch, match=rf"has 3 dimensions, .* of {got}\.") as caught:
        embed(Fake(returned), ["a", "b"])
    assert caught.value.details == {"model": "fake", "expected": 3, "got": got}


@pytest.mark.parametrize(
    "returned",
    [
        pytest.param(matrix(GOOD), id="too few"),
        pytest.param(matrix(GOOD, GOOD, GOOD), id="too many"),
        pytest.param(matrix(GOOD)[0], id="one vector, no matrix"),
        pytest.param(np.zeros((2, 3, 1)), id="cube"),
        pytest.param(["a", "b"], id="text"),
        pytest.param(None, id="nothing"),
        pytest.param([GOOD, None], id="a hole"),
    ],
)
def test_what_cannot_be_assigned_to_the_texts_is_refused(returned: Any):
    with pytest.raises(EmbedderError):
        embed_checked(Fake(returned), ["a", "b"])
    with capture_logs() as logs:
        assert embed_or_none(Fake(returned), ["a", "b"]) == [None, None]
    assert [log["unembedded"] for log in logs] == [2]


def test_an_embedder_that_is_down_is_one_error_type_with_its_cause():
    down = ConnectionError("https://user:secret@models.example/v1")
    with pytest.raises(EmbedderUnavailable, match="ConnectionError") as caught:
        embed_checked(Fake(down), ["a"])
    assert caught.value.__cause__ is down
    assert "secret" not in str(caught.value)


def test_an_embedder_that_is_down_leaves_the_write_unembedded_and_says_so():
    with capture_logs() as logs:
        answers = embed_or_none(Fake(ConnectionError("key=secret")), ["a", "b"])
    assert answers == [None, None]
    assert logs == [
        {
            "event": "embedder_failed",
            "log_level": "warning",
            "error": "The embedder did not answer (ConnectionError).",
            "unembedded": 2,
        }
    ]


def test_our_own_errors_pass_through():
    missing = EmbedderUnavailable("install it")
    with pytest.raises(EmbedderUnavailable) as caught:
        embed_checked(Fake(missing), ["a"])
    assert caught.value is missing
    with capture_logs() as logs:
        assert embed_or_none(Fake(missing), ["a"]) == [None]
    assert logs[0]["error"] == "install it"
    with pytest.raises(ServerUnavailable):
        embed_or_none(Fake(ServerUnavailable()), ["a"])


def test_an_interrupt_is_not_an_embedder_that_is_down():
    with pytest.raises(KeyboardInterrupt):
        embed_or_none(Fake(KeyboardInterrupt()), ["a"])


@pytest.mark.parametrize("scale", [1e-9, 0.5, 1.002, 70_000.0, 1e30])
def test_vectors_of_any_length_come_out_at_unit_length(scale: float):
    # 70,000 is where half precision overflows; 1e30 squared overflows single precision.
    vectors = embed_checked(Fake(matrix(GOOD, GOOD) * np.float32(scale)), ["a", "b"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [GOOD, GOOD], rtol=1e-6)
    assert np.isfinite(vectors.astype(np.float16)).all()


def test_a_vector_of_unit_length_keeps_its_bits():
    nearly = matrix([0.6003, 0.8, 0.0])
    np.testing.assert_array_equal(embed_checked(Fake(nearly), ["a"]), nearly)


def test_the_embedder_s_own_array_is_left_alone():
    own = matrix([3.0, 4.0, 0.0])
    own.flags.writeable = False
    vectors = embed_checked(Fake(own), ["a"])
    vectors[0, 0] = 9
    np.testing.assert_array_equal(own, [[3, 4, 0]])


@pytest.mark.parametrize("returned", [matrix(GOOD, dtype=np.float64), [GOOD], [[3, 4, 0]]])
def test_lists_and_double_precision_will_do(returned: Any):
    vectors = embed_checked(Fake(returned), ["a"])
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, [GOOD], rtol=1e-6)


def test_no_texts_need_no_embedder():
    down = Fake(ConnectionError())
    assert embed_checked(down, []).shape == (0, 3)
    assert embed_or_none(down, []) == []
    assert down.calls == 0
