// Bounds on the connections that a coordinator can make this client open by naming other clients: it says any
// address and as often as it likes, and must not be able to turn the client against a third party or against
// the client's own network. Pure; owned by the swarm.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/time.h"

namespace fedge::client {

// From how far an address can be reached, the narrowest first.
enum class Reach { kNowhere, kHost, kLink, kPrivate, kPublic };
// kNowhere for what is not the number of one host: a name could lead anywhere. An IPv6 number that leads to
// an IPv4 one (mapped, 6to4, NAT64) reaches as far as that.
Reach reach_of(const std::string& host);

class DialLimits {
 public:
  static constexpr std::size_t kAtOnce = 8;
  static constexpr std::size_t kAtOnceToHost = 4;
  // In a row, before a host is left alone for a while: a second, then twice as long each time, up to the
  // longest pause.
  static constexpr unsigned kFreeFailures = 8;
  static constexpr Duration kLongestPause = seconds(300);
  // Connections to all hosts that may fail at once; one more may each second.
  static constexpr double kFailures = 32;
  static constexpr std::size_t kMaxHosts = 256;

  // Where the coordinator is: what it names may not be nearer to this client than itself.
  // A coordinator that is kNowhere counts as kPublic, which allows the least.
  void coordinator_at(const std::string& host);

  bool may_dial(const std::string& host, Time now);
  void began(const std::string& host, Time now);
  // Once for each began(); `reached`: whoever is there has proved the key that was named.
  void ended(const std::string& host, Time now, bool reached);

 private:
  struct Host {
    std::size_t dials = 0;  // under way
    unsigned failures = 0;  // since it was reached
    Time next{};
  };
  // One name for each host, however its number is written: an IPv4 one may come as IPv6. May be any for a
  // host that is kNowhere.
  static std::string name_of(const std::string& host);
  void refill(Time now);
  void make_room();

  std::map<std::string, Host> hosts_;  // that are dialled, or have failed
  std::size_t dials_ = 0;
  double failures_left_ = kFailures;
  Time refilled_{};
  Reach coordinator_ = Reach::kPublic;
};

}  // namespace fedge::client
