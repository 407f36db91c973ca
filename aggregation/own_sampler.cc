// Own samplers: see own_parts.h.
#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/accumulator.h"
#include "aggregation/own_parts.h"
#include "aggregation/samplers/uniform.h"
#include "core/text.h"

namespace fedge::aggregation {

using config::guarded;

namespace {

class OwnSampler final : public Sampler {
 public:
  OwnSampler(std::string part, const SamplerFactory& make) : part_(std::move(part)) {
    guarded(part_, [&] {
      sampler_ = make();
      if (!sampler_) throw PartFailure(part_ + " is null: its factory returned no object");
    });
  }

  SamplerTraits traits() const override {
    const SamplerTraits traits = guarded(part_, [&] { return sampler_->traits(); });
    if (!(traits.chance >= 0 && traits.chance <= 1))
      throw PartFailure(part_ + " declares the chance " + number_text(traits.chance) +
                        "; it must be between 0 and 1");
    return traits;
  }
  // A blind sampler is not shown what it says that it does not read.
  std::vector<Selected> select(const SelectionRequest& request) override {
    SelectionRequest shown = request;
    std::vector<Candidate> candidates;
    const SamplerTraits declared = traits();
    if (declared.blind) {
      for (const Candidate& candidate : request.candidates) candidates.push_back({candidate.client, {}});
      shown.candidates = candidates;
    }
    std::vector<Selected> selected = guarded(part_, [&] { return sampler_->select(shown); });
    check(selected, request);
    if (!declared.independent && selected.size() > request.count)
      throw PartFailure(part_ + " selected " + std::to_string(selected.size()) + " clients instead of the " +
                        std::to_string(request.count) +
                        " wanted; only a sampler that declares `independent` may select more");
    return selected;
  }
  std::vector<double> probabilities(std::span<const Participant> participants) override {
    auto all = guarded(part_, [&] { return sampler_->probabilities(participants); });
    if (all.size() != participants.size())
      throw PartFailure(part_ + " returned " + std::to_string(all.size()) + " probabilities for " +
                        std::to_string(participants.size()) + " clients");
    for (const double probability : all)
      if (!(probability > 0 && probability <= 1))
        throw PartFailure(part_ + " returned the probability " + number_text(probability) +
                          "; probabilities() must return values above 0 and at most 1");
    return all;
  }
  void remember(const Feedback& feedback) override {
    Feedback shown = feedback;
    if (traits().blind) {
      shown.samples = {};
      shown.norm = shown.loss = shown.loss_rms = 0;
    }
    guarded(part_, [&] { sampler_->remember(shown); });
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
      if (!(choice.inclusion > 0 && choice.inclusion <= 1 && choice.coefficient >= 0 &&
            choice.coefficient <= kMaxFactor))
        throw PartFailure(
            part_ + " selected client " + std::to_string(choice.client.value()) + " with inclusion " +
            number_text(choice.inclusion) + " and coefficient " + number_text(choice.coefficient) +
            "; inclusion must be above 0 and at most 1, coefficient from 0 to " + number_text(kMaxFactor));
    }
  }

  std::string part_;
  std::unique_ptr<Sampler> sampler_;
};

}  // namespace

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
