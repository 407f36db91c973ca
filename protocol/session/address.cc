#include <algorithm>
#include <charconv>
#include <string_view>

#include "protocol/session/endpoint.h"

namespace fedge::protocol {
namespace {

bool is_host(std::string_view host, bool bracketed) {
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_' || (bracketed && (c == ':' || c == '%'));
  });
}

}  // namespace

Result<Address> parse_address(const std::string& text) {
  const Error wrong =
      invalid("'" + text.substr(0, 300) +
              "' is not an address; write host:port, such as 192.0.2.7:7000 or [2001:db8::7]:7000");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong;
  std::string_view host = std::string_view(text).substr(0, colon);
  const std::string_view digits = std::string_view(text).substr(colon + 1);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  // Brackets are for IPv6 alone, so that an address has one text.
  if (bracketed && host.find(':') == std::string_view::npos) return wrong;
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || !is_host(host, bracketed)) return wrong;
  return Address{std::string(host), port};
}

std::string to_string(const Address& address) {
  const bool six = address.host.find(':') != std::string::npos;
  return (six ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace fedge::protocol
