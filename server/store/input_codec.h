// The inputs of a run's engine as a journal keeps them (journal.proto). Both ways exact: what is read back
// makes the engine decide the same. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "core/result.h"
#include "server/engine/run_engine.h"
#include "server/summed_turn.h"

namespace fedge::server {

// The Stored at this place of the journal is to be read as if its client had left then: the disk has lost
// what was stored.
struct LostUpdate {
  std::uint64_t sequence = 0;
};
using JournalRecord = std::variant<RunEngine::Input, LostUpdate, SummedTurn>;

std::string encode_record(const JournalRecord& record);
// kCorrupt for what is no record.
Result<JournalRecord> decode_record(std::string_view bytes);

}  // namespace fedge::server
