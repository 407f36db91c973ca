// Fuzz target of the coordinator's half of split training: a client's messages, each as its length in two
// bytes and its protobuf bytes, to a server with a tiny model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/check.h"
#include "learn/model.h"
#include "learn/models/adapters.h"
#include "protocol/codec.h"
#include "server/split/split_server.h"

namespace fedge::fuzz {

inline std::unique_ptr<learn::Model> tiny_split_model() {
  learn::ModelSpec spec;
  spec.kind = "llama";
  spec.language.layers = 2;
  spec.language.width = 8;
  spec.language.heads = 2;
  spec.adapter.rank = 2;
  auto model = learn::make_model(spec, {1, 4, 1, true}, 16);
  FEDGE_CHECK(model.has_value(), "a model");
  return std::move(*model);
}

inline void feed_split_server(std::span<const std::byte> input) {
  static const std::unique_ptr<learn::Model> model = tiny_split_model();
  if (input.empty()) return;
  const auto choice = static_cast<std::uint8_t>(input[0]);
  learn::TrainingSpec training;
  training.batch_size = 3;
  training.local_model = LocalModel::kSplit;
  training.split.keeps_targets = (choice & 1) != 0;
  training.split.codec = (choice & 2) != 0 ? learn::CutEncoding::kInt8 : learn::CutEncoding::kFloat32;
  training.split.feedback = (choice & 6) == 6;
  auto layout = SplitLayout::of(*model->layout(), model->adapters()->shape(), 1);
  FEDGE_CHECK(layout.has_value(), "a model that can be cut");
  server::SplitServer server(*model, training, std::move(*layout));
  ParameterVector parameters(model->layout());
  model->initialise(parameters.values(), Rng(1));
  server.take_model(std::move(parameters));
  server.begin(ClientId(1), RoundNumber(1), 1);
  for (std::size_t at = 1; at + 2 <= input.size();) {
    const std::size_t length =
        static_cast<std::size_t>(input[at]) + 256 * static_cast<std::size_t>(input[at + 1]);
    const auto bytes = input.subspan(at + 2, std::min(length, input.size() - at - 2));
    at += 2 + bytes.size();
    const auto message = protocol::decode<protocol::SplitValues>(bytes);
    if (!message) continue;
    const auto answer = server.answer(ClientId(1), *message);
    // An answer can be sent, and one that comes again is the same.
    if (answer) FEDGE_CHECK(protocol::frame_size(*answer) > 0, "a message");
    const auto again = server.answer(ClientId(1), *message);
    FEDGE_CHECK(!answer || (again && *again == *answer), "the same answer");
    (void)server.end(ClientId(1), RoundNumber(1), message->step + 1);
  }
}

}  // namespace fedge::fuzz
