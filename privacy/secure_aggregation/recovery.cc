#include "privacy/secure_aggregation/recovery.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/check.h"
#include "privacy/secure_aggregation/shamir.h"

namespace fedge::privacy {
namespace {

constexpr auto kNumber = [](const auto& entry) { return entry.number; };

// Returns the entry with this number in an ascending list, or null.
template <class List, class Number>
auto find_in(const List& list, std::uint32_t number, const Number& number_of) -> decltype(list.data()) {
  const auto found = std::ranges::lower_bound(list, number, {}, number_of);
  return found == list.end() || number_of(*found) != number ? nullptr : &*found;
}

// Groups this many tasks, since a single one is too short for a thread.
constexpr std::size_t kTogether = 256;

template <class Task>
void for_all(Parallel& parallel, std::size_t count, const Task& task) {
  parallel.for_each((count + kTogether - 1) / kTogether, [&](std::size_t group) {
    for (std::size_t i = group * kTogether; i < std::min(count, (group + 1) * kTogether); ++i) task(i);
  });
}

}  // namespace

// The work of one recovery.
class Unmasking::Recovering {
 public:
  explicit Recovering(const Unmasking& session)
      : session_(session),
        roster_(session.roster_),
        graph_(roster_.complete ? MaskGraph::complete(roster_.members)
                                : MaskGraph::neighbours(roster_.members, roster_.degree, roster_.seed)) {
    for (const Party& party : session.parties_) by_number_[party.number] = &party;
  }

  Result<Recovered> run(Parallel& parallel) {
    find_pairs();
    take_revealed(parallel);
    masks_.coverage_ = Coverage::of(roster_.cells);
    masks_.cipher_ = roster_.cipher;
    for (const Party& party : session_.parties_) {
      if (!party.survives) continue;
      FEDGE_TRY(seed, put_together(party, Kind::kSelfMask));
      masks_.keys_.push_back(std::move(seed));
      masks_.terms_.push_back({where_of(kind_of(party.number), kind_of(party.number)), true});
    }
    FEDGE_TRY_VOID(agree_on_the_rest(parallel));
    for (Pair& pair : pairs_) {
      masks_.keys_.push_back(std::move(pair.key));
      // The survivor has added this mask if the dropout's number is higher than its own.
      masks_.terms_.push_back({where_of(kind_of(pair.survivor->number), kind_of(pair.dropped->number)),
                               pair.dropped->number > pair.survivor->number});
    }
    return Recovered{std::move(masks_), std::move(bad_)};
  }

 private:
  enum class Kind { kSelfMask, kMaskKey };
  struct Pair {
    const Party* survivor;
    const Party* dropped;
    bool known = false;
    Secret key = {};
  };
  struct Held {
    std::uint32_t holder;
    Share share;
  };

  void find_pairs() {
    for (const Party& dropped : session_.parties_) {
      if (dropped.survives) continue;
      for (const std::uint32_t number : graph_.neighbours(dropped.number)) {
        const auto survivor = by_number_.find(number);
        if (survivor != by_number_.end() && survivor->second->survives)
          pairs_.push_back({survivor->second, &dropped});
      }
    }
  }

  // Accepts a pair key that a survivor reveals if it matches the check value that the dropout sent before.
  void take_revealed(Parallel& parallel) {
    for_all(parallel, pairs_.size(), [&](std::size_t i) {
      Pair& pair = pairs_[i];
      if (!pair.survivor->unmask) return;
      const auto* revealed = find_in(pair.survivor->unmask->dropped, pair.dropped->number, kNumber);
      const auto* said = find_in(pair.dropped->shares.shares, pair.survivor->number,
                                 [](const auto& sealed) { return sealed.to; });
      if (revealed == nullptr || said == nullptr) return;
      Secret key{std::span<const std::uint8_t, 32>(revealed->pair_key)};
      if (check_of(session_.told_, key) != said->check) return;
      pair.key = std::move(key);
      pair.known = true;
    });
  }

  // Derives the pair keys that were not revealed, with the recovered mask key of the dropout.
  Result<void> agree_on_the_rest(Parallel& parallel) {
    std::map<std::uint32_t, Secret> keys;
    std::vector<Pair*> unknown;
    for (Pair& pair : pairs_) {
      if (pair.known) continue;
      unknown.push_back(&pair);
      if (keys.contains(pair.dropped->number)) continue;
      FEDGE_TRY(key, put_together(*pair.dropped, Kind::kMaskKey));
      keys.emplace(pair.dropped->number, std::move(key));
    }
    std::vector<Result<void>> outcomes(unknown.size());
    for_all(parallel, unknown.size(), [&](std::size_t i) {
      Pair& pair = *unknown[i];
      auto key =
          pair_mask_key(keys.at(pair.dropped->number), {pair.dropped->identity, pair.dropped->keys.mask},
                        {pair.survivor->identity, pair.survivor->keys.mask}, session_.told_);
      if (!key) {
        outcomes[i] = key.error();
        return;
      }
      pair.key = std::move(*key);
    });
    for (const auto& outcome : outcomes) FEDGE_TRY_VOID(outcome);
    return {};
  }

  std::vector<Held> held(std::uint32_t of, Kind kind) const {
    std::vector<Held> result;
    for (const std::uint32_t holder : graph_.holders(of)) {
      const auto party = by_number_.find(holder);
      if (party == by_number_.end() || !party->second->unmask) continue;
      if (std::ranges::find(bad_, party->second->client) != bad_.end()) continue;
      const protocol::SecureUnmask& answer = *party->second->unmask;
      const auto* survivor = kind == Kind::kSelfMask ? find_in(answer.survivors, of, kNumber) : nullptr;
      const auto* dropped = kind == Kind::kMaskKey ? find_in(answer.dropped, of, kNumber) : nullptr;
      if (survivor == nullptr && dropped == nullptr) continue;
      const auto share = Share::decode(survivor != nullptr ? survivor->self_mask : dropped->mask_key);
      if (share) result.push_back({holder, *share});
    }
    return result;
  }

  // Recovers a secret from `threshold` shares. Nothing if it does not match the owner's commitment or public
  // key.
  std::optional<Secret> combined(const Party& owner, Kind kind, std::span<const Held> shares) {
    std::vector<std::uint32_t> points;
    std::vector<Share> values;
    for (const Held& one : shares) {
      points.push_back(one.holder + 1);
      values.push_back(one.share);
    }
    auto known = recombinations_.find(points);
    if (known == recombinations_.end()) {
      if (recombinations_.size() >= kMostKept) recombinations_.clear();
      auto made = Recombination::of(points);
      FEDGE_CHECK(made.has_value(), "holders are distinct");
      known = recombinations_.emplace(std::move(points), std::move(*made)).first;
    }
    auto secret = known->second.combine(values);
    if (!secret) return std::nullopt;
    const bool right = kind == Kind::kSelfMask
                           ? commitment_to(session_.context_, *secret) == owner.keys.commitment
                           : exchange_key_of(*secret) == owner.keys.mask;
    return right ? std::optional(std::move(*secret)) : std::nullopt;
  }

  // Recovers a secret. If the first `threshold` shares fail, each of them in turn is replaced by the next
  // one: this finds a single bad share and its holder.
  Result<Secret> put_together(const Party& owner, Kind kind) {
    const std::vector<Held> shares = held(owner.number, kind);
    const std::size_t threshold = roster_.threshold;
    const std::string whose = "client " + std::to_string(owner.client.value());
    if (shares.size() < threshold)
      return Error{ErrorCode::kUnavailable, "only " + std::to_string(shares.size()) + " secret shares of " +
                                                whose + " were revealed; " + std::to_string(threshold) +
                                                " are needed"};
    std::vector<Held> chosen(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(threshold));
    if (auto secret = combined(owner, kind, chosen)) return std::move(*secret);
    for (std::size_t i = 0; i < threshold && shares.size() > threshold; ++i) {
      std::vector<Held> others = chosen;
      others[i] = shares[threshold];
      if (auto secret = combined(owner, kind, others)) {
        bad_.push_back(by_number_.at(shares[i].holder)->client);
        return std::move(*secret);
      }
    }
    return Error{ErrorCode::kUnavailable, "the secret shares of " + whose +
                                              " do not match the commitment or the public key that it sent"};
  }

  std::uint32_t kind_of(std::uint32_t number) const {
    return roster_.coverage_of.empty() ? 0 : roster_.coverage_of[number];
  }

  // Index of the overlap of two kinds of coverage, where their members' masks lie.
  std::size_t where_of(std::uint32_t a, std::uint32_t b) {
    if (!roster_.complete || roster_.coverages.size() == 1) return SumMasks::kEverywhere;
    const auto [known, is_new] = where_.try_emplace(std::minmax(a, b), masks_.where_.size());
    if (is_new) masks_.where_.push_back(roster_.coverages[a].intersect(roster_.coverages[b]));
    return known->second;
  }

  // Cache size: in a sparse graph, each secret has its own set of holders.
  static constexpr std::size_t kMostKept = 64;

  const Unmasking& session_;
  const protocol::SecureRoster& roster_;
  MaskGraph graph_;
  std::map<std::uint32_t, const Party*> by_number_;
  std::vector<Pair> pairs_;
  std::map<std::vector<std::uint32_t>, Recombination> recombinations_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> where_;
  SumMasks masks_;
  std::vector<ClientId> bad_;
};

Result<Unmasking::Recovered> Unmasking::recover(Parallel& parallel) const {
  return Recovering(*this).run(parallel);
}

std::vector<MaskTerm> SumMasks::terms() const {
  std::vector<MaskTerm> terms;
  terms.reserve(terms_.size());
  for (std::size_t t = 0; t < terms_.size(); ++t)
    terms.push_back({&keys_[t], terms_[t].take_away,
                     terms_[t].where == kEverywhere ? nullptr : &where_[terms_[t].where]});
  return terms;
}

void SumMasks::take_away(std::span<std::uint32_t> words, std::span<std::uint64_t> scalars,
                         Parallel& parallel) const {
  apply_masks(words, coverage_, terms(), cipher_, parallel);
  apply_scalar_masks(scalars, terms(), cipher_);
}

void SumMasks::take_away(std::span<std::uint64_t> words, std::span<std::uint64_t> scalars,
                         Parallel& parallel) const {
  apply_masks(words, coverage_, terms(), cipher_, parallel);
  apply_scalar_masks(scalars, terms(), cipher_);
}

}  // namespace fedge::privacy
