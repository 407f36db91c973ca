// Recovery: which masks are in the sum of the survivors' masked updates, from the shares that members have
// revealed, and how to take them away. Every secret that is put together is compared with what its owner said
// of it before; shares that spoil one are found out and left out. Pure; the work is spread over Parallel.
// Cost: a mask's keystream for each survivor, and for each pair of a survivor and a neighbour that dropped
// out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/parallel.h"
#include "core/result.h"
#include "privacy/secure_aggregation/graph.h"
#include "privacy/secure_aggregation/masking.h"
#include "privacy/secure_aggregation/session.h"

namespace fedge::privacy {

// The keys of the masks that are in a sum. Secrets are wiped with it.
class SumMasks {
 public:
  // Takes them away from a sum of masked updates, packed over all that is summed.
  void take_away(std::span<std::uint32_t> words, std::span<std::uint64_t> scalars, Parallel& parallel) const;
  void take_away(std::span<std::uint64_t> words, std::span<std::uint64_t> scalars, Parallel& parallel) const;
  std::size_t size() const { return terms_.size(); }

 private:
  friend class Unmasking;
  static constexpr std::size_t kEverywhere = SIZE_MAX;
  struct Term {
    std::size_t where = kEverywhere;  // index of where_
    bool take_away = true;
  };
  std::vector<MaskTerm> terms() const;
  Coverage coverage_;
  std::vector<Coverage> where_;
  StreamCipher cipher_ = StreamCipher::kAes256Ctr;
  std::vector<Secret> keys_;
  std::vector<Term> terms_;
};

// What a session has come to.
class Unmasking {
 public:
  // Whoever took part until updates were masked, by number.
  struct Party {
    std::uint32_t number = 0;
    ClientId client;
    PublicKey identity;
    protocol::SecureAdvertisement keys;
    protocol::SecureShares shares;
    bool survives = false;
    std::optional<protocol::SecureUnmask> unmask;
  };

  Unmasking(protocol::SecureRoster roster, Digest context, std::vector<Party> parties)
      : roster_(std::move(roster)),
        context_(context),
        told_(digest_of(roster_, context)),
        parties_(std::move(parties)) {}

  struct Recovered {
    SumMasks masks;
    std::vector<ClientId> bad_shares;  // whose shares spoilt a secret, and were left out
  };
  // kUnavailable: too few good shares of a secret; names whose.
  Result<Recovered> recover(Parallel& parallel) const;

 private:
  class Recovering;

  protocol::SecureRoster roster_;
  Digest context_;
  Digest told_;
  std::vector<Party> parties_;
};

}  // namespace fedge::privacy
