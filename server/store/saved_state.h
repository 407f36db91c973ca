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
#include "run/privacy/privacy_ledger.h"
#include "server/report/run_progress.h"

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

// What is known of the best results, and the models of the best round, by track.
struct SavedProgress {
  RunProgress::State state;
  std::map<TrackId, protocol::Manifest> models{};
};

struct SavedState {
  std::vector<SavedTrack> tracks;               // ascending
  std::vector<std::uint32_t> participation;     // by client
  run::PrivacyLedger::Charges charges;          // to the privacy budget
  std::optional<SavedStatistics> statistics{};  // in runs that have them: of the clients' data
  std::optional<SavedProgress> progress{};      // in runs with run.keep_best or run.stop_when
};

// A description of an object of plain float32, as it is in a checkpoint; decode_object() returns kCorrupt if
// the bytes are not one.
std::string encode_object(const protocol::Manifest& manifest);
Result<protocol::Manifest> decode_object(std::string_view bytes);

std::string encode_state(const SavedState& state);
// kCorrupt if the bytes are not such a state. objects_of() returns the objects that it names.
Result<std::vector<protocol::Manifest>> objects_of(std::string_view bytes);
Result<SavedState> decode_state(std::string_view bytes);

}  // namespace fedge::server
