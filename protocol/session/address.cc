#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/session/endpoint.h"

namespace fedge::protocol {
namespace {

namespace ip = boost::asio::ip;

bool is_host(std::string_view host, bool bracketed) {
  return !host.empty() && host.size() <= 253 && std::all_of(host.begin(), host.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '-' || c == '_' || (bracketed && (c == ':' || c == '%'));
  });
}

// The numeric address, IPv4-mapped IPv6 as IPv4; nothing for a name.
std::optional<ip::address> number_of(const std::string& host) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(host, error);
  if (error) return std::nullopt;
  const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  return mapped ? ip::make_address_v4(ip::v4_mapped, address.to_v6()) : address;
}

}  // namespace

Result<Address> parse_listens(const std::string& text) {
  const bool any_host = text.starts_with(':');
  FEDGE_TRY(address, parse_address(any_host ? "host" + text : text));
  if (address.port == 0) return invalid("'" + text + "' has port 0; write a port from 1 to 65535");
  if (any_host) address.host.clear();
  return address;
}

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
  // Brackets are only for IPv6, so that an address has exactly one spelling.
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

bool same_host(const std::string& a, const std::string& b) {
  const auto number = number_of(a);
  return number && number == number_of(b);
}

std::string household(const std::string& host) {
  const auto address = number_of(host);
  if (!address) return host;
  if (address->is_v4()) return address->to_string();
  auto bytes = address->to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return ip::address_v6(bytes).to_string() + "/64";
}

}  // namespace fedge::protocol
