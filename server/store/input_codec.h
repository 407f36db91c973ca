// Encoding of an engine's inputs in the journal (journal.proto). It is exact both ways, so that a replayed
// engine decides the same. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "core/result.h"
#include "server/engine/run_engine.h"
#include "server/summed_turn.h"

namespace fedge::server {

// Marks the Stored entry with this number as lost by the disk: a replay treats it as ClientLeft.
struct LostUpdate {
  std::uint64_t sequence = 0;
};
using JournalRecord = std::variant<RunEngine::Input, LostUpdate, SummedTurn>;

std::string encode_record(const JournalRecord& record);
// kCorrupt if the bytes are not a record.
Result<JournalRecord> decode_record(std::string_view bytes);

}  // namespace fedge::server
