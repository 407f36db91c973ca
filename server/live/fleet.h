// Fleet: what the coordinator knows about each client that has ever connected: since when it is online, its
// address, version and traffic, what became of its tasks. The coordinator's thread writes, any thread reads.
// 1 to 2 KB a client. FleetFile keeps it over restarts.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/event.h"
#include "server/live/client_activity.h"
#include "server/live/run_watch.h"

namespace fedge::server {

class Fleet {
 public:
  // Takes up what an earlier process has kept.
  void take_up(std::vector<ClientActivity> kept);

  void connected(ClientId client, const std::string& address, const std::string& software,
                 const std::string& platform, UnixSeconds now);
  void disconnected(ClientId client, UnixSeconds now);
  // Adds bytes of the client's connection.
  void moved(ClientId client, std::uint64_t received, std::uint64_t sent);
  // The client is told of this next key of the coordinator, or that there is none: it forgets any other.
  void tells_key(ClientId client, const std::optional<PublicKey>& next);
  // The device with this key has stored the coordinator's next key.
  void keeps_key(ClientId client, const PublicKey& device, const PublicKey& next);
  void ended(RunNumber run, const WatchedTask& task, UnixSeconds now);

  // Nothing if the client has never connected. `now` is the last_seen of a client that is online.
  std::optional<ClientActivity> find(ClientId client, UnixSeconds now) const;
  bool is_online(ClientId client) const;
  std::size_t online() const;
  // Tasks that have ended in this process, by outcome: "accepted", or a key of ClientActivity::failures.
  std::map<std::string, std::uint64_t> outcomes() const;
  // The number of tasks of each client that were not accepted, also in earlier processes.
  std::vector<std::pair<ClientId, std::uint64_t>> failures() const;
  // They are to be written again.
  void mark_changed(const std::vector<ClientId>& clients);
  // The client belongs to this project now. What it did for another one is forgotten.
  void set_project(ClientId client, const std::string& project);
  // Returns the clients that have changed since the last call; `all`: also those that are online.
  std::vector<ClientActivity> take_changed(UnixSeconds now, bool all);

 private:
  ClientActivity& change(ClientId client);

  mutable std::mutex mutex_;
  std::map<ClientId, ClientActivity> clients_;
  std::set<ClientId> changed_;
  std::size_t online_ = 0;
  std::map<std::string, std::uint64_t> outcomes_;
};

}  // namespace fedge::server
