// Transfers: the models and updates that are on their way between a coordinator and its clients. The
// coordinator's thread opens, counts and ends them; any thread lists them. Counting a chunk takes no lock.
// Memory: a few hundred bytes for each open transfer; a run has at most three of a client.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ids.h"
#include "server/access/calendar.h"
#include "server/store/run_store.h"

namespace fedge::server {

enum class TransferObject {
  kModel,    // the client downloads it
  kControl,  // likewise: the control variates of SCAFFOLD
  kUpdate,   // the client uploads it
};
const char* name_of(TransferObject object);

enum class TransferWait {
  kNone,  // it moves
  kTurn,  // other uploads have all the places
  kDisk,  // the coordinator's disk is full
};

struct TransferFacts {
  RunNumber run;
  std::string project;  // of the run
  ClientId client;
  TaskId task;
  TransferObject object;
  std::uint64_t bytes;  // of the whole object
};

// What is counted of a transfer. Only `done` is for other threads than the coordinator's.
struct TransferCount {
  std::atomic<std::uint64_t> done = 0;  // bytes
  std::uint64_t requests = 0;           // grows with each request of the client, also for the same chunk
  bool busy = false;                    // a requested chunk is being written
  std::uint64_t number = 0;             // under which it is listed; 0: it is not
};

class Transfers {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Transfers(std::function<Clock::time_point()> now = [] { return Clock::now(); })
      : now_(std::move(now)) {}

  // A download is over if the client has requested nothing for this long: it needed no more of the object, or
  // had the rest. A client on a slow network requests its next chunks within this time. If it takes longer,
  // the download is listed again, under another number.
  static constexpr std::chrono::seconds kQuiet{60};
  static constexpr std::chrono::seconds kSpan{5};  // a rate is that of the last one or two of these

  // ---- on the coordinator's thread ----
  // Lists the transfer from now on, if it is not listed, in this state.
  void show(const TransferFacts& facts, const std::shared_ptr<TransferCount>& count, TransferWait wait);
  void hide(TransferCount& count);
  // Measures the rates, and ends downloads that are over. Call it about once a second.
  void look();

  // ---- on any thread ----
  struct Listed {
    std::uint64_t number = 0;  // ascending from 1 in each process
    TransferFacts facts;
    std::uint64_t done = 0;  // bytes, at most facts.bytes
    TransferWait wait{};
    UnixSeconds since = 0;            // when it began to move, or to wait
    std::optional<double> rate = {};  // bytes a second; nothing while it waits and in the first second
  };
  // Returns up to `most` transfers with numbers above `after` that fit, ascending. `fits` must not wait.
  std::vector<Listed> list(std::uint64_t after, std::size_t most,
                           const std::function<bool(const TransferFacts&)>& fits) const;

 private:
  struct Mark {
    Clock::time_point at;
    std::uint64_t done = 0;
  };
  struct Entry {
    TransferFacts facts;
    std::shared_ptr<TransferCount> count;
    TransferWait wait{};
    UnixSeconds since = 0;
    Mark before = {};  // of the rate: between one and two spans old, or the beginning
    Mark last = {};
    Clock::time_point active = {};  // when a look last saw a request
    std::uint64_t requests = 0;     // until then
  };
  static bool is_over(Entry& entry, Clock::time_point now);

  std::function<Clock::time_point()> now_;
  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Entry> entries_;
};

// One object that moves, or may move, between a client and the coordinator. It is listed from wait() or
// move() on, and no longer when it ends or this is destroyed. Use it on the coordinator's thread.
class Transfer {
 public:
  Transfer(std::shared_ptr<Transfers> all, TransferFacts facts)
      : all_(std::move(all)), facts_(std::move(facts)) {}
  ~Transfer() { end(); }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void wait(TransferWait reason);
  // It moves from now on; this many of its bytes were there before.
  void move(std::uint64_t before = 0);
  // So many more bytes have arrived.
  void add(std::uint64_t bytes) { reach(count_->done.load(std::memory_order_relaxed) + bytes); }
  // All bytes before this one are done: sent, or not requested because the receiver had them. Never counts
  // backwards, and never more than the object has.
  void reach(std::uint64_t end);
  // The receiver has requested a chunk, which is being sent from now on. Lists the transfer if it is not
  // listed.
  void requested();
  // The requested chunk, which ends before this byte, was sent. The last chunk ends the transfer.
  void sent(std::uint64_t end);
  // The requested chunk is not sent.
  void refused() { count_->busy = false; }
  // It is over, and moves no more.
  void end();
  std::uint64_t bytes() const { return facts_.bytes; }

 private:
  std::shared_ptr<Transfers> all_;
  TransferFacts facts_;
  std::shared_ptr<TransferCount> count_ = std::make_shared<TransferCount>();
  bool ended_ = false;
};

// The transfers of one run, at most one for each client and object. Use it on the coordinator's thread.
class RunTransfers {
 public:
  RunTransfers(std::shared_ptr<Transfers> all, RunNumber run, std::string project)
      : all_(std::move(all)), run_(run), project_(std::move(project)) {}

  // Replaces the client's earlier transfer of such an object. Nothing is listed yet.
  std::shared_ptr<Transfer> open(ClientId client, TaskId task, TransferObject object, std::uint64_t bytes);
  // Null if there is none.
  std::shared_ptr<Transfer> find(ClientId client, TransferObject object) const;
  void end(ClientId client, TransferObject object);
  // The client disconnected.
  void end(ClientId client);
  void end_all();

 private:
  std::shared_ptr<Transfers> all_;
  RunNumber run_;
  std::string project_;
  std::map<std::pair<ClientId, TransferObject>, std::shared_ptr<Transfer>> open_;
};

}  // namespace fedge::server
