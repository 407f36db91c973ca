// RunLog: what a simulation has learnt from its trainings and aggregations, in the order in which it asked:
// the results of tasks without their values, the tracks' models as clients get them, and how phases closed.
// All other events follow from run file and seed. A later process with this log repeats the events without
// training
// (`replaying`), up to the checkpoint, and then records further. One thread. Memory: while recording, the
// records since take(); while replaying, the log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "protocol/chunks/manifest.h"
#include "server/conductor/route.h"
#include "server/conductor/track_view.h"
#include "server/engine/run_engine.h"
#include "sim/training/trained_update.h"

namespace fedge::sim {

class RunLog {
 public:
  // Records from now on.
  void record();
  // Neither records nor replays from now on.
  void end() { *this = RunLog(); }
  // Replays these records, which take() has returned.
  void replay(std::string records);
  bool replaying() const { return mode_ == Mode::kReplaying; }
  // All records have been replayed.
  bool exhausted() const { return next_ == records_.size(); }
  // Returns the records since the last call.
  std::string take() { return std::exchange(records_, {}); }
  std::size_t size() const { return records_.size(); }  // bytes

  // The error if the log is of another run.
  static Error does_not_fit();

  // How a phase closed.
  struct Closing {
    std::optional<Error> not_made;  // why it has no result
    bool ends = false;              // its evaluation ends the run
    // The model that clients made.
    std::optional<protocol::ObjectId> model = {};
  };
  // put_*() records, and does nothing unless recording. take_*() returns what was recorded at this place of
  // the run, while replaying; kCorrupt if something else was.
  void put_training(ClientId client, const TrainedUpdate& update);
  // Returns the result without coverage, layout and chunks.
  Result<TrainedUpdate> take_training(ClientId client, TaskId task);
  // The values of the last training can be added, or cannot.
  void put_verdict(const Result<void>& sound);
  Result<void> take_verdict();
  // The hash of the values of the last training.
  void put_digest(const Digest& digest);
  Result<Digest> take_digest();
  void put_sum(const Result<server::MaskedSum>& sum);
  // Returns the error of the sum, if it had one.
  Result<server::MaskedSum> take_sum();
  void put_view(TrackId track, const server::TrackView& view);
  // Valid until the track's next view.
  Result<server::TrackView> take_view(TrackId track);
  void put_closing(const server::RunEngine::CloseRound& turn, const Closing& closing);
  Result<Closing> take_closing(const server::RunEngine::CloseRound& turn);

 private:
  enum class Mode { kOff, kRecording, kReplaying };
  // What clients are told of a track's model.
  struct View {
    protocol::Manifest model;
    std::optional<protocol::Manifest> control;
    std::vector<TrackId> live_tracks;
    std::vector<float> edges;
    learn::Normalisation normalisation;
    bool operator==(const View&) const = default;
  };
  template <class Record>
  void append(const Record& record);
  // Reads the next record, which stays the next.
  template <class Record>
  Result<Record> peek(std::size_t& end) const;

  Mode mode_ = Mode::kOff;
  std::string records_;   // each with its length, 4 bytes
  std::size_t next_ = 0;  // offset, while replaying
  std::map<TrackId, View> views_;
};

}  // namespace fedge::sim
