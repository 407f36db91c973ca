#include "client/local_work.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "aggregation/value_check.h"

namespace fedge::client {
namespace {

// Calls visit(parameter, position, count) for each range of the coverage, positions counting what is packed.
template <class Visit>
void for_each_range(const Coverage& coverage, const Visit& visit) {
  std::size_t position = 0;
  for (const Range& range : coverage.ranges()) {
    visit(range.begin, position, range.size());
    position += range.size();
  }
}

}  // namespace

WorkSpec read_work(config::Reader& root) {
  WorkSpec spec;
  spec.task = learn::read_task(root);
  spec.compression = protocol::read_compression(root);
  return spec;
}

protocol::Manifest WorkResult::shape(const Digest& layout, const Coverage& coverage,
                                     std::uint32_t chunk_size) const {
  protocol::Manifest manifest;
  manifest.layout = layout;
  manifest.coverage = coverage;
  manifest.codec = encoded.codec;
  manifest.payload_size = payload().size();
  manifest.chunk_size = chunk_size;
  manifest.raw_size = encoded.raw_size;
  manifest.levels = encoded.levels;
  manifest.chunks.resize((manifest.payload_size + chunk_size - 1) / chunk_size);
  return manifest;
}

Result<WorkResult> LocalWork::run(const WorkOrder& order, std::span<const float> model, ClientMemory& memory,
                                  AlignedBuffer<float> values, const std::stop_token& stop) {
  WorkResult result;
  result.values = std::move(values);
  if (result.values.size() != order.coverage.count())
    result.values = AlignedBuffer<float>(order.coverage.count());
  result.training = task_.train(order.client, order.round, model, result.values.span(), trainer_, stop);
  // A diverged model is this client's failure, not an update.
  if (!std::isfinite(result.training.mean_loss) || !protocol::all_finite(result.values.span()))
    return invalid("the training loss is not finite; lower training.optimizer.learning_rate");
  result.norm = std::sqrt(aggregation::sum_of_squares(result.values.span()));
  encode(order, memory, result);
  memory.round = order.round;
  return result;
}

void LocalWork::encode(const WorkOrder& order, ClientMemory& memory, WorkResult& result) const {
  if (compression_.none()) return;
  const Rng rng = rng_.fork("compress", order.round.value(), order.client.value());
  const std::span<float> values = result.values.span();
  if (!compression_.error_feedback) {
    result.encoded = protocol::encode_payload(compression_.format, values, values, rng);
    return;
  }
  memory.residual.resize(task_.model().layout()->size());
  AlignedBuffer<float> residual(values.size());
  for_each_range(order.coverage, [&](std::size_t parameter, std::size_t position, std::size_t count) {
    std::copy_n(memory.residual.data() + parameter, count, residual.data() + position);
  });
  result.encoded = protocol::encode_with_feedback(compression_.format, values, residual.span(), rng);
  for_each_range(order.coverage, [&](std::size_t parameter, std::size_t position, std::size_t count) {
    std::copy_n(residual.data() + position, count, memory.residual.data() + parameter);
  });
}

}  // namespace fedge::client
