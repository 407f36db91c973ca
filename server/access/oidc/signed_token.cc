#include "server/access/oidc/signed_token.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/detail/json.h"
#include "core/text.h"
#include "server/access/oidc/base64url.h"

namespace fedge::server {
namespace {

constexpr int kHeaderLevels = 4;
constexpr std::size_t kShownValue = 80;  // bytes in messages

Error refused(const std::string& why) { return {ErrorCode::kRefused, why}; }

struct TokenParts {
  std::string_view header;
  std::string_view payload;
  std::string_view signature;
  std::string_view covered;  // by the signature: header and payload as they were sent
};

Result<TokenParts> parts_of(std::string_view token) {
  if (token.size() > kMaxSignedToken)
    return refused("it has " + std::to_string(token.size()) + " bytes; at most " +
                   std::to_string(kMaxSignedToken) + " are accepted");
  if (!looks_like_signed_token(token)) return refused("it does not consist of three parts");
  const std::size_t first = token.find('.');
  const std::size_t last = token.rfind('.');
  return TokenParts{token.substr(0, first), token.substr(first + 1, last - first - 1), token.substr(last + 1),
                    token.substr(0, last)};
}

Result<std::string> decoded(std::string_view part, const char* name) {
  auto bytes = decode_base64url(part);
  if (!bytes) return refused(std::string("its ") + name + " is not base64url without padding");
  return std::move(*bytes);
}

Result<std::optional<std::string>> header_text(const nlohmann::json& header, const char* name) {
  const auto found = header.find(name);
  if (found == header.end()) return std::optional<std::string>();
  if (!found->is_string()) return refused(std::string(name) + " in its header is not a string");
  return std::optional(found->get<std::string>());
}

// Media types are compared without regard to case (RFC 7515, section 4.1.9). A token without a type is
// accepted like one of the type JWT: both say nothing about its purpose.
bool is_access_token_type(std::string type) {
  std::ranges::transform(type, type.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array kTypes = {"jwt", "application/jwt", "at+jwt", "application/at+jwt"};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

struct TokenHeader {
  SigningAlgorithm algorithm;
  std::optional<std::string> key;
};

Result<TokenHeader> header_of(std::string_view part) {
  FEDGE_TRY(text, decoded(part, "header"));
  const nlohmann::json header = parse_json_without_duplicates(text, kHeaderLevels);
  if (!header.is_object())
    return refused("its header is not a JSON object, is nested too deep, or has a member twice");
  if (header.contains("crit")) return refused("its header has critical extensions (crit)");
  FEDGE_TRY(name, header_text(header, "alg"));
  const auto algorithm = parse_signing_algorithm(name.value_or(""));
  if (!algorithm)
    return refused("its algorithm (alg) is '" + clean_text(name.value_or(""), kShownValue) + "', not " +
                   kSigningAlgorithms);
  FEDGE_TRY(type, header_text(header, "typ"));
  if (type && !is_access_token_type(*type))
    return refused("its type (typ) is '" + clean_text(*type, kShownValue) + "', not at+jwt or JWT");
  FEDGE_TRY(key, header_text(header, "kid"));
  return TokenHeader{*algorithm, std::move(key)};
}

}  // namespace

bool looks_like_signed_token(std::string_view text) { return std::ranges::count(text, '.') == 2; }

Result<std::string> signed_payload(std::string_view token, const KeySet& keys) {
  FEDGE_TRY(parts, parts_of(token));
  FEDGE_TRY(header, header_of(parts.header));
  FEDGE_TRY(signature, decoded(parts.signature, "signature"));
  FEDGE_TRY(key, keys.find(header.algorithm, header.key));
  if (!key->verifies(header.algorithm, parts.covered, signature)) return refused("its signature is wrong");
  return decoded(parts.payload, "payload");
}

}  // namespace fedge::server
