#include "aggregation/accumulator.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string>
#include <utility>

#include "aggregation/folding.h"
#include "core/check.h"

namespace fedge::aggregation {
namespace {

// The shortest text that reads back as this number.
template <class Number>
std::string number_text(Number value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

Accumulator::Accumulator(std::shared_ptr<const ParameterLayout> layout, FixedPoint format,
                         const FoldKernel& kernel)
    : layout_(std::move(layout)), format_(format), kernel_(kernel), limit_(limit_bits(format.max_abs)) {
  FEDGE_CHECK(format.max_total_weight().value() > 0, "a fixed-point format without room for a contribution");
}

Result<void> Accumulator::admit(SampleCount weight) const { return admit(weight, total_weight_); }

Result<void> Accumulator::admit(SampleCount weight, SampleCount total) const {
  const std::uint64_t room = format_.max_total_weight().value();
  const std::uint64_t largest = std::min(kMaxUpdateWeight, room);
  if (weight.value() == 0 || weight.value() > largest)
    return invalid("its weight is " + std::to_string(weight.value()) + " samples; it must be from 1 to " +
                   std::to_string(largest));
  if (weight.value() > room - total.value())
    return Error{ErrorCode::kResource,
                 std::to_string(weight.value()) + " samples on top of " + std::to_string(total.value()) +
                     " exceed the " + std::to_string(room) +
                     " that the sums can hold; lower strategy.fraction_bits or strategy.max_abs"};
  return {};
}

Result<void> Accumulator::admit(const UpdateView& update, SampleCount total) const {
  const Coverage& coverage = *update.coverage;
  if (coverage.end() > layout_->size())
    return invalid("its coverage reaches to parameter " + std::to_string(coverage.end()) + " of a model of " +
                   std::to_string(layout_->size()));
  if (update.values.size() != coverage.count())
    return invalid("it has " + std::to_string(update.values.size()) + " values for a coverage of " +
                   std::to_string(coverage.count()) + " parameters");
  return admit(update.weight, total);
}

Result<void> Accumulator::check(const Coverage& coverage, std::size_t first,
                                std::span<const float> values) const {
  if (kernel_.max_magnitude(values.data(), values.size()) <= limit_) return {};
  const auto bad = std::find_if(values.begin(), values.end(), [&](float value) {
    return (std::bit_cast<std::int32_t>(value) & 0x7fffffff) > limit_;
  });
  const std::size_t position = first + static_cast<std::size_t>(bad - values.begin());
  return invalid("parameter " + layout_->describe(coverage.parameter_at(position)) + " is " +
                 number_text(*bad) + "; an update may hold finite values up to " +
                 number_text(format_.max_abs) + " in size (strategy.max_abs)");
}

Result<void> Accumulator::fold(std::span<const UpdateView> updates, Parallel& parallel) {
  const auto named = [&](std::size_t u, const Error& error) {
    return error.with_prefix("update " + std::to_string(u + 1) + " of " + std::to_string(updates.size()) +
                             ": ");
  };
  SampleCount total = total_weight_;
  for (std::size_t u = 0; u < updates.size(); ++u) {
    if (const auto admitted = admit(updates[u], total); !admitted) return named(u, admitted.error());
    total += updates[u].weight;
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
  for (const UpdateView& update : updates) count(*update.coverage, update.weight);
  return {};
}

Result<void> Accumulator::open(const Coverage& coverage, SampleCount weight) {
  if (coverage.end() > layout_->size())
    return invalid("its coverage reaches to parameter " + std::to_string(coverage.end()) + " of a model of " +
                   std::to_string(layout_->size()));
  FEDGE_TRY_VOID(admit(weight, total_weight_));
  require_sums();
  count(coverage, weight);
  return {};
}

void Accumulator::add(const Coverage& coverage, SampleCount weight, std::size_t first,
                      std::span<const float> values) {
  FEDGE_CHECK(sums_.size() == layout_->size() && coverage.end() <= sums_.size(), "add() before open()");
  FEDGE_CHECK(first + values.size() <= coverage.count(), "a piece beyond the end of its update");
  const Folding folding(kernel_, format_, sums_.span());
  FEDGE_CHECK(folding.run_part({weight, &coverage, values}, first), "a piece that was not checked");
}

void Accumulator::require_sums() {
  if (sums_.size() != layout_->size()) sums_ = AlignedBuffer<std::int64_t>(layout_->size());
}

void Accumulator::count(const Coverage& coverage, SampleCount weight) {
  weights_.add(coverage, weight);
  total_weight_ += weight;
  ++updates_;
}

void Accumulator::apply(std::size_t first, std::span<float> model, double learning_rate) const {
  weights_.for_each(first, first + model.size(),
                    [&](std::size_t begin, std::size_t end, std::uint64_t weight) {
                      const double divisor = static_cast<double>(weight) * format_.unit();
                      const std::int64_t* sums = sums_.data();
                      for (std::size_t i = begin; i < end; ++i) {
                        const double mean = static_cast<double>(sums[i]) / divisor;
                        float& value = model[i - first];
                        value = static_cast<float>(static_cast<double>(value) + learning_rate * mean);
                      }
                    });
}

void Accumulator::mean(std::size_t first, std::span<double> out) const {
  std::fill(out.begin(), out.end(), 0.0);
  weights_.for_each(first, first + out.size(), [&](std::size_t begin, std::size_t end, std::uint64_t weight) {
    const double divisor = static_cast<double>(weight) * format_.unit();
    for (std::size_t i = begin; i < end; ++i) out[i - first] = static_cast<double>(sums_.data()[i]) / divisor;
  });
}

void Accumulator::clear() {
  sums_ = {};
  weights_.clear();
  updates_ = 0;
  total_weight_ = {};
}

}  // namespace fedge::aggregation
