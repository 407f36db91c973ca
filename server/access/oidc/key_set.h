// KeySet: the public keys with which an identity provider signs its tokens, read from a JSON Web Key Set
// (RFC 7517). Keys of other types and curves are left out; a key that is broken, weak or private makes the
// whole set wrong. Immutable; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/access/oidc/verifying_key.h"

namespace fedge::server {

inline constexpr std::size_t kMaxKeySetBytes = 256 << 10;
inline constexpr std::size_t kMaxKeysInSet = 100;
inline constexpr std::size_t kMaxKeyId = 256;  // bytes

class KeySet {
 public:
  // kInvalid names the key that is wrong. A set with an empty list of keys is right: no token is valid.
  static Result<KeySet> parse(std::string_view text);

  // Returns the key that must have signed a token with this algorithm and key id. kRefused: there is none, or
  // the key is not for this. Without a key id, exactly one key of the set must fit.
  Result<const VerifyingKey*> find(SigningAlgorithm algorithm, const std::optional<std::string>& id) const;

  std::size_t size() const { return keys_.size(); }

 private:
  struct Entry {
    std::optional<std::string> id;         // kid
    std::optional<std::string> algorithm;  // alg: the only one it is for
    std::string forbidden;  // why it may not check signatures, by use or key_ops; empty: it may
    VerifyingKey key;
  };
  struct Reading;  // parses entries
  static Result<void> check_use(const Entry& entry, SigningAlgorithm algorithm);

  std::vector<Entry> keys_;
};

}  // namespace fedge::server
