#include "sim/availability/log_normal.h"

#include <algorithm>
#include <cmath>

#include "sim/availability/normal.h"

namespace fedge::sim {

CutLogNormal::CutLogNormal(const IntervalLengths& lengths)
    : mu_(lengths.mu), sigma_(lengths.sigma), longest_(lengths.longest) {
  // With sigma 0 every length is the median, and none is cut off.
  const double cut = sigma_ > 0 ? (std::log(longest_) - mu_) / sigma_ : 0;
  cut_ = normal_cdf(cut);
  rest_cut_ = normal_cdf(cut - sigma_);
}

double CutLogNormal::length(double mu, double p) const {
  if (sigma_ == 0) return std::exp(mu);
  return std::min(std::exp(mu + sigma_ * normal_quantile(p)), longest_);
}

double CutLogNormal::draw(double u) const { return length(mu_, u * cut_); }

double CutLogNormal::draw_rest(double u, double moment) const {
  // x times the log-normal density is proportional to the log-normal density with mu + sigma^2.
  return length(mu_ + sigma_ * sigma_, u * rest_cut_) * moment;
}

double CutLogNormal::mean() const { return std::exp(mu_ + sigma_ * sigma_ / 2) * rest_cut_ / cut_; }

double CutLogNormal::beyond(double seconds) const {
  if (seconds >= longest_) return 0;
  if (seconds <= 0) return 1;
  const double away = std::log(seconds) - mu_;
  if (sigma_ == 0) return away < 0 ? 1 : 0;
  return std::max(0.0, 1 - normal_cdf(away / sigma_) / cut_);
}

}  // namespace fedge::sim
