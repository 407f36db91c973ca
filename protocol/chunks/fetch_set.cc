#include "protocol/chunks/fetch_set.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace fedge::protocol {

FetchSet::Fetches::iterator FetchSet::find(const ObjectId& id) {
  return std::find_if(fetches_.begin(), fetches_.end(), [&](const Fetch& f) { return f.id() == id; });
}

Result<bool> FetchSet::add(const Manifest& manifest, std::shared_ptr<ChunkSink> sink) {
  FEDGE_TRY_VOID(validate(manifest));
  const auto known = find(manifest.id());
  if (known != fetches_.end()) {
    if (!known->abandoned()) return invalid("object " + short_hex(known->id()) + " is already being fetched");
    known->resume(std::move(sink));
    known->picked = false;
    if (!known->complete()) return false;
    known->abandon();
    return true;
  }
  Fetch fetch(manifest, std::move(sink), false);
  if (fetch.complete()) return true;
  fetches_.push_back(std::move(fetch));
  return false;
}

Result<void> FetchSet::exchange(const Manifest& manifest, std::shared_ptr<ChunkSink> sink) {
  FEDGE_TRY_VOID(validate(manifest));
  const auto known = find(manifest.id());
  if (known == fetches_.end()) {
    fetches_.emplace_back(manifest, std::move(sink), true);
    return {};
  }
  if (!known->abandoned()) return invalid("object " + short_hex(known->id()) + " is already being fetched");
  known->resume(std::move(sink));
  known->picked = true;
  return {};
}

std::optional<ChunkRequest> FetchSet::pick(const ObjectId& id, std::size_t chunk) {
  const auto fetch = find(id);
  FEDGE_CHECK(fetch != fetches_.end() && fetch->picked && !fetch->abandoned(), "an object that is exchanged");
  const std::size_t length = fetch->manifest().chunk_length(chunk);
  const bool fits = outstanding_.chunks == 0 ||
                    (outstanding_.bytes + length <= window_.bytes && outstanding_.chunks < window_.chunks);
  if (!fits || fetch->expects(chunk)) return std::nullopt;
  outstanding_.bytes += length;
  ++outstanding_.chunks;
  return fetch->pick(chunk);
}

void FetchSet::cancel(const ObjectId& id) {
  const auto fetch = find(id);
  if (fetch == fetches_.end()) return;
  fetch->abandon();
  if (fetch->outstanding().chunks == 0) fetches_.erase(fetch);
}

std::optional<ChunkRequest> FetchSet::next_request() {
  // Requests in batches of a quarter of the window take fewer frames than one request for each chunk.
  const std::size_t batch = window_.bytes / 4;
  if (outstanding_.chunks > 0 && outstanding_.bytes + batch > window_.bytes) return std::nullopt;
  if (outstanding_.chunks >= window_.chunks) return std::nullopt;
  for (std::size_t tried = 0; tried < fetches_.size(); ++tried) {
    // Round robin: the first fetch moves to the end.
    fetches_.splice(fetches_.end(), fetches_, fetches_.begin());
    Fetch& fetch = fetches_.back();
    if (fetch.picked) continue;
    const ChunkAmount before = fetch.outstanding();
    const ChunkAmount credit{batch, window_.chunks - outstanding_.chunks};
    const std::size_t first_length = fetch.manifest().chunk_size;
    // A chunk larger than the batch is requested alone; if others are outstanding, only within the window.
    const bool single = outstanding_.chunks == 0 || outstanding_.bytes + first_length <= window_.bytes;
    auto request = fetch.next_request(credit, single);
    if (!request) continue;
    outstanding_.bytes += fetch.outstanding().bytes - before.bytes;
    outstanding_.chunks += fetch.outstanding().chunks - before.chunks;
    return request;
  }
  return std::nullopt;
}

Result<std::size_t> FetchSet::expected_length(const Chunk& chunk) const {
  const auto fetch = const_cast<FetchSet*>(this)->find(chunk.object);
  if (fetch == fetches_.end() || !fetch->expects(chunk.index))
    return invalid("chunk " + std::to_string(chunk.index) + " of object " + short_hex(chunk.object) +
                   " was not requested");
  return fetch->manifest().chunk_length(chunk.index);
}

std::optional<FetchSet::Finished> FetchSet::receive(const Chunk& chunk, std::span<const std::byte> bytes) {
  const auto fetch = find(chunk.object);
  FEDGE_CHECK(fetch != fetches_.end(), "a chunk of no fetch");
  const ChunkAmount before = fetch->outstanding();
  Result<void> outcome = fetch->receive(chunk.index, bytes);
  return after(fetch, before, std::move(outcome));
}

Result<std::optional<FetchSet::Finished>> FetchSet::refuse(const ChunkRefused& refused) {
  const auto fetch = find(refused.object);
  if (fetch == fetches_.end())
    return invalid("chunk_refused names object " + short_hex(refused.object) +
                   ", which is not being fetched");
  const ChunkAmount before = fetch->outstanding();
  FEDGE_TRY_VOID(fetch->refuse(refused.first, refused.count));
  Error error =
      refused.error.with_prefix("the peer refuses to send object " + short_hex(refused.object) + ": ");
  // In this API kUnavailable means that the link broke; this link is intact.
  if (error.code == ErrorCode::kUnavailable) error.code = ErrorCode::kNotFound;
  return after(fetch, before, std::move(error));
}

std::optional<FetchSet::Finished> FetchSet::after(Fetches::iterator fetch, const ChunkAmount& before,
                                                  Result<void> outcome) {
  outstanding_.bytes -= before.bytes - fetch->outstanding().bytes;
  outstanding_.chunks -= before.chunks - fetch->outstanding().chunks;
  std::optional<Finished> finished;
  if (!fetch->abandoned() && fetch->picked) {
    finished = Finished{fetch->id(), std::move(outcome), true};
  } else if (!fetch->abandoned() && (!outcome || fetch->complete())) {
    finished = Finished{fetch->id(), std::move(outcome)};
    fetch->abandon();
  }
  if (fetch->abandoned() && fetch->outstanding().chunks == 0) fetches_.erase(fetch);
  return finished;
}

}  // namespace fedge::protocol
