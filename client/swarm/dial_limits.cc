#include "client/swarm/dial_limits.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <optional>
#include <utility>

namespace fedge::client {
namespace {

namespace ip = boost::asio::ip;

bool begins_with(const ip::address_v4& address, std::uint32_t prefix, int bits) {
  return (address.to_uint() ^ prefix) >> (32 - bits) == 0;
}

// The first 64 bits.
std::uint64_t head_of(const ip::address_v6& address) {
  std::uint64_t head = 0;
  for (std::size_t i = 0; i < 8; ++i) head = head << 8 | address.to_bytes()[i];
  return head;
}

bool begins_with(const ip::address_v6& address, std::uint64_t prefix, int bits) {
  return (head_of(address) ^ prefix) >> (64 - bits) == 0;
}

// The IPv4 address that this IPv6 address leads to: 6to4 (RFC 3056), NAT64 (RFC 6052), IPv4-compatible or
// IPv4-mapped.
std::optional<ip::address_v4> inside(const ip::address_v6& address) {
  const auto bytes = address.to_bytes();
  const auto at = [&](std::size_t i) {
    return ip::address_v4({bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]});
  };
  if (begins_with(address, 0x2002'0000'0000'0000, 16)) return at(2);
  const bool nat64 = head_of(address) == 0x0064'ff9b'0000'0000 && at(8).is_unspecified();
  const bool compatible = head_of(address) == 0 && at(8).is_unspecified() && at(12).to_uint() > 1;
  if (nat64 || compatible || address.is_v4_mapped()) return at(12);
  return std::nullopt;
}

// Parses a host's numeric address. Rejects names, and a scope outside link-local addresses, where it is
// meaningless: it would give one host many names.
std::optional<ip::address> number_of_host(const std::string& host) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(host, error);
  if (error) return std::nullopt;
  if (address.is_v4()) return address;
  const ip::address_v6 six = address.to_v6();
  if (six.scope_id() != 0 && !six.is_link_local()) return std::nullopt;
  const auto four = inside(six);
  return four ? ip::address(*four) : address;
}

Reach reach(const ip::address_v4& address) {
  if (address.is_unspecified() || address.is_multicast() || begins_with(address, 0xf0000000, 4))
    return Reach::kNowhere;
  if (begins_with(address, 0x7f000000, 8)) return Reach::kHost;
  if (begins_with(address, 0xa9fe0000, 16)) return Reach::kLink;
  // 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 (RFC 1918), 100.64.0.0/10 (RFC 6598)
  for (const auto& [prefix, bits] :
       {std::pair(0x0a000000U, 8), {0xac100000U, 12}, {0xc0a80000U, 16}, {0x64400000U, 10}})
    if (begins_with(address, prefix, bits)) return Reach::kPrivate;
  return Reach::kPublic;
}

Reach reach(const ip::address_v6& address) {
  if (address.is_unspecified() || address.is_multicast()) return Reach::kNowhere;
  // Teredo, 2001::/32 (RFC 4380), leads to any port of any IPv4 host.
  if (begins_with(address, 0x2001'0000'0000'0000, 32)) return Reach::kNowhere;
  if (address.is_loopback()) return Reach::kHost;
  if (address.is_link_local()) return Reach::kLink;
  // fc00::/7 (RFC 4193), fec0::/10 (RFC 3879), 64:ff9b:1::/48 (RFC 8215)
  const bool is_private = begins_with(address, 0xfc00'0000'0000'0000, 7) || address.is_site_local() ||
                          begins_with(address, 0x0064'ff9b'0001'0000, 48);
  return is_private ? Reach::kPrivate : Reach::kPublic;
}

}  // namespace

Reach reach_of(const std::string& host) {
  const auto address = number_of_host(host);
  if (!address) return Reach::kNowhere;
  return address->is_v4() ? reach(address->to_v4()) : reach(address->to_v6());
}

void DialLimits::coordinator_at(const std::string& host) {
  const Reach there = reach_of(host);
  coordinator_ = there == Reach::kNowhere ? Reach::kPublic : there;
}

std::string DialLimits::name_of(const std::string& host) {
  const auto address = number_of_host(host);
  return address ? address->to_string() : host;
}

bool DialLimits::may_dial(const std::string& host, Time now) {
  const Reach there = reach_of(host);
  if (there == Reach::kNowhere || there < coordinator_ || dials_ >= kAtOnce) return false;
  refill(now);
  if (failures_left_ < static_cast<double>(dials_) + 1) return false;
  const auto known = hosts_.find(name_of(host));
  return known == hosts_.end() || (known->second.dials < kAtOnceToHost && now >= known->second.next);
}

void DialLimits::began(const std::string& host, Time now) {
  refill(now);
  const std::string name = name_of(host);
  if (!hosts_.contains(name)) make_room();
  ++hosts_[name].dials;
  ++dials_;
}

void DialLimits::ended(const std::string& host, Time now, bool reached) {
  const auto known = hosts_.find(name_of(host));
  Host& there = known->second;
  --there.dials;
  --dials_;
  if (reached) {
    there.failures = 0;
    there.next = now;
    if (there.dials == 0) hosts_.erase(known);
    return;
  }
  refill(now);
  failures_left_ -= 1;
  if (++there.failures < kFreeFailures) return;
  const unsigned doublings = std::min(there.failures - kFreeFailures, 16U);
  there.next = now + std::min<Duration>(seconds(1) * (std::int64_t{1} << doublings), kLongestPause);
}

void DialLimits::refill(Time now) {
  failures_left_ = std::min(kFailures, failures_left_ + to_seconds(now - refilled_));
  refilled_ = now;
}

// Forgets the idle host whose pause ends first.
void DialLimits::make_room() {
  if (hosts_.size() < kMaxHosts) return;
  auto soonest = hosts_.end();
  for (auto host = hosts_.begin(); host != hosts_.end(); ++host)
    if (host->second.dials == 0 && (soonest == hosts_.end() || host->second.next < soonest->second.next))
      soonest = host;
  if (soonest != hosts_.end()) hosts_.erase(soonest);
}

}  // namespace fedge::client
