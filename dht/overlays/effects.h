// Effects: the outputs of a node's step: messages to send and results of its operations. The driver executes
// and clears them. Messages and searches come from the network's pools and return to them: a warm run
// allocates nothing, and the few in use stay in the processor's caches. Use it only on the network's thread.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "dht/overlays/search.h"

namespace fedge::dht {

class MessagePool {
 public:
  Message& take() {
    if (free_.empty()) return all_.emplace_back();
    Message& message = *free_.back();
    free_.pop_back();
    return message;
  }
  void give_back(Message& message) {
    message.clear();
    free_.push_back(&message);
  }

 private:
  std::deque<Message> all_;  // elements never move
  std::vector<Message*> free_;
};

// Idle searches. All searches of a network have the same type.
class SearchPool {
 public:
  // Null if there is none.
  std::unique_ptr<Search> take() {
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Search> search = std::move(idle_.back());
    idle_.pop_back();
    return search;
  }
  void give_back(std::unique_ptr<Search> search) { idle_.push_back(std::move(search)); }

 private:
  std::vector<std::unique_ptr<Search>> idle_;
};

// Id of a lookup or publication, counted by each node.
using Operation = std::uint32_t;

struct LookupResult {
  Operation operation = 0;
  Id key = 0;
  bool ok = false;            // values were found
  bool aborted = false;       // the requesting node has stopped
  std::vector<Value> values;  // of the first holder found
  Contact holder;             // source of the values
  Contact owner;              // responsible node, as far as known
  std::uint32_t hops = 0;     // nodes asked in sequence, up to the holder
  std::uint32_t messages = 0;
  std::uint32_t timeouts = 0;
  Duration latency{};
};

struct PublishResult {
  Operation operation = 0;
  Id key = 0;
  std::uint32_t holders = 0;  // nodes that stored the value; 0: failed
  bool aborted = false;
  std::uint32_t refused = 0;  // nodes that had it or a later one, or had no room
  Duration latency{};
};

// A timer without request and reply: the answer to a recursive lookup comes from another node than the first
// hop.
struct Timer {
  std::uint32_t rpc = 0;
  Duration after{};
};

class Effects {
 public:
  explicit Effects(MessagePool& pool) : pool_(&pool) {}

  // A new message; the caller must fill it in before the step ends.
  Message& send(const Contact& from, const Contact& to, Kind kind, Purpose purpose) {
    Message& message = pool_->take();
    message.from = from;
    message.to = to;
    message.kind = kind;
    message.purpose = purpose;
    sent.push_back(&message);
    return message;
  }
  void clear() {
    sent.clear();
    timers.clear();
    lookups.clear();
    publications.clear();
    joined = false;
    wants_bootstrap = false;
  }

  std::vector<Message*> sent;
  std::vector<Timer> timers;
  std::vector<LookupResult> lookups;
  std::vector<PublishResult> publications;
  bool joined = false;           // became a member
  bool wants_bootstrap = false;  // the join failed or all contacts are lost: call join() again
  SearchPool searches;
  // Scratch lists within a step. One per network, so that they stay in the processor's caches.
  std::vector<Contact> scratch;
  std::vector<Value> scratch_values;

 private:
  MessagePool* pool_;
};

}  // namespace fedge::dht
