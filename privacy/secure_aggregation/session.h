// What all parties of a session of secure aggregation compute alike: what is signed, which keys come of an
// agreement, and what masks are. Pure functions.
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

// What a run says of its secure aggregation. Both sides derive the same graph from it.
struct SecureRules {
  GraphAssumptions assumptions;
  std::uint32_t complete_below = 100;  // members; from here on the graph is sparse, where one is secure
  std::uint32_t min_survivors = 3;     // contributors to each parameter, at least; see enough()

  // Counts those of min_survivors that are not in league with the coordinator, at least.
  std::uint32_t honest_survivors() const;
  // Counts the contributors to a parameter without which nothing is revealed in a sum of so many members.
  // With all that may be in league with the coordinator among them, honest_survivors() are left.
  std::uint32_t enough(std::uint32_t members) const;
};
// What a member asks for whose run says one thing and whose owner another: of each the stricter.
SecureRules stricter(const SecureRules& described, const SecureRules& own);
// The graph of so many members.
GraphParameters choose_graph(const SecureRules& rules, std::uint32_t members);

// Names everything that masks and signatures are bound to. Members whose models or terms differ have
// different ones, and their masks do not cancel (Pasquini et al., CCS 2022).
Digest context_of(const protocol::SecureSession& session, const Digest& model, const Digest& terms);

Signature sign_keys(const SecretKey& identity, const Digest& context, ClientId client,
                    const protocol::SecureAdvertisement& keys);
bool verify_keys(const PublicKey& identity, const Digest& context, ClientId client,
                 const protocol::SecureAdvertisement& keys);

// Names all that a roster tells every member alike, and the session: everything after it is bound to that, so
// that members who were told different things have masks that do not cancel, and consents that do not hold.
Digest digest_of(const protocol::SecureRoster& roster, const Digest& context);

// `roster` is digest_of() it.
Signature sign_survivors(const SecretKey& identity, const Digest& roster, std::uint32_t number,
                         std::span<const std::uint32_t> survivors);
struct Consent {
  std::uint32_t number = 0;
  std::span<const std::uint32_t> survivors;
  Signature signature{};
};
bool verify_survivors(const PublicKey& identity, const Digest& roster, const Consent& consent);

Digest commitment_to(const Digest& context, const Secret& self_mask);

// One of two members that agree on keys, as both see it.
struct Party {
  PublicKey identity;
  ExchangeKey key;  // for what is agreed on
};
// The key of the mask that two members share, and the one for what they seal for each other. kInvalid for a
// key of small order. `roster` is digest_of() it.
Result<Secret> pair_mask_key(const Secret& mine, const Party& me, const Party& other, const Digest& roster);
Result<Secret> channel_key(const Secret& mine, const Party& me, const Party& other, const Digest& roster);
// What a member says of a mask key before it is known who drops out: whether one that is revealed is the
// same.
std::array<std::uint8_t, 16> check_of(const Digest& roster, const Secret& pair_key);

// What a box is about, besides its key: from, to.
std::array<std::uint8_t, 40> about_box(const Digest& roster, std::uint32_t from, std::uint32_t to);

}  // namespace fedge::privacy
