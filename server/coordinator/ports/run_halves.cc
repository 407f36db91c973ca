#include "server/coordinator/ports/run_halves.h"

#include <string>
#include <utility>

#include "core/check.h"
#include "server/backup/backup_lock.h"

namespace fedge::server {

RunHalves::RunHalves(Surroundings surroundings)
    : surroundings_(std::move(surroundings)),
      run_(surroundings_.state.config().id),
      server_(std::make_unique<SplitServer>(surroundings_.model, surroundings_.state.config().task.training,
                                            *surroundings_.state.split())) {
  most_bytes_ = server_->most_bytes();
}

void RunHalves::on_worker(std::function<void(SplitServer&)> work) {
  worker_.post([self = shared_from_this(), work = std::move(work)] { work(*self->server_); });
}

void RunHalves::begin(const RunEngine::Assign& work, const protocol::Manifest& model) {
  const RoundNumber round = work.task.round;
  auto& client =
      clients_.try_emplace(work.client, Client{round, protocol::SplitIncoming(most_bytes_)}).first->second;
  if (client.round != round) client = {round, protocol::SplitIncoming(most_bytes_)};
  const std::size_t cut = surroundings_.state.split()->cut_of(work.coverage);
  FEDGE_CHECK(cut > 0, "a task of split training has a cut");
  if (model_ != model.id()) {
    model_ = model.id();
    on_worker(
        [self = shared_from_this(), object = surroundings_.state.track({}).object()](SplitServer& server) {
          ParameterVector values(self->surroundings_.model.layout());
          const auto read = object->read_bytes(0, std::as_writable_bytes(values.values()));
          if (read) return server.take_model(std::move(values));
          protocol::post(self->surroundings_.io, [self, error = read.error()] {
            if (!self->stopped_) self->surroundings_.on_failure(error);
          });
        });
  }
  on_worker([id = work.client, round, cut](SplitServer& server) { server.begin(id, round, cut); });
}

bool RunHalves::receive(ClientId client, const protocol::Message& message) {
  const auto* values = std::get_if<protocol::SplitValues>(&message);
  const auto* taken = std::get_if<protocol::SplitTaken>(&message);
  const auto* end = std::get_if<protocol::SplitEnded>(&message);
  if (values == nullptr && taken == nullptr && end == nullptr) return false;
  const RoundNumber round = values != nullptr ? values->round : taken != nullptr ? taken->round : end->round;
  const auto found = clients_.find(client);
  if (found == clients_.end() || found->second.round != round) {
    // The task has been cancelled meanwhile.
    if (taken == nullptr)
      refuse(client, round,
             {ErrorCode::kNotFound, "this client has no task of round " + std::to_string(round.value())});
    return true;
  }
  if (taken != nullptr) {
    found->second.outgoing.taken(taken->part);
    send_parts(client, found->second);
  } else if (end != nullptr) {
    ended(client, *end);
  } else {
    received(client, found->second, *values);
  }
  return true;
}

void RunHalves::received(ClientId client, Client& state, const protocol::SplitValues& part) {
  received_ += Bytes(part.values.size());
  auto whole = state.incoming.take(part);
  if (!whole) return refuse(client, state.round, whole.error());
  if (!*whole) return surroundings_.send(client, protocol::SplitTaken{run_, state.round, part.part});
  const Place place{(*whole)->kind, (*whole)->step, (*whole)->first};
  if (!state.busy) return answer(client, state, std::move(**whole));
  // A client that has connected again sends what is being answered. Another message waits for its turn.
  if (state.answering != place) state.next = std::move(**whole);
}

void RunHalves::answer(ClientId client, Client& state, protocol::SplitValues whole) {
  state.busy = true;
  state.answering = Place{whole.kind, whole.step, whole.first};
  on_worker([self = shared_from_this(), client, round = state.round,
             message = std::make_shared<protocol::SplitValues>(std::move(whole))](SplitServer& server) {
    auto answer = std::make_shared<Result<protocol::SplitValues>>(server.answer(client, std::move(*message)));
    protocol::post(self->surroundings_.io,
                   [self, client, round, answer] { self->answered(client, round, std::move(*answer)); });
  });
}

void RunHalves::answered(ClientId client, RoundNumber round, Result<protocol::SplitValues> answer) {
  const auto found = clients_.find(client);
  if (stopped_ || found == clients_.end() || found->second.round != round) return;
  Client& state = found->second;
  state.busy = false;
  state.answering.reset();
  if (answer) {
    std::vector<std::byte> values = std::exchange(answer->values, {});
    state.outgoing = protocol::SplitOutgoing(std::move(*answer), std::move(values));
    send_parts(client, state);
  } else {
    refuse(client, round, answer.error());
  }
  if (const auto next = std::exchange(state.next, std::nullopt)) return this->answer(client, state, *next);
  if (const auto end = std::exchange(state.end, std::nullopt)) ended(client, *end);
}

void RunHalves::send_parts(ClientId client, Client& state) {
  while (const auto part = state.outgoing.next()) {
    sent_ += Bytes(part->values.size());
    surroundings_.send(client, *part);
  }
}

void RunHalves::ended(ClientId client, const protocol::SplitEnded& message) {
  Client& state = clients_.at(client);
  if (state.busy) {
    if (state.answering) state.end = message;  // else this message has come twice
    return;
  }
  state.busy = true;
  on_worker([self = shared_from_this(), client, message](SplitServer& server) {
    const auto half = server.end(client, message.round, message.steps);
    const auto kept =
        half ? self->surroundings_.files.write(client, message.round, *half) : Result<void>(half.error());
    protocol::post(self->surroundings_.io, [self, client, round = message.round, kept, blamed = !half] {
      const auto found = self->clients_.find(client);
      if (self->stopped_ || found == self->clients_.end() || found->second.round != round) return;
      found->second.busy = false;
      if (kept) return self->surroundings_.send(client, protocol::SplitKept{self->run_, round});
      self->refuse(client, round, kept.error(), blamed);
    });
  });
}

void RunHalves::refuse(ClientId client, RoundNumber round, const Error& error, bool blamed) {
  if (blamed && !surroundings_.may_err(client)) return;
  surroundings_.on_event(Event{Severity::kWarning, "split.refused", {}}
                             .with("client", std::int64_t{client.value()})
                             .with("round", std::int64_t{round.value()})
                             .with("code", to_string(error.code))
                             .with("reason", error.message));
  surroundings_.send(client, protocol::SplitRefused{run_, round, error.code, error.message});
}

void RunHalves::drop(ClientId client, TaskId task) {
  const auto found = clients_.find(client);
  if (found == clients_.end() || found->second.round != task.round) return;
  clients_.erase(found);
  on_worker([client](SplitServer& server) { server.drop(client); });
}

// The rest of what was on its way, the client sends again.
void RunHalves::left(ClientId client) {
  if (const auto found = clients_.find(client); found != clients_.end()) {
    found->second.incoming = protocol::SplitIncoming(most_bytes_);
    found->second.outgoing = {};
  }
}

void RunHalves::forget(RoundNumber round) {
  // A file that a backup keeps from being removed now is removed in the next round.
  on_worker([files = surroundings_.files, directory = surroundings_.data_directory, round](SplitServer&) {
    if (!backup_is_running(directory)) files.remove_until(round);
  });
}

void RunHalves::stop() {
  stopped_ = true;
  worker_.stop();
}

}  // namespace fedge::server
