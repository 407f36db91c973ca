// RoundEngine, part 2: selects a round's clients and sets their weights.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "aggregation/accumulator.h"
#include "core/check.h"
#include "core/crypto/hkdf.h"
#include "learn/task.h"
#include "server/engine/round_engine.h"
#include "server/engine/round_events.h"

namespace fedge::server {
namespace {

// Derives a separate key for each track phase: the privacy accounting treats the draws of all phases as
// independent.
Secret draw_key(const Secret& root, TaskId task) {
  std::array<std::uint8_t, 12> info{'d', 'r', 'a', 'w'};
  for (unsigned i = 0; i < 4; ++i) {
    info.at(4 + i) = static_cast<std::uint8_t>(task.round.value() >> (8 * i));
    info.at(8 + i) = static_cast<std::uint8_t>(task.track.value() >> (8 * i));
  }
  return derive_key(root, {}, info);
}

}  // namespace

// Substitutes are the clients that may take the place of a lost one.
class RoundEngine::Substitutes final : public aggregation::CandidateView::Source {
 public:
  explicit Substitutes(RoundEngine& engine)
      : engine_(engine),
        all_admitted_(engine.tracks_.is_whole() && !engine.participations_.bounded() &&
                      engine.quarantine_.is_empty()) {}
  std::size_t size() const override { return all_admitted_ ? engine_.present_.free() : all().size(); }
  aggregation::Candidate at(std::size_t index) const override {
    if (!all_admitted_) return all()[index];
    const auto [client, entry] = engine_.present_.nth_free(index);
    return {client, entry.samples};
  }
  std::span<const aggregation::Candidate> all() const override {
    if (!all_) all_ = engine_.candidates(true);
    return *all_;
  }

 private:
  RoundEngine& engine_;
  bool all_admitted_;
  mutable std::optional<std::span<const aggregation::Candidate>> all_;
};

// O(clients). A round with too few other candidates is also for the clients in quarantine.
std::span<const aggregation::Candidate> RoundEngine::candidates(bool without_task) {
  pool_.clear();
  pool_.reserve(present_.trainers());
  const auto gather = [&](bool in_quarantine) {
    present_.each_trainer([&](ClientId client, SampleCount samples, bool busy) {
      if (!(busy && without_task) && tracks_.is_member(turn_, client) && may_take_part(client) &&
          quarantine_.admits(client, round_) != in_quarantine)
        pool_.push_back({client, samples});
    });
  };
  gather(false);
  if (pool_.size() >= rules_.min_candidates || without_task || quarantine_.is_empty()) return pool_;
  gather(true);
  std::ranges::sort(pool_, {}, &aggregation::Candidate::client);
  return pool_;
}

bool RoundEngine::replace(ClientId client, const StepContext& context, std::vector<Effect>& effects) {
  // A client that disconnects repeatedly is replaced once, not each time.
  if (taken_places() >= wanted_) return false;
  const Substitutes substitutes(*this);
  const auto substitute = track().deciders.sampler->select(
      {.round = round_,
       .candidates = substitutes,
       .count = 1,
       .rng = context.rng.fork("substitute", round_.value(), client.value())});
  if (substitute.empty()) return false;
  const ClientId other = substitute.front().client;
  effects.push_back(event(Severity::kInfo, "client.replaced", round_)
                        .with("client", number(client))
                        .with("by", number(other)));
  plan(other, context);
  assign(other, context, effects);
  return true;
}

std::optional<RunEngine::Waiting> RoundEngine::waiting() const {
  if (phase_ != Phase::kWaiting) return std::nullopt;
  const std::size_t first = round_ == RoundNumber(0) ? rules_.first_round_clients : 0;
  const std::size_t needed = std::max(first, rules_.min_available);
  if (present_.size() < first) return Waiting{next(round_), present_.size(), needed};
  // A client that only evaluates does not make a round possible.
  std::size_t available = present_.trainers();
  for (const ClientId client : tracks_.withdrawn_in(next(round_)))
    if (const auto entry = present_.find(client); entry && entry->said.value() > 0) --available;
  if (available < rules_.min_available) return Waiting{next(round_), available, rules_.min_available};
  return std::nullopt;
}

void RoundEngine::start_round_if_possible(const StepContext& context, std::vector<Effect>& effects) {
  if (phase_ != Phase::kWaiting || awaits_return()) return;
  const bool evaluates = kind_ == TaskKind::kEvaluation;
  if (!(anew_ && evaluates) && waiting()) return;  // an evaluation needs no minimum of clients
  const bool anew = std::exchange(anew_, false);
  if (kind_ == TaskKind::kStatistics) return begin_sums(context, effects);
  if (anew) return evaluates ? begin_sums(context, effects) : begin_turn(context, effects);
  const TrackBook::Changes changes = tracks_.begin_round(next(round_));
  if (budget_spent()) return finish("the privacy budget is spent", effects);  // new tracks may exceed it
  round_ = next(round_);
  for (const auto& start : changes.started) {
    effects.push_back(StartTrack{start.track, start.source, start.description});
    effects.push_back(event(Severity::kInfo, "track.started", round_)
                          .with("track", std::int64_t{start.track.value()})
                          .with("from", start.source ? "track " + std::to_string(start.source->value())
                                                     : std::string("the initial model")));
    if (!participations_.includes(start.track))
      effects.push_back(
          event(Severity::kWarning, "track.without_clients", round_)
              .with("track", std::int64_t{start.track.value()})
              .with("reason",
                    std::string("differential_privacy.max_participations is divided among the tracks "
                                "of the run file, and this track is not one of them")));
  }
  for (const TrackId track : changes.retired) {
    effects.push_back(RetireTrack{track});
    effects.push_back(
        event(Severity::kInfo, "track.retired", round_).with("track", std::int64_t{track.value()}));
  }
  if (changes.joined) tell_records();
  turn_ = 0;
  // The statistics have numbers of rounds of their own: no two sessions have the same round and attempt.
  if (!rules_.statistics) attempt_ = 0;
  begin_turn(context, effects);
}

bool RoundEngine::budget_spent() const {
  return rules_.releases && released_ + tracks_.turns() > *rules_.releases;
}

// Gives the record only to tracks that have the client as a member.
void RoundEngine::on(const Described& described, const StepContext&, std::vector<Effect>&) {
  const NodeRecord& record = records_[described.client] = with_known_labels(rules_, described.record);
  for (std::size_t turn = 0; turn < tracks_.turns(); ++turn)
    if (tracks_.is_member(turn, described.client))
      tracks_.turn(turn).deciders.sampler->describe(described.client, record);
}

void RoundEngine::tell_records() {
  for (std::size_t turn = 0; turn < tracks_.turns(); ++turn)
    for (const auto& [client, record] : records_)
      if (tracks_.is_member(turn, client)) tracks_.turn(turn).deciders.sampler->describe(client, record);
}

void RoundEngine::begin_turn(const StepContext& context, std::vector<Effect>& effects) {
  phase_ = Phase::kCollecting;
  Deciders& deciders = track().deciders;
  deadline_ = context.now + rules_.deadline;
  clear_tasks();
  drawn_ = traits().draw != aggregation::Draw::kBeforeUpload;
  // The subtraction compensates for rounding: 100 * 1.1 is slightly above 110.
  const auto wanted = static_cast<std::size_t>(
      std::ceil(static_cast<double>(rules_.clients_per_round) * rules_.over_selection - 1e-9));
  // In order of client number, so that the order of arrival does not matter in any mode.
  present_.each([&](ClientId client, const Roster::Entry& entry) {
    if (tracks_.is_member(turn_, client)) deciders.planner->admit(client, entry.capability);
  });
  const auto pool = candidates(false);
  const std::optional<Secret> secret =
      rules_.secret_draws ? std::optional(draw_key(*rules_.secret_draws, current())) : std::nullopt;
  const auto selected = deciders.sampler->select({.round = round_,
                                                  .candidates = pool,
                                                  .count = wanted,
                                                  .rng = context.rng.fork("sample", round_.value()),
                                                  .left = track().left,
                                                  .secret = secret ? &*secret : nullptr});
  effects.push_back(turn_event(Severity::kInfo, "round.started")
                        .with("available", number(pool.size()))
                        .with("selected", number(selected.size())));
  wanted_ = selected.size();
  all_drawn_ = wanted_ == pool.size();
  chance_ = traits().chance > 0 ? traits().chance : 1;
  for (const auto& choice : selected) chance_ = std::max(chance_, choice.inclusion);
  if (selected.empty()) return close("no client was selected", effects);
  for (const auto& choice : selected) plan(choice.client, context);
  if (traits().weighs) tasks_.weigh(selected, rules_.uniform_weights);
  if (rules_.masked) begin_secure(effects);
  if (traits().draw == aggregation::Draw::kBeforeTraining)
    return draw(TaskState::kAssigned, context, effects);
  for (const auto& choice : selected) assign(choice.client, context, effects);
}

void RoundEngine::begin_secure(std::vector<Effect>& effects) {
  BeginSecure begin{.task = current(), .attempt = ++attempt_, .members = {}};
  for (const auto& [client, task] : tasks_) begin.members.push_back({client, task.coverage});
  effects.push_back(std::move(begin));
}

RoundTask& RoundEngine::plan(ClientId client, const StepContext& context) {
  RoundTask& task = tasks_.add(client);
  present_.set_busy(client, true);
  participations_.count(track().id, client, round_);
  const std::optional<Roster::Entry> entry = present_.find(client);
  FEDGE_CHECK(entry.has_value(), "who is selected is there");
  task.samples = learn::trained_samples(entry->samples, tracks_.data_share(client));
  task.said = learn::trained_samples(entry->said, tracks_.data_share(client));
  aggregation::Planner& planner = *track().deciders.planner;
  planner.admit(client, entry->capability);
  if (const auto power = powers_.find(client); power != powers_.end())
    planner.describe(client, *power->second);
  const aggregation::PlanRequest request{.round = round_,
                                         .client = client,
                                         .rng = context.rng.fork("plan", round_.value(), client.value()),
                                         .samples = task.said};
  task.coverage = planner.plan(request);
  task.effort = planner.effort(request);
  // A client that may not be drawn next time would train in vain, and one whose next part is in this one
  // would not have the values that its training begins with.
  const RoundNumber following = next(round_);
  if (!rules_.overlaps || !all_drawn_ || following > RoundNumber(rules_.rounds)) return task;
  Coverage part = planner.plan({.round = following,
                                .client = client,
                                .rng = context.rng.fork("plan", following.value(), client.value()),
                                .samples = task.said});
  if (part.intersect(task.coverage).empty()) task.next = std::move(part);
  return task;
}

void RoundEngine::assign(ClientId client, const StepContext& context, std::vector<Effect>& effects) {
  RoundTask& task = tasks_.at(client);
  task.assigned = context.now;
  FEDGE_CHECK(tracks_.may_receive(turn_, client), "a model goes to a client that excludes what is in it");
  effects.push_back(Assign{.client = client,
                           .task = current(),
                           .coverage = task.coverage,
                           .time_left = deadline_ - context.now,
                           .last_round = track().last_round(client),
                           .data_share = tracks_.data_share(client),
                           .secure_attempt = rules_.masked ? attempt_ : 0,
                           .next = task.next,
                           .effort = task.effort});
}

// Counts a missing update as zeros. Its weight affects the mean, so its client counts as a contributor.
void RoundEngine::count_as_zeros(ClientId client, const RoundTask& task, std::vector<Effect>& effects) {
  tracks_.contributed(turn_, client);
  effects.push_back(Count{client, current(), tracks_.weight(turn_, client, task.samples), task.coverage});
}

void RoundEngine::draw_uploads(const StepContext& context, std::vector<Effect>& effects) {
  drawn_ = true;
  deadline_ = context.now + rules_.deadline;  // for the uploads
  for (auto& [client, task] : tasks_) {
    if (task.state == TaskState::kLost)
      tasks_.set_state(task, TaskState::kFailed);  // it can no longer return
    if (task.state != TaskState::kAssigned) continue;
    tasks_.set_state(task, TaskState::kFailed);
    effects.push_back(
        Send{client, protocol::CancelTask{rules_.run, round_, "enough clients have trained", track().id}});
  }
  draw(TaskState::kOffered, context, effects);
}

void RoundEngine::draw(TaskState state, const StepContext& context, std::vector<Effect>& effects) {
  std::vector<aggregation::Participant> participants;
  for (const auto& [client, task] : tasks_)
    if (task.state == state)
      participants.push_back(
          {client, task.samples, task.norm,
           static_cast<double>(task.coverage.count()) / static_cast<double>(rules_.parameters)});
  const bool unbiased = traits().unbiased;
  const auto probabilities = track().deciders.sampler->probabilities(participants);
  Rng rng = context.rng.fork("draw", round_.value());
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < participants.size(); ++i) {
    const ClientId client = participants[i].client;
    RoundTask& task = tasks_.at(client);
    if (rng.uniform() < probabilities[i]) {
      ++drawn;
      if (unbiased) task.factor = std::min(1.0 / probabilities[i], aggregation::kMaxFactor);
      if (state == TaskState::kAssigned) {
        assign(client, context, effects);
      } else {
        tasks_.set_state(task, TaskState::kFetching);
        effects.push_back(Fetch{client, *task.offer});
      }
    } else {
      tasks_.set_state(task, TaskState::kUnsent);
      if (state == TaskState::kOffered)
        effects.push_back(
            Send{client, protocol::CancelTask{rules_.run, round_,
                                              "this round does not need the client's upload", track().id}});
      if (unbiased) count_as_zeros(client, task, effects);
    }
    task.offer.reset();
  }
  effects.push_back(event(Severity::kInfo, "round.uploads_sampled", round_)
                        .with("clients", number(participants.size()))
                        .with("sampled", number(drawn)));
  close_if_complete(context, effects);
}

}  // namespace fedge::server
