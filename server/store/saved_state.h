// SavedState: the content of a checkpoint (journal.proto): which chunk store objects hold the run's models.
// The engine's state is not in it: it follows from the journal. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/ids.h"
#include "core/result.h"
#include "protocol/chunks/manifest.h"

namespace fedge::server {

struct SavedTrack {
  TrackId id;
  std::size_t turn = 0;  // phase index in the last round
  Digest hash{};         // of the model's values
  protocol::Manifest model;
  std::optional<protocol::Manifest> control;
  std::optional<protocol::Manifest> memory;
};

struct SavedStatistics {
  std::vector<float> edges;
  std::vector<std::int64_t> sums;
};

struct SavedState {
  std::vector<SavedTrack> tracks;               // ascending
  std::vector<std::uint32_t> participation;     // by client
  std::map<double, std::uint64_t> charges;      // to the privacy budget (run/privacy/privacy_ledger.h)
  std::optional<SavedStatistics> statistics{};  // in runs that have them: of the clients' data
};

std::string encode_state(const SavedState& state);
// kCorrupt if the bytes are not such a state.
Result<SavedState> decode_state(std::string_view bytes);

}  // namespace fedge::server
