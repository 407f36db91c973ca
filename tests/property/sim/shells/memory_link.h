// A link in memory: it keeps what the coordinator sends, and what the coordinator fetches until the client
// delivers it. Chunks that a swarm requests wait likewise.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "protocol/session/link.h"
#include "protocol/session/loop.h"

namespace fedge::server::shells {

class MemoryLink final : public protocol::Link {
 public:
  using OnSent = std::function<void(const protocol::Message&)>;
  MemoryLink(const PublicKey& peer, OnSent on_sent) : peer_(peer), on_sent_(std::move(on_sent)) {}

  // The client delivers an object that the coordinator fetches; with `fault`, the transfer fails. Returns
  // false if the object is not being fetched.
  bool deliver(protocol::StoredObject& object, const std::optional<Error>& fault) {
    auto node = fetches_.extract(object.manifest().id());
    if (node.empty()) return false;
    auto [sink, done] = std::move(node.mapped());
    if (fault) return done(*fault), true;
    for (std::size_t i = 0; i < object.manifest().chunk_count(); ++i)
      if (const auto moved = move(object, *sink, i); !moved) return done(moved), true;
    done({});
    return true;
  }
  // The client answers the requests for this object's chunks, and those that follow. With `fault`, each of
  // them ends with this error.
  void answer(protocol::StoredObject& object, const std::optional<Error>& fault) {
    const protocol::ObjectId id = object.manifest().id();
    const auto asked = [&] {
      return std::ranges::find_if(asked_, [&](const protocol::Chunk& chunk) { return chunk.object == id; });
    };
    const std::size_t before = asked_.size();
    for (std::size_t i = 0; asked() != asked_.end() && (!fault || i < before); ++i) {
      const protocol::Chunk chunk = *asked();
      asked_.erase(asked());
      const Exchanged exchanged = exchanged_.at(id);  // an answer may end the exchange
      exchanged.callbacks.on_chunk(chunk,
                                   fault ? Result<void>(*fault) : move(object, *exchanged.sink, chunk.index));
    }
  }
  std::size_t asked() const { return asked_.size(); }
  // The connection ends; what was being fetched fails.
  void end() {
    for (auto& [id, fetch] : std::exchange(fetches_, {}))
      fetch.second(Error{ErrorCode::kUnavailable, "the connection has ended"});
    served_.clear();
  }
  const std::multiset<protocol::ObjectId>& served() const { return served_; }

  const PublicKey& peer() const override { return peer_; }
  const PublicKey& own_key() const override { return peer_; }  // nobody replaces a key here
  std::string peer_address() const override { return "127.0.0.1:40000"; }
  void set_callbacks(protocol::LinkCallbacks) override {}
  void authorise() override {}
  void send(const protocol::Message& message) override { on_sent_(message); }
  void serve(const protocol::Manifest& manifest, std::shared_ptr<protocol::ChunkSource>) override {
    served_.insert(manifest.id());
  }
  void stop_serving(const protocol::ObjectId& id) override {
    if (const auto one = served_.find(id); one != served_.end()) served_.erase(one);
  }
  void fetch(const protocol::Manifest& manifest, std::shared_ptr<protocol::ChunkSink> sink,
             std::function<void(Result<void>)> done) override {
    fetches_[manifest.id()] = {std::move(sink), std::move(done)};
  }
  void cancel_fetch(const protocol::ObjectId& id) override { fetches_.erase(id); }
  Result<void> exchange(const protocol::Manifest& manifest, std::shared_ptr<protocol::ChunkSource>,
                        std::shared_ptr<protocol::ChunkSink> sink,
                        protocol::ExchangeCallbacks callbacks) override {
    exchanged_.insert_or_assign(manifest.id(), Exchanged{std::move(sink), std::move(callbacks)});
    return {};
  }
  void end_exchange(const protocol::ObjectId& id) override {
    exchanged_.erase(id);
    std::erase_if(asked_, [&](const protocol::Chunk& chunk) { return chunk.object == id; });
  }
  bool ask(const protocol::Chunk& chunk) override {
    asked_.push_back(chunk);
    return true;
  }
  bool send_chunk(const protocol::Chunk&) override { return false; }
  bool refuse_chunk(const protocol::Chunk&, const Error&) override { return false; }
  std::size_t queued() const override { return 0; }
  protocol::Traffic traffic() const override { return {}; }
  void close(const std::string&) override {}

 private:
  using Fetch = std::pair<std::shared_ptr<protocol::ChunkSink>, std::function<void(Result<void>)>>;
  struct Exchanged {
    std::shared_ptr<protocol::ChunkSink> sink;
    protocol::ExchangeCallbacks callbacks;
  };
  static Result<void> move(protocol::StoredObject& object, protocol::ChunkSink& sink, std::size_t chunk) {
    if (sink.has(chunk)) return {};
    std::vector<std::byte> bytes(object.manifest().chunk_length(chunk));
    FEDGE_TRY_VOID(object.read(chunk, bytes));
    return sink.write(chunk, bytes);
  }
  PublicKey peer_;
  OnSent on_sent_;
  std::map<protocol::ObjectId, Fetch> fetches_;
  std::map<protocol::ObjectId, Exchanged> exchanged_;
  std::vector<protocol::Chunk> asked_;
  std::multiset<protocol::ObjectId> served_;
};

}  // namespace fedge::server::shells
