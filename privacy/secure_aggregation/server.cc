#include "privacy/secure_aggregation/server.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/check.h"
#include "protocol/limits.h"

namespace fedge::privacy {

SecureServer::SecureServer(Terms terms, std::vector<Member> members, Time now)
    : terms_(std::move(terms)), context_(context_of(terms_.session, terms_.model, terms_.terms)) {
  for (Member& member : members) {
    const ClientId client = member.client;
    parties_.emplace(client, Party{.member = std::move(member)});
  }
  FEDGE_CHECK(!parties_.empty(), "a session of somebody");
  wait_from(now);
}

SecureServer::Party* SecureServer::find(ClientId client) {
  const auto found = parties_.find(client);
  return found == parties_.end() || found->second.excluded ? nullptr : &found->second;
}

void SecureServer::exclude(Party& party, std::string reason, std::vector<Effect>& effects) {
  if (std::exchange(party.excluded, true)) return;
  effects.push_back(Excluded{party.member.client, std::move(reason)});
}

void SecureServer::fail(Error error, std::vector<Effect>& effects) {
  stage_ = Stage::kOver;
  deadline_.reset();
  effects.push_back(Failed{std::move(error)});
}

template <class Asked, class Done>
bool SecureServer::all(const Asked& asked, const Done& done) const {
  return std::ranges::all_of(parties_, [&](const auto& entry) {
    const Party& party = entry.second;
    return party.excluded || !asked(party) || !party.here || done(party);
  });
}

SecureServer::Progress SecureServer::progress() const {
  constexpr std::array<const char*, 6> kNames = {"keys",     "shares",    "updates",
                                                 "consents", "unmasking", "over"};
  Progress progress{kNames.at(static_cast<std::size_t>(stage_)), {}};
  for (const auto& [client, party] : parties_) {
    if (party.excluded || !party.here) continue;
    const bool awaited = (stage_ == Stage::kAdvertising && !party.keys) ||
                         (stage_ == Stage::kSharing && party.keys && !party.shares) ||
                         (stage_ == Stage::kConsenting && party.survives && !party.consent) ||
                         (stage_ == Stage::kUnmasking && party.consent && !party.unmask);
    if (awaited) progress.awaited.push_back(client);
  }
  return progress;
}

void SecureServer::go_on(Time now, bool late, std::vector<Effect>& effects) {
  const auto everybody = [](const Party&) { return true; };
  const auto with_keys = [](const Party& party) { return party.keys.has_value(); };
  const auto surviving = [](const Party& party) { return party.survives; };
  const auto consented = [](const Party& party) { return party.consent.has_value(); };
  if (stage_ == Stage::kAdvertising && (late || all(everybody, with_keys)))
    return end_advertising(now, effects);
  if (stage_ == Stage::kSharing &&
      (late || all(with_keys, [](const Party& party) { return party.shares.has_value(); })))
    return end_sharing(effects);
  if (stage_ == Stage::kConsenting && (late || all(surviving, consented)))
    return end_consenting(now, effects);
  if (stage_ == Stage::kUnmasking &&
      (late || all(consented, [](const Party& party) { return party.unmask.has_value(); })))
    end_unmasking(effects);
}

void SecureServer::expired(Time now, std::vector<Effect>& effects) {
  if (deadline_ && now >= *deadline_) go_on(now, true, effects);
}

void SecureServer::left(ClientId client, Time now, std::vector<Effect>& effects) {
  Party* party = find(client);
  if (party == nullptr) return;
  party->here = false;
  go_on(now, false, effects);
}

void SecureServer::returned(ClientId client, std::vector<Effect>& effects) {
  Party* party = find(client);
  if (party == nullptr) return;
  party->here = true;
  if (stage_ == Stage::kSharing && party->keys) effects.push_back(Send{client, roster_for(*party)});
  if (stage_ == Stage::kSumming && takes_part(*party)) effects.push_back(Send{client, shares_for(*party)});
  if (stage_ == Stage::kConsenting && party->survives) effects.push_back(Send{client, survivors()});
  if (stage_ == Stage::kUnmasking && party->consent) effects.push_back(Send{client, consents_for(*party)});
}

void SecureServer::receive(ClientId client, const protocol::SecureKeys& keys, Time now,
                           std::vector<Effect>& effects) {
  Party* party = find(client);
  if (party == nullptr || !mine(keys.session) || party->keys == keys.keys) return;
  if (stage_ == Stage::kAdvertising) {
    if (verify_keys(party->member.identity, context_, client, keys.keys))
      party->keys = keys.keys;
    else
      exclude(*party, "the signature of its keys is invalid", effects);
    return go_on(now, false, effects);
  }
  // A client that sends other keys has restarted: its new process does not have the old secrets.
  const char* lost = "it restarted and lost its secrets";
  if (stage_ == Stage::kSharing) {
    exclude(*party, lost, effects);
    return go_on(now, false, effects);
  }
  // The others already mask with its old keys: it counts as a dropout, unless its update has arrived.
  if (stage_ == Stage::kSumming) effects.push_back(Excluded{client, lost});
}

void SecureServer::end_advertising(Time now, std::vector<Effect>& effects) {
  for (auto& [client, party] : parties_)
    if (!party.keys) exclude(party, "it did not send its keys in time", effects);
  if (!draw_roster(effects)) return;
  stage_ = Stage::kSharing;
  wait_from(now);
  for (const Party* party : by_number_) effects.push_back(Send{party->member.client, roster_for(*party)});
}

bool SecureServer::draw_roster(std::vector<Effect>& effects) {
  std::vector<Party*> ready;
  std::vector<Coverage> trained;
  for (auto& [client, party] : parties_) {
    if (party.excluded) continue;
    ready.push_back(&party);
    trained.push_back(party.member.trained);
  }
  const auto count = static_cast<std::uint32_t>(ready.size());
  const std::uint32_t least = terms_.rules.enough(count);
  const auto too_few = [&](std::uint32_t number) {
    fail({ErrorCode::kUnavailable, "the sum would contain the updates of " + std::to_string(number) +
                                       " clients; at least " + std::to_string(least) + " are needed"},
         effects);
    return false;
  };
  if (count < least) return too_few(count);
  const CoveragePlan plan = plan_coverages(trained, std::min(enough_trainers(terms_.rules, count), count));
  left_out_ = plan.left_out;
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (plan.coverage_of[i] == CoveragePlan::kNothing) {
      exclude(*ready[i], "too few other clients train the same part of the model", effects);
      continue;
    }
    ready[i]->number = static_cast<std::uint32_t>(by_number_.size());
    by_number_.push_back(ready[i]);
    roster_.coverage_of.push_back(plan.coverage_of[i]);
  }
  const auto members = static_cast<std::uint32_t>(by_number_.size());
  if (members < least) return too_few(members);
  if (const auto fits = check_fits(plan); !fits) {
    fail(fits.error(), effects);
    return false;
  }
  graph_ = choose_graph(terms_.rules, members);
  enough_ = terms_.rules.enough(members);
  roster_.session = terms_.session;
  roster_.members = members;
  roster_.degree = graph_.degree;
  roster_.threshold = graph_.threshold;
  roster_.complete = graph_.complete;
  roster_.cells = plan.cells;
  roster_.coverages = plan.coverages;
  if (plan.coverages.size() == 1) roster_.coverage_of.clear();
  const auto fast = [](const Party* party) { return party->keys->fast_aes; };
  roster_.cipher = std::ranges::all_of(by_number_, fast) ? StreamCipher::kAes256Ctr : StreamCipher::kChaCha20;
  Sha256 seed;
  for (const Party* party : by_number_) {
    const auto& keys = *party->keys;
    seed.add(std::as_bytes(std::span(party->member.identity.bytes)));
    seed.add(std::as_bytes(std::span(keys.channel.bytes)));
    seed.add(std::as_bytes(std::span(keys.mask.bytes)));
    seed.add(std::as_bytes(std::span(keys.commitment)));
  }
  roster_.seed = seed.finish();
  summed_ = Coverage::of(roster_.cells);
  told_ = digest_of(roster_, context_);
  mask_graph_ = graph_.complete ? MaskGraph::complete(members)
                                : MaskGraph::neighbours(members, graph_.degree, roster_.seed);
  return true;
}

protocol::SecureRoster SecureServer::roster_for(const Party& party) const {
  protocol::SecureRoster roster = roster_;
  roster.number = party.number;
  for (const std::uint32_t number : mask_graph_->neighbours(party.number)) {
    const Party& peer = *by_number_[number];
    roster.peers.push_back({number, peer.member.client, peer.member.identity, *peer.keys});
  }
  return roster;
}

std::optional<std::string> SecureServer::objection(const Party& party,
                                                   const protocol::SecureShares& shares) const {
  const bool complete = std::ranges::equal(shares.shares, mask_graph_->neighbours(party.number), {},
                                           &protocol::SecureShares::Sealed::to);
  if (!complete) return "it did not send a secret share for each neighbour";
  return std::nullopt;
}

void SecureServer::receive(ClientId client, const protocol::SecureShares& shares, Time now,
                           std::vector<Effect>& effects) {
  Party* party = find(client);
  if (party == nullptr || !mine(shares.session) || stage_ != Stage::kSharing || party->shares) return;
  if (const auto reason = objection(*party, shares))
    exclude(*party, *reason, effects);
  else
    party->shares = shares;
  go_on(now, false, effects);
}

// Excludes members with too few remaining neighbours, which would stop anyway, until none is left.
void SecureServer::exclude_lonely(std::vector<Effect>& effects) {
  for (bool again = true; again;) {
    again = false;
    for (Party* party : by_number_) {
      if (!takes_part(*party)) continue;
      const auto holders = mask_graph_->holders(party->number);
      const auto left = std::ranges::count_if(
          holders, [&](std::uint32_t number) { return takes_part(*by_number_[number]); });
      if (static_cast<std::uint32_t>(left) >= graph_.threshold) continue;
      exclude(*party, "too few of its neighbours take part", effects);
      again = true;
    }
  }
}

void SecureServer::end_sharing(std::vector<Effect>& effects) {
  for (Party* party : by_number_)
    if (!party->shares) exclude(*party, "it did not send its secret shares in time", effects);
  exclude_lonely(effects);
  const auto left = std::ranges::count_if(by_number_, [&](const Party* party) { return takes_part(*party); });
  if (static_cast<std::uint32_t>(left) < enough_)
    return fail({ErrorCode::kUnavailable,
                 "only " + std::to_string(left) + " of " + std::to_string(by_number_.size()) +
                     " clients have sent their secret shares; " + std::to_string(enough_) + " are needed"},
                effects);
  stage_ = Stage::kSumming;
  deadline_.reset();
  for (const Party* party : by_number_)
    if (takes_part(*party)) effects.push_back(Send{party->member.client, shares_for(*party)});
  effects.push_back(Agreed{});
}

protocol::SecurePeerShares SecureServer::shares_for(const Party& party) const {
  protocol::SecurePeerShares result{terms_.session, {}};
  for (const std::uint32_t number : mask_graph_->neighbours(party.number)) {
    const Party& peer = *by_number_[number];
    if (!takes_part(peer)) continue;
    const auto& sealed = peer.shares->shares;
    const auto mine = std::ranges::lower_bound(sealed, party.number, {}, &protocol::SecureShares::Sealed::to);
    result.shares.push_back({number, mine->box});
  }
  return result;
}

std::size_t SecureServer::members() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(by_number_, [&](const Party* party) { return takes_part(*party); }));
}

const Coverage* SecureServer::coverage_of(ClientId client) const {
  const auto found = parties_.find(client);
  if (found == parties_.end() || !takes_part(found->second)) return nullptr;
  if (!graph_.complete) return &summed_;
  if (roster_.coverages.size() == 1) return &roster_.coverages.front();
  return &roster_.coverages[roster_.coverage_of[found->second.number]];
}

void SecureServer::summed(std::span<const ClientId> survivors, Time now, std::vector<Effect>& effects) {
  FEDGE_CHECK(stage_ == Stage::kSumming || stage_ == Stage::kOver, "updates are summed once all have agreed");
  if (stage_ == Stage::kOver) return;
  for (const ClientId client : survivors) {
    Party* party = find(client);
    FEDGE_CHECK(party != nullptr && takes_part(*party), "only who has agreed can have masked an update");
    party->survives = true;
    survivors_.push_back(party->number);
  }
  std::ranges::sort(survivors_);
  const auto contributing = contributors(roster_.cells, roster_.coverages, roster_.coverage_of, survivors_);
  const std::uint32_t least = *std::ranges::min_element(contributing);
  if (least < enough_ || (graph_.complete && survivors_.size() < graph_.threshold))
    return fail({ErrorCode::kUnavailable,
                 "only " + std::to_string(survivors_.size()) + " masked updates arrived" +
                     (least < survivors_.size()
                          ? ", and only " + std::to_string(least) + " of them cover one part of the model"
                          : std::string())},
                effects);
  stage_ = Stage::kConsenting;
  wait_from(now);
  for (const std::uint32_t number : survivors_)
    effects.push_back(Send{by_number_[number]->member.client, this->survivors()});
  go_on(now, false, effects);
}

void SecureServer::receive(ClientId client, const protocol::SecureConsent& consent, Time now,
                           std::vector<Effect>& effects) {
  Party* party = find(client);
  if (party == nullptr || !mine(consent.session) || stage_ != Stage::kConsenting || !party->survives ||
      party->consent)
    return;
  // Ignores an invalid signature: its neighbours would stop if they received it.
  if (!verify_survivors(party->member.identity, told_, {party->number, survivors_, consent.signature}))
    return;
  party->consent = consent.signature;
  go_on(now, false, effects);
}

protocol::SecureConsents SecureServer::consents_for(const Party& party) const {
  protocol::SecureConsents result{terms_.session, {}};
  for (const std::uint32_t number : mask_graph_->neighbours(party.number)) {
    const Party& peer = *by_number_[number];
    if (peer.survives && peer.consent) result.consents.push_back({number, *peer.consent});
  }
  return result;
}

void SecureServer::end_consenting(Time now, std::vector<Effect>& effects) {
  const auto consents =
      std::ranges::count_if(survivors_, [&](std::uint32_t number) { return at(number).consent.has_value(); });
  if (static_cast<std::uint32_t>(consents) < graph_.threshold)
    return fail({ErrorCode::kUnavailable, "only " + std::to_string(consents) +
                                              " clients have signed the list of survivors; " +
                                              std::to_string(graph_.threshold) + " are needed"},
                effects);
  stage_ = Stage::kUnmasking;
  wait_from(now);
  for (const std::uint32_t number : survivors_) {
    const Party& party = at(number);
    if (party.consent) effects.push_back(Send{party.member.client, consents_for(party)});
  }
  go_on(now, false, effects);
}

std::optional<std::string> SecureServer::objection(const Party& party,
                                                   const protocol::SecureUnmask& unmask) const {
  const auto holders = mask_graph_->holders(party.number);
  const auto sound = [&](const auto& entries, bool survive) {
    std::optional<std::uint32_t> last;
    for (const auto& entry : entries) {
      if (last && entry.number <= *last) return false;
      last = entry.number;
      if (!std::ranges::binary_search(holders, entry.number)) return false;
      if (by_number_[entry.number]->survives != survive) return false;
    }
    return true;
  };
  if (!sound(unmask.survivors, true) || !sound(unmask.dropped, false))
    return "it revealed secret shares that were not requested";
  return std::nullopt;
}

void SecureServer::receive(ClientId client, const protocol::SecureUnmask& unmask, Time now,
                           std::vector<Effect>& effects) {
  Party* party = find(client);
  if (party == nullptr || !mine(unmask.session) || stage_ != Stage::kUnmasking || !party->consent ||
      party->unmask)
    return;
  // Ignores an invalid answer: the update stays in the sum, and the shares of the other members must suffice.
  if (objection(*party, unmask)) return;
  party->unmask = unmask;
  go_on(now, false, effects);
}

void SecureServer::end_unmasking(std::vector<Effect>& effects) {
  stage_ = Stage::kOver;
  deadline_.reset();
  effects.push_back(Unmaskable{});
}

Unmasking SecureServer::take_unmasking() {
  std::vector<Unmasking::Party> parties;
  for (Party* party : by_number_) {
    if (!takes_part(*party)) continue;
    parties.push_back({.number = party->number,
                       .client = party->member.client,
                       .identity = party->member.identity,
                       .keys = *party->keys,
                       .shares = std::move(*party->shares),
                       .survives = party->survives,
                       .unmask = std::move(party->unmask)});
  }
  return {roster_, context_, std::move(parties)};
}

}  // namespace fedge::privacy
