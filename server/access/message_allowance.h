// MessageAllowance: how many messages of a client's reach the engine, and with it the journal on the disk and
// the log. An honest client speaks when it is asked: it answers a run's description, and offers or gives up a
// task. So each connection and each task gives it a few messages, of which so many can be saved up; records
// come at a rate that the run sets. Whoever says more is told so and cut off, and ConnectRate bounds how
// soon it is back. Pure; holds about 100 bytes a client that has ever come, and those are enrolled.
#pragma once

#include <algorithm>
#include <map>

#include "core/ids.h"
#include "core/time.h"
#include "server/coordinator/connect_rate.h"

namespace fedge::server {

class MessageAllowance {
 public:
  // An honest client needs one or two of them each time.
  static constexpr int kForConnection = 4;
  static constexpr int kForTask = 4;
  static constexpr int kSaved = 16;
  static constexpr int kRecordsAtOnce = 16;

  // `record_every`: how often a client is to publish a record; it may do so twice as often.
  explicit MessageAllowance(Duration record_every) : records_(kRecordsAtOnce, record_every / 2) {}

  void connected(ClientId client) { grant(client, kForConnection); }
  void asked(ClientId client) { grant(client, kForTask); }
  // Whether it may say this; counts it if so.
  bool answer(ClientId client) {
    int& left = left_[client];
    if (left == 0) return false;
    --left;
    return true;
  }
  bool record(ClientId client, Time now) { return records_.allow(client, now); }

 private:
  void grant(ClientId client, int messages) {
    int& left = left_[client];
    left = std::min(left + messages, kSaved);
  }

  std::map<ClientId, int> left_;
  ConnectRate records_;
};

}  // namespace fedge::server
