// Announcer: keeps what a coordinator says of itself in the directory: where it is, which runs it leads,
// where their models are. Each record is signed anew every two minutes and lasts five, so that what it says
// ends soon after it has. One thread; it is told the time.
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
  // A model is said at most this often: rounds may be faster than any reader looks.
  static constexpr Duration kModelEvery = seconds(5);

  struct Options {
    dht::Directory& directory;
    SecretKey key;
    std::vector<protocol::Address> addresses;  // that clients reach the coordinator at, 1 to 4
    std::function<Time()> now;                 // the calendar
    std::function<void(const Event&)> on_event;
  };
  struct Run {
    RunId id;
    std::string name;
    bool operator==(const Run&) const = default;
  };

  explicit Announcer(Options options);

  // Says where it is; and what is due, or due again. To be called every few seconds.
  void refresh();
  // The runs that clients may ask for; those left out are no longer announced.
  void set_runs(const std::vector<Run>& runs);
  // Where the model of a track is now: here. Said at once, or once the former one has been out for
  // kModelEvery.
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
    Time when{};  // it was said
  };

  void say(const dht::Content& content, RunId run);
  void say_latest(Model& model);
  void forget_former_models();
  void publish(Said& said);

  Options options_;
  dht::SequenceNumbers sequences_;
  std::vector<Run> runs_;
  std::map<dht::Key, Said> said_;
  std::map<std::pair<RunId, TrackId>, Model> models_;
  std::string trouble_;  // that was reported last
};

}  // namespace fedge::server
