// The messages of split training, in which the coordinator runs the last blocks of a client's model
// (docs/PROTOCOL.md, "Split training"). Part of messages.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace fedge::protocol {

enum class SplitKind : std::uint8_t {
  kActivations = 0,      // client to coordinator: of the cut
  kOutputs = 1,          // coordinator to client: of the last block, if the targets stay on the client
  kOutputGradients = 2,  // client to coordinator
  kGradients = 3,        // coordinator to client: of the cut
};

// A part of the values of some sequences of a batch. The receiver's answer to a part, if there are more, is
// SplitTaken; to the last part, other values.
struct SplitValues {
  RunId run;
  RoundNumber round;
  SplitKind kind = SplitKind::kActivations;
  std::uint64_t step = 0;         // from 0 on
  std::uint32_t first = 0;        // number of the first sequence in its batch
  std::uint32_t part = 0;         // from 0 on
  std::uint32_t parts = 1;        // 1 to kMaxSplitParts
  std::vector<std::byte> values;  // 1 to kMaxSplitPart bytes; kMaxSplitPart of all parts but the last

  // Only in part 0 of a client's values:
  std::uint64_t steps = 0;  // of the whole training
  std::uint32_t total = 0;  // number of targets of the whole batch
  bool last = false;        // these sequences are the last of their batch
  std::vector<std::uint32_t>
      sent;  // tokens of each sequence whose values follow; at most kMaxSplitTokens in all
  // Their targets: 0 for none, otherwise the token + 1. Empty if they stay on the client.
  std::vector<std::uint32_t> targets;
  std::vector<std::uint32_t> samples;  // a number for each sequence, with error feedback; else empty
  // Only in part 0 of gradients: the sum of losses of each sequence; empty if the client computes them.
  std::vector<double> losses;

  TaskId task() const { return {round, TrackId()}; }
  bool operator==(const SplitValues&) const = default;
};

// The receiver has taken a part of values and waits for the next.
struct SplitTaken {
  RunId run;
  RoundNumber round;
  std::uint32_t part = 0;
  TaskId task() const { return {round, TrackId()}; }
  bool operator==(const SplitTaken&) const = default;
};

// Client to coordinator: the training has ended after these steps.
struct SplitEnded {
  RunId run;
  RoundNumber round;
  std::uint64_t steps = 0;  // at least 1
  TaskId task() const { return {round, TrackId()}; }
  bool operator==(const SplitEnded&) const = default;
};

// Coordinator to client: what it has trained survives a restart; the client may offer its update.
struct SplitKept {
  RunId run;
  RoundNumber round;
  TaskId task() const { return {round, TrackId()}; }
  bool operator==(const SplitKept&) const = default;
};

// Coordinator to client: these values cannot be used.
//   kStale    it does not have what the training has changed so far: begin again with step 0
//   others    the task cannot be done
struct SplitRefused {
  RunId run;
  RoundNumber round;
  ErrorCode code = ErrorCode::kInvalid;
  std::string reason;
  TaskId task() const { return {round, TrackId()}; }
  bool operator==(const SplitRefused&) const = default;
};

}  // namespace fedge::protocol
