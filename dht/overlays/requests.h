// RequestTable: a node's requests that are not answered yet, by number. AddressTokens: the tokens that other
// nodes have issued to it, and the requests that it must repeat if they lacked one. Both are owned by a node;
// one thread. Cost: O(1) for a request, O(tokens) for a token.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "dht/overlays/message.h"

namespace fedge::dht {

enum class RequestUse : std::uint8_t { kSearch, kTables, kStore, kRepair, kCache, kRoute };

struct OpenRequest {
  Contact to;
  std::uint32_t rpc = 0;  // 0: free
  RequestUse use = RequestUse::kTables;
  std::uint32_t tag = 0;  // of the tables; or index of the search or publishing
  std::uint32_t generation = 0;
  Id key = 0;
  std::uint64_t slot = 0;
};

class RequestTable {
 public:
  // Registers the request and returns its number. Numbers increase; if a number's place is still taken, the
  // table doubles.
  std::uint32_t add(const OpenRequest& request) {
    if (next_ == 0) ++next_;
    while (place_of(next_).rpc != 0) {
      std::vector<OpenRequest> larger(2 * places_.size());
      for (const OpenRequest& old : places_)
        if (old.rpc != 0) larger[old.rpc & (larger.size() - 1)] = old;
      places_ = std::move(larger);
    }
    OpenRequest& place = places_[next_ & (places_.size() - 1)];
    place = request;
    place.rpc = next_;
    return next_++;
  }
  // Null if the request is unknown or has ended.
  const OpenRequest* find(std::uint32_t rpc) const {
    const OpenRequest& place = place_of(rpc);
    return rpc != 0 && place.rpc == rpc ? &place : nullptr;
  }
  // Ends an open request.
  OpenRequest take(std::uint32_t rpc) {
    return std::exchange(places_[rpc & (places_.size() - 1)], OpenRequest{});
  }
  void clear() {
    for (OpenRequest& place : places_) place.rpc = 0;
  }
  void prefetch(std::uint32_t rpc) const { __builtin_prefetch(&place_of(rpc)); }

 private:
  const OpenRequest& place_of(std::uint32_t rpc) const { return places_[rpc & (places_.size() - 1)]; }

  std::uint32_t next_ = 1;
  std::vector<OpenRequest> places_ = std::vector<OpenRequest>(8);  // at rpc modulo its size, a power of two
};

class AddressTokens {
 public:
  static constexpr std::size_t kMost = 512;  // tokens; the oldest are dropped

  void remember(Address address, std::uint64_t token) {
    std::erase_if(tokens_, [&](const Token& known) { return known.address == address; });
    if (tokens_.size() == kMost) tokens_.erase(tokens_.begin());
    tokens_.push_back({address, token});
  }
  // Puts the receiver's token into the message, if it is known.
  void show(Message& message) const {
    for (const Token& known : tokens_)
      if (known.address == message.to.address) message.token = known.token;
  }
  // Keeps a request that was sent without a token.
  void keep(const Message& request) { untokened_.push_back(request); }
  void forget(std::uint32_t rpc) {
    std::erase_if(untokened_, [&](const Message& request) { return request.rpc == rpc; });
  }
  // Returns the kept request of this number, at most once.
  std::optional<Message> take(std::uint32_t rpc) {
    const auto found = std::find_if(untokened_.begin(), untokened_.end(),
                                    [&](const Message& kept) { return kept.rpc == rpc; });
    if (found == untokened_.end()) return std::nullopt;
    std::optional<Message> request(std::move(*found));
    untokened_.erase(found);
    return request;
  }
  void clear() {
    tokens_.clear();
    untokened_.clear();
  }

 private:
  struct Token {
    Address address = kNobody;
    std::uint64_t token = 0;
  };
  std::vector<Token> tokens_;
  std::vector<Message> untokened_;
};

}  // namespace fedge::dht
