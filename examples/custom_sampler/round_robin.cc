// A custom sampler: clients take part in rotation, ordered by their numbers. Run it as:
//   round-robin-sim run examples/custom_sampler/run.toml
#include <algorithm>

#include "aggregation/samplers/sampler.h"
#include "apps/sim_program.h"

using namespace fedge;
using namespace fedge::aggregation;

class RoundRobin final : public Sampler {
 public:
  explicit RoundRobin(std::uint64_t first) : next_(first) {}

  std::vector<Selected> select(const SelectionRequest& request) override {
    const auto candidates = request.candidates;  // sorted by client
    const std::size_t count = std::min(request.count, candidates.size());
    std::vector<Selected> chosen;
    // Start at the first candidate from next_ on; after the last candidate, continue with the first.
    std::size_t at = 0;
    while (at < candidates.size() && candidates[at].client.value() < next_) ++at;
    for (std::size_t i = 0; i < count; ++i)
      chosen.push_back({candidates[(at + i) % candidates.size()].client});
    if (count > 0) next_ = chosen.back().client.value() + 1;
    std::sort(chosen.begin(), chosen.end(), [](auto& a, auto& b) { return a.client < b.client; });
    return chosen;
  }

 private:
  std::uint64_t next_;  // the lowest client number that may come next
};

int main(int argc, char** argv) {
  register_sampler({.name = "round_robin",
                    .paper = "an example",
                    .summary = "clients take part in turn",
                    .read = [](config::Reader& section) -> SamplerFactory {
                      const auto first = section.integer("first", 0, {0, 10'000'000},
                                                         "Number of the client that takes part first.");
                      return
                          [first] { return std::make_unique<RoundRobin>(static_cast<std::uint64_t>(first)); };
                    }});
  return apps::sim_main(argc, argv);
}
