#include "server/conductor/serverless_route.h"

#include <algorithm>
#include <utility>

namespace fedge::server {

void ServerlessRoute::begin(TaskId task, const protocol::Manifest& model) {
  for (const protocol::ObjectId& object : std::exchange(watched_, {})) exchange().let_go(object);
  round_ = ServerlessRound(task, parts_.config.sampling.clients_per_round);
  model_ = model;
  known_from_ = {};
  refused_ = lost_ = 0;
  stage_ = Stage::kSharing;
  arm(seconds(ServerlessRound::kLate * to_seconds(parts_.config.round_deadline)));
  plan_warmup();
}

void ServerlessRoute::plan_warmup() {
  warmup_.reset();
  warm_at_.reset();
  if (!parts_.config.dissemination.warmup || parts_.host.retelling()) return;
  const Duration deadline = parts_.config.round_deadline;
  warmup_.emplace(*parts_.config.dissemination.warmup, round_.task(), now(), deadline);
  warm_at_ = now() + ServerlessWarmup::gather_within(deadline);
  warmup_ends_ = now() + ServerlessWarmup::end_within(deadline);
}

void ServerlessRoute::warm() {
  if (exchanging() || stage_ != Stage::kSharing) return;
  if (warmup_->tracker() != nullptr) return go_on_warming();
  begin_warmup();
  if (!exchanging() && warmup_->tracker() == nullptr) warm_at_ = warmup_ends_;
}

void ServerlessRoute::begin_warmup() {
  if (exchanging() || warmup_->tracker() != nullptr || stage_ != Stage::kSharing) return;
  const bool begun = warmup_->begin(
      round_, [this](ClientId client) { return exchange().listens(client); },
      exchange().warmup_seeds(round_.task()), now());
  if (warmup_->over()) return end_warmup();
  if (!begun) return;
  const swarm::RoundWarmup& tracker = *warmup_->tracker();
  for (const auto& member : tracker.members()) {
    parts_.host.say(member.client, tracker.plan(member.client, parts_.config.id, round_.task()));
    exchange().introduce(member.client, tracker.neighbours(member.client), tracker.swarm());
  }
  for (const protocol::Manifest* update : warmup_->updates(round_))
    for (const auto& member : tracker.members()) tell(member.client, *update);
  go_on_warming();
}

void ServerlessRoute::go_on_warming() {
  auto orders = warmup_->go_on(
      now(),
      [this](ClientId client, const protocol::ObjectId& object) {
        return exchange().chunks_of(client, object);
      },
      parts_.config.id);
  for (auto& [client, slot] : orders) {
    for (auto& spray : slot.sprays)
      if (parts_.ports.clients->connected(spray.to)) spray.key = parts_.ports.clients->key_of(spray.to);
    parts_.host.say(client, slot);
  }
  if (warmup_->over()) return end_warmup();
  warm_at_ = now() + swarm::RoundWarmup::kTick;
}

// Ends the warm-up: from now on all participants exchange all updates freely.
void ServerlessRoute::end_warmup() {
  warm_at_.reset();
  parts_.host.report(warmup_->report(now()));
  for (const ClientId client : round_.participants()) tell_all(client);
  look_again_after(ServerlessRound::kGrace);
}

void ServerlessRoute::arm(Duration time) {
  late_ = false;
  late_at_ = now() + time;
}

void ServerlessRoute::look_again_after(Duration time) {
  if (exchanging()) known_from_ = now() + time;
  look_at_ = now() + time;
}

std::optional<Time> ServerlessRoute::next_deadline() const {
  std::optional<Time> earliest;
  for (const auto& time : {late_at_, look_at_, warm_at_})
    if (time && (!earliest || *time < *earliest)) earliest = time;
  return earliest;
}

void ServerlessRoute::expired() {
  const auto due = [this](std::optional<Time>& time) {
    return time && now() >= *time && std::exchange(time, std::nullopt);
  };
  if (due(late_at_)) {
    late_ = true;
    go_on();
  }
  if (due(look_at_)) go_on();
  if (due(warm_at_)) warm();
}

// A decision about an update is journaled, and so is a departure, once the engine hears of it.
void ServerlessRoute::retell(const RunEngine::Input& input) {
  if (const auto* stored = std::get_if<RunEngine::Stored>(&input)) round_.settle(stored->client);
  if (const auto* left = std::get_if<RunEngine::ClientLeft>(&input)) this->left(left->client, false);
  if (const auto* failed = std::get_if<RunEngine::Failed>(&input)) dismissed(failed->client, failed->failure);
}

// Verdicts that were kept are lost; their clients learn from the next task.
void ServerlessRoute::resume() {
  kept_.clear();
  watched_.clear();
  late_at_.reset();
  look_at_.reset();
  if (round_.task() == TaskId() || stage_ == Stage::kMade) return;
  round_.restart();
  model_ = *parts_.ports.aggregate->view(round_.task().track).model;
  arm(parts_.config.round_deadline);
  plan_warmup();
  // With a warm-up, clients report their chunks only after the exchange has begun.
  known_from_ = warmup_ ? Time::max() : Time();
  for (const protocol::Manifest* update : round_.updates())
    if (exchange().watch(*update)) watched_.insert(update->id());
  if (turn_) close(RunEngine::CloseRound(*turn_));
}

// Tells the client the result of the warm-up, if there is one, and all updates of the round.
void ServerlessRoute::tell_all(ClientId client) {
  if (warmup_) parts_.host.say(client, warmup_->message(parts_.config.id));
  for (const protocol::Manifest* update : round_.updates()) tell(client, *update);
}

void ServerlessRoute::tell(ClientId client, const protocol::Manifest& update) {
  if (parts_.host.retelling()) return;
  const TaskId task = round_.task();
  exchange().admit(client, update.id());
  parts_.host.say(client, protocol::ServerlessUpdate{parts_.config.id, task.round, task.track, update});
}

void ServerlessRoute::arrived(ClientId client) {
  if (stage_ != Stage::kMaking || !round_.expects(client)) return;
  round_.join(client);
  tell_all(client);
  parts_.host.say(client, round_.order(parts_.config.id));
  if (fetching_) exchange().admit(client, *fetching_);
}

void ServerlessRoute::assigned(const RunEngine::Assign& work, const protocol::Manifest& model) {
  if (round_.task() != work.task) begin(work.task, model);
  round_.join(work.client);
  // The client may have been disconnected when the warm-up ended.
  if (exchanging()) tell_all(work.client);
}

void ServerlessRoute::fetch(const RunEngine::Fetch& offered) {
  const protocol::Manifest& update = offered.offer.update;
  const bool known = watched_.contains(update.id());
  if (!known && !exchange().watch(update))
    return parts_.host.submit(RunEngine::Damaged{
        offered.client, offered.offer.task(),
        invalid("the clients already exchange the offered object as a model, so it cannot be an update")});
  round_.offer(offered.client, update);
  watched_.insert(update.id());
  if (!exchanging()) return begin_warmup();
  // Announces a known update again: clients that joined since its first offer have not been told.
  for (const ClientId client : round_.participants()) tell(client, update);
  if (known) look();
}

void ServerlessRoute::fold(const RunEngine::Fold& accepted) {
  round_.fold(accepted);
  parts_.ports.aggregate->folded_by_clients(accepted);
}

bool ServerlessRoute::keep(ClientId client, const protocol::UpdateVerdict& verdict) {
  kept_.insert_or_assign(client, verdict);
  return true;
}

void ServerlessRoute::dismissed(ClientId client, const protocol::Message& message) {
  if (!round_.dismisses(message)) return;
  round_.give_up(client);
  if (warmup_ && warmup_->tracker() != nullptr) warmup_->tracker()->leave(client);
  kept_.erase(client);
  go_on();
}

void ServerlessRoute::given_up(ClientId client) {
  if (stage_ != Stage::kSharing) return;  // it may still vote on the model
  round_.give_up(client);
  go_on();
}

void ServerlessRoute::left(ClientId client, bool held) {
  // During aggregation, a client that reconnects in time continues.
  stage_ == Stage::kMaking ? round_.expect(client) : round_.leave(client);
  kept_.erase(client);
  if (warmup_ && warmup_->tracker() != nullptr) warmup_->tracker()->leave(client);
  if (held) gone_.insert(client);
  // Waits first: others may have received chunks without having reported them.
  look_again_after(ServerlessRound::kGrace);
}

void ServerlessRoute::linked(ClientId client) {
  if (gone_.erase(client) > 0) parts_.host.submit(RunEngine::ClientLeft{client});
}

Heard ServerlessRoute::receive(ClientId client, const protocol::Message& message) {
  if (const auto* held = std::get_if<protocol::UpdateHeld>(&message)) {
    if (is_over(held->task())) return Heard::kTaken;
    if (round_.answer(client, *held)) go_on();
    return watched_.contains(held->object) ? Heard::kTaken : Heard::kUnasked;
  }
  const auto* made = std::get_if<protocol::AggregateMade>(&message);
  if (made == nullptr) return Heard::kOther;
  if (is_over(made->task())) return Heard::kTaken;
  protocol::Manifest shape = made->model;
  shape.chunks = model_.chunks;
  if (!(shape == model_) || stage_ == Stage::kSharing) return Heard::kUnasked;
  if (!round_.made(client, made->model)) return Heard::kUnasked;
  choose();
  return Heard::kTaken;
}

void ServerlessRoute::go_on() {
  if (stage_ != Stage::kSharing) return choose();
  look();
  begin_warmup();
}

void ServerlessRoute::look() {
  const auto decisions = round_.decide(late_, [this](const protocol::ObjectId& object) {
    return now() < known_from_ || exchange().obtainable(object);
  });
  for (const ServerlessRound::Decision& decision : decisions) {
    if (decision.fault) ++refused_;
    if (decision.lost) ++lost_;
    if (decision.fault)
      parts_.host.submit(RunEngine::Damaged{decision.client, round_.task(), *decision.fault});
    else if (!decision.lost)
      parts_.host.submit(RunEngine::Stored{decision.client, round_.task()});
    linked(decision.client);
  }
}

void ServerlessRoute::close(const RunEngine::CloseRound& turn) {
  turn_ = turn;
  const TaskId task{turn.round, turn.track};
  if (round_.task() != task) begin(task, model_);  // no client was selected
  round_.close();
  stage_ = Stage::kMaking;
  if (parts_.host.retelling()) return;
  if (warmup_) warmup_->close("the round was closed before the warm-up ended");
  report_exchange();
  if (round_.folds().empty()) return end_making(Folded{});
  arm(parts_.config.round_deadline);
  const protocol::AggregateUpdates order = round_.order(parts_.config.id);
  for (const ClientId client : round_.participants()) parts_.host.say(client, order);
  choose();
}

// Reports how many offered updates are in the aggregate.
void ServerlessRoute::report_exchange() const {
  parts_.host.report(Event{Severity::kInfo, "round.updates_exchanged", {}}
                         .with("round", std::int64_t{round_.task().round.value()})
                         .with("reconstructable", static_cast<std::int64_t>(round_.folds().size()))
                         .with("participants", static_cast<std::int64_t>(round_.participants().size()))
                         .with("refused", static_cast<std::int64_t>(refused_))
                         .with("lost", static_cast<std::int64_t>(lost_)));
}

void ServerlessRoute::choose() {
  if (stage_ != Stage::kMaking || parts_.host.retelling()) return;
  const protocol::Manifest* model = round_.model();
  if (!fetching_ && model != nullptr) return fetch(*model);
  if (!late_ && (fetching_ || !round_.hopeless())) return;
  end_making(NotMade{round_.no_model(fetching_.has_value())});
}

void ServerlessRoute::fetch(const protocol::Manifest& model) {
  fetching_ = model.id();
  arm(parts_.config.round_deadline);
  exchange().fetch(model);
  for (const ClientId client : round_.participants()) exchange().admit(client, *fetching_);
}

void ServerlessRoute::fetched(const protocol::ObjectId& model, const Result<void>& outcome) {
  if (fetching_ != model) return;
  if (disk_.stopped(outcome)) return wait_for_room();
  if (!outcome) return end_making(NotMade{outcome.error()});
  for (const ClientId client : round_.dissenters(model))
    parts_.host.report(
        Event{Severity::kWarning, "model.mismatch", {}}
            .with("client", std::int64_t{client.value()})
            .with("round", std::int64_t{round_.task().round.value()})
            .with("reason", std::string("more than half of the clients aggregated the same updates to a "
                                        "different model")));
  end_making(MadeByClients{model, contributors()});
}

void ServerlessRoute::wait_for_room() {
  exchange().pause(*std::exchange(fetching_, std::nullopt));
  arm(parts_.config.round_deadline);
  look_again_after(FullDisk::kRetryAfter);
}

void ServerlessRoute::end_making(const Made& made) {
  const auto fetched = std::exchange(fetching_, std::nullopt);
  if (fetched)
    std::holds_alternative<MadeByClients>(made) ? exchange().let_go(*fetched) : exchange().abandon(*fetched);
  stage_ = Stage::kMade;
  late_at_.reset();
  disk_.forget();
  parts_.host.close(*std::exchange(turn_, std::nullopt), made);
}

std::vector<ClientId> ServerlessRoute::contributors() const {
  std::vector<ClientId> clients;
  for (const RunEngine::Fold& fold : round_.folds()) clients.push_back(fold.client);
  return clients;
}

void ServerlessRoute::committed(bool aggregated) {
  stage_ = Stage::kMade;
  for (const auto& [client, verdict] : std::exchange(kept_, {}))
    parts_.host.say(client, ServerlessRound::verdict(verdict, aggregated));
  for (const ClientId client : std::exchange(gone_, {})) parts_.host.submit(RunEngine::ClientLeft{client});
}

void ServerlessRoute::stop() {
  for (const protocol::ObjectId& object : std::exchange(watched_, {})) exchange().let_go(object);
  if (fetching_) exchange().let_go(*std::exchange(fetching_, std::nullopt));
}

std::unique_ptr<Route> make_serverless_route(const RouteParts& parts) {
  return std::make_unique<ServerlessRoute>(parts);
}

}  // namespace fedge::server
