// Effects: what a node wants done after a step: messages to be sent, and what has become of its operations.
// The driver carries them out and clears them. Messages and searches come from pools of the network and
// return to them, so that none costs an allocation once a run is warm, and the memory of the few that are
// under way stays in the processor's caches. One thread: a network's own.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "sim/overlays/search.h"

namespace fedge::sim {

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
  std::deque<Message> all_;  // never moves what it holds
  std::vector<Message*> free_;
};

// Searches that nobody needs at present. All of a network's are alike.
class SearchPool {
 public:
  // Null: there is none.
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

// What a lookup or a publication was started as; a node's own count.
using Operation = std::uint32_t;

struct LookupResult {
  Operation operation = 0;
  Id key = 0;
  bool ok = false;            // there are values
  bool aborted = false;       // the node that asked is gone
  std::vector<Value> values;  // as the first holder that was found has them
  Contact holder;             // who gave them
  Contact owner;              // who is responsible, as far as was learned
  std::uint32_t hops = 0;     // nodes asked one after the other, up to the holder
  std::uint32_t messages = 0;
  std::uint32_t timeouts = 0;
  Duration latency{};
};

struct PublishResult {
  Operation operation = 0;
  Id key = 0;
  std::uint32_t holders = 0;  // that have taken the value; 0: it failed
  bool aborted = false;
  std::uint32_t refused = 0;  // that have it already, or a later one, or no room
  Duration latency{};
};

// A timer for what has no request and reply: a recursive lookup's answer comes from a stranger.
struct Timer {
  std::uint32_t rpc = 0;
  Duration after{};
};

class Effects {
 public:
  explicit Effects(MessagePool& pool) : pool_(&pool) {}

  // A new message, to be filled in by the caller before the step ends.
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
  bool joined = false;           // it is a member now
  bool wants_bootstrap = false;  // the join failed, or it has lost everybody: join() again
  SearchPool searches;
  // For use within a step; here, as one list for a whole network stays in the processor's caches.
  std::vector<Contact> scratch;
  std::vector<Value> scratch_values;

 private:
  MessagePool* pool_;
};

}  // namespace fedge::sim
