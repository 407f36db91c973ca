// centered_clip: z moves by the mean of the differences x_i - z, each clipped to the radius tau (Karimireddy,
// He, Jaggi, "Learning from History for Byzantine Robust Optimization", ICML 2021, equation 4). z carries
// over to the next round. Memory: 8 bytes a parameter for z, from the first round on.
#include <algorithm>
#include <utility>

#include "aggregation/aggregators/robust/combination.h"
#include "aggregation/aggregators/robust/row_rule.h"
#include "aggregation/aggregators/robust/rules.h"

namespace fedge::aggregation {
namespace {

class CenteredClip final : public RowRule {
 public:
  CenteredClip(double radius, std::size_t iterations) : radius_(radius), iterations_(iterations) {}

  Result<void> prepare(KeptUpdates& rows, Parallel& parallel) override {
    const std::size_t count = rows.rows();
    if (center_.size() == 0) center_ = AlignedBuffer<double>(rows.parameters());
    Combination z{.coefficients = std::vector<double>(count, 0.0),
                  .base_coefficient = 1,
                  .base = std::as_const(center_).span()};
    for (std::size_t iteration = 0; iteration < iterations_; ++iteration) {
      FEDGE_TRY(distances, distances_to(rows, z, parallel));
      // z + 1/n sum of s_i (x_i - z) = (1 - sum of s_i / n) z + sum of s_i / n x_i
      std::vector<double> shares;
      double sum = 0;
      for (const double distance : distances) {
        shares.push_back((distance > radius_ ? radius_ / distance : 1.0) / static_cast<double>(count));
        sum += shares.back();
      }
      const double rest = 1 - sum;
      z.base_coefficient *= rest;
      for (std::size_t row = 0; row < count; ++row)
        z.coefficients[row] = rest * z.coefficients[row] + shares[row];
    }
    return combine(rows, z, 0, center_.span(), parallel);
  }

  Result<void> read(KeptUpdates&, std::size_t first, std::span<double> out, Parallel&) override {
    std::copy_n(center_.data() + first, out.size(), out.begin());
    return {};
  }
  std::vector<std::span<std::byte>> memory(std::size_t parameters) override {
    if (center_.size() == 0) center_ = AlignedBuffer<double>(parameters);
    return {std::as_writable_bytes(center_.span())};
  }

 private:
  double radius_;
  std::size_t iterations_;
  AlignedBuffer<double> center_;
};

}  // namespace

AggregatorPart read_centered_clip(config::Reader& section) {
  const double radius = section.number("radius", 10.0, {1e-12, 1e12},
                                       "Maximum norm of the difference between an update and the last "
                                       "aggregate. Larger differences are clipped.");
  const auto iterations = static_cast<std::size_t>(section.integer(
      "iterations", 1, {1, 10'000}, "Number of iterations. Each iteration reads every update once."));
  return on_rows(
      {.name = "centered_clip", .options = read_row_options(section)},
      [=](const AggregatorContext&) { return std::make_unique<CenteredClip>(radius, iterations); });
}

}  // namespace fedge::aggregation
