#include "server/engine/serverless_warmup.h"

#include <set>
#include <utility>

#include "protocol/limits.h"
#include "run/dissemination.h"

namespace fedge::server {
namespace {

constexpr std::size_t kFewest = 4;  // members; with fewer, all would be neighbours of each other

}  // namespace

bool ServerlessWarmup::begin(const ServerlessRound& round, const std::function<bool(ClientId)>& listens,
                             swarm::RoundWarmup::Seeds seeds, Time now) {
  if (tracker_ || over_) return false;
  const auto owners = round.owners();
  if (now - began_ >= end_within(deadline_)) close("too few updates were offered in time");
  const bool enough =
      round.gathered() || (now - began_ >= gather_within(deadline_) && owners.size() >= kFewest);
  if (over_ || !enough) return false;
  std::vector<swarm::RoundWarmup::Member> members;
  std::size_t chunks = 0;
  for (const auto& [client, update] : owners) {
    if (chunks > 0 && update->chunk_count() != chunks)
      close("the updates have different sizes, which would reveal their owners");
    chunks = update->chunk_count();
    members.push_back({client, update->id(), listens(client)});
  }
  if (over_) return false;
  const auto config = run::warmup_of(rules_, members.size(), chunks);
  if (!config) {
    close(config.error().message);
    return false;
  }
  auto tracker = swarm::RoundWarmup::begin(*config, std::move(members), seeds);
  if (!tracker) {
    close(tracker.error().message);
    return false;
  }
  tracker_.emplace(std::move(*tracker));
  warming_since_ = now;
  return true;
}

std::vector<const protocol::Manifest*> ServerlessWarmup::updates(const ServerlessRound& round) const {
  std::set<protocol::ObjectId> exchanged;
  if (tracker_)
    for (const auto& member : tracker_->members()) exchanged.insert(member.update);
  auto updates = round.updates();
  std::erase_if(updates, [&](const auto* update) { return !exchanged.contains(update->id()); });
  return updates;
}

swarm::RoundWarmup::Orders ServerlessWarmup::go_on(Time now, const swarm::RoundWarmup::Look& look,
                                                   RunId run) {
  if (!tracker_ || over_) return {};
  if (now - began_ >= end_within(deadline_))
    tracker_->give_up("three quarters of the round's deadline have passed");
  auto orders = tracker_->go_on(now, look, run, task_);
  over_ = tracker_->over();
  failure_ = tracker_->failure();
  return orders;
}

void ServerlessWarmup::close(const std::string& why) {
  if (over_) return;
  over_ = true;
  failure_ = why;
}

protocol::WarmupOver ServerlessWarmup::message(RunId run) const {
  return {.run = run,
          .round = task_.round,
          .track = task_.track,
          .seed = tracker_ ? tracker_->overlay_seed() : 0,
          .failure = failure_.substr(0, protocol::kMaxText)};
}

Event ServerlessWarmup::report(Time now) const {
  Event event{failure_.empty() ? Severity::kInfo : Severity::kWarning, "round.warmup_ended", {}};
  event.with("round", std::int64_t{task_.round.value()});
  if (tracker_) {
    const auto& figures = tracker_->figures();
    event.with("members", static_cast<std::int64_t>(tracker_->members().size()))
        .with("slots", std::int64_t{figures.slots})
        .with("seconds", to_seconds(now - warming_since_))
        .with("transfers", static_cast<std::int64_t>(figures.transfers))
        .with("owner_transfers", static_cast<std::int64_t>(figures.owner_transfers))
        .with("blended", static_cast<std::int64_t>(figures.blended))
        .with("sprayed", static_cast<std::int64_t>(figures.sprayed))
        .with("not_sprayed", static_cast<std::int64_t>(figures.not_sprayed))
        .with("excluded", static_cast<std::int64_t>(figures.left_out));
  }
  if (!failure_.empty()) event.with("failed_open", failure_);
  return event;
}

}  // namespace fedge::server
