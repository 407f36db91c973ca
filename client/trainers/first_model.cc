#include "client/trainers/first_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "core/platform/memory.h"
#include "core/safetensors.h"

namespace fedge::client {
namespace {

Result<void> check_finite(std::span<const std::byte> file, const SafetensorsHeader& header) {
  for (const TensorInfo& tensor : header.layout.tensors())
    for (std::size_t i = 0; i < tensor.size; ++i) {
      float value = 0;  // the bytes need not be aligned
      std::memcpy(&value, file.data() + header.data_offset + (tensor.offset + i) * sizeof value,
                  sizeof value);
      if (!std::isfinite(value))
        return invalid("the first model's " + tensor.name + " contains a value that is not finite");
    }
  return {};
}

}  // namespace

Result<std::vector<std::byte>> ask_for_first_model(const TrainerOptions& options, TrainerHello hello) {
  hello.asks_for_model = true;
  FEDGE_TRY(conversation, Conversation::begin(options, {.first_model = physical_memory() / 2}));
  conversation->say(hello_frame(hello));
  FEDGE_TRY(frame, conversation->listen({.task = 0, .stop = {}, .finish = {}, .leave = {}}));
  if (const auto* failure = std::get_if<TrainerFailure>(&frame.message))
    return invalid("the trainer program refused the run: " + failure->reason);
  FEDGE_TRY(header, parse_safetensors_header(frame.payload, "the first model of the trainer program"));
  if (header.layout.size() == 0) return invalid("the first model of the trainer program has no parameters");
  FEDGE_TRY_VOID(check_finite(frame.payload, header));
  return std::move(frame.payload);
}

}  // namespace fedge::client
