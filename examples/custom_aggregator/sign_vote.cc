// A custom aggregation rule: each parameter moves one step in the direction that most clients voted for
// (majority vote; Bernstein et al., ICML 2018). Run it as:
//   custom-sim run examples/custom_aggregator/run.toml
#include <vector>

#include "aggregation/aggregators/registry.h"
#include "apps/sim_program.h"

using namespace fedge;
using namespace fedge::aggregation;

class SignVote final : public Aggregator {
 public:
  SignVote(std::size_t parameters, double step) : votes_(parameters), step_(step) {}

  Result<void> add(std::span<const Update> updates, Parallel&) override {
    std::vector<float> values(votes_.size());
    for (const Update& update : updates) {
      FEDGE_TRY_VOID(update.values->read(0, values));
      for (std::size_t i = 0; i < values.size(); ++i) votes_[i] += (values[i] > 0) - (values[i] < 0);
    }
    return {};
  }
  Result<void> prepare(Parallel&) override { return {}; }
  Result<void> read(std::size_t first, std::span<double> out, Parallel&) override {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = step_ * ((votes_[first + i] > 0) - (votes_[first + i] < 0));
    return {};
  }
  Coverage covered() const override { return Coverage::all(votes_.size()); }
  void clear() override { votes_.assign(votes_.size(), 0); }

 private:
  std::vector<int> votes_;  // votes for up minus votes for down, for each parameter
  double step_;
};

int main(int argc, char** argv) {
  register_aggregator({.name = "sign_vote",
                       .paper = "Bernstein et al. 2018",
                       .summary = "one step where most clients want to go",
                       .traits = {},
                       .read = [](config::Reader& section) -> AggregatorPart {
                         const double step = section.number("step", 0.002, {1e-9, 1.0}, "Length of a step.");
                         return {
                             .make = [step](const AggregatorContext& context) -> std::unique_ptr<Aggregator> {
                               return std::make_unique<SignVote>(context.layout->size(), step);
                             }};
                       }});
  return apps::sim_main(argc, argv);
}
