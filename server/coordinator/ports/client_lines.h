// ClientLines: what a run sends to its clients and fetches from them, over the links that the coordinator
// owns: messages, models (from here or through a swarm) and updates. Use it on the io_context's thread.
// Private to coordinator/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "server/access/message_allowance.h"
#include "server/conductor/ports.h"
#include "server/coordinator/detail/seeder.h"
#include "server/coordinator/peers.h"
#include "server/coordinator/uploads.h"
#include "server/directory/announcer.h"
#include "server/run_state.h"

namespace fedge::server {

class ClientLines final : public Clients, public Models, public Updates {
 public:
  struct Surroundings {
    const Peers& peers;
    // Returns whether this client's key is still admitted; if not, its link is being closed.
    std::function<bool(const std::shared_ptr<protocol::Link>&)> is_welcome;
    // Returns the labels that operators gave to the client; nothing if they are not known yet.
    std::function<std::optional<std::vector<std::string>>(const protocol::Link&)> labels_of;
    const RunState& state;
    Uploads& uploads;
    RunTransfers& transfers;
    MessageAllowance& allowance;
    Seeder* seeder;        // null if no run exchanges models
    Announcer* announcer;  // null without a directory
    // Returns whether the run has failed; clients are then told no more than that.
    std::function<bool()> has_failed;
  };
  static constexpr const char* kRunFailed = "the run has failed";  // what clients are told

  explicit ClientLines(Surroundings surroundings) : surroundings_(std::move(surroundings)) {}

  bool connected(ClientId client) const override;
  PublicKey key_of(ClientId client) const override;
  std::optional<std::vector<std::string>> labels_of(ClientId client) const override;
  void send(ClientId client, const protocol::Message& message) override;

  void release(ClientId client) override;
  void give(const RunEngine::Assign& work, RoundNumber round) override;
  void take_back(ClientId client, TaskId task) override;

  void fetch(const RunEngine::Fetch& offered) override;
  void discard(ClientId client, TaskId) override { surroundings_.uploads.discard(client); }

  // The client's link has ended.
  void forget(ClientId client) { serving_.erase(client); }
  void stop();
  std::size_t tasks() const { return serving_.size(); }
  // Returns the bytes of messages and chunks sent so far.
  Bytes sent() const { return messages_ + *served_; }

 private:
  struct Serving {
    TaskId task;
    std::vector<protocol::ObjectId> objects = {};
    std::optional<protocol::ObjectId> exchanged = {};  // the model, if a swarm distributes it
  };
  Surroundings surroundings_;
  std::map<ClientId, Serving> serving_;  // objects that each client may still fetch
  Bytes messages_;
  std::shared_ptr<Bytes> served_ = std::make_shared<Bytes>();
};

}  // namespace fedge::server
