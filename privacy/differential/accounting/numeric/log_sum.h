// LogSum: a sum of positive numbers whose logarithms, but not their values, fit into a double.
#pragma once

#include <cmath>
#include <limits>

namespace fedge::privacy {

class LogSum {
 public:
  void add(double log_term) {
    if (log_term == -std::numeric_limits<double>::infinity()) return;
    if (log_term <= largest_) {
      sum_ += std::exp(log_term - largest_);
      return;
    }
    sum_ = sum_ * std::exp(largest_ - log_term) + 1;
    largest_ = log_term;
  }
  // Minus infinity if nothing was added.
  double log() const { return sum_ > 0 ? largest_ + std::log(sum_) : largest_; }

 private:
  double largest_ = -std::numeric_limits<double>::infinity();
  double sum_ = 0;
};

// log(1 + e^x), and log(e^x - 1) for x > 0.
inline double log_one_plus_exp(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
inline double log_exp_minus_one(double x) {
  return x > 1 ? x + std::log1p(-std::exp(-x)) : std::log(std::expm1(x));
}

}  // namespace fedge::privacy
