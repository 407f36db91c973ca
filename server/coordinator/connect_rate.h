// ConnectRate: how often one client may connect. Some connections at once are free, for a link that flaps and
// a daemon that is restarted; from then on one each interval. Pure; holds 48 bytes a client that has ever
// come, and those are enrolled.
#pragma once

#include <algorithm>
#include <map>

#include "core/ids.h"
#include "core/time.h"

namespace fedge::server {

class ConnectRate {
 public:
  ConnectRate(int at_once, Duration interval) : ahead_(interval * (at_once - 1)), interval_(interval) {}

  // Whether this client may connect now; counts it if so.
  bool allow(ClientId client, Time now) {
    Time& due = due_.try_emplace(client, now).first->second;
    if (due - now > ahead_) return false;
    due = std::max(due, now) + interval_;
    return true;
  }

 private:
  Duration ahead_;
  Duration interval_;
  std::map<ClientId, Time> due_;  // when its next one would be, were they evenly spread
};

}  // namespace fedge::server
