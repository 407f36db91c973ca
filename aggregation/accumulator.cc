#include "aggregation/accumulator.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "aggregation/folding.h"
#include "core/check.h"
#include "core/text.h"

namespace fedge::aggregation {
namespace {

// Returns how much of max_total_weight() an update uses.
std::uint64_t load_of(SampleCount weight, double factor) {
  return static_cast<std::uint64_t>(std::ceil(static_cast<double>(weight.value()) * std::max(factor, 1.0)));
}

}  // namespace

bool contribution(const FixedPoint& format, SampleCount weight, std::span<const float> values,
                  std::span<std::int64_t> out) {
  FEDGE_CHECK(values.size() >= out.size(), "as many values");
  std::ranges::fill(out, 0);
  if (out.empty()) return true;
  const Coverage all = Coverage::all(out.size());
  return Folding(fold_kernels().front(), format, out)
      .run_part({.weight = weight, .coverage = &all, .values = values.first(out.size())}, 0);
}

void move_by_one(const FixedPoint& format, SampleCount weight, std::span<const float> values,
                 std::span<float> model) {
  FEDGE_CHECK(values.size() == model.size(), "one value for each parameter");
  if (weight.value() == 0 || weight.value() > kMaxUpdateWeight) return;
  AlignedBuffer<std::int64_t> sums(values.size());
  if (!contribution(format, weight, values, sums.span())) return;
  const double divisor = static_cast<double>(weight.value()) * format.unit();
  for (std::size_t i = 0; i < model.size(); ++i)
    model[i] =
        static_cast<float>(static_cast<double>(model[i]) + static_cast<double>(sums.data()[i]) / divisor);
}

Accumulator::Accumulator(std::shared_ptr<const ParameterLayout> layout, FixedPoint format,
                         const FoldKernel& kernel)
    : layout_(std::move(layout)), format_(format), kernel_(kernel), limit_(limit_bits(format.max_abs)) {
  FEDGE_CHECK(format.max_total_weight().value() > 0, "a fixed-point format without room for a contribution");
}

Result<void> Accumulator::admit(SampleCount weight, double factor) const {
  return admit(weight, factor, held_);
}

Result<void> Accumulator::admit(SampleCount weight, double factor, std::uint64_t held) const {
  const std::uint64_t room = format_.max_total_weight().value();
  const std::uint64_t largest = std::min(kMaxUpdateWeight, room);
  if (weight.value() == 0 || weight.value() > largest)
    return invalid("its weight is " + std::to_string(weight.value()) + " samples; it must be from 1 to " +
                   std::to_string(largest));
  if (!(factor > 0 && factor <= kMaxFactor))
    return invalid("its factor is " + number_text(factor) + "; it must be above 0 and at most " +
                   number_text(kMaxFactor));
  if (load_of(weight, factor) > room - held)
    return Error{ErrorCode::kResource, "its weight of " + std::to_string(load_of(weight, factor)) +
                                           " (samples times factor) does not fit into the sums, which hold " +
                                           std::to_string(held) + " of at most " + std::to_string(room) +
                                           "; lower strategy.fraction_bits or strategy.max_abs"};
  return {};
}

Result<void> Accumulator::admit(const UpdateView& update, std::uint64_t held) const {
  const Coverage& coverage = *update.coverage;
  if (coverage.end() > layout_->size())
    return invalid("its coverage ends at parameter " + std::to_string(coverage.end()) +
                   ", but the model has only " + std::to_string(layout_->size()) + " parameters");
  return admit(update.weight, update.factor, held);
}

Result<void> Accumulator::check(const Coverage& coverage, std::size_t first,
                                std::span<const float> values) const {
  return check_values(*layout_, format_, {&coverage, first, values});
}

Result<void> Accumulator::fold(std::span<const UpdateView> updates, Parallel& parallel) {
  const auto named = [&](std::size_t u, const Error& error) {
    return error.with_prefix("update " + std::to_string(u + 1) + " of " + std::to_string(updates.size()) +
                             ": ");
  };
  std::uint64_t held = held_;
  for (std::size_t u = 0; u < updates.size(); ++u) {
    const UpdateView& update = updates[u];
    if (update.values.size() != update.coverage->count())
      return named(
          u, invalid("it has " + std::to_string(update.values.size()) + " values, but its coverage has " +
                     std::to_string(update.coverage->count()) + " parameters"));
    if (const auto admitted = admit(update, held); !admitted) return named(u, admitted.error());
    held += load_of(update.weight, update.factor);
  }
  require_sums();
  const Folding folding(kernel_, format_, sums_.span());
  if (!folding.run(updates, Folding::Sign::kAdd, parallel)) {
    folding.run(updates, Folding::Sign::kTakeOut, parallel);
    for (std::size_t u = 0; u < updates.size(); ++u)
      if (const auto checked = check(*updates[u].coverage, 0, updates[u].values); !checked)
        return named(u, checked.error());
    FEDGE_CHECK(false, "the fold refused a value that passes the check");
  }
  for (const UpdateView& update : updates) count(update);
  return {};
}

Result<void> Accumulator::open(const UpdateView& update) {
  FEDGE_TRY_VOID(admit(update, held_));
  require_sums();
  count(update);
  return {};
}

void Accumulator::add(const UpdateView& piece, std::size_t first) {
  FEDGE_CHECK(sums_.size() == layout_->size() && piece.coverage->end() <= sums_.size(),
              "add() before open()");
  FEDGE_CHECK(first + piece.values.size() <= piece.coverage->count(), "a piece beyond the end of its update");
  const Folding folding(kernel_, format_, sums_.span());
  FEDGE_CHECK(folding.run_part(piece, first), "a piece that was not checked");
}

Result<void> Accumulator::add(const ExactSum& sum) {
  std::uint64_t heaviest = 0;
  for (const std::uint64_t weight : sum.weights) heaviest = std::max(heaviest, weight);
  const std::uint64_t room = format_.max_total_weight().value();
  if (heaviest > room - held_)
    return invalid("a sum with weight " + std::to_string(heaviest) +
                   " does not fit into the sums, which hold a weight of " + std::to_string(held_) +
                   " of at most " + std::to_string(room));
  const std::int64_t* values = sum.sums.data();
  for (std::size_t c = 0; c < sum.cells.size(); ++c) {
    const Range& cell = sum.cells[c];
    FEDGE_CHECK(cell.end <= layout_->size(), "cells of this model");
    // max_total_weight() keeps this bound below 2^63. Each contribution may have been rounded up.
    const auto most = static_cast<std::int64_t>(sum.weights[c]) *
                          static_cast<std::int64_t>(std::ceil(format_.max_abs * format_.unit())) +
                      static_cast<std::int64_t>(sum.updates);
    for (std::size_t i = 0; i < cell.size(); ++i)
      if (values[i] > most || values[i] < -most)
        return invalid("the sum of parameter " + std::to_string(cell.begin + i) +
                       " is too large for the declared weight of the sum");
    values += cell.size();
  }
  require_sums();
  values = sum.sums.data();
  for (std::size_t c = 0; c < sum.cells.size(); ++c) {
    const Range& cell = sum.cells[c];
    for (std::size_t p = cell.begin; p < cell.end; ++p) sums_.data()[p] += *values++;
    if (sum.weights[c] > 0) weights_.add(Coverage::of({cell}), SampleCount(sum.weights[c]));
  }
  total_weight_ += SampleCount(heaviest);
  held_ += heaviest;
  updates_ += sum.updates;
  return {};
}

void Accumulator::require_sums() {
  if (sums_.size() != layout_->size()) sums_ = AlignedBuffer<std::int64_t>(layout_->size());
}

void Accumulator::count(const UpdateView& update) {
  weights_.add(*update.coverage, update.weight);
  total_weight_ += update.weight;
  held_ += load_of(update.weight, update.factor);
  ++updates_;
}

void Accumulator::mean(std::size_t first, std::span<double> out, double damping) const {
  std::fill(out.begin(), out.end(), 0.0);
  const auto total = static_cast<double>(total_weight_.value());
  weights_.for_each(first, first + out.size(), [&](std::size_t begin, std::size_t end, std::uint64_t weight) {
    const double divisor = static_cast<double>(weight) * format_.unit();
    for (std::size_t i = begin; i < end; ++i) out[i - first] = static_cast<double>(sums_.data()[i]) / divisor;
    if (damping == 0 || weight == total_weight_.value()) return;
    const double factor = static_cast<float>(std::pow(static_cast<double>(weight) / total, damping));
    for (std::size_t i = begin; i < end; ++i) out[i - first] *= factor;
  });
}

void Accumulator::mean_over(double weight, std::size_t first, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  if (sums_.size() == 0) return;
  const double divisor = weight * format_.unit();
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<double>(sums_.data()[first + i]) / divisor;
}

void Accumulator::clear() {
  sums_ = {};
  weights_.clear();
  updates_ = 0;
  total_weight_ = {};
  held_ = 0;
}

}  // namespace fedge::aggregation
