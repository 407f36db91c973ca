// A coordinator that lies to a real client daemon by a script drawn from a seed, and the daemon's invariants.
// Nothing leaves a client that insists on masks or noise without them. No update is in two sums that could be
// solved for it. A budget holds. Only its owner ends the daemon. Each kind of script draws its own messages;
// cut links, ended runs, replays, restarts and false verdicts are common and here.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "tests/unit/client/daemon_site.h"

namespace fedge::test {

class LyingCoordinator {
 public:
  explicit LyingCoordinator(std::uint64_t seed) : rng_(Rng(seed).fork("lies")) {
    site.backoff = {.first = std::chrono::milliseconds(1),
                    .longest = std::chrono::milliseconds(20),
                    .unknown = std::chrono::milliseconds(20)};
    site.hears_too = [this](const protocol::Message& message) { heard(message); };
    site.says_instead = [this](protocol::Message& message) { return say_instead(message); };
    site.going = {};
  }
  virtual ~LyingCoordinator() { site.hears_too = {}; }

  void play(std::size_t lies) {
    site.begin();
    for (std::size_t i = 0; i < lies; ++i) {
      settle();
      if (rng_.below(2) == 0)
        ask();
      else
        lie();
    }
    settle();
    CHECK_FALSE(site.finished);
    CHECK_FALSE(site.daemon->failure());
  }

 protected:
  // Asks for an update, by the protocol or against it.
  virtual void ask() = 0;
  // The terms in the run's description: the true ones or weaker ones.
  virtual std::string terms_of(RunId run) = 0;
  // Called once for each object with the offer and the bytes of an update that has left the client.
  virtual void left(const protocol::UpdateOffer& offer, const std::vector<std::byte>& bytes) = 0;
  virtual void heard_too(const protocol::Message&) {}
  // May change the message; returns whether it is sent.
  virtual bool twist(protocol::Message&) { return true; }

  std::uint32_t below(std::size_t bound) { return static_cast<std::uint32_t>(rng_.below(bound)); }
  RunId any_run() { return RunId(7 + below(4)); }
  protocol::TrainRequest task(RunId run, std::uint32_t round) const { return site.work.request(run, round); }

  void describe(RunId run) { site.tell(site.work.description(run)); }
  // Cancels all tasks, so that no earlier one occupies the device.
  void cancel_all() {
    for (const auto& [run, task] : std::exchange(asked_, {}))
      site.tell(protocol::CancelTask{run, task.round, "a lie", task.track});
  }
  // Restarts the daemon as its owner would; nothing else ends it.
  void restart() {
    CHECK_FALSE(site.finished);
    site.leave();
    site.finished = revoked_ = false;
    site.begin();
  }
  // Runs until the daemon is connected, has handled all messages, and has been asked for all that it offers.
  void settle() {
    if (revoked_) restart();
    const std::uint32_t mine = ++pings_;
    std::shared_ptr<protocol::Link> asked;
    const bool settled = site.run_until([&] {
      if (!site.link || !site.greeted) return false;
      if (asked != site.link) {
        asked = site.link;
        asked->send(task(kNowhere, mine));
      }
      return answered_ == mine && fetching_ == 0;
    });
    REQUIRE_MESSAGE(settled,
                    log() << "answered " << answered_ << " of " << mine << ", fetching " << fetching_);
  }
  // Runs until the daemon has delivered or declined for the run.
  void wait_for_answer(RunId run) {
    const bool answered = site.run_until(
        [&] { return site.count<protocol::UpdateOffer>(run) + site.count<protocol::TaskFailed>(run) > 0; });
    REQUIRE_MESSAGE(answered, log());
  }

  client::site::Site site;

  // The messages to the daemon and its reactions.
  std::string log() const {
    std::string all;
    for (const std::string& line : site.said) all += line + "\n";
    return all;
  }

 private:
  static inline const RunId kNowhere{999};  // the daemon refuses its tasks at once

  void lie() {
    const RunId run = any_run();
    switch (below(8)) {
      case 0:
        return describe(run);
      case 1:
        site.tell(protocol::RunEnded{run, "a lie"});
        return describe(run);
      case 2:  // a Welcome that omits some of the runs
        site.going.clear();
        for (std::uint64_t i = 7; i < 11; ++i)
          if (below(2) == 0) site.going.push_back(RunId(i));
        return site.link->close("cut");
      case 3: {
        constexpr ErrorCode kCodes[] = {
            ErrorCode::kInvalid, ErrorCode::kNotFound,    ErrorCode::kCorrupt,     ErrorCode::kRefused,
            ErrorCode::kStale,   ErrorCode::kUnsupported, ErrorCode::kUnavailable, ErrorCode::kResource};
        const ErrorCode code = kCodes[below(std::size(kCodes))];
        site.link->send(protocol::Goodbye{code, "a lie", {}});
        revoked_ = code == ErrorCode::kRefused;
        return site.link->close("a lie");
      }
      case 4:
        return restart();
      case 5:
        if (said_.empty()) return;
        return site.tell(said_[below(said_.size())]);
      case 6:
        site.tell(protocol::UpdateVerdict{run, RoundNumber(1 + below(4)), below(2) == 0, ErrorCode::kInvalid,
                                          "a lie", TrackId()});
        return;
      default:
        return cancel_all();
    }
  }

  bool say_instead(protocol::Message& message) {
    if (auto* run = std::get_if<protocol::RunDescription>(&message)) run->task = terms_of(run->run);
    if (!twist(message)) return false;
    if (const auto* request = std::get_if<protocol::TrainRequest>(&message))
      asked_.emplace_back(request->run, request->task());
    if (said_.size() < 200) said_.push_back(message);
    return true;
  }
  void heard(const protocol::Message& message) {
    heard_too(message);
    if (const auto* failed = std::get_if<protocol::TaskFailed>(&message);
        failed != nullptr && failed->run == kNowhere)
      answered_ = failed->round.value();
    if (const auto* offer = std::get_if<protocol::UpdateOffer>(&message)) fetch(*offer);
  }
  void fetch(const protocol::UpdateOffer& offer) {
    if (!site.link || !fetched_.insert(offer.update.id()).second) return;
    auto made = store_->create(offer.update);
    REQUIRE(made);
    ++fetching_;
    site.link->fetch(offer.update, *made, [this, offer, object = *made](const Result<void>& done) {
      --fetching_;
      if (!done) {
        fetched_.erase(offer.update.id());
        return;
      }
      std::vector<std::byte> bytes(offer.update.payload_size);
      REQUIRE(object->read_bytes(0, bytes));
      left(offer, bytes);
    });
  }

  Rng rng_;
  std::unique_ptr<protocol::ChunkStore> store_ = protocol::make_memory_chunk_store(std::size_t{1} << 28);
  std::vector<protocol::Message> said_;  // for replays
  std::vector<std::pair<RunId, TaskId>> asked_;
  std::set<protocol::ObjectId> fetched_;
  int fetching_ = 0;
  std::uint32_t pings_ = 0;
  std::uint32_t answered_ = 0;
  bool revoked_ = false;
};

}  // namespace fedge::test
