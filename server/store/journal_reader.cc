#include "server/store/journal_reader.h"

#include <set>
#include <string>
#include <utility>

#include "server/store/input_codec.h"

namespace fedge::server {
namespace {

Result<JournalRecord> decode(RunNumber run, const JournalEntry& entry) {
  auto record = decode_record(entry.input);
  if (record) return record;
  return Error{record.error().code, "entry " + std::to_string(entry.sequence) + " of the journal of run " +
                                        std::to_string(run.value()) + ": " + record.error().message};
}

}  // namespace

Result<void> read_inputs(RunStore& store, RunNumber run,
                         const std::function<Result<void>(JournalStep)>& visit) {
  std::set<std::uint64_t> lost;
  std::uint64_t last = 0;
  FEDGE_TRY_VOID(store.read_journal(run, [&](const JournalEntry& entry) -> Result<void> {
    last = entry.sequence;
    FEDGE_TRY(record, decode(run, entry));
    if (const auto* note = std::get_if<LostUpdate>(&record)) lost.insert(note->sequence);
    return {};
  }));
  return store.read_journal(run, [&](const JournalEntry& entry) -> Result<void> {
    if (entry.sequence > last) return {};  // written meanwhile by a running coordinator
    FEDGE_TRY(record, decode(run, entry));
    JournalStep step{entry.sequence, entry.time, std::nullopt};
    if (auto* input = std::get_if<RunEngine::Input>(&record)) step.input = std::move(*input);
    if (auto* summed = std::get_if<SummedTurn>(&record)) step.summed = std::move(*summed);
    if (step.input && lost.contains(entry.sequence))
      if (const auto* stored = std::get_if<RunEngine::Stored>(&*step.input))
        step.input = RunEngine::ClientLeft{stored->client};
    return visit(std::move(step));
  });
}

}  // namespace fedge::server
