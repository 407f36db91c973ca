#include "protocol/session/detail/link_transfers.h"

#include <string>
#include <utility>

namespace fedge::protocol {

Result<std::function<void()>> LinkTransfers::fetch(const Manifest& manifest, std::shared_ptr<ChunkSink> sink,
                                                   std::shared_ptr<Done> done) {
  FEDGE_TRY(complete, fetches_.add(manifest, std::move(sink)));
  const ObjectId id = manifest.id();
  fetch_done_[id] = done;
  if (!complete) return std::function<void()>();
  return std::function<void()>([this, id, weak = std::weak_ptr(done)] {
    const auto known = fetch_done_.find(id);
    if (known != fetch_done_.end() && known->second == weak.lock()) end_fetch(id, {});
  });
}

void LinkTransfers::cancel_fetch(const ObjectId& id) {
  fetch_done_.erase(id);
  fetches_.cancel(id);
}

void LinkTransfers::serve(const Manifest& manifest, std::shared_ptr<ChunkSource> source) {
  sender_.serve(manifest, std::move(source));
}

Result<void> LinkTransfers::exchange(const Manifest& manifest, std::shared_ptr<ChunkSource> source,
                                     std::shared_ptr<ChunkSink> sink, ExchangeCallbacks callbacks) {
  FEDGE_TRY_VOID(fetches_.exchange(manifest, std::move(sink)));
  sender_.exchange(manifest, std::move(source));
  exchanges_[manifest.id()] = std::make_shared<ExchangeCallbacks>(std::move(callbacks));
  return {};
}

bool LinkTransfers::end_exchange(const ObjectId& id) {
  if (exchanges_.erase(id) == 0) return false;
  fetches_.cancel(id);
  sender_.stop_serving(id);
  return true;
}

std::optional<ChunkRequest> LinkTransfers::pick(const Chunk& chunk) {
  if (!exchanges_.contains(chunk.object)) return std::nullopt;
  return fetches_.pick(chunk.object, chunk.index);
}

Result<void> LinkTransfers::expect(const Chunk& chunk, std::size_t payload_size) {
  FEDGE_TRY(length, fetches_.expected_length(chunk));
  if (payload_size != length)
    return invalid("chunk " + std::to_string(chunk.index) + " comes with " + std::to_string(payload_size) +
                   " bytes instead of " + std::to_string(length));
  incoming_ = chunk;
  return {};
}

std::optional<LinkTransfers::Finished> LinkTransfers::receive(std::span<const std::byte> payload) {
  return fetches_.receive(incoming_, payload);
}

void LinkTransfers::report(const Finished& finished) {
  if (!finished.picked) return end_fetch(finished.object, finished.outcome);
  if (const auto exchange = exchange_of(finished.object)) exchange->on_chunk(incoming_, finished.outcome);
}

Result<std::optional<LinkTransfers::Finished>> LinkTransfers::refused(const ChunkRefused& refused) {
  return fetches_.refuse(refused);
}

void LinkTransfers::report(const Finished& finished, const ChunkRefused& refused) {
  if (!finished.picked) return end_fetch(finished.object, finished.outcome);
  if (const auto exchange = exchange_of(refused.object)) exchange->on_refused(refused);
}

Result<std::optional<ChunkRefused>> LinkTransfers::requested(const ChunkRequest& request) {
  FEDGE_TRY(refused, sender_.request(request));
  if (!refused && sender_.is_exchanged(request.object))
    if (const auto exchange = exchange_of(request.object)) exchange->on_requested(request);
  return refused;
}

void LinkTransfers::end() {
  sender_ = ChunkSender();
  fetches_ = FetchSet();
  exchanges_.clear();
}

void LinkTransfers::fail_fetches(const Error& error) {
  while (!fetch_done_.empty()) end_fetch(ObjectId(fetch_done_.begin()->first), error);
}

std::shared_ptr<ExchangeCallbacks> LinkTransfers::exchange_of(const ObjectId& id) const {
  const auto known = exchanges_.find(id);
  return known == exchanges_.end() ? nullptr : known->second;
}

void LinkTransfers::end_fetch(const ObjectId& id, const Result<void>& outcome) {
  const auto node = fetch_done_.extract(id);
  if (!node.empty()) (*node.mapped())(outcome);
}

}  // namespace fedge::protocol
