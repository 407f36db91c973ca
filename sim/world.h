// World: what all parts of a simulation share: virtual time, the queue of events, the run's root stream of
// random numbers, the log of events, and how the run ended. Parts schedule calls; Simulation makes one after
// the other. One thread. at() is O(log n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "core/event.h"
#include "core/result.h"
#include "core/rng.h"
#include "core/time.h"
#include "sim/event_queue.h"

namespace fedge::sim {

class World {
 public:
  using Happening = std::function<void()>;

  explicit World(const Rng& root) : root_(root) {}

  Time now() const { return now_; }
  const Rng& root() const { return root_; }
  // Schedules a call; if `when` is now(), after everything that is already scheduled for now.
  void at(Time when, Happening what) { queue_.push(when, std::move(what)); }
  void report(const Event& event) const {
    if (on_event_) on_event_(now_, event);
  }
  // The run has ended as its engine decided.
  void finish() { finished_ = true; }
  // Ends the run because of an error of this machine. The first error counts.
  void fail(const Error& error) {
    if (!failure_) failure_ = error;
    if (stop_) stop_();
  }
  bool over() const { return finished_ || failure_; }
  const std::optional<Error>& failure() const { return failure_; }

  bool idle() const { return queue_.empty(); }
  // Returns the time of the next call. There must be one.
  Time next() const { return queue_.next().at; }
  // Lets time pass, at most to next().
  void advance(Time until) { now_ = std::max(now_, until); }

  // --- for the owner ---
  // Both functions may be empty. `stop` is called at each failure: nothing may be decided after it.
  void observe(std::function<void(Time, const Event&)> on_event) { on_event_ = std::move(on_event); }
  void stop_by(std::function<void()> stop) { stop_ = std::move(stop); }
  // Sets the time to that of the next call, and returns the call.
  Happening begin_next();
  // Number of calls that have begun.
  std::uint64_t events() const { return events_; }

 private:
  Rng root_;
  EventQueue<Happening> queue_;
  Time now_{};
  std::uint64_t events_ = 0;
  std::function<void(Time, const Event&)> on_event_;
  std::function<void()> stop_;
  std::optional<Error> failure_;
  bool finished_ = false;
};

inline World::Happening World::begin_next() {
  auto entry = queue_.pop();
  now_ = entry.at;
  ++events_;
  return std::move(entry.payload);
}

}  // namespace fedge::sim
