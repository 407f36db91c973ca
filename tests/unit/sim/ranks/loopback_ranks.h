// Ranks in threads of one process, for tests.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/ranks/ranks.h"

namespace fedge::sim {

class LoopbackRanks {
 public:
  explicit LoopbackRanks(std::size_t size) {
    for (std::size_t rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<Rank>(*this, rank));
  }
  Ranks& at(std::size_t rank) { return *ranks_[rank]; }
  // The process ends without a word.
  void lose(std::size_t rank) {
    const std::lock_guard lock(mutex_);
    lost_ = rank;
    changed_.notify_all();
  }
  std::uint64_t bytes_sent() const { return sent_; }
  std::uint64_t numbers_reduced() const { return reduced_; }

 private:
  class Rank final : public Ranks {
   public:
    Rank(LoopbackRanks& all, std::size_t rank) : all_(all), rank_(rank) {}
    std::size_t rank() const override { return rank_; }
    std::size_t size() const override { return all_.ranks_.size(); }
    void broadcast(std::string message) override {
      const std::lock_guard lock(all_.mutex_);
      all_.sent_ += message.size();
      for (const auto& other : all_.ranks_)
        if (other->rank_ != rank_) other->heard_.push_back({rank_, message});
      all_.changed_.notify_all();
    }
    Result<std::optional<Message>> receive(std::chrono::microseconds patience) override {
      std::unique_lock lock(all_.mutex_);
      all_.changed_.wait_for(lock, patience, [&] { return !heard_.empty() || all_.lost_; });
      if (!heard_.empty()) {
        Message message = std::move(heard_.front());
        heard_.pop_front();
        return std::optional(std::move(message));
      }
      if (all_.lost_) return all_.lost();
      return std::optional<Message>();
    }
    Result<void> all_reduce(std::span<std::int64_t> numbers) override {
      std::unique_lock lock(all_.mutex_);
      all_.reduced_ += numbers.size();
      if (all_.joined_ == 0) all_.total_.assign(numbers.size(), 0);
      if (all_.total_.size() != numbers.size())
        return Error{ErrorCode::kCorrupt, "the ranks add up different counts of numbers"};
      for (std::size_t i = 0; i < numbers.size(); ++i) all_.total_[i] += numbers[i];
      const std::uint64_t turn = all_.turn_;
      if (++all_.joined_ == size()) {
        all_.joined_ = 0;
        all_.result_ = std::move(all_.total_);
        ++all_.turn_;
        all_.changed_.notify_all();
      }
      all_.changed_.wait(lock, [&] { return all_.turn_ != turn || all_.lost_; });
      if (all_.turn_ == turn) return all_.lost();
      std::copy(all_.result_.begin(), all_.result_.end(), numbers.begin());
      return {};
    }

   private:
    LoopbackRanks& all_;
    std::size_t rank_;
    std::deque<Message> heard_;
    friend class LoopbackRanks;
  };
  Error lost() const { return {ErrorCode::kUnavailable, "rank " + std::to_string(*lost_) + " is lost"}; }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::optional<std::size_t> lost_;
  std::uint64_t sent_ = 0;
  std::uint64_t reduced_ = 0;
  std::vector<std::int64_t> total_, result_;  // of the sum under way, and of the last one
  std::size_t joined_ = 0;
  std::uint64_t turn_ = 0;
};

}  // namespace fedge::sim
