#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "aggregation/own_parts.h"
#include "core/text.h"

namespace fedge::aggregation {
namespace {

// A failure in the factory, begin() or memory() is kept: the next step() throws it, and the run ends with it.
class OwnServerOptimizer final : public ServerOptimizer {
 public:
  OwnServerOptimizer(std::string part, const ServerOptimizerFactory& make, std::size_t parameters)
      : part_(std::move(part)) {
    note([&] {
      optimizer_ = make(parameters);
      if (!optimizer_) throw PartFailure(part_ + " is null: its factory returned no object");
    });
  }

  void begin(double share) override {
    note([&] { optimizer_->begin(share); });
  }
  void step(std::size_t first, std::span<float> model, std::span<const double> aggregate) override {
    if (failure_) throw PartFailure(*failure_);
    config::guarded(part_, [&] { optimizer_->step(first, model, aggregate); });
    for (std::size_t i = 0; i < model.size(); ++i)
      if (!std::isfinite(model[i]))
        throw PartFailure(part_ + " set parameter " + std::to_string(first + i) + " to " +
                          number_text(static_cast<double>(model[i])) + "; step() must keep values finite");
  }
  std::vector<std::span<std::byte>> memory() override {
    std::vector<std::span<std::byte>> memory;
    note([&] { memory = optimizer_->memory(); });
    return memory;
  }

 private:
  template <class Call>
  void note(Call&& call) {
    if (failure_) return;
    try {
      config::guarded(part_, call);
    } catch (const PartFailure& failure) {
      failure_ = failure;
    }
  }

  std::string part_;
  std::unique_ptr<ServerOptimizer> optimizer_;  // null only after a failure
  std::optional<PartFailure> failure_;
};

}  // namespace

ServerOptimizerFactory read_part(const ServerOptimizerKind& kind, config::Reader& section) {
  if (!kind.own) return kind.read(section);
  const std::string part = std::string("the server optimizer ") + kind.name;
  try {
    ServerOptimizerFactory make =
        [part, made = config::guarded(part, [&] { return kind.read(section); })](std::size_t parameters) {
          return std::make_unique<OwnServerOptimizer>(part, made, parameters);
        };
    float model = 0;  // one step of a model with one parameter: the factory works
    const double aggregate = 0;
    const auto trial = make(1);
    (void)trial->memory();
    trial->begin(1);
    trial->step(0, {&model, 1}, {&aggregate, 1});
    return make;
  } catch (const PartFailure& failure) {
    section.fail("kind", failure.what());
    const config::Table none;
    config::Reader nothing(none, "", "");
    return server_optimizer_kinds().front().read(nothing);  // the error is in the section
  }
}

}  // namespace fedge::aggregation
