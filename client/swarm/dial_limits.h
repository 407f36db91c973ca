// DialLimits: bounds the connections that a coordinator can make this client open. A coordinator may name
// any address as a client's, as often as it likes. It must not be able to use this client to attack a third
// party or the client's own network. Pure; owned by the swarm.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/time.h"

namespace fedge::client {

// From how far away an address can be reached, narrowest first.
enum class Reach { kNowhere, kHost, kLink, kPrivate, kPublic };
// kNowhere unless `host` is one host's numeric address: a name could lead anywhere. An IPv6 address that
// leads to an IPv4 address (mapped, 6to4, NAT64) has the reach of that address.
Reach reach_of(const std::string& host);

class DialLimits {
 public:
  static constexpr std::size_t kAtOnce = 8;
  static constexpr std::size_t kAtOnceToHost = 4;
  // Failures in a row before the next dial to a host is delayed: by one second, then twice as long each
  // time, up to kLongestPause.
  static constexpr unsigned kFreeFailures = 8;
  static constexpr Duration kLongestPause = seconds(300);
  // Budget of failed connections to all hosts together; one is refilled each second.
  static constexpr double kFailures = 32;
  static constexpr std::size_t kMaxHosts = 256;

  // Sets the coordinator's address. Addresses of narrower reach than its own may not be dialled. A
  // coordinator that is kNowhere counts as kPublic, which allows the least.
  void coordinator_at(const std::string& host);

  bool may_dial(const std::string& host, Time now);
  void began(const std::string& host, Time now);
  // Once for each began(). `reached`: the host proved that it has the expected key.
  void ended(const std::string& host, Time now, bool reached);

 private:
  struct Host {
    std::size_t dials = 0;  // in progress
    unsigned failures = 0;  // since it was last reached
    Time next{};
  };
  // One name for each host, however its address is written (IPv4 may come as IPv6). Unspecified for a
  // kNowhere host.
  static std::string name_of(const std::string& host);
  void refill(Time now);
  void make_room();

  std::map<std::string, Host> hosts_;  // being dialled, or with failures
  std::size_t dials_ = 0;
  double failures_left_ = kFailures;
  Time refilled_{};
  Reach coordinator_ = Reach::kPublic;
};

}  // namespace fedge::client
