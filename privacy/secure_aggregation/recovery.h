// Recovery: finds the masks in the sum of the survivors' masked updates, from the shares that members
// revealed, and removes them. Each recovered secret is checked against its owner's commitment or public key.
// A single bad share of a secret is identified and left out. Pure; the work is spread over Parallel. Cost:
// one mask's keystream for each survivor, and for each pair of a survivor and a neighbour that dropped out.
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

// The keys of the masks in a sum. The destructor wipes them.
class SumMasks {
 public:
  // Subtracts the masks from a sum of masked updates, packed over all summed cells.
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

// The outcome of a session, from which the masks are recovered.
class Unmasking {
 public:
  // A member that took part until updates were masked. Parties are ordered by number.
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
    std::vector<ClientId> bad_shares;  // clients whose bad shares were left out
  };
  // kUnavailable, naming the secret's owner: too few good shares.
  Result<Recovered> recover(Parallel& parallel) const;

 private:
  class Recovering;

  protocol::SecureRoster roster_;
  Digest context_;
  Digest told_;
  std::vector<Party> parties_;
};

}  // namespace fedge::privacy
