#include "server/coordinator/detail/serverless_rounds.h"

#include <utility>

#include "core/crypto/random.h"
#include "protocol/session/loop.h"
#include "server/coordinator/counted_chunks.h"
#include "server/coordinator/detail/retry.h"

namespace fedge::server {

ServerlessRounds::ServerlessRounds(boost::asio::io_context& io, Seeder& seeder, protocol::ChunkStore& models,
                                   const run::RunConfig& config)
    : io_(io),
      seeder_(seeder),
      models_(models),
      config_(config),
      late_timer_(io),
      look_timer_(io),
      warmup_timer_(io) {}

void ServerlessRounds::begin(TaskId task, const protocol::Manifest& model) {
  for (const protocol::ObjectId& object : std::exchange(watched_, {})) seeder_.let_go(object);
  round_ = ServerlessRound(task, config_.sampling.clients_per_round);
  model_ = model;
  known_from_ = {};
  refused_ = lost_ = 0;
  stage_ = Stage::kSharing;
  arm(seconds(ServerlessRound::kLate * to_seconds(config_.round_deadline)));
  plan_warmup();
}

void ServerlessRounds::plan_warmup() {
  warmup_.reset();
  if (!config_.dissemination.warmup) return;
  warmup_.emplace(*config_.dissemination.warmup, round_.task(), now(), config_.round_deadline);
  tick(&ServerlessRounds::stop_gathering, ServerlessWarmup::gather_within(config_.round_deadline));
}

void ServerlessRounds::stop_gathering() {
  begin_warmup();
  const Duration deadline = config_.round_deadline;
  if (!exchanging() && warmup_->tracker() == nullptr)
    tick(&ServerlessRounds::begin_warmup,
         ServerlessWarmup::end_within(deadline) - ServerlessWarmup::gather_within(deadline));
}

void ServerlessRounds::tick(void (ServerlessRounds::*next)(), Duration time) {
  warmup_timer_.after(time, [weak = weak_from_this(), next] {
    if (const auto self = weak.lock()) ((*self).*next)();
  });
}

void ServerlessRounds::begin_warmup() {
  if (!warmup_ || exchanging() || warmup_->tracker() != nullptr || stage_ != Stage::kSharing) return;
  const bool begun = warmup_->begin(
      round_, [this](ClientId client) { return seeder_.listens(client); }, {random_u64(), random_u64()},
      now());
  if (warmup_->over()) return end_warmup();
  if (!begun) return;
  const swarm::RoundWarmup& tracker = *warmup_->tracker();
  for (const auto& member : tracker.members()) {
    callbacks_.send(member.client, tracker.plan(member.client, config_.id, round_.task()));
    seeder_.introduce(member.client, tracker.neighbours(member.client), tracker.swarm());
  }
  for (const protocol::Manifest* update : warmup_->updates(round_))
    for (const auto& member : tracker.members()) tell(member.client, *update);
  go_on_warming();
}

void ServerlessRounds::go_on_warming() {
  if (!warmup_ || exchanging() || stage_ != Stage::kSharing) return;
  auto orders = warmup_->go_on(
      now(),
      [this](ClientId client, const protocol::ObjectId& object) { return seeder_.chunks_of(client, object); },
      config_.id);
  for (auto& [client, slot] : orders) {
    for (auto& spray : slot.sprays) spray.key = seeder_.key(spray.to);
    callbacks_.send(client, slot);
  }
  warmup_->over() ? end_warmup() : tick(&ServerlessRounds::go_on_warming, swarm::RoundWarmup::kTick);
}

// Ends the warm-up: from now on all participants exchange all updates freely.
void ServerlessRounds::end_warmup() {
  callbacks_.on_event(warmup_->report(now()));
  for (const ClientId client : round_.participants()) {
    callbacks_.send(client, warmup_->message(config_.id));
    for (const protocol::Manifest* update : round_.updates()) tell(client, *update);
  }
  look_again_after(ServerlessRound::kGrace);
}

void ServerlessRounds::arm(Duration time) {
  late_ = false;
  late_timer_.after(time, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->late_ = true;
    self->go_on();
  });
}

void ServerlessRounds::resume(ServerlessRound round, const protocol::Manifest& model) {
  round_ = std::move(round);
  round_.restart();
  model_ = model;
  arm(config_.round_deadline);
  plan_warmup();
  // With a warm-up, clients report their chunks only after the exchange has begun.
  if (warmup_) known_from_ = Time::max();
  for (const protocol::Manifest* update : round_.updates())
    if (seeder_.watch(*update)) watched_.insert(update->id());
}

void ServerlessRounds::arrived(ClientId client) {
  if (stage_ != Stage::kMaking || !round_.expects(client)) return;
  round_.join(client);
  if (warmup_) callbacks_.send(client, warmup_->message(config_.id));
  for (const protocol::Manifest* update : round_.updates()) tell(client, *update);
  callbacks_.send(client, round_.order(config_.id));
  if (arriving_) seeder_.admit(client, arriving_->manifest().id());
}

void ServerlessRounds::assigned(ClientId client, TaskId task, const protocol::Manifest& model) {
  if (round_.task() != task) begin(task, model);
  round_.join(client);
  if (!exchanging()) return;
  // The client may have been disconnected when the warm-up ended.
  if (warmup_) callbacks_.send(client, warmup_->message(config_.id));
  for (const protocol::Manifest* update : round_.updates()) tell(client, *update);
}

void ServerlessRounds::tell(ClientId client, const protocol::Manifest& update) {
  const TaskId task = round_.task();
  seeder_.admit(client, update.id());
  callbacks_.send(client, protocol::ServerlessUpdate{config_.id, task.round, task.track, update});
}

void ServerlessRounds::offered(const RunEngine::Fetch& fetch) {
  const protocol::Manifest& update = fetch.offer.update;
  const bool known = watched_.contains(update.id());
  if (!known && !seeder_.watch(update)) {
    const RunEngine::Damaged damaged{
        fetch.client, fetch.offer.task(),
        invalid("the clients already exchange the offered object as a model, so it cannot be an update")};
    protocol::post(io_, [weak = weak_from_this(), damaged] {
      if (const auto self = weak.lock()) self->callbacks_.on_outcome(damaged);
    });
    return;
  }
  round_.offer(fetch.client, update);
  watched_.insert(update.id());
  if (!exchanging()) return begin_warmup();
  // Announces a known update again: clients that joined since its first offer have not been told.
  for (const ClientId client : round_.participants()) tell(client, update);
  if (known) look();
}

void ServerlessRounds::discard(ClientId client) { round_.withdraw(client); }

void ServerlessRounds::dismissed(ClientId client, const protocol::Message& message) {
  if (!round_.dismisses(message)) return;
  round_.give_up(client);
  if (warmup_ && warmup_->tracker() != nullptr) warmup_->tracker()->leave(client);
  kept_.erase(client);
  go_on();
}

void ServerlessRounds::given_up(ClientId client) {
  if (stage_ != Stage::kSharing) return;  // it may still vote on the model
  round_.give_up(client);
  go_on();
}

bool ServerlessRounds::departed(ClientId client) {
  const bool spreading = round_.undecided(client) || telling_.contains(client);
  // During aggregation, a client that reconnects in time continues.
  stage_ == Stage::kMaking ? round_.expect(client) : round_.leave(client);
  kept_.erase(client);
  if (warmup_ && warmup_->tracker() != nullptr) warmup_->tracker()->leave(client);
  if (spreading) gone_.insert(client);
  // Waits first: others may have received chunks without having reported them.
  look_again_after(ServerlessRound::kGrace);
  return spreading;
}

void ServerlessRounds::look_again_after(Duration time) {
  if (exchanging()) known_from_ = now() + time;
  look_timer_.after(time, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self) self->go_on();
  });
}

void ServerlessRounds::returned(ClientId client) {
  if (gone_.erase(client) > 0) callbacks_.on_outcome(RunEngine::ClientLeft{client});
}

bool ServerlessRounds::received(ClientId client, const protocol::Message& message) {
  if (const auto* held = std::get_if<protocol::UpdateHeld>(&message)) {
    if (held->task() != round_.task()) return true;  // of an earlier round
    if (round_.answer(client, *held)) go_on();
    return watched_.contains(held->object);
  }
  const auto& made = std::get<protocol::AggregateMade>(message);
  if (made.task() != round_.task()) return true;
  protocol::Manifest shape = made.model;
  shape.chunks = model_.chunks;
  if (!(shape == model_) || stage_ == Stage::kSharing) return false;
  if (!round_.made(client, made.model)) return false;
  choose();
  return true;
}

void ServerlessRounds::keep(ClientId client, const protocol::UpdateVerdict& verdict) {
  kept_.insert_or_assign(client, verdict);
}

void ServerlessRounds::go_on() {
  if (stage_ != Stage::kSharing) return choose();
  look();
  begin_warmup();
}

// Decides about offered updates. Posts the decisions, because engine effects may still be in progress.
void ServerlessRounds::look() {
  const auto decisions = round_.decide(late_, [this](const protocol::ObjectId& object) {
    return now() < known_from_ || seeder_.obtainable(object);
  });
  for (const ServerlessRound::Decision& decision : decisions) {
    if (decision.fault) ++refused_;
    if (decision.lost) ++lost_;
    telling_.insert(decision.client);
    protocol::post(io_, [weak = weak_from_this(), decision, task = round_.task()] {
      const auto self = weak.lock();
      if (!self) return;
      self->telling_.erase(decision.client);
      if (decision.fault)
        self->callbacks_.on_outcome(RunEngine::Damaged{decision.client, task, *decision.fault});
      else if (!decision.lost)
        self->callbacks_.on_outcome(RunEngine::Stored{decision.client, task});
      self->returned(decision.client);
    });
  }
}

void ServerlessRounds::aggregate(TaskId task) {
  if (round_.task() != task) begin(task, model_);  // no client was selected
  round_.close();
  stage_ = Stage::kMaking;
  if (warmup_) warmup_->close("the round was closed before the warm-up ended");
  report();
  if (round_.folds().empty()) return end_making(std::shared_ptr<protocol::StoredObject>());
  arm(config_.round_deadline);
  const protocol::AggregateUpdates order = round_.order(config_.id);
  for (const ClientId client : round_.participants()) callbacks_.send(client, order);
  choose();
}

// Reports how many offered updates are in the aggregate.
void ServerlessRounds::report() const {
  callbacks_.on_event(Event{Severity::kInfo, "round.updates_exchanged", {}}
                          .with("round", std::int64_t{round_.task().round.value()})
                          .with("reconstructable", static_cast<std::int64_t>(round_.folds().size()))
                          .with("participants", static_cast<std::int64_t>(round_.participants().size()))
                          .with("refused", static_cast<std::int64_t>(refused_))
                          .with("lost", static_cast<std::int64_t>(lost_)));
}

void ServerlessRounds::choose() {
  if (stage_ != Stage::kMaking) return;
  const protocol::Manifest* model = round_.model();
  if (!arriving_ && model != nullptr) return fetch(*model);
  if (late_ || (!arriving_ && round_.hopeless())) end_making(round_.no_model(arriving_ != nullptr));
}

void ServerlessRounds::fetch(const protocol::Manifest& model) {
  auto object = models_.create(model);
  if (!object && object.error().code == ErrorCode::kResource) return wait_for_room(object.error());
  if (!object) return end_making(object.error());
  arriving_ = *object;
  arm(config_.round_deadline);
  const protocol::ObjectId id = model.id();
  seeder_.fetch(arriving_, std::make_shared<UpdateSink>(arriving_, received_),
                [weak = weak_from_this(), id](const Result<void>& outcome) {
                  // Posted, because the object may already be complete inside this call.
                  if (const auto self = weak.lock())
                    protocol::post(self->io_, [self, id, outcome] { self->fetched(id, outcome); });
                });
  for (const ClientId client : round_.participants()) seeder_.admit(client, id);
}

void ServerlessRounds::fetched(const protocol::ObjectId& model, const Result<void>& outcome) {
  if (!arriving_ || arriving_->manifest().id() != model) return;
  if (!outcome && outcome.error().code == ErrorCode::kResource) {
    seeder_.let_go(model);
    arriving_.reset();
    return wait_for_room(outcome.error());
  }
  if (std::exchange(full_, false)) callbacks_.on_event(Event{Severity::kInfo, "disk.space_available", {}});
  if (!outcome) return end_making(outcome.error());
  for (const ClientId client : round_.dissenters(model))
    callbacks_.on_event(
        Event{Severity::kWarning, "model.mismatch", {}}
            .with("client", std::int64_t{client.value()})
            .with("round", std::int64_t{round_.task().round.value()})
            .with("reason",
                  "more than half of the clients aggregated the same updates to a different model"));
  end_making(arriving_);
}

void ServerlessRounds::wait_for_room(const Error& full) {
  if (!std::exchange(full_, true))
    callbacks_.on_event(Event{Severity::kError, "disk.full", {}}.with("reason", full.message));
  arm(config_.round_deadline);
  look_again_after(kRetryWhenFull);
}

void ServerlessRounds::end_making(Result<std::shared_ptr<protocol::StoredObject>> model) {
  if (arriving_) seeder_.let_go(arriving_->manifest().id());
  if (arriving_ && !model && !(arriving_->manifest() == model_)) models_.remove(arriving_->manifest().id());
  arriving_.reset();
  stage_ = Stage::kMade;
  late_timer_.cancel();
  // Posted, because engine effects may still be in progress.
  protocol::post(io_,
                 [self = shared_from_this(), model = std::move(model)] { self->callbacks_.on_made(model); });
}

std::vector<ClientId> ServerlessRounds::contributors() const {
  std::vector<ClientId> clients;
  for (const RunEngine::Fold& fold : round_.folds()) clients.push_back(fold.client);
  return clients;
}

void ServerlessRounds::finish(bool made) {
  for (const auto& [client, verdict] : std::exchange(kept_, {}))
    callbacks_.send(client, ServerlessRound::verdict(verdict, made));
  for (const ClientId client : std::exchange(gone_, {})) callbacks_.on_outcome(RunEngine::ClientLeft{client});
}

void ServerlessRounds::stop() {
  warmup_timer_.cancel();
  late_timer_.cancel();
  look_timer_.cancel();
  for (const protocol::ObjectId& object : std::exchange(watched_, {})) seeder_.let_go(object);
  if (arriving_) seeder_.let_go(arriving_->manifest().id());
  arriving_.reset();
}

}  // namespace fedge::server
