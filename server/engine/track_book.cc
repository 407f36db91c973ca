#include "server/engine/track_book.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "core/check.h"

namespace fedge::server {
namespace {

using aggregation::Disagreement;
using aggregation::Exclusion;

struct ByContent {
  bool operator()(const Disagreement* a, const Disagreement* b) const {
    const auto key = [](const Disagreement& d) {
      return std::tie(d.kind, d.clients, d.against, d.from_round, d.until_round, d.deep, d.withheld);
    };
    return key(*a) < key(*b);
  }
};

std::shared_ptr<const TrackDescription> describe(const aggregation::Policy& policy,
                                                 const aggregation::Resolution& resolution,
                                                 std::size_t track) {
  auto description = std::make_shared<TrackDescription>();
  for (const ClientId client : resolution.pattern(track)) description->exclude.push_back(policy.name(client));
  const auto owners = resolution.owners(track);
  for (const ClientId client : owners.first(std::min(owners.size(), TrackDescription::kListed)))
    description->owners.push_back(policy.name(client));
  description->owner_count = owners.size();
  description->members = resolution.member_count(track);
  return description;
}

}  // namespace

TrackBook::TrackBook(aggregation::Policy policy, std::function<Deciders()> make, const Options& options)
    : policy_(std::move(policy)),
      as_given_(policy_.disagreements),
      make_(std::move(make)),
      options_(options),
      ledger_(policy_.clients) {
  tracks_.push_back(new_track(TrackId(), {}));
  ledger_.start(TrackId());
}

Track TrackBook::new_track(TrackId id, std::vector<ClientId> pattern) const {
  Track track{.id = id,
              .deciders = make_(),
              .traits = {},
              .pattern = std::move(pattern),
              .last_rounds = {},
              .returned = {},
              .left = {},
              .description = nullptr};
  track.traits = track.deciders.sampler->traits();
  return track;
}

void TrackBook::adopt(aggregation::Policy policy) {
  std::map<const Disagreement*, const Disagreement*, ByContent> known;
  for (std::size_t i = 0; i < as_given_.size(); ++i) known[&as_given_[i]] = &policy_.disagreements[i];
  std::vector<Disagreement> given = policy.disagreements;
  for (Disagreement& disagreement : policy.disagreements) {
    const auto before = known.find(&disagreement);
    if (before != known.end())
      disagreement = *before->second;
    else if (!disagreement.deep)
      disagreement.from_round = std::max(disagreement.from_round, next(round_));
  }
  policy_ = std::move(policy);
  as_given_ = std::move(given);
}

aggregation::Exclusions TrackBook::exclusions(RoundNumber round) const {
  aggregation::Exclusions exclusions = aggregation::exclusions_in(policy_, round);
  if (policy_.strict)
    for (Exclusion& exclusion : exclusions.edges) exclusion.since = RoundNumber(1);
  return exclusions;
}

std::vector<ClientId> TrackBook::remembered(std::span<const Exclusion> withdrawn) const {
  std::vector<ClientId> clients;
  for (const Exclusion& exclusion : withdrawn)
    if (std::any_of(tracks_.begin(), tracks_.end(), [&](const Track& track) {
          return ledger_.last(track.id, exclusion.client) > RoundNumber(0);
        }))
      clients.push_back(exclusion.client);
  return clients;
}

std::optional<std::size_t> TrackBook::find(std::span<const ClientId> pattern) const {
  const auto place = std::ranges::lower_bound(
      tracks_, pattern,
      [](std::span<const ClientId> a, std::span<const ClientId> b) {
        return std::ranges::lexicographical_compare(a, b);
      },
      [](const Track& track) { return std::span<const ClientId>(track.pattern); });
  if (place == tracks_.end() || !std::ranges::equal(place->pattern, pattern)) return std::nullopt;
  return static_cast<std::size_t>(place - tracks_.begin());
}

bool TrackBook::permits(TrackId model, std::span<const Exclusion> demand) const {
  return std::all_of(demand.begin(), demand.end(), [&](const Exclusion& exclusion) {
    return ledger_.permits(model, exclusion.client, exclusion.since);
  });
}

std::vector<Exclusion> TrackBook::demand_of(const aggregation::Resolution& resolution,
                                            std::size_t track) const {
  std::vector<Exclusion> demand;
  const auto pattern = resolution.pattern(track);
  for (const ClientId client : pattern) demand.push_back({client, RoundNumber(UINT32_MAX)});
  // A client that withdraws all its contributions is excluded from the past of every track.
  for (const Exclusion& withdrawn : exclusions_.withdrawn) {
    if (withdrawn.since != RoundNumber(1)) continue;
    const auto place = std::ranges::lower_bound(pattern, withdrawn.client);
    if (place != pattern.end() && *place == withdrawn.client)
      demand[static_cast<std::size_t>(place - pattern.begin())].since = withdrawn.since;
    else
      demand.push_back(withdrawn);
  }
  std::ranges::sort(demand, {}, &Exclusion::client);
  for (const ClientId owner : resolution.owners(track)) {
    auto wanted = demand.begin();
    for (const Exclusion& exclusion : exclusions_.of(owner)) {
      while (wanted != demand.end() && wanted->client < exclusion.client) ++wanted;
      if (wanted == demand.end()) break;
      if (wanted->client == exclusion.client) wanted->since = std::min(wanted->since, exclusion.since);
    }
  }
  return demand;
}

std::vector<std::size_t> TrackBook::sources() const {
  std::vector<Exclusion> gone;
  for (const Exclusion& withdrawn : exclusions_.withdrawn)
    if (withdrawn.since == RoundNumber(1)) gone.push_back(withdrawn);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < tracks_.size(); ++i)
    if (permits(tracks_[i].id, gone)) places.push_back(i);
  std::ranges::sort(places, [&](std::size_t a, std::size_t b) {
    if (tracks_[a].age != tracks_[b].age) return tracks_[a].age > tracks_[b].age;
    return tracks_[a].id < tracks_[b].id;
  });
  return places;
}

std::optional<std::size_t> TrackBook::choose_source(std::span<const ClientId> owners,
                                                    std::span<const Exclusion> demand,
                                                    std::span<const std::size_t> sources) const {
  const auto permitted = [&](std::size_t place) { return permits(tracks_[place].id, demand); };
  if (!owners.empty()) {
    const auto former =
        resolution_ ? resolution_->primary(owners.front()) : std::optional<std::size_t>(std::size_t{0});
    if (former && permitted(*former)) return former;
  }
  const auto best = std::ranges::find_if(sources, permitted);
  return best == sources.end() ? std::nullopt : std::optional(*best);
}

TrackBook::Changes TrackBook::begin_round(RoundNumber round) {
  FEDGE_CHECK(round > round_, "rounds ascend");
  if (round_ > RoundNumber(0))
    for (Track& track : tracks_) ++track.age;
  round_ = round;
  withheld_.clear();
  for (const Disagreement& disagreement : policy_.disagreements)
    if (disagreement.kind == aggregation::DisagreementKind::kPartialData && disagreement.is_active(round))
      for (const ClientId client : disagreement.clients)
        withheld_[client] = std::max(withheld_[client], disagreement.withheld);
  const bool one_for_all = tracks_.size() == 1 && tracks_.front().id == TrackId() && !resolution_;
  if (policy_.disagreements.empty() && one_for_all) return {};

  const bool was_strict = std::exchange(strict_, policy_.strict);
  exclusions_ = exclusions(round);
  const std::vector<ClientId> kept = remembered(exclusions_.withdrawn);
  aggregation::ResolveOptions how{
      .strict = strict_, .keep_orphan_global = policy_.keep_orphan_global, .remembered = kept};
  auto resolution = aggregation::resolve(exclusions_, how);
  if (resolution.tracks() == 0) {  // all clients have withdrawn: keep their model
    how.keep_orphan_global = true;
    resolution = aggregation::resolve(exclusions_, how);
  }
  Changes changes;
  std::vector<Track> tracks;
  std::vector<std::optional<std::size_t>> former;   // index of each track in the round before
  std::optional<std::vector<std::size_t>> sources;  // computed when first needed
  for (std::size_t i = 0; i < resolution.tracks(); ++i) {
    const std::vector<Exclusion> demand = demand_of(resolution, i);
    const auto pattern = resolution.pattern(i);
    const auto known = find(pattern);
    if (known && permits(tracks_[*known].id, demand)) {
      former.push_back(known);
      tracks.push_back({});  // moved from tracks_ below, which is still read
      continue;
    }
    const TrackId id = pattern.empty() && !known ? TrackId() : TrackId(++counted_);
    if (!sources) sources = this->sources();
    const auto source = choose_source(resolution.owners(i), demand, *sources);
    changes.started.push_back(
        {id, source ? std::optional(tracks_[*source].id) : std::nullopt, describe(policy_, resolution, i)});
    former.push_back(std::nullopt);
    tracks.push_back(new_track(id, {pattern.begin(), pattern.end()}));
    if (source) tracks.back().age = tracks_[*source].age;
  }
  for (const Start& start : changes.started)
    start.source ? ledger_.start(start.track, *start.source) : ledger_.start(start.track);
  std::vector<bool> lives(tracks_.size(), false);
  for (const auto& place : former)
    if (place) lives[*place] = true;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    if (lives[i]) continue;
    changes.retired.push_back(tracks_[i].id);
    ledger_.retire(tracks_[i].id);
  }
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    if (former[i]) {
      tracks[i] = std::move(tracks_[*former[i]]);
      tracks[i].left = leavers(resolution, i, *former[i]);
      note_returns(tracks[i], resolution, i, *former[i]);
    }
    tracks[i].description = describe(policy_, resolution, i);
  }
  changes.joined = !changes.started.empty() || strict_ || was_strict || !resolution_ ||
                   !std::ranges::equal(resolution_->withdrawn(), resolution.withdrawn());
  tracks_ = std::move(tracks);
  resolution_ = std::move(resolution);
  return changes;
}

std::size_t TrackBook::tracks_within(std::uint32_t rounds) const {
  TrackBook ahead(policy_, make_, options_);
  std::set<RoundNumber> changes;
  for (const Disagreement& disagreement : policy_.disagreements) {
    changes.insert(disagreement.from_round);
    if (disagreement.until_round) changes.insert(next(*disagreement.until_round));
  }
  for (const RoundNumber round : changes)
    if (round.value() <= rounds) ahead.begin_round(round);
  return std::size_t{ahead.counted_} + 1;
}

// Records clients that are new to a continuing track, or whose primary track it has become.
void TrackBook::note_returns(Track& track, const aggregation::Resolution& resolution, std::size_t now,
                             std::size_t before) const {
  std::erase_if(track.returned, [&](const auto& entry) {
    return round_.value() - entry.second.value() >= options_.lifting_rounds;
  });
  if (options_.lifting_rounds == 0 || !resolution_) return;
  for (const ClientId client : resolution.members(now)) {
    const bool joins = !resolution_->is_member(before, client);
    const bool comes_home = resolution.primary(client) == now && resolution_->primary(client) != before;
    if (joins || comes_home) track.returned[client] = round_;
  }
}

std::vector<ClientId> TrackBook::leavers(const aggregation::Resolution& resolution, std::size_t now,
                                         std::size_t before) const {
  std::vector<ClientId> left;
  const auto consider = [&](ClientId client) {
    const bool was = !resolution_ || resolution_->is_member(before, client);
    if (was && !resolution.is_member(now, client)) left.push_back(client);
  };
  // Unless strict, a track with an unchanged pattern loses only clients that withdraw.
  if (strict_)
    for (std::uint32_t client = 0; client < resolution.clients(); ++client) consider(ClientId(client));
  else
    for (const ClientId client : resolution.withdrawn()) consider(client);
  return left;
}

std::set<ClientId> TrackBook::withdrawn_in(RoundNumber round) const {
  std::set<ClientId> withdrawn;
  for (const Disagreement& disagreement : policy_.disagreements)
    if (disagreement.kind == aggregation::DisagreementKind::kFull && disagreement.is_active(round))
      withdrawn.insert(disagreement.clients.begin(), disagreement.clients.end());
  return withdrawn;
}

bool TrackBook::is_clean(std::size_t turn, ClientId client) const {
  return !resolution_ || permits(tracks_[turn].id, exclusions_.of(client));
}

bool TrackBook::may_receive(std::size_t turn, ClientId client) const {
  if (!resolution_) return true;
  if (!is_member(turn, client)) return false;
  const bool background = resolution_->primary(client) != turn;
  return (background && !strict_) || is_clean(turn, client);
}

double TrackBook::data_share(ClientId client) const {
  const auto withheld = withheld_.find(client);
  return withheld == withheld_.end() ? 1.0 : 1.0 - withheld->second;
}

SampleCount TrackBook::weight(std::size_t turn, ClientId client, SampleCount samples) const {
  const auto& returned = tracks_[turn].returned;
  const auto found = returned.find(client);
  if (found == returned.end()) return samples;
  const std::uint64_t part = round_.value() - found->second.value() + 1;
  const std::uint64_t whole = options_.lifting_rounds;
  if (part >= whole) return samples;
  return SampleCount(std::max<std::uint64_t>(samples.value() * part / whole, 1));
}

void TrackBook::contributed(std::size_t turn, ClientId client) {
  ledger_.contribute(tracks_[turn].id, client, round_);
}

}  // namespace fedge::server
