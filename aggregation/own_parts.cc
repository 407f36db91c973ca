#include "aggregation/own_parts.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/accumulator.h"
#include "aggregation/aggregators/mean.h"
#include "core/text.h"

namespace fedge::aggregation {
namespace {

using config::guarded;
using config::kMaxPartReason;

// Two updates of four parameters, one of them to be halved: clipping sets factors.
std::vector<Update> trial_updates() {
  class Values final : public UpdateValues {
   public:
    explicit Values(float first) : values_{first, -first, 3 * first, 0.5F} {}
    std::span<const float> in_memory() const override { return values_; }
    Result<void> read(std::size_t first, std::span<float> out) const override {
      std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
      return {};
    }

   private:
    std::array<float, 4> values_;
  };
  const auto update = [](std::uint32_t client, SampleCount weight, double factor, float first) {
    return Update{.client = ClientId(client),
                  .weight = weight,
                  .norm = 1,
                  .factor = factor,
                  .coverage = Coverage::all(4),
                  .values = std::make_shared<Values>(first)};
  };
  return {update(1, SampleCount(5), 0.5, 0.25F), update(2, SampleCount(900), 1, -2.0F)};
}

// Checks that a rule adds as its traits say. Clipping halves an update by its factor, and noise is measured
// for uniform_weight(): a rule that ignored either would have less noise than its run reports.
void check_sums(const std::string& part, const AggregatorFactory& make) {
  const auto layout = std::make_shared<ParameterLayout>();
  layout->add("trial", {4});
  const AggregatorContext context{.layout = layout, .max_updates = 8};
  const config::Table none;
  config::Reader section(none, "", "");
  const auto reference = read_uniform_mean(section).make(context);
  const auto rule = make(context);
  if (!rule) throw PartFailure(part + " is null: the function `make` returned no object");
  Sequential here;
  const std::vector<Update> updates = trial_updates();
  const auto added = rule->add(updates, here);
  if (!added) throw PartFailure(part + ": " + clean_text(added.error().message, kMaxPartReason));
  if (!reference->add(updates, here) || !std::ranges::equal(rule->sums(), reference->sums()))
    throw PartFailure(part +
                      " declares takes_sums and uniform_weights, but its sums() differ from those of "
                      "uniform_mean; each update must add uniform_weight() * factor * value");
}

// The first error of the values that an own rule reads: a fault of a disk, not of the rule.
class ReadErrors {
 public:
  void note(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!first_) first_ = error;
  }
  std::optional<Error> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(first_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::optional<Error> first_;
};

class WatchedValues final : public UpdateValues {
 public:
  WatchedValues(std::shared_ptr<const UpdateValues> values, std::shared_ptr<ReadErrors> errors)
      : values_(std::move(values)), errors_(std::move(errors)) {}
  std::span<const float> in_memory() const override { return values_->in_memory(); }
  Result<void> read(std::size_t first, std::span<float> out) const override {
    auto done = values_->read(first, out);
    if (!done) errors_->note(done.error());
    return done;
  }

 private:
  std::shared_ptr<const UpdateValues> values_;
  std::shared_ptr<ReadErrors> errors_;
};

// Once the rule has thrown or returned an error, its state is unknown: every further call returns the first
// failure, which is kInvalid. A failure in a function that returns no Result is returned by the next function
// that does. Errors that are not the rule's own, or that the interface allows, pass through.
class OwnAggregator final : public Aggregator {
 public:
  OwnAggregator(std::string part, const AggregatorFactory& make, const AggregatorContext& context)
      : part_(std::move(part)), layout_(context.layout) {
    note([&] {
      rule_ = make(context);
      if (!rule_) throw PartFailure(part_ + " is null: the function `make` returned no object");
    });
  }

  Result<void> add(std::span<const Update> updates, Parallel& parallel) override {
    std::vector<Update> watched(updates.begin(), updates.end());
    for (Update& update : watched)
      if (update.values) update.values = std::make_shared<WatchedValues>(update.values, errors_);
    return named([&] { return rule_->add(watched, parallel); });
  }
  Result<void> add_sum(const ExactSum& sum) override {
    return named([&] { return rule_->add_sum(sum); }, ErrorCode::kInvalid);
  }
  std::span<std::int64_t> sums() override {
    std::span<std::int64_t> sums;
    note([&] {
      sums = rule_->sums();
      if (sums.size() != layout_->size())
        throw PartFailure(part_ + " returned " + std::to_string(sums.size()) + " sums for " +
                          std::to_string(layout_->size()) +
                          " parameters; with takes_sums, sums() must return one for each");
    });
    if (!failure_) return sums;
    lost_.assign(layout_->size(), 0);  // prepare() returns the failure
    return lost_;
  }
  void divide_by(double weight) override {
    note([&] { rule_->divide_by(weight); });
  }
  void see_model(const UpdateValues& model) override {
    const std::shared_ptr<const UpdateValues> lent(std::shared_ptr<void>(), &model);
    model_.emplace(lent, errors_);
    note([&] { rule_->see_model(*model_); });
  }
  Result<void> prepare(Parallel& parallel) override {
    return named([&] { return rule_->prepare(parallel); }, ErrorCode::kUnavailable);
  }
  Result<void> read(std::size_t first, std::span<double> out, Parallel& parallel) override {
    FEDGE_TRY_VOID(named([&] { return rule_->read(first, out, parallel); }));
    const Coverage slice = Coverage::of({{first, first + out.size()}}).intersect(covered());
    for (const Range& range : slice.ranges())
      for (std::size_t i = range.begin; i < range.end; ++i)
        if (const double value = out[i - first]; !(std::abs(value) <= double{FLT_MAX}))
          return fail(part_ + " returned " + number_text(value) + " for parameter " + layout_->describe(i) +
                      "; read() must return finite values");
    return {};
  }
  // After a failure everything, so that read() is called and returns the failure.
  Coverage covered() const override {
    Coverage covered = Coverage::all(layout_->size());
    note([&] { covered = rule_->covered(); });
    return covered;
  }
  void clear() override {
    note([&] { rule_->clear(); });
  }
  std::vector<std::span<std::byte>> memory() override {
    std::vector<std::span<std::byte>> memory;
    note([&] { memory = rule_->memory(); });
    return memory;
  }

 private:
  template <class Call>
  void note(Call&& call) const {
    if (failure_) return;
    try {
      guarded(part_, call);
    } catch (const PartFailure& failure) {
      failure_ = invalid(failure.what());
    }
  }
  Error fail(const std::string& reason) const { return *(failure_ = invalid(reason)); }
  // `allowed`: the code of an error after which the rule can still be used.
  template <class Call>
  Result<void> named(Call&& call, std::optional<ErrorCode> allowed = std::nullopt) const {
    Result<void> result;
    note([&] { result = call(); });
    if (auto unread = errors_->take()) return *unread;
    if (failure_) return *failure_;
    if (result) return result;
    const Error error = result.error().with_prefix(part_ + ": ");
    return error.code == allowed ? error : fail(clean_text(error.message, kMaxPartReason));
  }

  std::string part_;
  std::shared_ptr<const ParameterLayout> layout_;
  std::shared_ptr<ReadErrors> errors_ = std::make_shared<ReadErrors>();
  std::optional<WatchedValues> model_;  // lent until prepare() returns
  std::unique_ptr<Aggregator> rule_;    // null only after a failure
  mutable std::optional<Error> failure_;
  std::vector<std::int64_t> lost_;  // after a failure: the sums that a caller may change
};

}  // namespace

AggregatorPart read_part(const AggregatorKind& kind, config::Reader& section) {
  if (!kind.own) return kind.read(section);
  const std::string part = std::string("the aggregator ") + kind.name;
  try {
    AggregatorPart read = guarded(part, [&] { return kind.read(section); });
    if (kind.traits.takes_sums && kind.traits.uniform_weights)
      guarded(part, [&] { check_sums(part, read.make); });
    read.make = [part, make = std::move(read.make)](const AggregatorContext& context) {
      return std::make_unique<OwnAggregator>(part, make, context);
    };
    return read;
  } catch (const PartFailure& failure) {
    section.fail("kind", failure.what());
    return {};
  }
}

}  // namespace fedge::aggregation
