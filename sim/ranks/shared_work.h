// SharedWork: divides the trainings of a simulation among ranks. All ranks run the same events, so all number
// the jobs alike and know which rank trains which job. That rank broadcasts the outcome: losses, norm and
// size. The values of an update stay where they are and are added there; before a model moves, the
// integer sums of all ranks are added up. If a rule needs whole updates, their values travel too.
// Models, metrics and events are those of one process, bit for bit. Rank 0 decides what depends on more than
// the events: the evaluation, and when the run ends.
// Memory: the outcomes that are ahead of this rank's events. broadcast_outcome() is for any thread, the rest
// for one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/crypto/sha256.h"
#include "core/ids.h"
#include "core/result.h"
#include "learn/evaluation/evaluate.h"
#include "run/run_config.h"
#include "sim/ranks/ranks.h"
#include "sim/spec.h"
#include "sim/training/trained_update.h"

namespace fedge::sim {

// Whether the values of updates must travel between ranks: the rule keeps updates, or cannot divide its sums,
// or the simulation itself looks at the values.
bool values_travel(const SimulationSpec& spec, const run::RunConfig& config);

// Reports to the other ranks that this one ends because of an error.
void broadcast_failure(Ranks& ranks, const Error& error);

class SharedWork {
 public:
  // `interrupted` is checked while this rank waits. `ranks` must outlive the object.
  SharedWork(Ranks& ranks, bool values_travel, std::function<bool()> interrupted);

  bool values_travel() const { return values_travel_; }
  // Whether this is rank 0.
  bool first() const { return ranks_.rank() == 0; }
  learn::EvaluationShare share() const { return {ranks_.rank(), ranks_.size()}; }

  // Compares what the events follow from: with another run or other data, ranks would wait for each other for
  // ever. kRefused on a rank that has something else than rank 0.
  Result<void> compare_start(const Digest& mine);

  // Where a job is carried out.
  struct Place {
    std::uint64_t number = 0;
    bool here = true;
  };
  // Chooses the place of the next job. With `by_client`, all jobs of a client have one place, because clients
  // keep something between tasks; otherwise the rank with the fewest samples so far gets the job.
  Place place(ClientId client, SampleCount samples, bool by_client);
  // Broadcasts the outcome of a job that has been carried out here.
  void broadcast_outcome(const Place& place, ClientId client, const TrainedUpdate& update);
  // The outcome of a job elsewhere.
  struct Outcome {
    TrainedUpdate update;         // without coverage, layout and chunks
    AlignedBuffer<float> values;  // empty unless values travel
  };
  // Returns the outcome once it is here, and forgets it. With `wait`, waits a little for it. kUnavailable: a
  // rank is lost or has failed, or the run is interrupted.
  Result<std::optional<Outcome>> take_outcome(const Place& place, bool wait);
  // The outcome will not be asked for.
  void forget(const Place& place);
  // Number of outcomes that are kept or expected.
  std::size_t outcomes() const { return outcomes_.size(); }

  // Replaces each number by its sum over all ranks.
  Result<void> all_reduce(const std::vector<std::span<std::int64_t>>& numbers);

  // Closes a phase with the model of this hash. Returns whether the run ends here, which only rank 0 knows;
  // the others wait for it if `may_end`. kUnavailable: another rank has another model, or is lost.
  Result<bool> confirm(const Digest& model, bool ends, bool may_end);
  // Returns rank 0's bytes on every rank.
  Result<std::string> broadcast_of_first(std::string bytes);
  // Rank 0's side of it.
  void broadcast(const std::string& bytes);
  // Returns the bytes of every rank on rank 0, and nothing on the others.
  Result<std::vector<std::string>> gather(std::string bytes);
  // Ends the run: waits until rank 0 has confirmed the models of all phases.
  Result<void> finish();

 private:
  struct Decision {
    Digest model;
    bool ends = false;
  };
  // Takes in what has arrived; waits for at most `patience` for the first message.
  Result<void> poll(std::chrono::microseconds patience);
  Result<void> take_in(const Ranks::Message& message);
  Result<std::string> next_note(std::size_t rank);
  Result<void> compare(std::uint64_t number, const Digest& mine, const Digest& theirs) const;

  Ranks& ranks_;
  bool values_travel_;
  std::function<bool()> interrupted_;
  std::vector<std::uint64_t> loads_;  // samples of the jobs of each rank
  std::uint64_t jobs_ = 0;            // so far
  // Jobs elsewhere that may still be asked for, and jobs that this rank has not reached yet.
  std::map<std::uint64_t, std::optional<Outcome>> outcomes_;
  std::uint64_t closed_ = 0;                   // phases
  std::map<std::uint64_t, Digest> unchecked_;  // models of closed phases that rank 0 has not confirmed
  std::map<std::uint64_t, Decision> decisions_;
  struct Notes {
    std::string under_way;
    std::deque<std::string> complete;
  };
  std::vector<Notes> notes_;  // by sender
};

}  // namespace fedge::sim
