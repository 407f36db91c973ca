#include "protocol/chunks/sender.h"

#include <algorithm>
#include <utility>

namespace fedge::protocol {
namespace {

Error not_served(const ObjectId& id) {
  return {ErrorCode::kNotFound, "object " + short_hex(id) + " is not served on this connection"};
}

}  // namespace

std::size_t ChunkSender::Object::length(std::uint64_t first, std::uint64_t count) const {
  const std::uint64_t end = std::min<std::uint64_t>((first + count) * chunk_size, payload_size);
  return static_cast<std::size_t>(end - first * chunk_size);
}

void ChunkSender::serve(const Manifest& manifest, std::shared_ptr<ChunkSource> source) {
  offer(manifest, std::move(source), false);
}

void ChunkSender::exchange(const Manifest& manifest, std::shared_ptr<ChunkSource> source) {
  offer(manifest, std::move(source), true);
}

void ChunkSender::offer(const Manifest& manifest, std::shared_ptr<ChunkSource> source, bool exchanged) {
  auto& object = objects_[manifest.id()];
  if (!object) object = std::make_shared<Object>();
  object->payload_size = manifest.payload_size;
  object->chunk_size = manifest.chunk_size;
  object->chunk_count = static_cast<std::uint32_t>(manifest.chunk_count());
  object->source = std::move(source);
  object->exchanged = exchanged;
}

void ChunkSender::stop_serving(const ObjectId& id) {
  const auto known = objects_.find(id);
  if (known == objects_.end()) return;
  const std::shared_ptr<Object> object = known->second;
  objects_.erase(known);
  object->source.reset();
  // Queue the waiting requests, so that each is answered with a refusal.
  for (const std::uint32_t chunk : std::exchange(object->waiting, {}))
    queue_.push_back({{id, chunk, 1}, object});
}

bool ChunkSender::is_exchanged(const ObjectId& id) const {
  const auto known = objects_.find(id);
  return known != objects_.end() && known->second->exchanged;
}

bool ChunkSender::release(const Chunk& chunk) {
  const auto known = objects_.find(chunk.object);
  if (known == objects_.end() || known->second->waiting.erase(chunk.index) == 0) return false;
  queue_.push_back({{chunk.object, chunk.index, 1}, known->second});
  return true;
}

bool ChunkSender::withhold(const Chunk& chunk) {
  const auto known = objects_.find(chunk.object);
  if (known == objects_.end() || known->second->waiting.erase(chunk.index) == 0) return false;
  pending_.bytes -= known->second->length(chunk.index, 1);
  --pending_.chunks;
  return true;
}

Result<std::optional<ChunkRefused>> ChunkSender::request(const ChunkRequest& request) {
  const auto known = objects_.find(request.object);
  if (known == objects_.end())
    return std::optional(
        ChunkRefused{request.object, request.first, request.count, not_served(request.object)});
  const auto& object = known->second;
  if (request.first >= object->chunk_count || request.count > object->chunk_count - request.first)
    return invalid("chunk_request asks for chunks " + std::to_string(request.first) + " to " +
                   std::to_string(std::uint64_t{request.first} + request.count - 1) + " of an object with " +
                   std::to_string(object->chunk_count) + " chunks");
  const std::size_t bytes = object->length(request.first, request.count);
  const bool alone = pending_.chunks == 0 && request.count == 1;
  if (!alone && (pending_.bytes + bytes > window_.bytes || pending_.chunks + request.count > window_.chunks))
    return Error{ErrorCode::kResource, "chunk_request exceeds the credit of " +
                                           std::to_string(window_.bytes) + " bytes and " +
                                           std::to_string(window_.chunks) + " chunks"};
  for (std::uint32_t i = 0; object->exchanged && i < request.count; ++i)
    if (!object->waiting.insert(request.first + i).second)
      return invalid("chunk_request asks for chunk " + std::to_string(request.first + i) +
                     ", which the peer has already requested");
  pending_.bytes += bytes;
  pending_.chunks += request.count;
  if (!object->exchanged) queue_.push_back({request, object});
  return std::optional<ChunkRefused>();
}

std::optional<ChunkSender::Next> ChunkSender::next() {
  if (queue_.empty()) return std::nullopt;
  Pending& front = queue_.front();
  if (!front.object->source) return drop_front(not_served(front.rest.object));
  Due due{
      {front.rest.object, front.rest.first}, front.object->length(front.rest.first, 1), front.object->source};
  pending_.bytes -= due.length;
  --pending_.chunks;
  ++front.rest.first;
  if (--front.rest.count == 0) queue_.pop_front();
  return due;
}

ChunkRefused ChunkSender::drop_front(const Error& error) {
  const Pending front = std::move(queue_.front());
  queue_.pop_front();
  pending_.bytes -= front.object->length(front.rest.first, front.rest.count);
  pending_.chunks -= front.rest.count;
  return {front.rest.object, front.rest.first, front.rest.count, error};
}

ChunkRefused ChunkSender::give_up(const Due& due, const Error& error) {
  const bool more = !queue_.empty() && queue_.front().rest.object == due.chunk.object &&
                    queue_.front().rest.first == due.chunk.index + 1;
  if (!more) return {due.chunk.object, due.chunk.index, 1, error};
  ChunkRefused refused = drop_front(error);
  refused.first = due.chunk.index;
  ++refused.count;
  return refused;
}

}  // namespace fedge::protocol
