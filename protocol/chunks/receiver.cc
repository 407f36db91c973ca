#include "protocol/chunks/receiver.h"

#include <utility>

#include "core/check.h"

namespace fedge::protocol {

ChunkReceiver::ChunkReceiver(Manifest manifest, std::shared_ptr<ChunkSink> sink)
    : manifest_(std::move(manifest)), id_(manifest_.id()), states_(manifest_.chunk_count(), State::kMissing) {
  resume(std::move(sink));
}

void ChunkReceiver::resume(std::shared_ptr<ChunkSink> sink) {
  sink_ = std::move(sink);
  missing_ = 0;
  next_ = 0;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] != State::kRequested) states_[i] = sink_->has(i) ? State::kHere : State::kMissing;
    if (states_[i] != State::kHere) ++missing_;
  }
}

std::optional<ChunkRequest> ChunkReceiver::next_request(ChunkAmount credit, bool alone) {
  if (abandoned()) return std::nullopt;
  while (next_ < states_.size() && states_[next_] != State::kMissing) ++next_;
  ChunkRequest request{.object = id_, .first = static_cast<std::uint32_t>(next_), .count = 0};
  ChunkAmount taken;
  for (; next_ < states_.size() && states_[next_] == State::kMissing; ++next_) {
    const std::size_t length = manifest_.chunk_length(next_);
    const bool fits = taken.bytes + length <= credit.bytes && taken.chunks < credit.chunks;
    if (!fits && !(alone && taken.chunks == 0)) break;
    states_[next_] = State::kRequested;
    taken.bytes += length;
    ++taken.chunks;
  }
  if (taken.chunks == 0) return std::nullopt;
  outstanding_.bytes += taken.bytes;
  outstanding_.chunks += taken.chunks;
  request.count = static_cast<std::uint32_t>(taken.chunks);
  return request;
}

ChunkRequest ChunkReceiver::pick(std::size_t index) {
  FEDGE_CHECK(index < states_.size() && states_[index] != State::kRequested, "a chunk that is not under way");
  if (std::exchange(states_[index], State::kRequested) == State::kHere) ++missing_;
  outstanding_.bytes += manifest_.chunk_length(index);
  ++outstanding_.chunks;
  return {.object = id_, .first = static_cast<std::uint32_t>(index), .count = 1};
}

void ChunkReceiver::settle(std::size_t index, State state) {
  outstanding_.bytes -= manifest_.chunk_length(index);
  --outstanding_.chunks;
  states_[index] = state;
  if (state == State::kHere) --missing_;
}

Result<void> ChunkReceiver::receive(std::size_t index, std::span<const std::byte> bytes) {
  FEDGE_CHECK(expects(index), "a chunk that was not asked for");
  if (abandoned()) {
    settle(index, State::kMissing);
    return {};
  }
  if (auto verified = verify_chunk(manifest_, index, bytes); !verified) {
    settle(index, State::kMissing);
    return verified.error().with_prefix("object " + short_hex(id_) + ": ");
  }
  // Another fetch into the same sink may have stored the chunk already.
  Result<void> written;
  if (!sink_->has(index)) written = sink_->write(index, bytes);
  settle(index, written ? State::kHere : State::kMissing);
  return written;
}

Result<void> ChunkReceiver::refuse(std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) {
    if (!expects(i))
      return invalid("chunk_refused names chunk " + std::to_string(i) + " of object " + short_hex(id_) +
                     ", which was not requested");
    settle(i, State::kMissing);
  }
  return {};
}

}  // namespace fedge::protocol
