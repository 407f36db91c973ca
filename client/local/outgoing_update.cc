#include "client/local/outgoing_update.h"

#include <utility>

namespace fedge::client {

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

Result<OutgoingUpdate> OutgoingUpdate::in_the_clear(WorkResult result,
                                                    const std::optional<privacy::MaskingSpec>& masking) {
  if (masking)
    return Error{ErrorCode::kRefused,
                 "this run masks its updates, but this update has no masks; it is not sent"};
  return OutgoingUpdate(std::move(result));
}

protocol::UpdateOffer OutgoingUpdate::offer(const protocol::TrainRequest& task) const {
  protocol::Manifest manifest =
      result_.shape(task.model.layout, coverage_ ? *coverage_ : task.coverage, task.model.chunk_size);
  manifest.chunks =
      protocol::make_manifest(manifest.layout, manifest.coverage, payload(), manifest.chunk_size).chunks;
  return {.run = task.run,
          .round = task.round,
          .update = std::move(manifest),
          .samples = result_.training.samples,
          .steps = result_.training.steps,
          .train_loss = result_.training.mean_loss,
          .norm = result_.norm,
          .loss_rms = result_.training.rms_loss,
          .track = task.track,
          .kind = task.kind,
          .wanted_share = result_.training.wanted_share,
          .activation_correlation = result_.training.activation_correlation,
          .masked_scalars = scalars_,
          .sums = coverage_ ? std::vector<std::int64_t>() : result_.sums,
          .joules = result_.joules};
}

}  // namespace fedge::client
