#include "server/access/oidc/key_set.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/detail/json.h"
#include "core/text.h"
#include "server/access/oidc/base64url.h"

namespace fedge::server {
namespace {

constexpr int kKeySetLevels = 6;
constexpr std::size_t kShownId = 80;  // bytes in messages

std::string in_quotes(const std::string& text) { return "'" + clean_text(text, kShownId) + "'"; }

// Returns the member as a string, nothing if it is absent; kInvalid if it is something else.
Result<std::optional<std::string>> text_member(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return std::optional<std::string>();
  if (!found->is_string()) return invalid(std::string("the member ") + name + " is not a string");
  return std::optional(found->get<std::string>());
}

Result<std::string> bytes_member(const nlohmann::json& json, const char* name) {
  FEDGE_TRY(text, text_member(json, name));
  if (!text) return invalid(std::string("the member ") + name + " is missing");
  auto bytes = decode_base64url(*text);
  if (!bytes || bytes->empty())
    return invalid(std::string("the member ") + name + " is not base64url without padding");
  return std::move(*bytes);
}

// Reads the key itself; nothing if it is of a type or curve that no accepted algorithm has.
Result<std::optional<VerifyingKey>> key_material(const nlohmann::json& json) {
  FEDGE_TRY(type, text_member(json, "kty"));
  if (!type) return invalid("the member kty is missing");
  FEDGE_TRY(curve, text_member(json, "crv"));
  using Found = std::optional<VerifyingKey>;
  if (*type == "RSA") {
    FEDGE_TRY(modulus, bytes_member(json, "n"));
    FEDGE_TRY(exponent, bytes_member(json, "e"));
    FEDGE_TRY(key, VerifyingKey::rsa(modulus, exponent));
    return Found(std::move(key));
  }
  if (*type == "EC" && curve == "P-256") {
    FEDGE_TRY(x, bytes_member(json, "x"));
    FEDGE_TRY(y, bytes_member(json, "y"));
    FEDGE_TRY(key, VerifyingKey::p256(x, y));
    return Found(std::move(key));
  }
  if (*type == "OKP" && curve == "Ed25519") {
    FEDGE_TRY(x, bytes_member(json, "x"));
    FEDGE_TRY(key, VerifyingKey::ed25519(x));
    return Found(std::move(key));
  }
  return Found();
}

// Returns why the key may not check signatures; empty if it may.
Result<std::string> forbidding(const nlohmann::json& json) {
  FEDGE_TRY(use, text_member(json, "use"));
  if (use && *use != "sig") return "its use is " + in_quotes(*use) + ", not 'sig'";
  const auto operations = json.find("key_ops");
  if (operations == json.end()) return std::string();
  if (!operations->is_array() ||
      !std::ranges::all_of(*operations, [](const auto& one) { return one.is_string(); }))
    return invalid("the member key_ops is not a list of strings");
  const bool verify = std::ranges::any_of(*operations, [](const auto& one) { return one == "verify"; });
  return verify ? std::string() : std::string("its key_ops do not have 'verify'");
}

}  // namespace

struct KeySet::Reading {
  static Result<std::optional<Entry>> entry(const nlohmann::json& json) {
    if (!json.is_object()) return invalid("it is not an object");
    for (const char* member : {"d", "k"})
      if (json.contains(member))
        return invalid(std::string("it has the secret member ") + member +
                       "; the file must have only public keys");
    FEDGE_TRY(id, text_member(json, "kid"));
    if (id && id->size() > kMaxKeyId)
      return invalid("its kid has more than " + std::to_string(kMaxKeyId) + " bytes");
    FEDGE_TRY(algorithm, text_member(json, "alg"));
    FEDGE_TRY(forbidden, forbidding(json));
    FEDGE_TRY(key, key_material(json));
    if (!key) return std::optional<Entry>();
    return std::optional(Entry{std::move(id), std::move(algorithm), std::move(forbidden), std::move(*key)});
  }
};

Result<KeySet> KeySet::parse(std::string_view text) {
  const nlohmann::json json = parse_json_without_duplicates(text, kKeySetLevels);
  if (json.is_discarded()) return invalid("it is not JSON, is nested too deep, or has a member twice");
  if (!json.is_object() || !json.contains("keys") || !json["keys"].is_array())
    return invalid("it is not a JSON Web Key Set: an object with the list \"keys\"");
  const nlohmann::json& list = json["keys"];
  if (list.size() > kMaxKeysInSet)
    return invalid("it has " + std::to_string(list.size()) + " keys; at most " +
                   std::to_string(kMaxKeysInSet) + " are accepted");
  KeySet set;
  for (std::size_t i = 0; i < list.size(); ++i) {
    auto entry = Reading::entry(list[i]);
    if (!entry) return entry.error().with_prefix("key " + std::to_string(i + 1) + ": ");
    if (!*entry) continue;
    if ((*entry)->id &&
        std::ranges::any_of(set.keys_, [&](const Entry& one) { return one.id == (*entry)->id; }))
      return invalid("two keys have the kid " + in_quotes(*(*entry)->id));
    set.keys_.push_back(std::move(**entry));
  }
  const auto is_usable = [](const Entry& one) {
    return std::ranges::any_of(kEverySigningAlgorithm, [&](SigningAlgorithm algorithm) {
      return check_use(one, algorithm).has_value();
    });
  };
  if (!list.empty() && std::ranges::none_of(set.keys_, is_usable))
    return invalid(std::string("none of its keys can check signatures of ") + kSigningAlgorithms);
  return set;
}

Result<void> KeySet::check_use(const Entry& entry, SigningAlgorithm algorithm) {
  const std::string key = entry.id ? "the key " + in_quotes(*entry.id) : std::string("the key");
  if (!entry.key.fits(algorithm))
    return Error{ErrorCode::kRefused, key + " is of the type " + entry.key.type() +
                                          ", which does not fit the algorithm " + name_of(algorithm)};
  if (entry.algorithm && *entry.algorithm != name_of(algorithm))
    return Error{ErrorCode::kRefused, key + " is only for the algorithm " + in_quotes(*entry.algorithm) +
                                          ", not " + name_of(algorithm)};
  if (!entry.forbidden.empty())
    return Error{ErrorCode::kRefused, key + " must not check signatures: " + entry.forbidden};
  return {};
}

Result<const VerifyingKey*> KeySet::find(SigningAlgorithm algorithm,
                                         const std::optional<std::string>& id) const {
  if (id) {
    const auto found = std::ranges::find(keys_, id, &Entry::id);
    if (found == keys_.end()) return Error{ErrorCode::kRefused, "the key set has no key " + in_quotes(*id)};
    FEDGE_TRY_VOID(check_use(*found, algorithm));
    return &found->key;
  }
  const VerifyingKey* only = nullptr;
  std::size_t fitting = 0;
  for (const Entry& entry : keys_) {
    if (!check_use(entry, algorithm)) continue;
    only = &entry.key;
    ++fitting;
  }
  if (fitting == 1) return only;
  return Error{ErrorCode::kRefused, "it names no key (kid), and " + std::to_string(fitting) +
                                        " keys of the key set fit " + name_of(algorithm) +
                                        "; exactly one must"};
}

}  // namespace fedge::server
