// RunStore: the durable state of a coordinator. It holds the runs, every input of their engines (the
// journal), their models after each round (checkpoints), and the rounds' metrics. When append() returns,
// its data survives a power cut; a batch is stored completely or not at all. The interface suits any
// database; the built-in one is SQLite in one file of the data directory (sqlite_store.h). The command-line
// tool and a running coordinator may use a store at the same time. Any thread, one call at a time.
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
#include "server/access/roles.h"

namespace fedge::server {

// Numbered in order of submission, from 1.
using RunNumber = StrongId<struct RunNumberTag, std::int64_t>;

// Maximum number of runs that have not ended.
inline constexpr std::size_t kMaxOpenRuns = 256;
// The same in a project other than the default one, so that no such project can block the others.
inline constexpr std::size_t kMaxOpenRunsOfProject = 32;

enum class RunStatus : std::uint8_t { kPending, kRunning, kPaused, kFinished, kFailed, kStopped };
// "pending", "running", ...
const char* name_of(RunStatus status);
constexpr bool has_ended(RunStatus status) { return status >= RunStatus::kFinished; }

struct RunRecord {
  RunNumber number;
  RunId id;  // random, so that clients never confuse two runs
  std::string name;
  std::string document;  // the run file, canonical TOML
  std::string project = kDefaultProject;
  std::string submitter = {};  // "user alice"; empty in a run of an older version
  RunStatus status = RunStatus::kPending;
  std::string reason;  // why it is paused, has ended, or makes no progress
  UnixSeconds submitted = 0;
  UnixSeconds started = 0;  // 0: not started
  UnixSeconds ended = 0;    // 0: not ended, or stopped with results still to be written

  bool is_over() const { return ended != 0; }
};

// Returns the 16 hexadecimal digits that name the run in the audit log.
std::string text_of(RunId run);

// Returns a run to submit, with a random id.
RunRecord new_run(const std::string& name, const std::string& document);

// Applies an operator's request: kPaused to a pending or running run, kPending (continue) to a paused run,
// kStopped to a run that has not ended. kRefused names the run's state. A stopped run that had begun is
// over (RunRecord::ended) only once a coordinator has written its results.
Result<RunRecord> transition(RunRecord run, RunStatus wanted, const std::string& reason, UnixSeconds now);

// One input of a run's engine (input_codec.h).
struct JournalEntry {
  std::uint64_t sequence = 0;  // from 1, without a gap
  Time time{};                 // on the run's clock, never descending
  std::string input;
};

// The state of a run after a round.
struct Checkpoint {
  std::uint64_t rounds = 0;  // closed rounds
  std::string state;         // encode_state() of saved_state.h
  std::string metrics;       // of the last of these rounds; a line of metrics.jsonl
};

// Entries and a checkpoint that are stored atomically.
struct Batch {
  RunNumber run;
  std::vector<JournalEntry> entries;
  std::optional<Checkpoint> checkpoint;  // replaces the run's last one; its metrics are added
};

class RunStore {
 public:
  virtual ~RunStore() = default;

  // Stores a new pending run. The caller draws `id`. kResource: there are already kMaxOpenRuns; kStale: a run
  // has this id already, or had it and was removed.
  virtual Result<RunNumber> submit(const RunRecord& run) = 0;
  virtual Result<std::vector<RunRecord>> runs() = 0;       // ascending
  virtual Result<std::vector<RunRecord>> open_runs() = 0;  // runs that are not over
  virtual Result<RunNumber> highest() = 0;  // number of the last run, also if it was removed; 0: none yet
  // kNotFound if there is no such run.
  virtual Result<RunRecord> run(RunNumber number) = 0;
  virtual Result<std::optional<RunRecord>> find(RunId id) = 0;
  // Applies an operator's request as in transition(), atomically.
  virtual Result<void> ask(RunNumber number, RunStatus wanted, const std::string& reason,
                           UnixSeconds now) = 0;
  // Marks a pending or running run as running, for the calling coordinator; returns false in any other
  // state.
  virtual Result<bool> claim(RunNumber number, UnixSeconds now) = 0;
  // Why a running run makes no progress; empty: it does. Changes nothing if the run is in another state.
  virtual Result<void> explain(RunNumber number, const std::string& reason) = 0;
  // Sets the run's status and reason; if the status is an end, the run is over.
  virtual Result<void> set_status(RunNumber number, RunStatus status, const std::string& reason,
                                  UnixSeconds now) = 0;

  // Removes a run that is over, with its journal, checkpoint and metrics. Neither its number nor its id is
  // used again.
  // kRefused: it is not over.
  virtual Result<void> remove(RunNumber number) = 0;

  // kResource: no disk space; nothing was stored, and the call may be repeated. After any other error, what
  // was stored is unknown until the store is opened again. kUnavailable also if its file was removed or
  // replaced.
  virtual Result<void> append(std::span<const Batch> batches) = 0;
  // Calls `visit` with each entry, ascending, including entries added meanwhile. `visit` may write; its
  // first error ends the reading. kCorrupt names an entry that was altered.
  virtual Result<void> read_journal(RunNumber run,
                                    const std::function<Result<void>(const JournalEntry&)>& visit) = 0;
  // Returns the last checkpoint, or none before the first round is closed.
  virtual Result<std::optional<Checkpoint>> checkpoint(RunNumber run) = 0;
  // Returns a line of metrics.jsonl for every closed round, ascending.
  virtual Result<std::vector<std::string>> metrics(RunNumber run) = 0;
  // Returns the lines of at most `most` rounds after round `after`.
  virtual Result<std::vector<std::string>> metrics(RunNumber run, std::uint64_t after,
                                                   std::uint64_t most) = 0;
  // Returns how many rounds are closed.
  virtual Result<std::uint64_t> rounds(RunNumber run) = 0;
  // Returns a value that changes whenever another process changes the store.
  virtual Result<std::uint64_t> foreign_changes() = 0;
};

}  // namespace fedge::server
