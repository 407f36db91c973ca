#include "lab/gossip/mixing.h"

#include <algorithm>
#include <functional>

#include "core/check.h"

namespace fedge::lab {
namespace {

constexpr std::size_t kBlock = 1024;  // parameters of every model that are mixed at a time

// Calls block(first, count) for pieces of a model, on all threads.
void for_each_block(std::size_t size, Parallel& parallel,
                    const std::function<void(std::size_t, std::size_t)>& block) {
  parallel.for_each((size + kBlock - 1) / kBlock,
                    [&](std::size_t i) { block(i * kBlock, std::min(kBlock, size - i * kBlock)); });
}

std::size_t parameters_of(Models models) { return models.empty() ? 0 : models.front().size(); }

}  // namespace

MixingWeights::MixingWeights(const swarm::Overlay& overlay) : rows_(overlay.size()) {
  for (swarm::Pseudonym client = 0; client < rows_.size(); ++client) {
    const auto neighbours = overlay.neighbours(client);
    auto& row = rows_[client];
    double own = 1;
    for (const swarm::Pseudonym other : neighbours) {
      const std::size_t degree = std::max(neighbours.size(), overlay.neighbours(other).size());
      row.push_back({other, 1.0 / static_cast<double>(1 + degree)});
      own -= row.back().weight;
    }
    row.push_back({client, own});
    std::ranges::sort(row, {}, &Entry::client);
  }
}

void mix(const MixingWeights& weights, Models models, Parallel& parallel) {
  FEDGE_CHECK(weights.size() == models.size(), "a row of weights for each model");
  for_each_block(parameters_of(models), parallel, [&](std::size_t first, std::size_t count) {
    std::vector<float> before(models.size() * count);
    for (std::size_t i = 0; i < models.size(); ++i)
      std::ranges::copy(models[i].subspan(first, count), before.data() + i * count);
    std::vector<double> sum(count);
    for (swarm::Pseudonym client = 0; client < models.size(); ++client) {
      std::ranges::fill(sum, 0.0);
      for (const auto& [other, weight] : weights.row(client))
        for (std::size_t p = 0; p < count; ++p)
          sum[p] += weight * static_cast<double>(before[other * count + p]);
      const std::span<float> out = models[client].subspan(first, count);
      for (std::size_t p = 0; p < count; ++p) out[p] = static_cast<float>(sum[p]);
    }
  });
}

void average(Models models, std::span<float> out, Parallel& parallel) {
  FEDGE_CHECK(!models.empty() && out.size() == parameters_of(models), "a mean of models of this size");
  for_each_block(out.size(), parallel, [&](std::size_t first, std::size_t count) {
    for (std::size_t p = first; p < first + count; ++p) {
      double sum = 0;
      for (const auto model : models) sum += static_cast<double>(model[p]);
      out[p] = static_cast<float>(sum / static_cast<double>(models.size()));
    }
  });
}

double consensus_distance(Models models, std::span<const float> centre, Parallel& parallel) {
  FEDGE_CHECK(!models.empty() && centre.size() == parameters_of(models), "models of the centre's size");
  std::vector<double> squares(models.size());
  parallel.for_each(models.size(), [&](std::size_t i) {
    for (std::size_t p = 0; p < centre.size(); ++p) {
      const double difference = static_cast<double>(models[i][p]) - static_cast<double>(centre[p]);
      squares[i] += difference * difference;
    }
  });
  double sum = 0;
  for (const double square : squares) sum += square;
  return sum / static_cast<double>(models.size());
}

}  // namespace fedge::lab
