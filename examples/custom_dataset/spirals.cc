// A custom data set: points on three interleaved spirals, computed instead of loaded. Run it as:
//   spirals-sim run examples/custom_dataset/run.toml
#include <cmath>
#include <numbers>

#include "apps/sim_program.h"
#include "learn/data/kinds.h"

using namespace fedge;
using namespace fedge::learn;

class Spirals final : public DataSource {
 public:
  Spirals(std::size_t samples, double noise) : samples_(samples), noise_(noise) {}

  Result<DatasetInfo> describe(const DataSpec&) const override {
    return DatasetInfo{kShape, kArms, kArms, {"first arm", "second arm", "third arm"}};
  }
  // The same points in every process: the random stream depends on the split alone.
  Result<Dataset> load(const DataSpec&, Split split) const override {
    const bool train = split == Split::kTrain;
    Dataset data{
        .shape = kShape, .classes = kArms, .floats = AlignedBuffer<float>(2 * samples_), .labels = {}};
    Rng rng = Rng(0).fork(train ? "spirals train" : "spirals test");
    for (std::size_t i = 0; i < samples_; ++i) {
      const std::size_t arm = i % kArms;
      const double radius = rng.uniform();
      const double turn = radius + static_cast<double>(arm) / kArms;
      const double angle = 2 * std::numbers::pi * turn;
      data.floats.data()[2 * i] = static_cast<float>(radius * std::cos(angle) + noise_ * rng.normal());
      data.floats.data()[2 * i + 1] = static_cast<float>(radius * std::sin(angle) + noise_ * rng.normal());
      data.labels.push_back(static_cast<Label>(arm));
    }
    return data;
  }

 private:
  static constexpr std::size_t kArms = 3;
  static constexpr InputShape kShape{1, 2, 1};
  std::size_t samples_;
  double noise_;
};

int main(int argc, char** argv) {
  register_dataset(
      {.name = "spirals",
       .paper = "an example",
       .summary = "points on three spirals",
       .read = [](config::Reader& section) -> std::shared_ptr<const DataSource> {
         const auto samples = static_cast<std::size_t>(
             section.integer("samples", 3000, {3, 1'000'000}, "Number of points of a split."));
         const double noise = section.number("noise", 0.02, {0, 1}, "Deviation of a coordinate.");
         return std::make_shared<Spirals>(samples, noise);
       }});
  return apps::sim_main(argc, argv);
}
