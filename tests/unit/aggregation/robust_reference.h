// A reference of the robust rules: each follows its definition in double, one number at a time, and shares
// nothing with the code under test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace fedge::aggregation::reference {

using Matrix = std::vector<std::vector<float>>;  // one row for each client
using Vector = std::vector<double>;

inline Vector column(const Matrix& rows, std::size_t c) {
  Vector values;
  for (const auto& row : rows) values.push_back(static_cast<double>(row[c]));
  return values;
}

inline double median_of(Vector values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

inline double mean_of(const Vector& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

inline Vector median(const Matrix& rows) {
  Vector out;
  for (std::size_t c = 0; c < rows[0].size(); ++c) out.push_back(median_of(column(rows, c)));
  return out;
}

inline Vector trimmed_mean(const Matrix& rows, std::size_t trim) {
  Vector out;
  for (std::size_t c = 0; c < rows[0].size(); ++c) {
    Vector values = column(rows, c);
    std::sort(values.begin(), values.end());
    out.push_back(mean_of(Vector(values.begin() + static_cast<std::ptrdiff_t>(trim),
                                 values.end() - static_cast<std::ptrdiff_t>(trim))));
  }
  return out;
}

inline double squared_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t c = 0; c < a.size(); ++c) {
    const double d = static_cast<double>(a[c]) - static_cast<double>(b[c]);
    sum += d * d;
  }
  return sum;
}

// Krum's score of `row` among the rows listed in `left`.
inline double krum_score(const Matrix& rows, const std::vector<std::size_t>& left, std::size_t row,
                         std::size_t neighbours) {
  Vector distances;
  for (const std::size_t other : left)
    if (other != row) distances.push_back(squared_distance(rows[row], rows[other]));
  std::sort(distances.begin(), distances.end());
  double sum = 0;
  for (std::size_t k = 0; k < neighbours; ++k) sum += distances[k];
  return sum;
}

inline std::size_t krum_winner(const Matrix& rows, const std::vector<std::size_t>& left,
                               std::size_t neighbours) {
  std::size_t winner = left[0];
  for (const std::size_t row : left)
    if (krum_score(rows, left, row, neighbours) < krum_score(rows, left, winner, neighbours)) winner = row;
  return winner;
}

inline std::vector<std::size_t> numbers(std::size_t count) {
  std::vector<std::size_t> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

inline Vector mean_of_rows(const Matrix& rows, const std::vector<std::size_t>& chosen) {
  Vector out(rows[0].size(), 0.0);
  for (std::size_t c = 0; c < out.size(); ++c) {
    for (const std::size_t row : chosen) out[c] += static_cast<double>(rows[row][c]);
    out[c] /= static_cast<double>(chosen.size());
  }
  return out;
}

inline Vector multi_krum(const Matrix& rows, std::size_t byzantine, std::size_t select) {
  std::vector<std::size_t> order = numbers(rows.size());
  Vector scores;
  for (const std::size_t row : order)
    scores.push_back(krum_score(rows, order, row, rows.size() - byzantine - 2));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  order.resize(select);
  return mean_of_rows(rows, order);
}

// The mean of the `keep` values closest to their median; of two equally close values, the smaller one comes
// first.
inline double mean_of_closest(Vector values, std::size_t keep) {
  const double median = median_of(values);
  std::sort(values.begin(), values.end(), [&](double a, double b) {
    const double to_a = std::abs(a - median);
    const double to_b = std::abs(b - median);
    return to_a != to_b ? to_a < to_b : a < b;
  });
  values.resize(keep);
  return mean_of(values);
}

inline Vector bulyan(const Matrix& rows, std::size_t byzantine) {
  std::vector<std::size_t> left = numbers(rows.size());
  Matrix selected;
  for (std::size_t step = 0; step < rows.size() - 2 * byzantine; ++step) {
    const std::size_t others = left.size() - 1;
    const std::size_t wanted = left.size() > byzantine + 2 ? left.size() - byzantine - 2 : 1;
    const std::size_t winner = krum_winner(rows, left, std::min(wanted, others));
    selected.push_back(rows[winner]);
    left.erase(std::find(left.begin(), left.end(), winner));
  }
  Vector out;
  for (std::size_t c = 0; c < rows[0].size(); ++c)
    out.push_back(mean_of_closest(column(selected, c), selected.size() - 2 * byzantine));
  return out;
}

inline double distance_to(const std::vector<float>& row, const Vector& z) {
  double sum = 0;
  for (std::size_t c = 0; c < z.size(); ++c)
    sum += (static_cast<double>(row[c]) - z[c]) * (static_cast<double>(row[c]) - z[c]);
  return std::sqrt(sum);
}

inline Vector weighted_mean(const Matrix& rows, const Vector& weights) {
  Vector out(rows[0].size(), 0.0);
  double total = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    total += weights[row];
    for (std::size_t c = 0; c < out.size(); ++c) out[c] += weights[row] * static_cast<double>(rows[row][c]);
  }
  for (double& value : out) value /= total;
  return out;
}

// The sum of weighted distances that the geometric median minimises.
inline double objective(const Matrix& rows, const Vector& weights, const Vector& z) {
  double sum = 0;
  for (std::size_t row = 0; row < rows.size(); ++row) sum += weights[row] * distance_to(rows[row], z);
  return sum;
}

inline Vector geometric_median(const Matrix& rows, const Vector& weights, int iterations, double nu) {
  Vector z = weighted_mean(rows, weights);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    Vector betas;
    for (std::size_t row = 0; row < rows.size(); ++row)
      betas.push_back(weights[row] / std::max(nu, distance_to(rows[row], z)));
    z = weighted_mean(rows, betas);
  }
  return z;
}

inline Vector centered_clip(const Matrix& rows, Vector z, double radius, int iterations) {
  for (int iteration = 0; iteration < iterations; ++iteration) {
    Vector step(z.size(), 0.0);
    for (const auto& row : rows) {
      const double scale = std::min(1.0, radius / distance_to(row, z));
      for (std::size_t c = 0; c < z.size(); ++c) step[c] += scale * (static_cast<double>(row[c]) - z[c]);
    }
    for (std::size_t c = 0; c < z.size(); ++c) z[c] += step[c] / static_cast<double>(rows.size());
  }
  return z;
}

// Test data for the rules: ordinary numbers, or few different ones with many ties, equal rows and zeros. The
// few numbers are multiples of 1/8, so that sums of their squares are exact.
inline Matrix random_rows(std::size_t rows, std::size_t columns, std::uint32_t seed, bool few_values) {
  std::mt19937 engine(seed);
  Matrix out(rows, std::vector<float>(columns));
  for (auto& row : out)
    for (float& value : row)
      value = few_values ? static_cast<float>(engine() % 5) / 8.0F - 0.25F
                         : static_cast<float>(engine()) / 4294967296.0F - 0.5F;
  if (few_values && rows > 2) out[rows - 1] = out[rows / 2];
  if (few_values && rows > 3) std::fill(out[1].begin(), out[1].end(), 0.0F);
  return out;
}

}  // namespace fedge::aggregation::reference
