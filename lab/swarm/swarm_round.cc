#include "lab/swarm/swarm_round.h"

#include <algorithm>

#include "swarm/warmup/client_buffer.h"
#include "swarm/warmup/obfuscation.h"
#include "swarm/warmup/schedulers/max_flow.h"
#include "swarm/warmup/warmup_state.h"

namespace fedge::lab {
namespace {

using swarm::Pseudonym;
using swarm::Transfer;

// Consecutive slots without a transfer after which the tracker considers a warm-up stuck.
constexpr std::size_t kIdleSlots = 10;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  return (hash ^ word) * 0x100000001B3;  // FNV-1a, a word at a time
}

std::vector<std::uint32_t> draw_budgets(std::size_t nodes, Between between, Rng rng) {
  std::vector<std::uint32_t> budgets(nodes);
  for (std::uint32_t& budget : budgets)
    budget = between.least + static_cast<std::uint32_t>(rng.below(between.most - between.least + 1));
  return budgets;
}

class Round {
 public:
  explicit Round(const SwarmRoundOptions& options)
      : options_(options),
        config_(options.warmup),
        rng_(options.seed),
        draw_(config_, options.seed),
        state_(config_, draw_.universe),
        up_(config_.nodes),
        down_(config_.nodes),
        vanish_at_(config_.nodes) {
    result_.budgets = {draw_budgets(config_.nodes, options.up, rng_.fork("up")),
                       draw_budgets(config_.nodes, options.down, rng_.fork("down"))};
    result_.lags = swarm::draw_lags(config_.nodes, config_.lag, rng_.fork("lags"));
    result_.revealed.seed = options.seed;
    result_.log_hash = 0xCBF29CE484222325;
  }

  Result<SwarmRoundResult> run() {
    const Digest commitment = swarm::commit_to_seed(options_.seed);
    FEDGE_TRY_VOID(prepare());
    while (slot_ < config_.deadline) {
      vanish();
      if (observing_ && state_.covered()) end_observation();
      if (finished()) break;
      step();
      ++slot_;
      give_up_if_stuck();
    }
    if (observing_) {
      give_up("the deadline of the round passed before the warm-up ended");
      end_observation();
    }
    result_.round_slots = slot_;
    for (Pseudonym peer = 0; peer < config_.nodes; ++peer)
      if (state_.active(peer))
        result_.reconstructable.push_back(draw_.universe.reconstructable(buffers_[peer].held()).size());
    if (const auto honest = swarm::audit(commitment, config_, result_.budgets, result_.revealed); !honest)
      result_.failed_open = "audit: " + honest.error().message;
    return std::move(result_);
  }

 private:
  Result<void> prepare() {
    const swarm::Gate gate{config_.gating && !options_.plain, swarm::gate_size(config_), config_.kappa};
    buffers_.reserve(config_.nodes);
    for (Pseudonym peer = 0; peer < config_.nodes; ++peer) {
      buffers_.emplace_back(config_.universe(), draw_.universe.chunks_of(peer), gate,
                            rng_.fork("released", peer));
    }
    FEDGE_TRY(sprayed, swarm::spray(draw_.overlay, draw_.universe, swarm::sprayed_chunks(config_),
                                    swarm::spray_to(config_), rng_.fork("spray")));
    for (const Transfer& transfer : sprayed) deliver(transfer);
    result_.sprayed = sprayed.size();
    const std::uint32_t slowest = std::ranges::min(result_.budgets.up);
    result_.spray_slots = (swarm::sprayed_chunks(config_) + slowest - 1) / slowest;
    result_.sprayed_to = std::move(sprayed);
    const auto leaving = static_cast<std::size_t>(options_.drop * static_cast<double>(config_.nodes));
    std::vector<Pseudonym> order(config_.nodes);
    for (Pseudonym peer = 0; peer < config_.nodes; ++peer) order[peer] = peer;
    Rng drop = rng_.fork("drop");
    drop.shuffle(std::span(order));
    for (std::size_t i = 0; i < leaving; ++i) vanish_at_[order[i]] = drop.below(options_.drop_slots);
    return {};
  }

  void vanish() {
    for (Pseudonym peer = 0; peer < config_.nodes; ++peer) {
      if (!state_.active(peer) || vanish_at_[peer] != slot_) continue;
      state_.leave(peer);
      ++result_.vanished;
    }
  }

  void end_observation() {
    observing_ = false;
    result_.warmup_slots = slot_;
    result_.warmup_transfers = result_.transfers;
    result_.warmup_capacity = result_.capacity;
    still_ = 0;
  }

  void give_up(const std::string& why) {
    if (!options_.plain) result_.failed_open = why;
  }

  // True if no remaining client lacks a chunk that another one holds, or nothing has moved for long.
  bool finished() const {
    if (observing_) return false;
    if (still_ >= kIdleSlots) return true;
    if (!options_.whole_round && slot_ >= result_.warmup_slots + options_.watch) return true;
    for (Pseudonym peer = 0; peer < config_.nodes; ++peer)
      if (state_.active(peer) && buffers_[peer].held().count() < state_.rarity().available()) return false;
    return true;
  }

  bool warming() const { return observing_ && !options_.plain; }

  void set_budgets() {
    for (Pseudonym peer = 0; peer < config_.nodes; ++peer) {
      const swarm::ClientBuffer& buffer = buffers_[peer];
      up_[peer] = state_.active(peer) && slot_ >= result_.lags[peer] ? result_.budgets.up[peer] : 0;
      std::size_t wanted = config_.universe() - buffer.held().count();
      if (warming()) wanted = state_.lacks(peer);
      down_[peer] =
          state_.active(peer)
              ? static_cast<std::uint32_t>(std::min<std::size_t>(result_.budgets.down[peer], wanted))
              : 0;
      result_.capacity += state_.active(peer) ? result_.budgets.up[peer] : 0;
    }
  }

  void step() {
    set_budgets();
    const bool fallback = warming() && config_.fallback_after && still_ >= *config_.fallback_after;
    std::vector<const swarm::ChunkSet*> held;
    std::vector<const swarm::ChunkSet*> offered;
    for (Pseudonym peer = 0; peer < config_.nodes; ++peer) {
      const swarm::ClientBuffer& buffer = buffers_[peer];
      held.push_back(warming() && config_.blended ? &state_.got(peer) : &buffer.held());
      offered.push_back(warming() && !fallback ? &buffer.eligible() : &buffer.held());
    }
    const swarm::SlotState slot{draw_.overlay, draw_.universe, state_.rarity(),   held, offered,
                                up_,           down_,          result_.budgets.up};
    const swarm::SchedulerOptions options{config_.non_owner_first, config_.parallel, config_.order};
    const auto schedule = warming() ? swarm::scheduler_named(config_.scheduler) : swarm::plain_swarming;
    auto transfers = schedule(slot, options, rng_.fork(warming() ? "warm-up" : "plain", slot_));
    if (warming() && options_.max_flow > 0 && slot_ % options_.max_flow == 0)
      compare_with_flow(slot, transfers);
    record(transfers);
    still_ = transfers.empty() && slot_ >= config_.lag ? still_ + 1 : 0;
    if (observing_ || slot_ < result_.warmup_slots + options_.watch)
      result_.revealed.log.push_back(std::move(transfers));
  }

  // Waits until owners, if permitted, have had time to help.
  void give_up_if_stuck() {
    if (!warming() || still_ < config_.fallback_after.value_or(0) + kIdleSlots) return;
    give_up("no chunk was transferred for " + std::to_string(still_) + " slots of the warm-up");
    end_observation();
  }

  void compare_with_flow(const swarm::SlotState& slot, const std::vector<Transfer>& transfers) {
    const auto flow = static_cast<double>(swarm::max_flow(slot));
    const auto moved = static_cast<double>(transfers.size());
    result_.flow += flow;
    result_.flow_transfers += moved;
    if (flow > 0) result_.flow_shares.push_back(moved / flow);
  }

  void record(const std::vector<Transfer>& transfers) {
    for (const Transfer& transfer : transfers) {
      if (observing_ && draw_.universe.owner(transfer.chunk) == transfer.from) {
        ++result_.owner_transfers;
        if (warming() && !buffers_[transfer.from].eligible().has(transfer.chunk)) ++result_.fallbacks;
      }
      result_.log_hash = mixed(result_.log_hash, slot_);
      result_.log_hash = mixed(result_.log_hash, std::uint64_t{transfer.from} << 32 | transfer.to);
      result_.log_hash = mixed(result_.log_hash, transfer.chunk);
    }
    // A separate loop: chunks that arrive in a slot are forwarded from the next slot on.
    for (const Transfer& transfer : transfers) deliver(transfer);
    result_.transfers += transfers.size();
  }

  void deliver(const Transfer& transfer) {
    state_.take(transfer.to, transfer.chunk);
    buffers_[transfer.to].receive(transfer.chunk);
  }

  const SwarmRoundOptions& options_;
  const swarm::WarmupConfig& config_;
  Rng rng_;
  swarm::RoundDraw draw_;
  swarm::WarmupState state_;
  std::vector<std::uint32_t> up_;  // of this slot
  std::vector<std::uint32_t> down_;
  std::vector<std::optional<std::size_t>> vanish_at_;
  std::vector<swarm::ClientBuffer> buffers_;
  std::size_t slot_ = 0;
  std::size_t still_ = 0;  // slots since the last transfer
  bool observing_ = true;  // until all clients hold k
  SwarmRoundResult result_;
};

Result<void> check_between(Between between, const char* name) {
  if (between.least >= 1 && between.least <= between.most && between.most <= 100'000) return {};
  return invalid(std::string(name) +
                 " must be two numbers of chunks per slot from 1 to 100000, the smaller one first");
}

}  // namespace

Result<void> check_swarm_round(const SwarmRoundOptions& options) {
  FEDGE_TRY_VOID(
      swarm::check_warmup(options.warmup, "raise spray-ratio, lower threshold, or set owner-fallback"));
  FEDGE_TRY_VOID(check_between(options.up, "up"));
  FEDGE_TRY_VOID(check_between(options.down, "down"));
  if (!(options.drop >= 0 && options.drop <= 0.9)) return invalid("drop must be 0 to 0.9");
  if (options.drop_slots < 1) return invalid("drop-slots must be at least 1");
  if (options.max_flow > 0 && options.warmup.degree > swarm::kMostFlowNeighbours / 2)
    return invalid("max-flow needs a degree of at most " + std::to_string(swarm::kMostFlowNeighbours / 2));
  return {};
}

Result<SwarmRoundResult> run_swarm_round(const SwarmRoundOptions& options) { return Round(options).run(); }

}  // namespace fedge::lab
