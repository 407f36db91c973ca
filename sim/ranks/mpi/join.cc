#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "sim/ranks/mpi_ranks.h"

namespace fedge::sim {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kTag = 1;
constexpr int kSliceTag = 2;
constexpr int kSumTag = 3;
constexpr std::size_t kLargestPiece = std::size_t{1} << 26;  // bytes of one MPI message
constexpr std::size_t kMostNumbers = std::size_t{1} << 26;   // of one MPI sum
constexpr std::uint64_t kAlive = UINT64_MAX;                 // length of a frame without content: I live
constexpr std::uint64_t kFarewell = UINT64_MAX - 1;          // the same: my last frame
constexpr auto kSignOfLife = 2s;
// Between two looks at the network: while somebody waits for a message, and otherwise. A look takes the time
// of this rank's training.
constexpr auto kWhileWaiting = 50us;
constexpr auto kWhileBusy = 5ms;
constexpr auto kTogether = 500us;  // messages of this time travel together

// A message of MPI is a piece of its sender's stream of frames: length, 8 bytes, and content.
void append_frame(std::string& stream, std::uint64_t length, const std::string& content) {
  char bytes[sizeof length];
  std::memcpy(bytes, &length, sizeof length);
  stream.append(bytes, sizeof length);
  stream += content;
}

class Mpi final : public MpiRanks {
 public:
  explicit Mpi(std::chrono::seconds patience) : patience_(patience) {
    thread_ = std::thread([this] { run(); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return joined_; });
  }
  ~Mpi() override {
    {
      const std::lock_guard lock(mutex_);
      gone_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

  std::size_t rank() const override { return rank_; }
  std::size_t size() const override { return size_; }

  void broadcast(std::string message) override {
    const std::lock_guard lock(mutex_);
    traffic_.bytes_sent += message.size() * (size_ - 1);
    append_frame(to_send_, message.size(), message);
    if (Clock::now() - last_sent_ >= kTogether) wake_.notify_all();
  }

  Result<std::optional<Message>> receive(std::chrono::microseconds patience) override {
    std::unique_lock lock(mutex_);
    if (patience > 0us && heard_.empty() && !lost_) {
      const auto begin = Clock::now();
      listening_ = true;
      wake_.notify_all();
      changed_.wait_for(lock, patience, [&] { return !heard_.empty() || lost_; });
      listening_ = false;
      traffic_.seconds_waiting += std::chrono::duration<double>(Clock::now() - begin).count();
    }
    if (!heard_.empty()) {
      Message message = std::move(heard_.front());
      heard_.pop_front();
      return std::optional(std::move(message));
    }
    if (lost_) return *lost_;
    return std::optional<Message>();
  }

  Result<void> all_reduce(std::span<std::int64_t> numbers) override {
    std::unique_lock lock(mutex_);
    const auto begin = Clock::now();
    for (std::size_t first = 0; first < numbers.size() && !lost_; first += kMostNumbers) {
      to_add_ = numbers.subspan(first, std::min(kMostNumbers, numbers.size() - first));
      wake_.notify_all();
      changed_.wait(lock, [&] { return to_add_.empty() || lost_; });
    }
    traffic_.bytes_reduced += numbers.size_bytes();
    traffic_.seconds_reducing += std::chrono::duration<double>(Clock::now() - begin).count();
    return lost_ ? Result<void>(*lost_) : Result<void>();
  }

  Traffic traffic() const override {
    const std::lock_guard lock(mutex_);
    return traffic_;
  }

  Result<void> leave() override {
    std::unique_lock lock(mutex_);
    append_frame(to_send_, kFarewell, {});
    leaving_ = true;
    wake_.notify_all();
    changed_.wait(lock, [&] { return left_ || lost_; });
    return left_ ? Result<void>() : Result<void>(*lost_);
  }

  void end_all(int code) override {
    {
      const std::lock_guard lock(mutex_);
      abort_ = code;
    }
    wake_.notify_all();
    std::this_thread::sleep_for(10s);  // MPI ends this process meanwhile
    std::_Exit(code);
  }

 private:
  struct Sending {
    std::shared_ptr<const std::string> bytes;
    MPI_Request request;
  };
  struct Sum {
    std::vector<std::vector<std::int64_t>> slices;  // this rank's numbers of the others
    std::vector<MPI_Request> requests;
    bool added = false;  // the sums of this rank's slice are on their way
  };
  struct Receiving {
    std::size_t from;
    std::vector<char> bytes;
    MPI_Request request;
  };

  void run() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    std::unique_lock lock(mutex_);
    rank_ = static_cast<std::size_t>(rank);
    size_ = static_cast<std::size_t>(size);
    streams_.resize(size_);
    last_sign_.assign(size_, Clock::now());
    farewells_.assign(size_, false);
    farewells_[rank_] = true;
    joined_ = true;
    changed_.notify_all();
    while (!gone_ && !abort_ && !left_) step(lock);
    const auto code = abort_;
    lock.unlock();
    if (code) MPI_Abort(MPI_COMM_WORLD, *code);
  }

  void step(std::unique_lock<std::mutex>& lock) {
    if (!lost_) {
      send();
      receive();
      add();
      watch();
      if (leaving_ && sending_.empty() && std::ranges::all_of(farewells_, [](bool told) { return told; })) {
        MPI_Finalize();
        left_ = true;
        changed_.notify_all();
        return;
      }
    }
    if (sum_ && !lost_) {  // progress needs calls
      lock.unlock();
      ::sched_yield();
      lock.lock();
    } else {
      wake_.wait_for(lock, listening_ || leaving_ ? kWhileWaiting : kWhileBusy);
    }
  }

  void send() {
    if (Clock::now() - last_sent_ >= kSignOfLife && to_send_.empty() && !leaving_)
      append_frame(to_send_, kAlive, {});
    const std::string stream = std::exchange(to_send_, {});
    for (std::size_t first = 0; first < stream.size(); first += kLargestPiece) {
      const auto piece = std::make_shared<const std::string>(stream.substr(first, kLargestPiece));
      for (std::size_t to = 0; to < size_; ++to) {
        if (to == rank_) continue;
        Sending& sending = sending_.emplace_back(Sending{piece, MPI_REQUEST_NULL});
        MPI_Isend(piece->data(), static_cast<int>(piece->size()), MPI_BYTE, static_cast<int>(to), kTag,
                  MPI_COMM_WORLD, &sending.request);
      }
      last_sent_ = Clock::now();
    }
    std::erase_if(sending_, [](Sending& sending) {
      int done = 0;
      MPI_Test(&sending.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
  }

  void receive() {
    for (;;) {
      if (!receiving_) {
        int there = 0;
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Status status;
        MPI_Improbe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &message, &status);
        if (there == 0) return;
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        receiving_.emplace(Receiving{static_cast<std::size_t>(status.MPI_SOURCE),
                                     std::vector<char>(static_cast<std::size_t>(bytes)), MPI_REQUEST_NULL});
        MPI_Imrecv(receiving_->bytes.data(), bytes, MPI_BYTE, &message, &receiving_->request);
      }
      int done = 0;
      MPI_Test(&receiving_->request, &done, MPI_STATUS_IGNORE);
      if (done == 0) return;
      const Receiving piece = std::move(*receiving_);
      receiving_.reset();
      last_sign_[piece.from] = Clock::now();
      streams_[piece.from].append(piece.bytes.data(), piece.bytes.size());
      take_frames(piece.from);
    }
  }

  void take_frames(std::size_t from) {
    std::string& stream = streams_[from];
    std::size_t next = 0;
    std::uint64_t length = 0;
    while (stream.size() - next >= sizeof length) {
      std::memcpy(&length, stream.data() + next, sizeof length);
      const std::size_t begin = next + sizeof length;
      const bool content = length != kAlive && length != kFarewell;
      if (content && stream.size() - begin < length) break;
      if (length == kFarewell) farewells_[from] = true;
      next = begin;
      if (!content) continue;
      heard_.push_back({from, stream.substr(begin, length)});
      next += length;
      changed_.notify_all();
    }
    stream.erase(0, next);
  }

  // Each rank adds up one slice of the numbers, which it gets from all others, and sends the sums to them:
  // each number travels twice, whatever the number of ranks. MPI's own sum that can be waited for without
  // blocking takes twice as long with Open MPI 4.1, and a blocking one does not end when a rank is lost.
  void add() {
    if (to_add_.empty()) return;
    if (!sum_) {
      sum_.emplace();
      for_others([&](std::size_t other) {
        sum_->slices.emplace_back(slice(rank_).size());
        exchange(sum_->slices.back(), slice(other), other, kSliceTag);
      });
    }
    int done = 0;
    MPI_Testall(static_cast<int>(sum_->requests.size()), sum_->requests.data(), &done, MPI_STATUSES_IGNORE);
    if (done == 0) return;
    if (!sum_->added) {
      const std::span<std::int64_t> own = slice(rank_);
      for (const std::vector<std::int64_t>& theirs : sum_->slices)
        for (std::size_t i = 0; i < own.size(); ++i) own[i] += theirs[i];
      sum_->added = true;
      sum_->requests.clear();
      for_others([&](std::size_t other) { exchange(slice(other), own, other, kSumTag); });
      return;
    }
    sum_.reset();
    to_add_ = {};
    changed_.notify_all();
  }

  template <class Do>
  void for_others(const Do& act) const {
    for (std::size_t other = 0; other < size_; ++other)
      if (other != rank_) act(other);
  }
  // The numbers that this rank adds up.
  std::span<std::int64_t> slice(std::size_t rank) const {
    const std::size_t begin = to_add_.size() * rank / size_;
    return to_add_.subspan(begin, to_add_.size() * (rank + 1) / size_ - begin);
  }
  void exchange(std::span<std::int64_t> in, std::span<const std::int64_t> out, std::size_t other, int tag) {
    const int rank = static_cast<int>(other);
    MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_INT64_T, rank, tag, MPI_COMM_WORLD,
              &sum_->requests.emplace_back());
    MPI_Isend(out.data(), static_cast<int>(out.size()), MPI_INT64_T, rank, tag, MPI_COMM_WORLD,
              &sum_->requests.emplace_back());
  }

  void watch() {
    const auto now = Clock::now();
    for (std::size_t rank = 0; rank < size_; ++rank) {
      if (rank == rank_ || farewells_[rank] || now - last_sign_[rank] < patience_) continue;
      lost_ = Error{ErrorCode::kUnavailable, "rank " + std::to_string(rank) +
                                                 " has not shown any sign of life for " +
                                                 std::to_string(patience_.count()) + " seconds"};
      changed_.notify_all();
      return;
    }
  }

  const std::chrono::seconds patience_;
  std::size_t rank_ = 0;
  std::size_t size_ = 1;
  mutable std::mutex mutex_;         // guards all members below
  std::condition_variable wake_;     // of the thread
  std::condition_variable changed_;  // for callers
  bool joined_ = false;
  bool listening_ = false;
  bool leaving_ = false;
  bool left_ = false;
  bool gone_ = false;
  std::optional<int> abort_;
  std::optional<Error> lost_;
  std::string to_send_;  // frames
  std::deque<Message> heard_;
  std::span<std::int64_t> to_add_;
  Traffic traffic_;
  // Only the thread uses the members below.
  std::list<Sending> sending_;
  std::optional<Receiving> receiving_;
  std::vector<std::string> streams_;  // received, by sender
  std::vector<Clock::time_point> last_sign_;
  std::vector<bool> farewells_;
  Clock::time_point last_sent_ = Clock::now();
  std::optional<Sum> sum_;  // under way
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<MpiRanks>> MpiRanks::join(std::chrono::seconds patience) {
  const Launch started = launch();
  if (!started.by_launcher) return std::unique_ptr<MpiRanks>();
  auto ranks = std::make_unique<Mpi>(patience);
  if (ranks->size() > 1) return std::unique_ptr<MpiRanks>(std::move(ranks));
  FEDGE_TRY_VOID(ranks->leave());
  if (started.processes <= 1) return std::unique_ptr<MpiRanks>();
  return Error{ErrorCode::kUnsupported,
               "the launcher has started " + std::to_string(started.processes) +
                   " processes, but this program's MPI library sees one: they belong to different MPI "
                   "libraries; use the mpirun of the library that the program was built with"};
}

}  // namespace fedge::sim
