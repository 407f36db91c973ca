// The messages of secure aggregation, in the order in which they are sent
// (docs/algorithms/secure-aggregation.md). All but the masked updates themselves, which are offered and
// fetched like others. Part of messages.h.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/coverage.h"
#include "core/crypto/ed25519.h"
#include "core/crypto/key_exchange.h"
#include "core/crypto/keystream.h"
#include "core/crypto/sha256.h"
#include "core/ids.h"

namespace fedge::protocol {

// Whose updates are summed: those of a round's turn, or of another attempt at it.
struct SecureSession {
  RunId run;
  RoundNumber round;
  TrackId track;
  std::uint32_t attempt = 0;

  TaskId task() const { return {round, track}; }
  bool operator==(const SecureSession&) const = default;
};

// What a member makes known of itself before anything else; nobody else can make it.
struct SecureAdvertisement {
  ExchangeKey channel;    // for shares on their way
  ExchangeKey mask;       // for masks
  Digest commitment{};    // to the seed of its own mask
  bool fast_aes = false;  // its processor computes AES by instructions of its own
  Signature signature{};  // by its node key, of this and the session
  bool operator==(const SecureAdvertisement&) const = default;
};

// Client to coordinator: round 0, AdvertiseKeys.
struct SecureKeys {
  SecureSession session;
  SecureAdvertisement keys;
  bool operator==(const SecureKeys&) const = default;
};

// Coordinator to client: who masks with it.
struct SecureRoster {
  struct Peer {
    std::uint32_t number = 0;
    ClientId client;
    PublicKey identity;  // its node key
    SecureAdvertisement keys;
    bool operator==(const Peer&) const = default;
  };
  SecureSession session;
  Digest seed{};                // hash of all that was advertised; the graph is drawn from it
  std::uint32_t members = 0;    // at most kMaxSecureMembers
  std::uint32_t number = 0;     // the receiver's, less than `members`
  std::uint32_t degree = 0;     // of the graph
  std::uint32_t threshold = 0;  // shares that give a secret back
  bool complete = false;        // the graph is
  StreamCipher cipher = StreamCipher::kAes256Ctr;
  // What is summed, as stretches of the model that the same members train: ascending, disjoint, not empty, at
  // most kMaxSecureCells.
  std::vector<Range> cells;
  // Distinct, each a union of cells: what somebody contributes to. At most kMaxSecureCoverages.
  std::vector<Coverage> coverages;
  std::vector<std::uint32_t> coverage_of;  // for each member, which of them; empty: there is but one
  std::vector<Peer> peers;                 // ascending by number; at most kMaxSecurePeers
  bool operator==(const SecureRoster&) const = default;
};

inline constexpr std::size_t kSealedShares = 96;  // bytes

// Client to coordinator: round 1, ShareKeys.
struct SecureShares {
  struct Sealed {
    std::uint32_t to = 0;
    std::array<std::uint8_t, kSealedShares> box{};  // for `to` alone
    std::array<std::uint8_t, 16> check{};           // of the pair's mask key
    bool operator==(const Sealed&) const = default;
  };
  SecureSession session;
  std::vector<Sealed> shares;  // ascending; at most kMaxSecurePeers
  bool operator==(const SecureShares&) const = default;
};

// Coordinator to client: who takes part from here on, and what they have sealed for it.
struct SecurePeerShares {
  struct Sealed {
    std::uint32_t from = 0;
    std::array<std::uint8_t, kSealedShares> box{};
    bool operator==(const Sealed&) const = default;
  };
  SecureSession session;
  std::vector<Sealed> shares;  // ascending; at most kMaxSecurePeers
  bool operator==(const SecurePeerShares&) const = default;
};

// Coordinator to client: whose masked updates are in the sum.
struct SecureSurvivors {
  SecureSession session;
  std::vector<std::uint32_t> numbers;  // ascending; at most kMaxSecureMembers
  bool operator==(const SecureSurvivors&) const = default;
};

// Client to coordinator: round 3, ConsistencyCheck.
struct SecureConsent {
  SecureSession session;
  Signature signature{};  // by its node key, of the session, the seed and the survivors
  bool operator==(const SecureConsent&) const = default;
};

// Coordinator to client: what its peers have been told.
struct SecureConsents {
  struct Consent {
    std::uint32_t number = 0;
    Signature signature{};
    bool operator==(const Consent&) const = default;
  };
  SecureSession session;
  std::vector<Consent> consents;  // ascending; at most kMaxSecurePeers
  bool operator==(const SecureConsents&) const = default;
};

// Client to coordinator: round 4, Unmasking.
struct SecureUnmask {
  using ShareBytes = std::array<std::uint8_t, 40>;
  struct Survivor {
    std::uint32_t number = 0;
    ShareBytes self_mask{};  // share of the seed of its own mask
    bool operator==(const Survivor&) const = default;
  };
  struct Dropped {
    std::uint32_t number = 0;
    ShareBytes mask_key{};                    // share of its secret key for masks
    std::array<std::uint8_t, 32> pair_key{};  // of the mask that the sender shares with it
    bool operator==(const Dropped&) const = default;
  };
  SecureSession session;
  std::vector<Survivor> survivors;  // ascending; at most kMaxSecurePeers
  std::vector<Dropped> dropped;     // likewise
  bool operator==(const SecureUnmask&) const = default;
};

}  // namespace fedge::protocol
