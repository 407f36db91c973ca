#include "aggregation/own_parts.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "aggregation/samplers/uniform.h"
#include "core/text.h"

namespace fedge::aggregation {
namespace {

// Calls an own part. Whatever it throws becomes a PartFailure with the part's name.
template <class Call>
auto guarded(const std::string& part, Call&& call) {
  try {
    return call();
  } catch (const PartFailure&) {
    throw;
  } catch (const std::exception& error) {
    throw PartFailure(part + " threw an exception: " + error.what());
  } catch (...) {
    throw PartFailure(part + " threw an exception that is not a std::exception");
  }
}

// Once the rule has thrown, its state is unknown: every further call returns the first failure. A failure in
// a function that returns no Result is returned by the next function that does.
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
    return named([&] { return rule_->add(updates, parallel); });
  }
  Result<void> add_sum(const ExactSum& sum) override {
    return named([&] { return rule_->add_sum(sum); });
  }
  std::span<std::int64_t> sums() override {
    std::span<std::int64_t> sums;
    note([&] { sums = rule_->sums(); });
    return sums;
  }
  void divide_by(double weight) override {
    note([&] { rule_->divide_by(weight); });
  }
  void see_model(const UpdateValues& model) override {
    note([&] { rule_->see_model(model); });
  }
  Result<void> prepare(Parallel& parallel) override {
    return named([&] { return rule_->prepare(parallel); });
  }
  Result<void> read(std::size_t first, std::span<double> out, Parallel& parallel) override {
    FEDGE_TRY_VOID(named([&] { return rule_->read(first, out, parallel); }));
    const Coverage slice = Coverage::of({{first, first + out.size()}}).intersect(covered());
    for (const Range& range : slice.ranges())
      for (std::size_t i = range.begin; i < range.end; ++i)
        if (const double value = out[i - first]; !(std::abs(value) <= double{FLT_MAX}))
          return invalid(part_ + " returned " + number_text(value) + " for parameter " +
                         layout_->describe(i) + "; read() must return finite values");
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
  template <class Call>
  Result<void> named(Call&& call) const {
    Result<void> result;
    note([&] { result = call(); });
    if (failure_) return *failure_;
    return result ? result : result.error().with_prefix(part_ + ": ");
  }

  std::string part_;
  std::shared_ptr<const ParameterLayout> layout_;
  std::unique_ptr<Aggregator> rule_;  // null only after a failure
  mutable std::optional<Error> failure_;
};

class OwnSampler final : public Sampler {
 public:
  OwnSampler(std::string part, const SamplerFactory& make) : part_(std::move(part)) {
    guarded(part_, [&] {
      sampler_ = make();
      if (!sampler_) throw PartFailure(part_ + " is null: its factory returned no object");
    });
  }

  SamplerTraits traits() const override {
    return guarded(part_, [&] { return sampler_->traits(); });
  }
  std::vector<Selected> select(const SelectionRequest& request) override {
    std::vector<Selected> selected = guarded(part_, [&] { return sampler_->select(request); });
    check(selected, request);
    return selected;
  }
  std::vector<double> probabilities(std::span<const Participant> participants) override {
    auto all = guarded(part_, [&] { return sampler_->probabilities(participants); });
    if (all.size() != participants.size())
      throw PartFailure(part_ + " returned " + std::to_string(all.size()) + " probabilities for " +
                        std::to_string(participants.size()) + " clients");
    return all;
  }
  void remember(const Feedback& feedback) override {
    guarded(part_, [&] { sampler_->remember(feedback); });
  }
  void describe(ClientId client, const NodeRecord& record) override {
    guarded(part_, [&] { sampler_->describe(client, record); });
  }

 private:
  // What the engines rely on: distinct candidates in ascending order.
  void check(std::span<const Selected> selected, const SelectionRequest& request) const {
    auto candidate = request.candidates.begin();
    for (const Selected& choice : selected) {
      candidate = std::find_if(candidate, request.candidates.end(),
                               [&](const Candidate& one) { return one.client == choice.client; });
      if (candidate++ == request.candidates.end())
        throw PartFailure(part_ + " selected client " + std::to_string(choice.client.value()) +
                          " wrongly: select() must return candidates, each once, sorted by number");
    }
  }

  std::string part_;
  std::unique_ptr<Sampler> sampler_;
};

}  // namespace

AggregatorPart read_part(const AggregatorKind& kind, config::Reader& section) {
  if (!kind.own) return kind.read(section);
  const std::string part = std::string("the aggregator ") + kind.name;
  try {
    AggregatorPart read = guarded(part, [&] { return kind.read(section); });
    read.make = [part, make = std::move(read.make)](const AggregatorContext& context) {
      return std::make_unique<OwnAggregator>(part, make, context);
    };
    return read;
  } catch (const PartFailure& failure) {
    section.fail("kind", failure.what());
    return {};
  }
}

SamplerFactory read_part(const SamplerKind& kind, config::Reader& section) {
  if (!kind.own) return kind.read(section);
  const std::string part = std::string("the sampler ") + kind.name;
  try {
    SamplerFactory make = [part, made = guarded(part, [&] { return kind.read(section); })] {
      return std::make_unique<OwnSampler>(part, made);
    };
    (void)make()->traits();  // the factory works
    return make;
  } catch (const PartFailure& failure) {
    section.fail("kind", failure.what());
    return [] { return std::make_unique<UniformSampler>(); };  // the error is in the section
  }
}

}  // namespace fedge::aggregation
