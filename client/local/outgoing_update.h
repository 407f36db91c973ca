// WorkResult is the result of a task and stays on the client. OutgoingUpdate is what may leave it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/coverage.h"
#include "core/result.h"
#include "learn/trainer.h"
#include "privacy/secure_aggregation/masking_spec.h"
#include "protocol/codecs/payload_codec.h"
#include "protocol/messages.h"

namespace fedge::client {

// The result of a task's training. It stays on the client: only an OutgoingUpdate leaves.
struct WorkResult {
  learn::TrainingResult training;
  double norm = 0;                            // Euclidean, before encoding
  AlignedBuffer<float> values;                // packed over the coverage, as the receiver will see them
  protocol::EncodedPayload encoded;           // empty if the values are sent unencoded
  std::optional<std::uint64_t> release = {};  // id of the client's own noise, if it was added
  std::optional<Error> fault = {};            // why the values are zeros that do not count
  std::vector<std::int64_t> sums = {};        // of an evaluation or of statistics
  std::optional<double> joules = {};          // measured while it trained; empty: unknown
  std::vector<float> above = {};              // split training, both halves here: learn::Assignment::above

  std::span<const std::byte> payload() const {
    return encoded.bytes.empty() ? std::as_bytes(values.span()) : std::span<const std::byte>(encoded.bytes);
  }
  // The payload's manifest, without chunk hashes.
  protocol::Manifest shape(const Digest& layout, const Coverage& coverage, std::uint32_t chunk_size) const;
};

// An update that may leave the client. Nothing else can be kept for sending, offered or served. In a run
// with masked updates only LocalWork::mask() makes one.
class OutgoingUpdate {
 public:
  // kRefused if the run masks its updates.
  static Result<OutgoingUpdate> in_the_clear(WorkResult result,
                                             const std::optional<privacy::MaskingSpec>& masking);

  std::span<const std::byte> payload() const { return result_.payload(); }
  // As the receiver will see them; empty for a masked update.
  std::span<const float> values() const { return result_.values.span(); }
  std::span<const float> above() const { return result_.above; }
  // The offer for the coordinator, with the hashes of the chunks.
  protocol::UpdateOffer offer(const protocol::TrainRequest& task) const;
  std::optional<std::uint64_t> release() const { return result_.release; }
  // Why the update contains nothing of the client; for the client's own log.
  const std::optional<Error>& fault() const { return result_.fault; }

 private:
  friend class LocalWork;
  explicit OutgoingUpdate(WorkResult result) : result_(std::move(result)) {}

  WorkResult result_;
  // Set once the update is masked: result_ then has neither values nor training metrics.
  std::optional<Coverage> coverage_;
  std::vector<std::uint64_t> scalars_;
};

}  // namespace fedge::client
