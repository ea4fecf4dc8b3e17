"""Compiled linear algebra on Laplacians of item pairs: filling a matrix, and conjugate gradients for many at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.models.compiled import compiled
from steelyard.observations import FloatArray, IntArray


class Laplacian(NamedTuple):
    """A sparse symmetric matrix: `diagonal`, and minus `weight` at every pair (`first`, `second`) of rows."""

    first: IntArray
    second: IntArray
    weight: FloatArray
    diagonal: NDArray[np.floating]


@compiled
def fill_laplacian(first: IntArray, second: IntArray, weight: FloatArray, size: int) -> FloatArray:
    """Return the upper triangle of the dense size × size Laplacian Σ w (e_i − e_j)(e_i − e_j)ᵀ; first < second."""
    matrix = np.zeros((size, size))
    for pair in range(len(first)):
        i, j, w = first[pair], second[pair], weight[pair]
        matrix[i, i] += w
        matrix[j, j] += w
        matrix[i, j] -= w
    return matrix


@compiled
def neighbours(
    first: IntArray, second: IntArray, weight: FloatArray, vectors: NDArray[np.floating]
) -> NDArray[np.floating]:
    """Return Σⱼ w_ij x_j for every item and column of `vectors` (items × columns)."""
    out = np.zeros_like(vectors)
    for pair in range(len(first)):
        i, j, w = first[pair], second[pair], vectors.dtype.type(weight[pair])
        for column in range(vectors.shape[1]):
            out[i, column] += w * vectors[j, column]
            out[j, column] += w * vectors[i, column]
    return out


@compiled
def image_along(matrix: Laplacian, search: NDArray[np.floating]) -> tuple[NDArray[np.floating], FloatArray]:
    """Return the matrix times every column of `search`, and the product of each column with its image."""
    image = neighbours(matrix.first, matrix.second, matrix.weight, search)
    along = np.zeros(search.shape[1])
    for i in range(len(search)):
        for c in range(search.shape[1]):
            image[i, c] = matrix.diagonal[i] * search[i, c] - image[i, c]
            along[c] += image[i, c] * search[i, c]
    return image, along


@compiled
def conjugate_gradients(
    matrix: Laplacian, right: NDArray[np.floating], tolerance: float, max_steps: int
) -> NDArray[np.floating]:
    """Solve matrix · X = right for all columns at once, preconditioned by the diagonal.

    Stops when the residual of every column has fallen by the factor `tolerance`, or after `max_steps` steps.
    """
    diagonal = matrix.diagonal
    n, k = right.shape
    x = np.zeros_like(right)
    residual = right.copy()
    search = np.empty_like(right)
    size, start, step, grow = np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k)
    for i in range(n):
        for c in range(k):
            search[i, c] = residual[i, c] / diagonal[i]
            size[c] += search[i, c] * residual[i, c]
    start[:] = size
    for _ in range(max_steps):
        done = True
        for c in range(k):
            if size[c] > tolerance * tolerance * start[c]:
                done = False
        if done:
            break
        image, along = image_along(matrix, search)
        for c in range(k):
            step[c] = size[c] / along[c] if along[c] > 0 else 0.0
            grow[c] = 0.0
        for i in range(n):
            for c in range(k):
                x[i, c] += step[c] * search[i, c]
                residual[i, c] -= step[c] * image[i, c]
                grow[c] += residual[i, c] * residual[i, c] / diagonal[i]
        for c in range(k):
            step[c] = grow[c] / size[c] if size[c] > 0 else 0.0
            size[c] = grow[c]
        for i in range(n):
            for c in range(k):
                search[i, c] = residual[i, c] / diagonal[i] + step[c] * search[i, c]
    return x


@compiled
def edge_noise(
    first: IntArray, second: IntArray, root: FloatArray, byte: NDArray[np.uint8], normal: NDArray[np.float32], n: int
) -> NDArray[np.float32]:
    """Return Σ √w z (e_i − e_j) for every column of `byte` (pairs × columns), z being normal[byte]."""
    columns = byte.shape[1]
    noise = np.zeros((n, columns), np.float32)
    for pair in range(len(first)):
        i, j, r = first[pair], second[pair], np.float32(root[pair])
        for column in range(columns):
            z = r * normal[byte[pair, column]]
            noise[i, column] += z
            noise[j, column] -= z
    return noise
