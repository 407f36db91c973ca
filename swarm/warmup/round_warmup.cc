#include "swarm/warmup/round_warmup.h"

#include <algorithm>
#include <numeric>

#include "protocol/limits.h"
#include "swarm/warmup/audit.h"
#include "swarm/warmup/obfuscation.h"

namespace fedge::swarm {
namespace {

// Limits of the chunks that a client sends (kSending) or gets (kGetting) at a time. A client's window starts
// at kFirst. A chunk that arrives within a slot widens it by one, a later chunk narrows it by one. Sprayed
// chunks are queued whole on their links: at most kSending of them go to a client at a time.
constexpr std::uint32_t kFirst = 2;
constexpr std::uint32_t kSending = 8;
constexpr std::uint32_t kGetting = 16;
static_assert(kGetting <= protocol::kMaxWarmupOrders && kSending <= protocol::kMaxWarmupOrders);
// Maximum length of a slot. Chunks that have not arrived by then may arrive later.
constexpr Duration kSlot = seconds(1);
// Timeout of an ordered chunk, of the opening, and of a warm-up in which nothing is transferred.
constexpr Duration kPatience = seconds(5);
// Spraying ends if nothing has arrived for this long: enough for one retry after a silent relay.
constexpr Duration kSprayPatience = 2 * kPatience;
constexpr std::size_t kTries = 3;  // of a sprayed chunk, each through another relay if possible

std::vector<std::pair<Pseudonym, Pseudonym>> edges_of(const Overlay& overlay,
                                                      const std::vector<RoundWarmup::Member>& members) {
  std::vector<std::pair<Pseudonym, Pseudonym>> edges;
  for (Pseudonym a = 0; a < overlay.size(); ++a)
    for (const Pseudonym b : overlay.neighbours(a))
      if (a < b && (members[a].listens || members[b].listens)) edges.emplace_back(a, b);
  return edges;
}

std::vector<RoundWarmup::Member> shuffled(std::vector<RoundWarmup::Member> members, Rng rng) {
  rng.shuffle(std::span(members));
  return members;
}

void adapt(std::uint32_t& window, bool quick, std::uint32_t most) {
  window = quick ? std::min(window + 1, most) : std::max(window - 1, 1U);
}

}  // namespace

Result<RoundWarmup> RoundWarmup::begin(const WarmupConfig& config, std::vector<Member> members, Seeds seeds) {
  RoundWarmup warmup(config, shuffled(std::move(members), Rng(seeds.secret).fork("numbers")), seeds);
  FEDGE_TRY(transfers, swarm::spray(warmup.drawn_, warmup.universe(), sprayed_chunks(config),
                                    SprayTo{.neighbours = true, .relayed = true}, warmup.rng_.fork("spray")));
  // Shuffled, because each owner has only a limited number of sprays in flight.
  warmup.rng_.fork("turns").shuffle(std::span(transfers));
  for (const Transfer& transfer : transfers) warmup.to_spray_.push_back({transfer, 0});
  for (Pseudonym client = 0; client < warmup.members_.size(); ++client)
    if (warmup.overlay_.neighbours(client).empty()) warmup.leave_out(client);
  return warmup;
}

RoundWarmup::RoundWarmup(const WarmupConfig& config, std::vector<Member> members, Seeds seeds)
    : config_(config),
      members_(std::move(members)),
      seeds_(seeds),
      rng_(seeds.secret),
      swarm_(sha256("fedge warm-up " + std::to_string(seeds.secret))),
      drawn_(Overlay::random(config.nodes, config.degree, overlay_rng(seeds.overlay))),
      state_(config, Universe(config.nodes, config.chunks, rng_.fork("universe"))),
      places_(config.universe()),
      overlay_(0, {}),
      edges_(edges_of(drawn_, members_)),
      offered_(config.nodes, ChunkSet(config.universe())),
      rate_(config.nodes),
      most_sent_(config.nodes, kFirst),
      most_got_(config.nodes, kFirst),
      relaying_(config.nodes, true),
      sending_(config.nodes),
      getting_(config.nodes),
      sent_at_(config.nodes),
      got_at_(config.nodes) {
  overlay_ = Overlay(config.nodes, edges_);
  for (const std::size_t lag : draw_lags(config.nodes, config.lag, rng_.fork("lags")))
    lags_.push_back(static_cast<std::uint32_t>(lag));
  longest_lag_ = *std::ranges::max_element(lags_);
  for (Pseudonym owner = 0; owner < members_.size(); ++owner) {
    numbers_.emplace(members_[owner].client, owner);
    const std::vector<Chunk>& own = universe().chunks_of(owner);
    for (std::uint32_t place = 0; place < own.size(); ++place) places_[own[place]] = place;
  }
}

std::vector<ClientId> RoundWarmup::neighbours(ClientId client) const {
  std::vector<ClientId> neighbours;
  for (const Pseudonym other : drawn_.neighbours(numbers_.at(client)))
    neighbours.push_back(members_[other].client);
  return neighbours;
}

protocol::WarmupPlan RoundWarmup::plan(ClientId client, RunId run, TaskId task) const {
  const Pseudonym number = numbers_.at(client);
  protocol::WarmupPlan plan{.run = run,
                            .round = task.round,
                            .track = task.track,
                            .swarm = swarm_,
                            .commitment = commit_to_seed(seeds_.overlay),
                            .members = static_cast<std::uint32_t>(config_.nodes),
                            .number = number,
                            .degree = static_cast<std::uint32_t>(config_.degree),
                            .chunks = static_cast<std::uint32_t>(config_.chunks),
                            .cover = static_cast<std::uint32_t>(gate_size(config_)),
                            .kappa = static_cast<std::uint32_t>(config_.kappa),
                            .lag = lags_[number],
                            .spray = static_cast<std::uint32_t>(sprayed_chunks(config_)),
                            .neighbours = {}};
  for (const Pseudonym other : drawn_.neighbours(number))
    plan.neighbours.push_back({other, members_[other].client});
  return plan;
}

void RoundWarmup::leave(ClientId client) {
  const auto number = numbers_.find(client);
  if (number != numbers_.end()) leave_out(number->second);
}

void RoundWarmup::leave_out(Pseudonym client) {
  if (!state_.active(client)) return;
  state_.leave(client);
  ++figures_.left_out;
  for (auto entry = orders_.begin(); entry != orders_.end();) {
    const auto& [to, chunk] = entry->first;
    const Order& order = entry->second;
    if (order.over == client) to_spray_.push_back({{order.from, to, chunk}, *order.spray});
    entry = to == client || order.from == client || order.over == client ? withdraw(entry) : std::next(entry);
  }
  std::erase_if(to_spray_, [&](const Spray& spray) {
    const bool in_vain = spray.transfer.from == client || spray.transfer.to == client;
    if (in_vain) ++figures_.not_sprayed;
    return in_vain;
  });
}

void RoundWarmup::break_edge(Pseudonym a, Pseudonym b) {
  if (std::erase(edges_, std::pair<Pseudonym, Pseudonym>(std::minmax(a, b))) == 0) return;
  overlay_ = Overlay(config_.nodes, edges_);
  for (const Pseudonym end : {a, b})
    if (overlay_.neighbours(end).empty()) leave_out(end);
}

void RoundWarmup::give_up(const std::string& why) {
  if (over_) return;
  over_ = true;
  failure_ = why;
}

RoundWarmup::Orders RoundWarmup::go_on(Time now, const Look& look, RunId run, TaskId task) {
  if (over_) return {};
  if (!began_) began_ = moved_ = now;
  std::vector<protocol::WarmupSlot> slots(members_.size());
  if (stage_ == Stage::kOpening) {
    if (!opened(now, look)) return {};
    begin_with_what_is_there(look);
    stage_ = Stage::kSpraying;
    moved_ = now;
  }
  collect(now, look);
  expire(now);
  if (stage_ == Stage::kSpraying) {
    spray(now, slots);
    if (now - moved_ >= kSprayPatience) end_spraying();
    if (to_spray_.empty() && orders_.empty()) stage_ = Stage::kSlots;
    busy_ = now;
  }
  if (stage_ == Stage::kSlots && !over_) schedule(now, look, slots);
  Orders orders;
  for (Pseudonym client = 0; client < slots.size(); ++client) {
    protocol::WarmupSlot& slot = slots[client];
    // Every client must learn when its lag has passed.
    const bool news = stage_ == Stage::kSlots && slot_began_ == now && slot_ < config_.lag;
    if (!state_.active(client) || (slot.asks.empty() && slot.sprays.empty() && !news)) continue;
    slot.run = run;
    slot.round = task.round;
    slot.track = task.track;
    slot.slot = slot_;
    orders.emplace_back(members_[client].client, std::move(slot));
  }
  return orders;
}

// Whether every client has opened every update. Clients that are late are left out.
bool RoundWarmup::opened(Time now, const Look& look) {
  auto& [client, owner] = opening_;
  const bool late = now - *began_ >= kPatience;
  for (; client < members_.size(); ++client, owner = 0)
    for (; owner < members_.size(); ++owner) {
      if (!state_.active(client)) break;
      if (!state_.active(owner) || look(members_[client].client, members_[owner].update) != nullptr) continue;
      if (!late) return false;
      leave_out(client);
    }
  return true;
}

// Records chunks that were exchanged before, by a round that was started twice.
void RoundWarmup::begin_with_what_is_there(const Look& look) {
  for (Pseudonym client = 0; client < members_.size(); ++client) {
    if (!state_.active(client)) continue;
    for (Pseudonym owner = 0; owner < members_.size(); ++owner) {
      const ChunkSet* has = look(members_[client].client, members_[owner].update);
      if (has == nullptr || owner == client || has->size() != config_.chunks) continue;
      has->for_each([&](std::size_t place) { take(client, universe().chunks_of(owner)[place]); });
    }
  }
}

void RoundWarmup::take(Pseudonym client, Chunk chunk) {
  if (state_.take(client, chunk)) offered_[client].add(chunk);
}

void RoundWarmup::order(const Transfer& transfer, const Order& order) {
  orders_.insert_or_assign({transfer.to, transfer.chunk}, order);
  ++sending_[transfer.from];
  if (order.over) ++sending_[*order.over];
  ++getting_[transfer.to];
}

RoundWarmup::Ordered::iterator RoundWarmup::withdraw(Ordered::iterator order) {
  --sending_[order->second.from];
  if (order->second.over) --sending_[*order->second.over];
  --getting_[order->first.first];
  return orders_.erase(order);
}

void RoundWarmup::collect(Time now, const Look& look) {
  for (auto entry = orders_.begin(); entry != orders_.end();) {
    const auto& [to, chunk] = entry->first;
    const ChunkSet* has = look(members_[to].client, update_of(chunk));
    if (has == nullptr || !has->has(places_[chunk])) {
      ++entry;
      continue;
    }
    take(to, chunk);
    const Order& order = entry->second;
    const bool quick = now - order.since <= kSlot;
    adapt(most_sent_[order.from], quick, kSending);
    adapt(most_got_[to], quick, kGetting);
    if (order.over) adapt(most_sent_[*order.over], quick, kSending);
    sent_at_[order.from] = got_at_[to] = sent_at_[order.over.value_or(order.from)] = moved_ = now;
    if (order.spray) {
      ++figures_.sprayed;
    } else {
      ++figures_.transfers;
      if (universe().owner(chunk) == order.from) ++figures_.owner_transfers;
      ++rate_[order.from];
    }
    entry = withdraw(entry);
  }
}

std::uint32_t RoundWarmup::room_to_send(Pseudonym client) const {
  return most_sent_[client] - std::min(most_sent_[client], sending_[client]);
}

std::uint32_t RoundWarmup::room_to_get(Pseudonym client) const {
  return most_got_[client] - std::min(most_got_[client], getting_[client]);
}

void RoundWarmup::expire(Time now) {
  std::vector<std::pair<Pseudonym, Pseudonym>> dead;
  for (auto entry = orders_.begin(); entry != orders_.end();) {
    const Order order = entry->second;
    const auto [to, chunk] = entry->first;
    if (now - order.since < kPatience) {
      ++entry;
      continue;
    }
    entry = withdraw(entry);
    // Sender and receiver have transferred other chunks since then: only the relay can be at fault.
    if (order.over && std::min(sent_at_[order.from], got_at_[to]) >= order.since &&
        sent_at_[*order.over] < order.since)
      relaying_[*order.over] = false;
    if (!order.spray)
      dead.emplace_back(order.from, to);
    else if (*order.spray + 1 < kTries)
      to_spray_.push_back({{order.from, to, chunk}, *order.spray + 1});
    else
      ++figures_.not_sprayed;
  }
  for (const auto& [from, to] : dead) break_edge(from, to);
}

void RoundWarmup::spray(Time now, std::vector<protocol::WarmupSlot>& slots) {
  std::erase_if(to_spray_, [&](const Spray& spray) {
    const auto& [from, to, chunk] = spray.transfer;
    if (room_to_send(from) == 0 || room_to_get(to) == 0 || getting_[to] >= kSending) return false;
    const Relays relays = this->relays(spray);
    if (!relays.any) {
      ++figures_.not_sprayed;
      return true;
    }
    if (!relays.next) return false;
    order(spray.transfer, {from, now, spray.tries, relays.next});
    slots[from].sprays.push_back({places_[chunk], members_[*relays.next].client, members_[to].client, {}});
    return true;
  });
}

void RoundWarmup::end_spraying() {
  figures_.not_sprayed += to_spray_.size() + orders_.size();
  to_spray_.clear();
  for (auto order = orders_.begin(); order != orders_.end();) order = withdraw(order);
}

// Uses another relay at each try, as far as there are others.
RoundWarmup::Relays RoundWarmup::relays(const Spray& spray) const {
  std::vector<Pseudonym> relays = common_neighbours(overlay_, spray.transfer.from, spray.transfer.to);
  std::erase_if(relays, [&](Pseudonym relay) { return !state_.active(relay) || !relaying_[relay]; });
  if (relays.empty()) return {};
  std::erase_if(relays, [&](Pseudonym relay) { return room_to_send(relay) == 0; });
  if (relays.empty()) return {.any = true, .next = {}};
  const std::size_t first = rng_.fork("relay", spray.transfer.chunk).below(relays.size());
  return {.any = true, .next = relays[(first + spray.tries) % relays.size()]};
}

void RoundWarmup::schedule(Time now, const Look& look, std::vector<protocol::WarmupSlot>& slots) {
  if (state_.size() < 2) return give_up("fewer than two clients are left");
  over_ = state_.covered();
  if (over_) return;
  if (!orders_.empty() && now - slot_began_ < kSlot) return;
  if (figures_.slots > 0) ++slot_;
  ++figures_.slots;
  slot_began_ = now;
  for (Pseudonym owner = 0; owner < members_.size(); ++owner) {
    const ChunkSet* own =
        state_.active(owner) ? look(members_[owner].client, members_[owner].update) : nullptr;
    if (own == nullptr) continue;
    own->for_each([&](std::size_t place) { offered_[owner].add(universe().chunks_of(owner)[place]); });
  }
  const auto transfers = next_transfers();
  if (!transfers.empty() || !orders_.empty() || slot_ <= longest_lag_) busy_ = now;
  if (now - busy_ >= kPatience)
    return give_up("no chunk was transferred for " + std::to_string(to_seconds(kPatience)).substr(0, 1) +
                   " s");
  for (const Transfer& transfer : transfers) {
    // An own chunk, ordered like others. Its arrival is neither reported nor waited for.
    if (universe().owner(transfer.chunk) == transfer.to) {
      state_.take(transfer.to, transfer.chunk);
      ++figures_.blended;
    } else {
      order(transfer, {transfer.from, now, std::nullopt, std::nullopt});
    }
    slots[transfer.to].asks.push_back(
        {update_of(transfer.chunk), places_[transfer.chunk], members_[transfer.from].client});
  }
}

// Ordered chunks count as held. A client's own chunks do not, until they were ordered: a client that never
// asks for chunks of an update would be recognised as its owner.
std::vector<Transfer> RoundWarmup::next_transfers() {
  std::map<Pseudonym, ChunkSet> expecting;
  for (const auto& [key, order] : orders_)
    expecting.try_emplace(key.first, state_.got(key.first)).first->second.add(key.second);
  std::vector<const ChunkSet*> held;
  std::vector<const ChunkSet*> offered;
  std::vector<std::uint32_t> up;
  std::vector<std::uint32_t> down;
  for (Pseudonym client = 0; client < members_.size(); ++client) {
    const auto more = expecting.find(client);
    held.push_back(more == expecting.end() ? &state_.got(client) : &more->second);
    offered.push_back(&offered_[client]);
    const bool sends = state_.active(client) && slot_ >= lags_[client];
    up.push_back(sends ? room_to_send(client) : 0);
    const std::size_t wanted = state_.lacks(client, getting_[client]);
    const std::size_t room = state_.active(client) ? room_to_get(client) : 0;
    down.push_back(static_cast<std::uint32_t>(std::min(room, wanted)));
  }
  const SlotState slot{overlay_, universe(), state_.rarity(), held, offered, up, down, rate_};
  const SchedulerOptions options{config_.non_owner_first, config_.parallel, config_.order};
  return scheduler_named(config_.scheduler)(slot, options, rng_.fork("slot", slot_));
}

}  // namespace fedge::swarm
