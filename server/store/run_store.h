// RunStore: what a coordinator must still know after it was killed: which runs there are, every input of
// their engines (the journal), what their models were after each round (checkpoints), the rounds' figures.
// When append() returns, all of it survives a power cut; a batch is there whole or not at all. The same
// interface for every database; SQLite in one file of the data directory is the one that is built in
// (sqlite_store.h). The command-line tool and a running coordinator may use a store at the same time.
// Any thread, one call at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "server/access/calendar.h"

namespace fedge::server {

// In the order of submission, from 1.
using RunNumber = StrongId<struct RunNumberTag, std::int64_t>;

// Runs that have not ended at a time.
inline constexpr std::size_t kMaxOpenRuns = 256;

enum class RunStatus : std::uint8_t { kPending, kRunning, kPaused, kFinished, kFailed, kStopped };
// "pending", "running", ...
const char* name_of(RunStatus status);
constexpr bool has_ended(RunStatus status) { return status >= RunStatus::kFinished; }

struct RunRecord {
  RunNumber number;
  RunId id;  // unpredictable: a client never takes one run for another
  std::string name;
  std::string document;  // the run file, canonical TOML
  RunStatus status = RunStatus::kPending;
  std::string reason;  // why it is paused or has ended
  UnixSeconds submitted = 0;
  UnixSeconds started = 0;  // 0: it has not
  UnixSeconds ended = 0;    // 0: it has not, or it is stopped and what it has come to is still to be written

  bool is_over() const { return ended != 0; }
};

// A run to be submitted, with an id that nobody can guess.
RunRecord new_run(const std::string& name, const std::string& document);

// What an operator may ask of a run: kPaused of one that is pending or running, kPending (to go on) of one
// that is paused, kStopped of one that has not ended. kRefused says what state it is in. A run that has begun
// is over (RunRecord::ended) when a coordinator has written what it has come to.
Result<RunRecord> transition(RunRecord run, RunStatus wanted, const std::string& reason, UnixSeconds now);

// One input of a run's engine (input_codec.h).
struct JournalEntry {
  std::uint64_t sequence = 0;  // from 1, without a gap
  Time time{};                 // on the run's clock, never before the last entry's
  std::string input;
};

// What a run has come to with a round.
struct Checkpoint {
  std::uint64_t rounds = 0;  // that have been closed
  std::string state;         // CheckpointFile's bytes
  std::string metrics;       // of the last of these rounds, a line of metrics.jsonl
};

// To be kept together.
struct Batch {
  RunNumber run;
  std::vector<JournalEntry> entries;
  std::optional<Checkpoint> checkpoint;  // takes the place of the run's last one; its metrics are added
};

class RunStore {
 public:
  virtual ~RunStore() = default;

  // A new run, pending. `id` is drawn by the caller. kResource: there are kMaxOpenRuns already.
  virtual Result<RunNumber> submit(const RunRecord& run) = 0;
  virtual Result<std::vector<RunRecord>> runs() = 0;       // ascending
  virtual Result<std::vector<RunRecord>> open_runs() = 0;  // those that are not over
  virtual Result<RunNumber> highest() = 0;                 // the last one's number, 0 if there is none
  // kNotFound if there is none.
  virtual Result<RunRecord> run(RunNumber number) = 0;
  // An operator's wish, as in transition(), at once and whole.
  virtual Result<void> ask(RunNumber number, RunStatus wanted, const std::string& reason,
                           UnixSeconds now) = 0;
  // A coordinator begins to lead it, or goes on: running, if it is pending or running; otherwise false.
  virtual Result<bool> claim(RunNumber number, UnixSeconds now) = 0;
  // The run is now in this state, for this reason; if that is an end, it is over.
  virtual Result<void> set_status(RunNumber number, RunStatus status, const std::string& reason,
                                  UnixSeconds now) = 0;

  // kResource: no room now, nothing has been kept, it may be tried again. Any other error: what is kept is
  // not known before the store has been opened anew; kUnavailable also if its file was removed or replaced.
  virtual Result<void> append(std::span<const Batch> batches) = 0;
  // Calls `visit` with each entry, ascending, also those added meanwhile; it may write, and its first error
  // ends the reading. kCorrupt names the entry that is not as it was written.
  virtual Result<void> read_journal(RunNumber run,
                                    const std::function<Result<void>(const JournalEntry&)>& visit) = 0;
  // The last one; none before the first round has been closed.
  virtual Result<std::optional<Checkpoint>> checkpoint(RunNumber run) = 0;
  // Of every round that has been closed, a line of metrics.jsonl each, ascending.
  virtual Result<std::vector<std::string>> metrics(RunNumber run) = 0;
  // Changes whenever another process has changed the store.
  virtual Result<std::uint64_t> foreign_changes() = 0;
};

}  // namespace fedge::server
