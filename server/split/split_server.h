// SplitServer: the coordinator's half of the split trainings of a round, for all clients
// (learn/split/upper_half.h). Checks every message of a client before it computes. A client may send its last
// message again, and gets the same answer; it may begin again at any time. A client that leaves costs nothing
// but its own training. One thread. Memory: one model, scratch of one piece, and for each client that trains
// the adapters above its cut, 4 to 12 bytes each, its last answer, and with error feedback
// learn::kFeedbackBytes at most.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/ids.h"
#include "core/parameters.h"
#include "core/result.h"
#include "core/split/split_layout.h"
#include "learn/model.h"
#include "learn/spec.h"
#include "learn/split/upper_half.h"
#include "protocol/split_messages.h"

namespace fedge::server {

class SplitServer {
 public:
  // `model` must outlive it. Its adapters must fit `layout`.
  SplitServer(const learn::Model& model, const learn::TrainingSpec& training, SplitLayout layout);

  // All trainings from now on begin with this model.
  void take_model(ParameterVector parameters);
  // The client has this task, of a round with the model taken last. A training that it has begun there goes
  // on.
  void begin(ClientId client, RoundNumber round, std::size_t cut);
  void drop(ClientId client) { trainings_.erase(client); }

  // Answers a client's whole message. kStale: the client must begin again; kInvalid: a message that the task
  // does not allow, or a training that diverges.
  Result<protocol::SplitValues> answer(ClientId client, protocol::SplitValues message);
  // Returns what this half has changed, over SplitLayout::above(), after a training of so many steps.
  Result<std::vector<float>> end(ClientId client, RoundNumber round, std::uint64_t steps);
  // Bytes of values that a client's message may have.
  std::size_t most_bytes() const;

 private:
  struct Training {
    RoundNumber round;
    std::size_t cut = 0;
    std::optional<learn::SplitState> state;  // once it has begun
    std::uint32_t sequences = 0;             // of the present batch that were received
    // If the targets stay on the client: the activations whose outputs it was sent.
    std::optional<protocol::SplitValues> open;
    Digest asked{};                               // hash of the last message, with
    std::optional<protocol::SplitValues> answer;  // its answer
  };
  Result<void> check(const protocol::SplitValues& message, const Training& training) const;
  Result<protocol::SplitValues> compute(Training& training, protocol::SplitValues message);
  learn::ExchangedPiece piece_of(const protocol::SplitValues& message, const Training& training,
                                 std::span<const learn::Token> targets) const;

  const learn::Model& model_;
  learn::TrainingSpec training_;
  SplitLayout layout_;
  learn::UpperHalf half_;
  ParameterVector parameters_;   // the frozen ones, and the adapters of the training that is computed
  std::vector<float> adapters_;  // of the model
  std::map<ClientId, Training> trainings_;
};

}  // namespace fedge::server
