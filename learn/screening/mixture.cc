#include "learn/screening/mixture.h"

#include <algorithm>
#include <cmath>

namespace fedge::learn {
namespace {

constexpr double kFirstWeight = 0.01;  // of a component that replaces another

// Greater means more likely background.
bool comes_before(const Mixture::Component& a, const Mixture::Component& b) {
  return a.weight * std::sqrt(b.variance) > b.weight * std::sqrt(a.variance);
}

}  // namespace

std::size_t Mixture::background_count() const {
  double weight = 0;
  for (std::size_t i = 0; i < count_; ++i)
    if ((weight += components_[i].weight) > spec_.background) return i + 1;
  return count_;
}

double Mixture::score(double x) const {
  double least = 0;
  for (std::size_t i = 0, last = background_count(); i < last; ++i) {
    const Component& component = components_[i];
    const double above = std::max(0.0, (x - component.mean) / std::sqrt(component.variance));
    least = i == 0 ? above : std::min(least, above);
  }
  return least;
}

void Mixture::replace_last(double x) {
  const Component fresh{kFirstWeight, x, spec_.first_deviation * spec_.first_deviation};
  if (count_ < spec_.components)
    components_[count_++] = fresh;
  else
    *std::min_element(components_.begin(), components_.begin() + static_cast<std::ptrdiff_t>(count_),
                      [](const Component& a, const Component& b) { return a.weight < b.weight; }) = fresh;
}

void Mixture::sort() {
  std::stable_sort(components_.begin(), components_.begin() + static_cast<std::ptrdiff_t>(count_),
                   comes_before);
}

void Mixture::learn(double x, bool foreground) {
  if (frozen_) return;
  ++values_;
  if (count_ == 0) {
    components_[count_++] = {1, x, spec_.first_deviation * spec_.first_deviation};
    return;
  }
  double rate = settled() ? spec_.rate : std::max(spec_.rate, 1.0 / static_cast<double>(values_));
  if (foreground) rate *= spec_.foreground_rate;
  std::size_t matched = count_;
  for (std::size_t i = 0; i < count_ && matched == count_; ++i)
    if (std::abs(x - components_[i].mean) <= spec_.match * std::sqrt(components_[i].variance)) matched = i;
  double sum = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    Component& component = components_[i];
    component.weight += rate * ((i == matched ? 1.0 : 0.0) - component.weight);
    if (i != matched) continue;
    component.mean += rate * (x - component.mean);
    const double distance = x - component.mean;
    component.variance = std::max(spec_.least_deviation * spec_.least_deviation,
                                  (1 - rate) * component.variance + rate * distance * distance);
  }
  if (matched == count_) replace_last(x);
  for (std::size_t i = 0; i < count_; ++i) sum += components_[i].weight;
  for (std::size_t i = 0; i < count_; ++i) components_[i].weight /= sum;
  sort();
}

}  // namespace fedge::learn
