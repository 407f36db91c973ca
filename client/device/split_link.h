// SplitLink: the coordinator's half of split trainings, behind the link (learn/split/upper_peer.h). The
// trainer thread waits in a RemotePeer; the io_context's thread sends what it gives and wakes it with the
// answers. A lost connection costs what was on its way: once the coordinator has assigned the task again, or
// a task that is equal because it has lost this one in a crash, the last message is sent again. All functions
// of SplitLink are for the io_context's thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/coverage.h"
#include "core/result.h"
#include "learn/split/upper_peer.h"
#include "protocol/messages.h"
#include "protocol/session/loop.h"
#include "protocol/split_stream.h"

namespace fedge::client {

class SplitLink {
 public:
  // `send`: to the coordinator; drops the message without a connection.
  using Send = std::function<void(const protocol::Message&)>;
  SplitLink(boost::asio::io_context& io, Send send) : io_(io), send_(std::move(send)) {}

  boost::asio::io_context& io() const { return io_; }

  // Takes a message of split training; false: it is another. Looks at tasks that are assigned again.
  bool received(const protocol::Message& message);
  void forget(RunId run) { exchanges_.erase(run); }

  // The answer that a trainer thread waits for.
  struct Waiting {
    Coverage trained;  // by the task
    std::mutex mutex;
    std::condition_variable_any changed;
    std::optional<Result<protocol::SplitValues>> answer;
    void give(Result<protocol::SplitValues> what);
    Result<protocol::SplitValues> take(const std::stop_token& stop);
  };
  // Sends values, or the end of the training, and gives the answer to `waiting`.
  void ask(protocol::SplitValues head, std::vector<std::byte> values, std::shared_ptr<Waiting> waiting);
  void ask(const protocol::SplitEnded& end, std::shared_ptr<Waiting> waiting);

 private:
  // The last message of a run's task.
  struct Exchange {
    RoundNumber round;
    protocol::SplitOutgoing outgoing = {};
    std::optional<protocol::SplitEnded> end = {};
    protocol::SplitIncoming incoming{0};
    std::shared_ptr<Waiting> waiting;  // null once it is answered
  };
  void send(Exchange& exchange);
  void received(Exchange& exchange, const protocol::SplitValues& part);

  boost::asio::io_context& io_;
  Send send_;
  std::map<RunId, Exchange> exchanges_;
};

// The UpperPeer of one training, for the trainer thread.
class RemotePeer final : public learn::UpperPeer {
 public:
  // `stop` ends every wait.
  RemotePeer(const std::shared_ptr<SplitLink>& link, const protocol::TrainRequest& request,
             std::stop_token stop);

  Result<void> begin(const learn::SplitStart& start) override;
  Result<void> exchange(const learn::ExchangedPiece& piece, std::vector<std::byte>& values,
                        std::span<double> losses) override;
  Result<void> forward(const learn::ExchangedPiece& piece, std::vector<std::byte>& values) override;
  Result<void> backward(const learn::ExchangedPiece& piece, std::vector<std::byte>& values) override;
  Result<void> end(std::uint64_t steps) override;

 private:
  Result<protocol::SplitValues> ask(protocol::SplitKind kind, const learn::ExchangedPiece& piece,
                                    std::vector<std::byte>& values);
  template <class... What>
  Result<protocol::SplitValues> ask_link(What... what);

  boost::asio::io_context& io_;
  std::weak_ptr<SplitLink> link_;
  RunId run_;
  RoundNumber round_;
  Coverage trained_;
  std::stop_token stop_;
  std::uint64_t steps_ = 0;
};

}  // namespace fedge::client
