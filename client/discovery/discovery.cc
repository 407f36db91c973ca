#include "client/discovery/discovery.h"
#include "protocol/session/loop.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace fedge::client {
namespace {

constexpr std::chrono::milliseconds kPause{200};

using Records = std::vector<dht::Record>;

// Asks the directory repeatedly until it returns records or the patience ends.
class Asking : public std::enable_shared_from_this<Asking> {
 public:
  Asking(const SearchTerms& search, const dht::Key& key, std::function<void(const Result<Records>&)> done)
      : directory_(search.directory),
        key_(key),
        done_(std::move(done)),
        patience_(search.patience),
        pause_(search.io),
        end_(search.io) {}
  dht::Subscription start() {
    end_.after(patience_, [self = shared_from_this()] { self->finish(); });
    ask();
    return dht::Subscription(protocol::weakly(this, [this] {
      done_ = nullptr;
      finish();
    }));
  }

 private:
  void ask() {
    directory_.lookup(key_, [self = shared_from_this()](const Result<Records>& found) {
      if (!self->done_) return;
      self->last_ = found;
      if (found && !found->empty()) return self->finish();
      self->pause_.after(kPause, [self] {
        if (self->done_) self->ask();
      });
    });
  }
  void finish() {
    pause_.cancel();
    end_.cancel();
    if (const auto done = std::exchange(done_, nullptr)) done(last_);
  }

  dht::Directory& directory_;
  dht::Key key_;
  std::function<void(const Result<Records>&)> done_;
  Duration patience_;
  protocol::Timer pause_;
  protocol::Timer end_;
  Result<Records> last_ = Error{ErrorCode::kUnavailable, "no directory node answered"};
};

std::vector<FoundCoordinator> coordinators_of(const Records& records) {
  std::vector<FoundCoordinator> found;
  for (const dht::Record& record : records)
    if (const auto* announcement = std::get_if<dht::Announcement>(&record.content))
      found.push_back({record.signer, announcement->addresses});
  return found;
}

// Describes the records ignored since `before`. With a wrong clock every record looks expired or too far in
// the future.
std::string ignored_since(const dht::FlawCounts& before, const dht::FlawCounts& now) {
  std::string text;
  for (std::size_t i = 0; i < dht::kFlaws; ++i) {
    const auto flaw = static_cast<dht::Flaw>(i);
    if (now[flaw] == before[flaw]) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(now[flaw] - before[flaw]) + " " + to_string(flaw);
  }
  if (text.empty()) return text;
  const bool time = now[dht::Flaw::kExpired] + now[dht::Flaw::kFarFetched] >
                    before[dht::Flaw::kExpired] + before[dht::Flaw::kFarFetched];
  return "; ignored records: " + text + (time ? "; check this device's clock" : "");
}

Result<FoundCoordinator> choose(const std::string& run_name, const Records& records,
                                const std::string& ignored) {
  const std::vector<FoundCoordinator> found = coordinators_of(records);
  if (found.empty())
    return Error{ErrorCode::kNotFound,
                 "no coordinator in the directory announces a run named '" + run_name + "'" + ignored};
  if (found.size() == 1) return found.front();
  std::string message = "several coordinators in the directory announce a run named '" + run_name +
                        "'; choose one with --coordinator KEY:";
  for (const FoundCoordinator& one : found)
    message += " " + to_hex(one.key) + " at " + protocol::to_string(one.addresses.front());
  return Error{ErrorCode::kRefused, std::move(message)};
}

}  // namespace

dht::Subscription find_coordinator(const SearchTerms& terms, const PublicKey& key, CoordinatorFound done) {
  const auto report = [&directory = terms.directory, before = terms.directory.ignored(),
                       done = std::move(done)](const Result<Records>& records) {
    if (!records) return done(records.error());
    const auto found = coordinators_of(*records);
    if (found.empty())
      return done(Error{ErrorCode::kNotFound, "the directory has no record of the coordinator" +
                                                  ignored_since(before, directory.ignored())});
    done(found.front());
  };
  return std::make_shared<Asking>(terms, dht::coordinator_key(key), report)->start();
}

dht::Subscription find_run(const SearchTerms& terms, const std::string& run_name, CoordinatorFound done) {
  const auto report = [&directory = terms.directory, before = terms.directory.ignored(), run_name,
                       done = std::move(done)](const Result<Records>& records) {
    if (!records) return done(records.error());
    done(choose(run_name, *records, ignored_since(before, directory.ignored())));
  };
  return std::make_shared<Asking>(terms, dht::run_key(run_name), report)->start();
}

}  // namespace fedge::client
