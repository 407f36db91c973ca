// Fuzz target of the trainer protocol, which the unit tests replay.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "client/trainers/trainer_frames.h"
#include "client/trainers/trainer_predictions.h"
#include "client/trainers/trainer_update.h"
#include "core/check.h"

namespace fedge::fuzz {

// A trainer program's output in pieces of the size that byte 0 gives. Each payload is also read as a model
// with the tensors a (2 x 2) and b (3), and as predictions of 3 classes.
inline void feed_trainer_stream(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  constexpr std::size_t kMaxPayload = 4096;
  static const auto layout = [] {
    ParameterLayout made;
    made.add("a", {2, 2}).add("b", {3});
    return made;
  }();
  const std::size_t step = 1 + std::to_integer<std::size_t>(bytes[0]);
  const std::vector<float> model(layout.size(), 1.0F);
  const Coverage coverage = Coverage::of({{1, 2}, {3, 6}});
  client::TrainerFrameReader reader({.update = kMaxPayload, .predictions = kMaxPayload});
  for (bytes = bytes.subspan(1); !bytes.empty();) {
    const auto room = reader.room();
    FEDGE_CHECK(!room.empty() && room.size() <= client::kMaxTrainerHeader, "room within the limits");
    const std::size_t count = std::min({step, room.size(), bytes.size()});
    std::memcpy(room.data(), bytes.data(), count);
    bytes = bytes.subspan(count);
    const auto frame = reader.filled(count);
    if (!frame) {
      FEDGE_CHECK(!frame.error().message.empty(), "an error says what is wrong");
      return;
    }
    if (!*frame) continue;
    FEDGE_CHECK((*frame)->payload.size() <= kMaxPayload, "payload within the limits");
    std::vector<float> update(coverage.count());
    const auto taken = client::trained_difference((*frame)->payload, {layout, model, coverage}, update);
    FEDGE_CHECK(taken.has_value() || !taken.error().message.empty(), "an error says what is wrong");
    learn::EvaluationSums sums({.outputs = 3});
    const auto counted = client::count_predictions((*frame)->payload, SampleCount(64), sums);
    if (!counted) continue;
    sums.end_client(counted->value());
    FEDGE_CHECK(learn::EvaluationSums::from(sums.shape(), sums.values(), 64).has_value(),
                "a coordinator takes what was counted");
  }
}

}  // namespace fedge::fuzz
