// Distance correlation of two sets of vectors (Szekely, Rizzo, Bakirov, Annals of Statistics 2007, definition
// 3): 0 if they are independent, 1 if one is a similarity transformation of the other. In split training it
// says how much the activations at the cut tell of their inputs (Vepakomma et al., NoPeek, 2020).
#pragma once

#include <cstddef>
#include <span>

namespace fedge::learn {

// The empirical distance correlation of rows x[i] and y[i], from 0 to 1; 0 if all rows of one set are alike.
// `x` has rows * columns floats, `y` likewise with its own columns. Cost: rows^2 * columns, and 16 bytes a
// pair of rows.
double distance_correlation(std::span<const float> x, std::span<const float> y, std::size_t rows);

}  // namespace fedge::learn
