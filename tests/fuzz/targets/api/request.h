// Requests in inputs of the fuzz target of the admin API, and which of them are left out. Pure.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/api/api.h"
#include "tests/fuzz/targets/api/document.h"

namespace fedge::fuzz {

// A request for more join tokens, or with a longer number in a run file, is left out: it is accepted, and
// takes time and memory in proportion.
inline constexpr std::uint64_t kMostFuzzedTokens = 20;
inline constexpr std::size_t kMostFuzzedDigits = 4;

inline std::string_view take_until(std::string_view& text, char end) {
  const std::size_t size = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return taken;
}

// Decodes percent escapes and those of JSON and TOML. An answer may repeat what a request says.
inline std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digits = text[i] == '%'                 ? 2
                               : text[i] != '\\'              ? 0
                               : text.substr(i + 1, 1) == "U" ? 8
                                                              : 4;
    const std::size_t first = i + (text[i] == '%' ? 1 : 2);
    unsigned code = 0;
    const auto* begin = text.data() + std::min(first, text.size());
    const auto* end = text.data() + std::min(first + digits, text.size());
    if (digits > 0 && std::from_chars(begin, end, code, 16).ptr == begin + digits && code < 128) {
      plain += static_cast<char>(code);
      i = first + digits - 1;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Reads "GRANTS METHOD PATH?QUERY FIELD..."; nothing if the grants are none.
inline std::optional<server::ApiRequest> read_request(std::string_view head, std::string_view body) {
  const auto grants = server::parse_grants(std::string(take_until(head, ' ')));
  if (!grants) return std::nullopt;
  server::ApiRequest request{.method = std::string(take_until(head, ' '))};
  std::string_view target = take_until(head, ' ');
  request.path = server::kApiRoot + std::string(take_until(target, '?'));
  request.query = target;
  request.body = body;
  request.principal = {{"user fuzz", "192.0.2.1"}, *grants};
  while (!head.empty()) {
    const std::string_view field = take_until(head, ' ');
    if (field.starts_with("key=")) request.idempotency_key = field.substr(4);
    if (field.starts_with("match=")) request.if_match = field.substr(6);
  }
  return request;
}

inline bool is_too_much(const ApiDocument::Operation& operation, const std::string& body) {
  if (operation.id == "createJoinTokens") {
    const ApiJson json = ApiJson::parse(body, nullptr, false);
    return json.is_object() && json.contains("count") && json["count"].is_number() &&
           json["count"] > kMostFuzzedTokens;
  }
  if (operation.id != "submitRun") return false;
  std::size_t digits = 0;
  for (const char c : without_escapes(body)) {
    const bool digit = c >= '0' && c <= '9';
    // An exponent, or a number of another base.
    if (digits > 0 && !digit && std::string_view("eExob").find(c) != std::string_view::npos) return true;
    digits = digit || (digits > 0 && c == '_') ? digits + 1 : 0;
    if (digits > kMostFuzzedDigits) return true;
  }
  return false;
}

}  // namespace fedge::fuzz
