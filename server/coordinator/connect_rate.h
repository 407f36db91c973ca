// ConnectRate bounds how often one client may connect. `at_once` connections are free, for a flapping link
// or a restarted daemon; after that, one is allowed per interval. Pure; 48 bytes for each enrolled client
// that ever connected.
#pragma once

#include <algorithm>
#include <map>

#include "core/ids.h"
#include "core/time.h"

namespace fedge::server {

class ConnectRate {
 public:
  ConnectRate(int at_once, Duration interval) : ahead_(interval * (at_once - 1)), interval_(interval) {}

  // Returns whether this client may connect now, and counts the connection if so.
  bool allow(ClientId client, Time now) {
    Time& due = due_.try_emplace(client, now).first->second;
    if (due - now > ahead_) return false;
    due = std::max(due, now) + interval_;
    return true;
  }

 private:
  Duration ahead_;
  Duration interval_;
  std::map<ClientId, Time> due_;  // when a client's next connection is due at one per interval
};

}  // namespace fedge::server
