// What the fuzz targets of the trainer protocol and of .safetensors files feed, and the unit tests replay.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "client/trainers/trainer_frames.h"
#include "client/trainers/trainer_update.h"
#include "core/check.h"
#include "core/safetensors.h"

namespace fedge::fuzz {

// A .safetensors file: whatever can be read can be written and read again, the same.
inline void feed_safetensors(std::span<const std::byte> bytes) {
  const auto parsed = parse_safetensors(bytes, "fuzz");
  const auto header = parse_safetensors_header(bytes, "fuzz");
  FEDGE_CHECK(parsed.has_value() == header.has_value(), "header and file are judged apart");
  if (!parsed) {
    FEDGE_CHECK(!parsed.error().message.empty(), "an error says what is wrong");
    return;
  }
  FEDGE_CHECK(header->layout.hash() == parsed->values.layout().hash(), "another layout");
  FEDGE_CHECK(header->data_offset + parsed->values.size() * sizeof(float) == bytes.size(),
              "bytes are left over");
  auto written = safetensors_header(parsed->values.layout(), parsed->metadata);
  if (!written) return;  // escapes may make it too long
  const auto values = parsed->values.bytes();
  written->append(reinterpret_cast<const char*>(values.data()), values.size());
  const auto again = parse_safetensors(std::as_bytes(std::span(*written)), "again");
  FEDGE_CHECK(again && again->values.layout().hash() == parsed->values.layout().hash() &&
                  std::equal(values.begin(), values.end(), again->values.bytes().begin()),
              "written and read again, it is another model");
}

// What a trainer program writes, in pieces of a size that the first byte gives: each payload is then taken
// for a model with the tensors a (2 x 2) and b (3).
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
  client::TrainerFrameReader reader(kMaxPayload);
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
  }
}

}  // namespace fedge::fuzz
