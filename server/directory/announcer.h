// Announcer publishes the coordinator's records in the directory: its addresses, its runs and the location
// of their models. It signs each record again every two minutes with a lifetime of five, so records expire
// soon after the coordinator stops. Use it on one thread; the caller supplies the clock.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/event.h"
#include "core/ids.h"
#include "core/time.h"
#include "dht/directory.h"
#include "dht/node/directory_node.h"
#include "protocol/chunks/manifest.h"
#include "protocol/session/endpoint.h"

namespace fedge::server {

class Announcer {
 public:
  static constexpr Duration kEvery = seconds(120);
  static constexpr Duration kLifetime = seconds(300);
  // Minimum time between two announcements of a track's model: rounds may be faster than readers poll.
  static constexpr Duration kModelEvery = seconds(5);

  struct Options {
    dht::Directory& directory;
    SecretKey key;
    std::vector<protocol::Address> addresses;  // 1 to 4, where clients reach the coordinator
    std::function<Time()> now;                 // calendar time
    std::function<void(const Event&)> on_event;
  };
  struct Run {
    RunId id;
    std::string name;
    bool operator==(const Run&) const = default;
  };

  explicit Announcer(Options options);

  // Lets all records expire within a second: the coordinator has another key from now on. Call nothing else
  // afterwards.
  void withdraw();
  // Publishes records that are due. Call it every few seconds.
  void refresh();
  // Announces the runs that clients may join; runs not listed are no longer announced.
  void set_runs(const std::vector<Run>& runs);
  // Announces this coordinator as holder of a track's model: at once, or kModelEvery after the previous
  // announcement.
  void set_model(RunId run, TrackId track, std::pair<RoundNumber, const protocol::Manifest&> model);

 private:
  struct Said {
    dht::Content content;
    RunId run;
    Time next{};
  };

  struct Model {
    dht::ModelPointer latest;
    std::optional<dht::ModelPointer> said;
    Time when{};  // of the last announcement
  };

  void say(const dht::Content& content, RunId run);
  void say_latest(Model& model);
  void forget_former_models();
  void publish(Said& said, Duration lifetime = kLifetime);

  Options options_;
  dht::SequenceNumbers sequences_;
  std::vector<Run> runs_;
  std::map<dht::Key, Said> said_;
  std::map<std::pair<RunId, TrackId>, Model> models_;
  std::string trouble_;  // last problem reported
};

}  // namespace fedge::server
