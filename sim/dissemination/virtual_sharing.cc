#include "sim/dissemination/virtual_sharing.h"

#include <string>
#include <utility>

#include "core/crypto/sha256.h"
#include "protocol/codec.h"

namespace fedge::sim {
namespace {

// Makes a manifest with a unique id. A simulation transfers no bytes, so chunks are not hashed.
protocol::Manifest named(protocol::Manifest shape, const std::string& name) {
  shape.chunks.resize((shape.payload_size + shape.chunk_size - 1) / shape.chunk_size);
  shape.chunks.front() = sha256(name);
  return shape;
}

template <class M>
Bytes message_size(const M& message) {
  return Bytes(protocol::frame_size(message));
}

}  // namespace

void VirtualSharing::at(Time time, std::function<void()> what) {
  surroundings_.network.at(time, [this, round = rounds_, what = std::move(what)] {
    if (round == rounds_) what();
  });
}

void VirtualSharing::at(Time time, ClientId client, std::function<void()> what) {
  at(time, [this, client, session = surroundings_.session(client), what = std::move(what)] {
    if (session && surroundings_.session(client) == session) what();
  });
}

void VirtualSharing::begin(TaskId task, const protocol::Manifest& model) {
  for (const auto& [object, count] : std::exchange(objects_, {})) surroundings_.swarm.drop(object);
  ++rounds_;
  round_ = server::ServerlessRound(task, surroundings_.config.sampling.clients_per_round);
  model_ = model;
  owns_.clear();
  making_.clear();
  stage_ = Stage::kSharing;
  fetching_ = false;
  lost_ = 0;
  const Duration deadline = surroundings_.config.round_deadline;
  arm(seconds(server::ServerlessRound::kLate * to_seconds(deadline)));
  warmup_.reset();
  if (const auto swarm = std::exchange(swarm_, std::nullopt)) surroundings_.swarm.forget(*swarm);
  if (const auto& rules = surroundings_.config.dissemination.warmup) {
    warmup_.emplace(*rules, task, surroundings_.network.now(), deadline);
    for (const Duration time :
         {server::ServerlessWarmup::gather_within(deadline), server::ServerlessWarmup::end_within(deadline)})
      at(surroundings_.network.now() + time, [this] { begin_warmup(); });
  }
}

void VirtualSharing::begin_warmup() {
  if (!warmup_ || exchanging() || warmup_->tracker() != nullptr || stage_ != Stage::kSharing) return;
  const swarm::RoundWarmup::Seeds seeds{surroundings_.rng.fork("overlay", rounds_).next_u64(),
                                        surroundings_.rng.fork("secret", rounds_).next_u64()};
  const bool begun = warmup_->begin(
      round_, [this](ClientId client) { return surroundings_.swarm.listens(client); }, seeds,
      surroundings_.network.now());
  if (warmup_->over()) return end_warmup();
  if (!begun) return;
  const swarm::RoundWarmup& tracker = *warmup_->tracker();
  swarm_ = tracker.swarm();
  const auto updates = warmup_->updates(round_);
  for (const auto& member : tracker.members()) {
    const auto plan = tracker.plan(member.client, surroundings_.config.id, round_.task());
    at(surroundings_.down_arrival(member.client, message_size(plan)), member.client,
       [this, member, plan] { surroundings_.swarm.begin_warmup(member.client, plan, member.update); });
    for (const protocol::Manifest* update : updates) tell(member.client, *update);
  }
  go_on_warming();
}

void VirtualSharing::go_on_warming() {
  if (exchanging() || stage_ != Stage::kSharing) return;
  const auto look = [this](ClientId client, const protocol::ObjectId& object) {
    return surroundings_.swarm.chunks_of(client, object);
  };
  for (const auto& [client, slot] :
       warmup_->go_on(surroundings_.network.now(), look, surroundings_.config.id))
    at(surroundings_.down_arrival(client, message_size(slot)), client, [this, client = client, slot = slot] {
      if (swarm_) surroundings_.swarm.carry_out(client, *swarm_, slot);
    });
  if (warmup_->over()) return end_warmup();
  at(surroundings_.network.now() + swarm::RoundWarmup::kTick, [this] { go_on_warming(); });
}

void VirtualSharing::end_warmup() {
  surroundings_.on_event(warmup_->report(surroundings_.network.now()));
  for (const ClientId client : round_.participants()) {
    tell_over(client);
    for (const protocol::Manifest* update : round_.updates()) tell(client, *update);
  }
  look();
}

void VirtualSharing::tell_over(ClientId client) {
  const auto over = warmup_->message(surroundings_.config.id);
  if (swarm_)
    at(surroundings_.down_arrival(client, message_size(over)), client,
       [this, client, swarm = *swarm_] { surroundings_.swarm.end_warmup(client, swarm, model_.id()); });
}

void VirtualSharing::assigned(ClientId client, TaskId task, const protocol::Manifest& model) {
  if (round_.task() != task || rounds_ == 0) begin(task, model);
  round_.join(client);
  if (!exchanging()) return;
  // The client may have been disconnected when the others received this message.
  if (warmup_) tell_over(client);
  for (const protocol::Manifest* update : round_.updates()) tell(client, *update);
}

void VirtualSharing::tell(ClientId client, const protocol::Manifest& update) {
  const TaskId task = round_.task();
  surroundings_.swarm.admit(client, update.id());
  const protocol::ServerlessUpdate message{surroundings_.config.id, task.round, task.track, update};
  at(surroundings_.down_arrival(client, message_size(message)), client, [this, client, update] {
    const auto own = owns_.find(client);
    const bool has = own != owns_.end() && own->second == update.id();
    surroundings_.swarm.share(client, update, has, exchanging() || !swarm_ ? model_.id() : *swarm_);
  });
}

void VirtualSharing::offered(ClientId client, const protocol::UpdateOffer& offer) {
  const protocol::Manifest update =
      named(offer.update, "update " + std::to_string(client.value()) + " " + std::to_string(rounds_));
  const protocol::ObjectId id = update.id();
  round_.offer(client, update);
  owns_[client] = id;
  const bool known = ++objects_[id] > 1;  // offered before and lost with its client
  if (!known) surroundings_.swarm.watch(update);
  if (!exchanging()) return begin_warmup();
  for (const ClientId participant : round_.participants()) tell(participant, update);
  if (known) look();
}

// A returning client rejoins a round that is being aggregated if it took part before.
void VirtualSharing::arrived(ClientId client) {
  if (stage_ != Stage::kMaking || !round_.expects(client)) return;
  round_.join(client);
  surroundings_.swarm.enter(client);
  order(client);
  if (fetching_) surroundings_.swarm.admit(client, made_.id());
}

void VirtualSharing::dismissed(ClientId client, const protocol::Message& message) {
  if (!round_.dismisses(message)) return;
  round_.give_up(client);
  if (warmup_ && warmup_->tracker() != nullptr) warmup_->tracker()->leave(client);
  kept_.erase(client);
  go_on();
}

bool VirtualSharing::departed(ClientId client) {
  const bool spreading = round_.undecided(client);
  stage_ == Stage::kMaking ? round_.expect(client) : round_.leave(client);
  kept_.erase(client);
  if (warmup_ && warmup_->tracker() != nullptr) warmup_->tracker()->leave(client);
  if (spreading) gone_.insert(client);
  at(surroundings_.network.now() + server::ServerlessRound::kGrace, [this] { go_on(); });
  return spreading;
}

void VirtualSharing::returned(ClientId client) {
  if (gone_.erase(client) > 0) surroundings_.on_input(server::RunEngine::ClientLeft{client});
}

void VirtualSharing::completed(ClientId peer, const protocol::ObjectId& object) {
  if (!objects_.contains(object)) return;
  if (peer == swarm::kCoordinator) {
    if (fetching_ && object == made_.id()) at(surroundings_.network.now(), [this] { end_making({}); });
    return;
  }
  if (stage_ != Stage::kSharing) return;
  const TaskId task = round_.task();
  protocol::UpdateHeld held{
      .run = surroundings_.config.id, .round = task.round, .track = task.track, .object = object};
  at(surroundings_.up_arrival(peer, message_size(held)), peer, [this, peer, held] {
    if (round_.answer(peer, held)) look();
  });
}

void VirtualSharing::go_on() {
  if (stage_ != Stage::kSharing) return choose();
  look();
  begin_warmup();
}

void VirtualSharing::look() {
  if (stage_ != Stage::kSharing) return;
  const auto decisions = round_.decide(
      late_, [this](const protocol::ObjectId& object) { return surroundings_.swarm.obtainable(object); });
  for (const auto& decision : decisions) {
    if (decision.lost) ++lost_;
    if (!decision.lost) surroundings_.on_held(decision.client, round_.task());
    returned(decision.client);
  }
}

void VirtualSharing::aggregate(TaskId task) {
  if (round_.task() != task || rounds_ == 0) begin(task, model_);  // no client was selected
  round_.close();
  stage_ = Stage::kMaking;
  if (warmup_) warmup_->close("the round was closed before");
  surroundings_.on_event(Event{Severity::kInfo, "round.updates_exchanged", {}}
                             .with("round", std::int64_t{round_.task().round.value()})
                             .with("reconstructable", static_cast<std::int64_t>(round_.folds().size()))
                             .with("participants", static_cast<std::int64_t>(round_.participants().size()))
                             .with("lost", static_cast<std::int64_t>(lost_)));
  if (round_.folds().empty()) return end_making({});
  made_ = named(model_, "model " + std::to_string(rounds_));
  ++objects_[made_.id()];
  order_size_ = message_size(round_.order(surroundings_.config.id));
  arm(surroundings_.config.round_deadline);
  for (const ClientId client : round_.participants()) order(client);
  choose();
}

// The client computes the model in no time.
void VirtualSharing::order(ClientId client) {
  at(surroundings_.down_arrival(client, order_size_), client, [this, client] {
    making_.insert(client);
    surroundings_.swarm.share(client, made_, true, model_.id());
    const TaskId task = round_.task();
    const protocol::AggregateMade made{surroundings_.config.id, task.round, task.track, made_};
    at(surroundings_.up_arrival(client, message_size(made)), client, [this, client] {
      if (round_.made(client, made_)) choose();
    });
  });
}

void VirtualSharing::arm(Duration time) {
  late_ = false;
  at(surroundings_.network.now() + time, [this, deadline = ++deadlines_] {
    if (deadline != deadlines_) return;
    late_ = true;
    go_on();
  });
}

void VirtualSharing::choose() {
  if (stage_ != Stage::kMaking) return;
  if (!fetching_ && round_.model() != nullptr) {
    fetching_ = true;
    arm(surroundings_.config.round_deadline);
    surroundings_.swarm.fetch(made_);
    for (const ClientId client : round_.participants()) surroundings_.swarm.admit(client, made_.id());
    return;
  }
  if (late_ || (!fetching_ && round_.hopeless())) end_making(round_.no_model(fetching_));
}

void VirtualSharing::end_making(std::optional<Error> not_made) {
  if (stage_ != Stage::kMaking) return;
  stage_ = Stage::kMade;
  ++deadlines_;
  if (!not_made) makers_ = making_;
  if (not_made && fetching_) surroundings_.swarm.drop(made_.id());
  surroundings_.on_made(not_made);
}

void VirtualSharing::finish(bool made) {
  for (const auto& [client, verdict] : std::exchange(kept_, {}))
    surroundings_.send(client, server::ServerlessRound::verdict(verdict, made));
  for (const ClientId client : std::exchange(gone_, {}))
    surroundings_.on_input(server::RunEngine::ClientLeft{client});
}

}  // namespace fedge::sim
