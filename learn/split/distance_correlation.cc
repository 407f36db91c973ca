#include "learn/split/distance_correlation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/check.h"

namespace fedge::learn {
namespace {

// Distances of all pairs of rows, from which the means of both rows are subtracted and the mean of all is
// added.
std::vector<double> centred_distances(std::span<const float> values, std::size_t rows) {
  const std::size_t columns = values.size() / rows;
  std::vector<double> distances(rows * rows);
  std::vector<double> means(rows);
  double mean = 0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      double squares = 0;
      for (std::size_t c = 0; c < columns; ++c) {
        const double apart =
            static_cast<double>(values[i * columns + c]) - static_cast<double>(values[j * columns + c]);
        squares += apart * apart;
      }
      distances[i * rows + j] = distances[j * rows + i] = std::sqrt(squares);
    }
  const auto count = static_cast<double>(rows);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < rows; ++j) means[i] += distances[i * rows + j] / count;
    mean += means[i] / count;
  }
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < rows; ++j) distances[i * rows + j] += mean - means[i] - means[j];
  return distances;
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

double distance_correlation(std::span<const float> x, std::span<const float> y, std::size_t rows) {
  FEDGE_CHECK(rows > 0 && x.size() % rows == 0 && y.size() % rows == 0, "whole rows");
  const std::vector<double> a = centred_distances(x, rows);
  const std::vector<double> b = centred_distances(y, rows);
  const double scale = std::sqrt(product(a, a)) * std::sqrt(product(b, b));
  if (!(scale > 0)) return 0;
  return std::sqrt(std::clamp(product(a, b) / scale, 0.0, 1.0));
}

}  // namespace fedge::learn
