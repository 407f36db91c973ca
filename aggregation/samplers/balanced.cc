#include "aggregation/samplers/balanced.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace fedge::aggregation {
namespace {

constexpr double kDecided = 1e-11;  // distance from 0 or 1 at which a unit is decided
constexpr double kWhole = 1e-6;     // the same for the last units, whose sums have the errors of all others
constexpr double kNoPivot = 1e-9;

using CubeRows = std::vector<std::vector<double>>;  // of a matrix

// Returns a vector u other than 0 with A u = 0, by Gauss and Jordan's elimination with partial pivoting;
// empty if there is none.
std::vector<double> null_vector(CubeRows a, std::size_t columns) {
  std::size_t rank = 0;  // the first `rank` columns have their pivots in the rows of the same numbers
  for (; rank < columns; ++rank) {
    std::size_t best = rank;
    for (std::size_t r = rank; r < a.size(); ++r)
      if (std::abs(a[r][rank]) > std::abs(a[best][rank])) best = r;
    if (rank == a.size() || std::abs(a[best][rank]) < kNoPivot) break;
    std::swap(a[rank], a[best]);
    const double pivot = a[rank][rank];
    for (double& value : a[rank]) value /= pivot;
    for (std::size_t r = 0; r < a.size(); ++r) {
      const double factor = a[r][rank];
      if (r == rank || factor == 0) continue;
      for (std::size_t k = rank; k < columns; ++k) a[r][k] -= factor * a[rank][k];
    }
  }
  if (rank == columns) return {};
  std::vector<double> u(columns, 0.0);
  u[rank] = 1;
  for (std::size_t row = 0; row < rank; ++row) u[row] = -a[row][rank];
  return u;
}

bool is_open(double p, double tolerance = kDecided) { return p > tolerance && p < 1 - tolerance; }

// The walk through the cube [0, 1]^N: each step keeps the balanced groups and decides at least one unit.
class CubeWalk {
 public:
  CubeWalk(const BalanceRequest& request, Rng& rng)
      : request_(request),
        rng_(rng),
        p_(request.probabilities.begin(), request.probabilities.end()),
        balanced_(request.groups + 1) {
    for (std::size_t i = 0; i < p_.size(); ++i)
      if (is_open(p_[i])) waiting_.push_back(i);
    rng_.shuffle(std::span(waiting_));
  }

  std::vector<std::size_t> drawn() && {
    while (balanced_ > 0) {
      while (open_.size() <= balanced_ && !waiting_.empty()) {
        open_.push_back(waiting_.back());
        waiting_.pop_back();
      }
      if (open_.empty()) break;
      const std::vector<double> u = direction();
      if (u.empty())
        --balanced_;
      else
        move_along(u);
    }
    for (const std::size_t i : open_)
      if (is_open(p_[i], kWhole)) p_[i] = rng_.uniform() < p_[i] ? 1 : 0;
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < p_.size(); ++i)
      if (p_[i] > 0.5) chosen.push_back(i);
    return chosen;
  }

 private:
  // A direction of the first open units that keeps the balanced groups; empty if there is none.
  std::vector<double> direction() const {
    const std::size_t columns = std::min(balanced_ + 1, open_.size());
    CubeRows a(balanced_, std::vector<double>(columns));
    for (std::size_t k = 0; k < columns; ++k)
      for (std::size_t g = 0; g < balanced_; ++g) a[g][k] = g == 0 || request_.holds(open_[k], g - 1) ? 1 : 0;
    return null_vector(std::move(a), columns);
  }

  // Moves until a unit is decided. The lengths of the two possible moves determine their probabilities, so
  // that no expectation changes.
  void move_along(const std::vector<double>& u) {
    Move forward, backward;
    for (std::size_t k = 0; k < u.size(); ++k) {
      if (u[k] == 0) continue;
      const double up = (1 - p_[open_[k]]) / std::abs(u[k]);
      const double down = p_[open_[k]] / std::abs(u[k]);
      forward.limit(u[k] > 0 ? up : down, k);
      backward.limit(u[k] > 0 ? down : up, k);
    }
    const bool ahead = rng_.uniform() * (forward.length + backward.length) < backward.length;
    const Move& move = ahead ? forward : backward;
    for (std::size_t k = 0; k < u.size(); ++k)
      p_[open_[k]] = std::clamp(p_[open_[k]] + (ahead ? move.length : -move.length) * u[k], 0.0, 1.0);
    p_[open_[move.decided]] = p_[open_[move.decided]] < 0.5 ? 0 : 1;
    std::erase_if(open_, [&](std::size_t i) { return !is_open(p_[i]); });
  }

  struct Move {
    double length = std::numeric_limits<double>::infinity();
    std::size_t decided = 0;  // the unit that reaches 0 or 1
    void limit(double most, std::size_t unit) {
      if (!(most < length)) return;
      length = most;
      decided = unit;
    }
  };

  const BalanceRequest& request_;
  Rng& rng_;
  std::vector<double> p_;
  std::size_t balanced_;  // constraints: the size and the first groups
  std::vector<std::size_t> waiting_;
  std::vector<std::size_t> open_;  // undecided units of the walk
};

}  // namespace

std::vector<std::size_t> balanced_sample(const BalanceRequest& request, Rng& rng) {
  return CubeWalk(request, rng).drawn();
}

}  // namespace fedge::aggregation
