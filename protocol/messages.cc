#include "protocol/messages.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>

namespace fedge::protocol {
namespace {

constexpr auto kMessageTypes = kMessages.rows();
static_assert(std::ranges::adjacent_find(kMessageTypes, std::ranges::greater_equal(), &FrameType::type) ==
              kMessageTypes.end());

constexpr std::array kLinkTypes{FrameType{MessageType::kPing, "ping"}, FrameType{MessageType::kPong, "pong"},
                                FrameType{MessageType::kChunkRequest, "chunk_request"},
                                FrameType{MessageType::kChunk, "chunk"},
                                FrameType{MessageType::kChunkRefused, "chunk_refused"}};

}  // namespace

Message::Message() = default;
Message::Message(const Message&) = default;
Message::Message(Message&&) noexcept = default;
Message& Message::operator=(const Message&) = default;
Message& Message::operator=(Message&&) noexcept = default;
Message::~Message() = default;

const FrameType* find_frame_type(MessageType type) {
  for (const std::span<const FrameType> table :
       {std::span<const FrameType>(kLinkTypes), std::span<const FrameType>(kMessageTypes)})
    for (const FrameType& row : table)
      if (row.type == type) return &row;
  return nullptr;
}

const char* name_of(MessageType type) {
  const FrameType* known = find_frame_type(type);
  return known != nullptr ? known->name : "unknown";
}

const FrameType& frame_type_of(const Message& message) { return kMessageTypes.at(message.index()); }

std::optional<RunId> run_of(const Message& message) {
  return std::visit(
      [](const auto& content) -> std::optional<RunId> {
        if constexpr (requires { content.run; }) return content.run;
        if constexpr (requires { content.session; }) return content.session.run;
        return std::nullopt;
      },
      message);
}

}  // namespace fedge::protocol
