// The computations that all parties of a secure aggregation session share: signed messages, derived keys,
// commitments and digests. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/crypto/ed25519.h"
#include "core/crypto/key_exchange.h"
#include "core/crypto/secret.h"
#include "core/crypto/sha256.h"
#include "core/result.h"
#include "privacy/secure_aggregation/graph_parameters.h"
#include "protocol/secure_messages.h"

namespace fedge::privacy {

// A run's settings of secure aggregation, from which both sides derive the same graph.
struct SecureRules {
  GraphAssumptions assumptions;
  std::uint32_t complete_below = 100;  // from this many members on, the graph is sparse if possible
  std::uint32_t min_survivors = 3;     // minimum number of contributors to each parameter; see enough()

  // The number of honest ones among min_survivors contributors, at the assumed fraction of corrupt ones.
  std::uint32_t honest_survivors() const;
  // Minimum number of contributors to a parameter before a member reveals anything. Even if all corrupt
  // members contribute, honest_survivors() honest contributors are among them.
  std::uint32_t enough(std::uint32_t members) const;
};
// The stricter of the run's and the device owner's value, for each rule.
SecureRules stricter(const SecureRules& described, const SecureRules& own);
// The graph for this many members.
GraphParameters choose_graph(const SecureRules& rules, std::uint32_t members);

// Hash of everything that masks and signatures are bound to. Members with different models or terms get
// different hashes, so that their masks do not cancel (Pasquini et al., CCS 2022).
// The terms of a session for tasks of this kind. A member that trains and one that evaluates thus never sign
// the same session: the zeros of evaluators would leave a single update as the sum.
Digest terms_of(TaskKind kind, const Digest& terms);
Digest context_of(const protocol::SecureSession& session, const Digest& model, const Digest& terms);

Signature sign_keys(const SecretKey& identity, const Digest& context, ClientId client,
                    const protocol::SecureAdvertisement& keys);
bool verify_keys(const PublicKey& identity, const Digest& context, ClientId client,
                 const protocol::SecureAdvertisement& keys);

// Hash of the session and of the part of a roster that is the same for all members. Later messages are bound
// to it: if members received different rosters, their masks do not cancel and their consents are invalid.
Digest digest_of(const protocol::SecureRoster& roster, const Digest& context);

// `roster` is its digest_of().
Signature sign_survivors(const SecretKey& identity, const Digest& roster, std::uint32_t number,
                         std::span<const std::uint32_t> survivors);
struct Consent {
  std::uint32_t number = 0;
  std::span<const std::uint32_t> survivors;
  Signature signature{};
};
bool verify_survivors(const PublicKey& identity, const Digest& roster, const Consent& consent);

Digest commitment_to(const Digest& context, const Secret& self_mask);

// One of two members that derive a shared key, as both see it.
struct Party {
  PublicKey identity;
  ExchangeKey key;  // the public key of this exchange
};
// The key of the mask that two members share, and the key for the boxes between them. kInvalid for a key of
// small order. `roster` is its digest_of().
Result<Secret> pair_mask_key(const Secret& mine, const Party& me, const Party& other, const Digest& roster);
Result<Secret> channel_key(const Secret& mine, const Party& me, const Party& other, const Digest& roster);
// Check value of a pair key, sent before dropouts are known. It lets the coordinator verify a key that is
// revealed later.
std::array<std::uint8_t, 16> check_of(const Digest& roster, const Secret& pair_key);

// The associated data of a box: the roster's digest, the sender and the recipient.
std::array<std::uint8_t, 40> about_box(const Digest& roster, std::uint32_t from, std::uint32_t to);

}  // namespace fedge::privacy
