#include "client/swarm/dial_limits.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

namespace fedge::client {
namespace {

namespace ip = boost::asio::ip;

bool begins_with(const ip::address_v4& address, std::uint32_t prefix, int bits) {
  return (address.to_uint() ^ prefix) >> (32 - bits) == 0;
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
  if (address.is_v4_mapped()) return reach(ip::make_address_v4(ip::v4_mapped, address));
  if (address.is_unspecified() || address.is_multicast()) return Reach::kNowhere;
  if (address.is_loopback()) return Reach::kHost;
  if (address.is_link_local()) return Reach::kLink;
  return (address.to_bytes()[0] & 0xfe) == 0xfc ? Reach::kPrivate : Reach::kPublic;  // fc00::/7, RFC 4193
}

}  // namespace

Reach reach_of(const std::string& host) {
  boost::system::error_code error;
  const ip::address address = ip::make_address(host, error);
  if (error) return Reach::kNowhere;
  return address.is_v4() ? reach(address.to_v4()) : reach(address.to_v6());
}

std::string DialLimits::name_of(const std::string& host) {
  boost::system::error_code error;
  ip::address address = ip::make_address(host, error);
  if (error) return host;
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    address = ip::make_address_v4(ip::v4_mapped, address.to_v6());
  return address.to_string();
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

// Forgets the host that may be dialled again the soonest.
void DialLimits::make_room() {
  if (hosts_.size() < kMaxHosts) return;
  auto soonest = hosts_.end();
  for (auto host = hosts_.begin(); host != hosts_.end(); ++host)
    if (host->second.dials == 0 && (soonest == hosts_.end() || host->second.next < soonest->second.next))
      soonest = host;
  if (soonest != hosts_.end()) hosts_.erase(soonest);
}

}  // namespace fedge::client
