// RunHalves: the coordinator's half of a run's split trainings: takes clients' activations over their links,
// computes on a thread of its own, and sends gradients (server/split/split_server.h). A client has one
// message under way, so the thread has at most one job for each. Use it on the io_context's thread. Owned by
// shared_ptr, because the thread calls back. Private to coordinator/.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "protocol/chunks/stored_object.h"
#include "protocol/session/loop.h"
#include "protocol/split_stream.h"
#include "server/conductor/ports.h"
#include "server/run_state.h"
#include "server/split/half_files.h"
#include "server/split/split_server.h"

namespace fedge::server {

class RunHalves final : public Halves, public std::enable_shared_from_this<RunHalves> {
 public:
  struct Surroundings {
    boost::asio::io_context& io;
    const RunState& state;
    const learn::Model& model;
    HalfFiles files;
    std::filesystem::path data_directory;
    std::function<void(ClientId, const protocol::Message&)> send;
    // Whether the client may have another message refused; false: it is being disconnected.
    std::function<bool(ClientId)> may_err;
    std::function<void(const Event&)> on_event;
    // An error of this machine.
    std::function<void(const Error&)> on_failure;
  };
  explicit RunHalves(Surroundings surroundings);

  void begin(const RunEngine::Assign& work, const protocol::Manifest& model) override;
  bool receive(ClientId client, const protocol::Message& message) override;
  void drop(ClientId client, TaskId task) override;
  void left(ClientId client) override;
  void forget(RoundNumber round) override;
  void stop() override;
  // Bytes of values so far.
  Bytes received() const { return received_; }
  Bytes sent() const { return sent_; }
  // Returns when the thread has ended. After stop().
  void shut_down() { worker_.join(); }

 private:
  struct Place {
    protocol::SplitKind kind;
    std::uint64_t step;
    std::uint32_t first;
    bool operator==(const Place&) const = default;
  };
  struct Client {
    RoundNumber round;
    protocol::SplitIncoming incoming;
    protocol::SplitOutgoing outgoing = {};
    bool busy = false;                               // its message is being answered
    std::optional<Place> answering = {};             // the values of that message; none if it is the end
    std::optional<protocol::SplitValues> next = {};  // came meanwhile
    std::optional<protocol::SplitEnded> end = {};    // ditto
  };
  void received(ClientId client, Client& state, const protocol::SplitValues& part);
  void answer(ClientId client, Client& state, protocol::SplitValues whole);
  void answered(ClientId client, RoundNumber round, Result<protocol::SplitValues> answer);
  void ended(ClientId client, const protocol::SplitEnded& message);
  // `blamed`: the client has sent what cannot be used; else the error is this machine's.
  void refuse(ClientId client, RoundNumber round, const Error& error, bool blamed = true);
  void send_parts(ClientId client, Client& state);
  // Runs on the thread, unless stopped.
  void on_worker(std::function<void(SplitServer&)> work);

  Surroundings surroundings_;
  RunId run_;
  std::size_t most_bytes_;
  std::map<ClientId, Client> clients_;
  std::optional<protocol::ObjectId> model_;  // that the thread has
  Bytes received_;
  Bytes sent_;
  bool stopped_ = false;
  std::unique_ptr<SplitServer> server_;  // used by the thread
  protocol::Worker worker_;
};

}  // namespace fedge::server
