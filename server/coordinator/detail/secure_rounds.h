// SecureRounds: the I/O adapter of a run's SecureRound. It runs the timer and carries out the effects
// through callbacks. Use it on the io_context's thread. Owned by shared_ptr, because the timer calls back.
// Private to coordinator/.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "protocol/session/loop.h"
#include "server/engine/secure_round.h"

namespace fedge::server {

class SecureRounds : public std::enable_shared_from_this<SecureRounds> {
 public:
  struct Callbacks {
    std::function<void(const RunEngine::Input&)> on_outcome;  // Failed
    std::function<void(std::vector<Range> cells)> on_open;    // a sum over these cells begins
    std::function<void(SecureRound::Closed)> on_closed;       // result of close()
    std::function<void(ClientId, const protocol::Message&)> send;
    std::function<void(const Event&)> on_event;
  };
  SecureRounds(boost::asio::io_context& io, const SecureRound::Setup& setup)
      : io_(io), setup_(setup), timer_(io) {}
  void set_callbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }

  void begin(const RunEngine::BeginSecure& begin, const Digest& model,
             const std::map<ClientId, PublicKey>& identities);
  // Returns false if the message is not about secure aggregation.
  bool received(ClientId client, const protocol::Message& message);
  void left(ClientId client);
  void returned(ClientId client);
  // Returns why the masked update must not be fetched, or nothing.
  std::optional<Error> offered(const RunEngine::Fetch& fetch);
  std::vector<std::uint64_t> take_scalars(ClientId client) { return round_->take_scalars(client); }
  void keep(ClientId client, const protocol::UpdateVerdict& verdict) { round_->keep(client, verdict); }
  void close(const RunEngine::CloseRound& turn);
  // The track phase is durable: sends the verdicts that keep() stored.
  void finish(bool summed);
  // Drops the session and its timer.
  void stop();

 private:
  void carry_out(std::vector<SecureRound::Effect>& effects);
  Time now() const { return Time(std::chrono::steady_clock::now().time_since_epoch()); }

  boost::asio::io_context& io_;
  SecureRound::Setup setup_;
  protocol::Timer timer_;
  Callbacks callbacks_;
  std::optional<SecureRound> round_;
};

}  // namespace fedge::server
