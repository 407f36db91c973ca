#include "server/coordinator/ports/client_lines.h"

#include <utility>

#include "protocol/codec.h"
#include "server/coordinator/counted_chunks.h"

namespace fedge::server {

bool ClientLines::connected(ClientId client) const {
  const auto link = surroundings_.peers.find(client);
  return link && surroundings_.is_welcome(link);
}

PublicKey ClientLines::key_of(ClientId client) const {
  const auto link = surroundings_.peers.find(client);
  return link ? link->peer() : PublicKey{};
}

std::optional<std::vector<std::string>> ClientLines::labels_of(ClientId client) const {
  const auto link = surroundings_.peers.find(client);
  return link ? surroundings_.labels_of(*link) : std::nullopt;
}

void ClientLines::send(ClientId client, const protocol::Message& message) {
  const auto link = surroundings_.peers.find(client);
  if (!link) return;
  if (const auto* request = std::get_if<protocol::TrainRequest>(&message)) {
    surroundings_.allowance.asked(client);
    // Members of a secure sum also send key and mask messages, and repeat them after a reconnect.
    if (request->secure_attempt != 0) surroundings_.allowance.asked(client);
    if (request->secure_attempt != 0) surroundings_.allowance.asked(client);
  }
  // The reason of a failure may quote other clients, so clients do not get it.
  const auto* ended = std::get_if<protocol::RunEnded>(&message);
  if (ended != nullptr && surroundings_.has_failed() && ended->reason != kRunFailed)
    return send(client, protocol::RunEnded{ended->run, kRunFailed});
  messages_ += Bytes(protocol::frame_size(message));
  link->send(message);
}

void ClientLines::release(ClientId client) {
  if (const auto served = serving_.find(client); served != serving_.end())
    take_back(client, served->second.task);
}

void ClientLines::give(const RunEngine::Assign& work, RoundNumber round) {
  const auto link = surroundings_.peers.find(work.client);
  if (!link) return;
  const run::TrackModel& track = surroundings_.state.track(work.task.track);
  const auto& model = track.object();
  const run::DisseminationSpec& dissemination = surroundings_.state.config().dissemination;
  Serving& serving = serving_[work.client];
  serving.task = work.task;
  const auto shown = [&](const std::shared_ptr<protocol::StoredObject>& object) {
    const auto kind = object == model ? TransferObject::kModel : TransferObject::kControl;
    return surroundings_.transfers.open(work.client, work.task, kind, object->manifest().payload_size);
  };
  for (const auto& object : {model, track.control_object()}) {
    if (!object || (object == model && dissemination.swarm)) continue;
    link->serve(object->manifest(), std::make_shared<CountedSource>(object, served_, shown(object)));
    serving.objects.push_back(object->manifest().id());
  }
  if (surroundings_.announcer != nullptr)
    surroundings_.announcer->set_model(surroundings_.state.config().id, work.task.track,
                                       {round, model->manifest()});
  if (!dissemination.swarm) return;
  serving.exchanged = model->manifest().id();
  surroundings_.seeder->give(work.client, model, std::make_shared<CountedSource>(model, served_),
                             dissemination);
  surroundings_.seeder->show(work.client, model->manifest().id(), shown(model));
}

// A message about an older task must not stop the current one.
void ClientLines::take_back(ClientId client, TaskId task) {
  const auto served = serving_.find(client);
  if (served == serving_.end() || served->second.task != task) return;
  if (const auto link = surroundings_.peers.find(client))
    for (const protocol::ObjectId& object : served->second.objects) link->stop_serving(object);
  if (const auto& exchanged = served->second.exchanged) surroundings_.seeder->release(client, *exchanged);
  for (const TransferObject object : {TransferObject::kModel, TransferObject::kControl})
    surroundings_.transfers.end(client, object);
  serving_.erase(served);
}

void ClientLines::fetch(const RunEngine::Fetch& offered) {
  if (const auto link = surroundings_.peers.find(offered.client)) surroundings_.uploads.fetch(offered, link);
}

void ClientLines::stop() {
  while (!serving_.empty()) take_back(serving_.begin()->first, serving_.begin()->second.task);
}

}  // namespace fedge::server
