#include "server/conductor/train_request.h"

namespace fedge::server {

protocol::TrainRequest train_request(RunId run, const RunEngine::Assign& work, const TrackView& track,
                                     bool swarm) {
  return {.run = run,
          .round = work.task.round,
          .model = *track.model,
          .coverage = work.coverage,
          .time_left = work.time_left,
          .last_round = work.last_round,
          .control = track.control != nullptr ? std::optional(*track.control) : std::nullopt,
          .track = work.task.track,
          .data_share = work.data_share,
          .live_tracks = track.live_tracks,
          .again = work.again,
          .swarm = swarm,
          .secure_attempt = work.secure_attempt};
}

}  // namespace fedge::server
