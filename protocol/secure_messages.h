// The messages of secure aggregation, in the order in which they are sent
// (docs/algorithms/secure-aggregation.md). Masked updates are missing here: they are offered and fetched
// like others. Part of messages.h.
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

// Names one attempt to sum the updates of a round's track phase.
struct SecureSession {
  RunId run;
  RoundNumber round;
  TrackId track;
  std::uint32_t attempt = 0;

  TaskId task() const { return {round, track}; }
  bool operator==(const SecureSession&) const = default;
};

// A member's public data, sent first; signed, so that nobody else can create it.
struct SecureAdvertisement {
  ExchangeKey channel;    // encrypts shares in transit
  ExchangeKey mask;       // for masks
  Digest commitment{};    // to the seed of the member's own mask
  bool fast_aes = false;  // its processor has AES instructions
  Signature signature{};  // of the above and the session, with its node key
  bool operator==(const SecureAdvertisement&) const = default;
};

// Client to coordinator: round 0, AdvertiseKeys.
struct SecureKeys {
  SecureSession session;
  SecureAdvertisement keys;
  bool operator==(const SecureKeys&) const = default;
};

// Coordinator to client: the session's parameters and the receiver's mask peers.
struct SecureRoster {
  struct Peer {
    std::uint32_t number = 0;
    ClientId client;
    PublicKey identity;  // node key
    SecureAdvertisement keys;
    bool operator==(const Peer&) const = default;
  };
  SecureSession session;
  Digest seed{};                // hash of all advertisements; the graph is drawn from it
  std::uint32_t members = 0;    // at most kMaxSecureMembers
  std::uint32_t number = 0;     // the receiver's number, less than `members`
  std::uint32_t degree = 0;     // of the mask graph
  std::uint32_t threshold = 0;  // number of shares that recover a secret
  bool complete = false;        // whether the graph is complete
  StreamCipher cipher = StreamCipher::kAes256Ctr;
  // The ranges of the model to sum separately; all parameters of one have the same contributors. Ascending,
  // disjoint, not empty, at most kMaxSecureCells.
  std::vector<Range> cells;
  // The members' coverages: distinct, each a union of cells, at most kMaxSecureCoverages.
  std::vector<Coverage> coverages;
  std::vector<std::uint32_t> coverage_of;  // index into `coverages` for each member; empty: there is only one
  std::vector<Peer> peers;                 // ascending by number; at most kMaxSecurePeers
  bool operator==(const SecureRoster&) const = default;
};

inline constexpr std::size_t kSealedShares = 96;  // bytes

// Client to coordinator: round 1, ShareKeys.
struct SecureShares {
  struct Sealed {
    std::uint32_t to = 0;
    std::array<std::uint8_t, kSealedShares> box{};  // encrypted for `to`
    std::array<std::uint8_t, 16> check{};           // hash of the pair's mask key
    bool operator==(const Sealed&) const = default;
  };
  SecureSession session;
  std::vector<Sealed> shares;  // ascending; at most kMaxSecurePeers
  bool operator==(const SecureShares&) const = default;
};

// Coordinator to client: the members that take part from here on, and the shares they sealed for the
// receiver.
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

// Coordinator to client: the members whose masked updates are in the sum.
struct SecureSurvivors {
  SecureSession session;
  std::vector<std::uint32_t> numbers;  // ascending; at most kMaxSecureMembers
  bool operator==(const SecureSurvivors&) const = default;
};

// Client to coordinator: round 3, ConsistencyCheck.
struct SecureConsent {
  SecureSession session;
  Signature signature{};  // of the roster and the survivors, with its node key
  bool operator==(const SecureConsent&) const = default;
};

// Coordinator to client: the consents of the receiver's peers.
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
    ShareBytes self_mask{};  // share of the seed of the survivor's own mask
    bool operator==(const Survivor&) const = default;
  };
  struct Dropped {
    std::uint32_t number = 0;
    ShareBytes mask_key{};                    // share of its secret mask key
    std::array<std::uint8_t, 32> pair_key{};  // key of the mask between the sender and it
    bool operator==(const Dropped&) const = default;
  };
  SecureSession session;
  std::vector<Survivor> survivors;  // ascending; at most kMaxSecurePeers
  std::vector<Dropped> dropped;     // likewise
  bool operator==(const SecureUnmask&) const = default;
};

}  // namespace fedge::protocol
